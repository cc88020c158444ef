"""Pictures of evaluations and of schedules."""

from hpcgym.evaluation.pictures.figures import draw_evaluation, evaluation_figure
from hpcgym.evaluation.pictures.plots import plot_schedules
from hpcgym.evaluation.pictures.schedule_figures import draw_schedule, schedule_figure

__all__ = [
    "draw_evaluation",
    "draw_schedule",
    "evaluation_figure",
    "plot_schedules",
    "schedule_figure",
]
