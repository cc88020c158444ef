"""Gantt charts: which processors each job held, and when.

The simulator counts processors; which ones a job held is worked out by `Schedule.allocation`. Jobs
that take turns on processors (gang scheduling) have a row each instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError
from hpcgym.evaluation.pictures import style
from hpcgym.evaluation.pictures.schedule_figures import schedule_figure
from hpcgym.evaluation.pictures.style import TimeScale
from hpcgym.evaluation.pictures.view import Labelled, View, common_calendar
from hpcgym.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IntArray = NDArray[np.int64]
Corners = list[tuple[float, float]]

N_JOBS = 2_000  # jobs of a chart, unless others are asked for
MOST_JOBS = 50_000  # jobs that a chart may be asked for: more are narrower than its dots
NAMED_JOBS = 60  # jobs at most whose ids are written into the chart

INK = "0.25"


class How(NamedTuple):
    """How a job was started: its name, colour and hatching."""

    name: str
    colour: str
    hatch: str


HOWS = (
    How("in order", "#6ba3d0", ""),
    How("backfilled", "#f8cb8a", "////"),
    How("beyond the threshold", "#6a4a8c", "...."),
)

IN_VAIN = How("in vain", "#d9d9d9", "xxxx")
"""An attempt that was killed, so that its job waited on."""


def draw_gantt(schedules: Labelled, view: View) -> Figure:
    """Draw a chart for each schedule, below each other; one of nodes where there are nodes."""
    if any(schedule.placement is not None for schedule in schedules.values()):
        return _draw_nodes(schedules, view)
    most = N_JOBS if view.jobs is None else view.jobs
    if not 1 <= most <= MOST_JOBS:
        raise HpcgymError(
            f"a Gantt chart shows 1 to {MOST_JOBS:,} jobs, got {most:,}; days choose a part"
        )
    ends = [_end_of_chart(schedule, view, most) for schedule in schedules.values()]
    scale = style.time_scale(view.first, min(ends))
    sizes = [schedule.workload.machine_processors for schedule in schedules.values()]
    heights = [2.2 if len(sizes) > 2 else float(np.clip(0.35 * n, 1.6, 4.2)) for n in sizes]
    calendar = common_calendar(schedules.values())
    figure = style.blank_figure(style.WIDTH_IN, sum(heights) + 0.9)
    style.write_title(figure, view.title(schedules))
    charts = figure.subplots(len(schedules), 1, squeeze=False, sharex=True, height_ratios=heights)
    for axes, (label, schedule) in zip(charts[:, 0], schedules.items(), strict=True):
        style.finish_time(axes, scale, calendar)
        jobs = _jobs_between(schedule, scale.first, scale.last)
        draw = _draw_processors if schedule.suspended_time is None else _draw_rows
        draw(axes, schedule, jobs, scale)
        axes.set_title(
            _caption(label, schedule, jobs, view, len(schedules)), loc="left", fontsize=9
        )
        axes.label_outer()
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_nodes(schedules: Labelled, view: View) -> Figure:
    if len(schedules) > 1:
        raise HpcgymError(f"a Gantt chart of nodes shows one schedule, got {len(schedules)}")
    if view.jobs is not None:
        raise HpcgymError("a Gantt chart of nodes shows all jobs; days choose a part of it")
    (schedule,) = schedules.values()
    return schedule_figure(schedule, (view.first, view.last) if view.is_part else None)


def _jobs_between(schedule: Schedule, first: int, last: int) -> IntArray:
    """Return the jobs that run between two instants, by start."""
    jobs = np.flatnonzero((schedule.end_time > first) & (schedule.start_time < last))
    return jobs[np.argsort(schedule.start_time[jobs], kind="stable")]


def _end_of_chart(schedule: Schedule, view: View, most: int) -> int:
    """Return the instant up to which so many jobs start; a later part would seem idle."""
    jobs = _jobs_between(schedule, view.first, view.last)
    return view.last if len(jobs) <= most else int(schedule.start_time[jobs[most]])


def _caption(label: str, schedule: Schedule, jobs: IntArray, view: View, n_charts: int) -> str:
    """Say what a chart shows and what it leaves out."""
    shown = len(_jobs_between(schedule, view.first, view.last))
    text = f"{shown:,} {'job' if shown == 1 else 'jobs'}"
    if len(jobs) != shown:
        text = f"first {len(jobs):,} of {shown:,} jobs drawn"
    size = f"{schedule.workload.machine_processors:,} processors"
    return f"{label}: {text}, {size}" if n_charts > 1 else f"{text}, {size}"


def _draw_processors(axes: Axes, schedule: Schedule, jobs: IntArray, scale: TimeScale) -> None:
    """Draw each job as boxes: time to the right, processors upwards."""
    held, unit = schedule.allocation_of_all(), scale.unit
    is_few = len(jobs) <= NAMED_JOBS
    how = np.where(schedule.thresholded, 2, schedule.backfilled.astype(np.int64))
    for number, manner in enumerate(HOWS):
        chosen = jobs[how[jobs] == number]
        boxes = [
            _box(schedule.start_time[job] / unit, schedule.end_time[job] / unit, low, high)
            for job in chosen.tolist()
            for low, high in held.of(job)
        ]
        if len(chosen):
            _draw_boxes(axes, boxes, manner, len(chosen), is_few=is_few)
    vain = schedule.attempts
    if vain is not None:
        shown = np.flatnonzero((vain.end > scale.first) & (vain.taken < scale.last))
        boxes = [
            _box(vain.taken[at] / unit, vain.end[at] / unit, low, high)
            for at in shown.tolist()
            for low, high in held.of(len(schedule) + at)
        ]
        if boxes:
            _draw_boxes(axes, boxes, IN_VAIN, len(shown), is_few=is_few)
        for at in shown.tolist() if is_few else []:
            for low, high in held.of(len(schedule) + at):
                middle = (vain.taken[at] + vain.end[at]) / 2 / unit
                _write(axes, schedule, int(vain.job[at]), middle, (low + high) / 2)
    axes.set_ylim(0, schedule.workload.machine_processors)
    axes.set_ylabel("processors")
    style.whole_marks(axes, "y")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=9)
    for job in jobs.tolist() if is_few else []:
        for low, high in held.of(job):
            _name(axes, schedule, job, (low + high) / 2, unit)


def _draw_boxes(axes: Axes, boxes: list[Corners], how: How, n_jobs: int, *, is_few: bool) -> None:
    """Draw the boxes of jobs that were started alike, hatched where there are few."""
    from matplotlib.collections import PolyCollection

    shapes = PolyCollection(
        boxes,
        facecolor=how.colour,
        edgecolor=INK if is_few else "white",
        linewidth=0.8 if is_few else 0.15,
        hatch=how.hatch if is_few else "",
        label=f"{how.name} ({n_jobs:,})",
    )
    axes.add_collection(shapes)


def _draw_rows(axes: Axes, schedule: Schedule, jobs: IntArray, scale: TimeScale) -> None:
    """Draw a row for each job: a line while it waits, a bar while it takes turns."""
    unit = scale.unit
    rows = np.arange(len(jobs))
    start, end = (times[jobs] / unit for times in (schedule.start_time, schedule.end_time))
    edge = INK if len(jobs) <= NAMED_JOBS else HOWS[0].colour
    axes.hlines(rows, schedule.jobs.submit_time[jobs] / unit, start, color=style.FAINT, linewidth=1)
    axes.barh(rows, end - start, 0.8, start, color=HOWS[0].colour, edgecolor=edge, linewidth=0.5)
    axes.set_ylim(len(jobs) - 0.5, -0.5)
    axes.set_ylabel("jobs")
    axes.set_yticks([])
    axes.set_title("jobs take turns on the processors: a row each", loc="right", fontsize=9)
    if len(jobs) <= NAMED_JOBS:
        for row, job in enumerate(jobs.tolist()):
            _name(axes, schedule, job, row, unit)


def _box(left: float, right: float, low: int, high: int) -> Corners:
    return [(left, low), (right, low), (right, high), (left, high)]


def _name(axes: Axes, schedule: Schedule, job: int, height: float, unit: int) -> None:
    """Write the id of a job into the middle of its time."""
    middle = (schedule.start_time[job] + schedule.end_time[job]) / 2 / unit
    _write(axes, schedule, job, middle, height)


def _write(axes: Axes, schedule: Schedule, job: int, middle: float, height: float) -> None:
    axes.text(
        middle,
        height,
        str(schedule.workload.job_id[job]),
        ha="center",
        va="center",
        fontsize=9,
        clip_on=True,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.75},
    )
