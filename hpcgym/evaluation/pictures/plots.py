"""Pictures of schedules, by kind; several schedules share axes or have panels of their own.

A kind is a function of labelled schedules and a `View`, listed in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.base.errors import HpcgymError, unknown_name
from hpcgym.base.text_table import printable
from hpcgym.evaluation.pictures.gantt import draw_gantt
from hpcgym.evaluation.pictures.heat_maps import draw_hours, draw_sizes
from hpcgym.evaluation.pictures.lines import draw_distribution, draw_usage
from hpcgym.evaluation.pictures.style import DPI, format_of, save
from hpcgym.evaluation.pictures.view import Labelled, View, label_of
from hpcgym.schedule.lost import useful_part
from hpcgym.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: dict[str, Callable[[Labelled, View], Figure]] = {
    "gantt": draw_gantt,
    "usage": draw_usage,
    "distribution": draw_distribution,
    "hours": draw_hours,
    "sizes": draw_sizes,
}

MOST_SCHEDULES = 8  # schedules of one picture at most: so many colours are told apart


def plot_schedules(
    schedules: Labelled | Schedule,
    kind: str = "gantt",
    path: str | Path | None = None,
    *,
    against: Labelled | None = None,
    days: tuple[float, float] | None = None,
    jobs: int | None = None,
    force: bool = False,
    dpi: int = DPI,
) -> Figure:
    """Draw schedules, by label, as a picture of a kind; write it where a path is given.

    Args:
        kind: What is drawn.

            | kind | picture |
            |---|---|
            | "gantt" | which processors, or nodes, each job held, and when |
            | "usage" | how many jobs wait, and what share of the processors is held, over time |
            | "distribution" | share of jobs above each bounded slowdown, and above each wait |
            | "hours" | submissions and mean bounded slowdown by hour and weekday |
            | "sizes" | mean bounded slowdown and number of jobs by processors and run time |
        against: Further schedules.
        path: A file ending in .png, .pdf or .svg.
        days: First and last day drawn, from the start of the log. Kinds over time show what ran and
            waited then, the others the jobs submitted then.
        jobs: Jobs of a Gantt chart at most, the first to start; default 2,000.
        force: Whether to replace a file that is there.
        dpi: Dots per inch of a .png; the picture is 9.5 inches wide.

    Raises:
        HpcgymError: An unknown kind, an unfinished schedule, too many schedules or jobs, no job in
            these days, the name of the file, or matplotlib is not installed.
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    labelled = {label_of(schedules): schedules} if isinstance(schedules, Schedule) else schedules
    labelled = {
        printable(key): schedule for key, schedule in {**labelled, **(against or {})}.items()
    }
    check_kind(kind, jobs)
    if path is not None:
        format_of(path)  # refuse before a long picture is drawn
    if not 1 <= len(labelled) <= MOST_SCHEDULES:
        raise HpcgymError(f"a picture shows 1 to {MOST_SCHEDULES} schedules, got {len(labelled)}")
    for label, schedule in labelled.items():
        schedule.refuse_unfinished(f"a picture of {label}")
    view = View.of(labelled, days, jobs)
    if kind != "gantt":  # which shows attempts in vain, too
        labelled = {label: useful_part(schedule) for label, schedule in labelled.items()}
    figure = KINDS[kind](labelled, view)
    if path is not None:
        save(figure, path, force=force, dpi=dpi)
    return figure


def check_kind(kind: str, jobs: int | None) -> None:
    """Raise HpcgymError for an unknown kind, or for a number of jobs where all are shown."""
    if kind not in KINDS:
        raise HpcgymError(unknown_name("kind of picture", kind, KINDS))
    if jobs is not None and kind != "gantt":
        raise HpcgymError(f"a number of jobs limits Gantt charts; {kind!r} shows all jobs")
