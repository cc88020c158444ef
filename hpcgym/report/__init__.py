"""Figures of evaluations."""

from hpcgym.report.figures import draw_evaluation, evaluation_figure

__all__ = ["draw_evaluation", "evaluation_figure"]
