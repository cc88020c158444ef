"""Lines of schedules: queue and machine over time, and distributions of slowdown and wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.pictures import style
from hpcgym.evaluation.pictures.view import Labelled, View, common_calendar
from hpcgym.machine.prices import HOUR_S, MILLIONTHS
from hpcgym.schedule.busy import mean_waiting, share_held

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IntArray = NDArray[np.int64]

N_STRETCHES, N_OVERLAID = 300, 120
"""Stretches of time of a line, each drawn at its mean; fewer where lines are overlaid."""

LETTERS = 130  # letters for which a legend has room beside each other
N_POINTS = 400  # points of a distribution's line


def draw_usage(schedules: Labelled, view: View) -> Figure:
    """Draw the waiting jobs, below the share of the processors held, and the price if there is one.

    All are over time.
    """
    price = _price_of(schedules)
    panels = (1.4, 1.0) if price is None else (1.4, 1.0, 0.7)
    figure = style.blank_figure(style.WIDTH_IN, 5.4 if price is None else 7.0)
    style.write_title(figure, view.title(schedules))
    queue, held, *further = figure.subplots(len(panels), 1, sharex=True, height_ratios=panels)
    is_alone = len(schedules) == 1
    scale = view.scale
    edges = scale.edges(N_STRETCHES if is_alone else N_OVERLAID)
    times = edges / scale.unit
    area = {"fill": True, "color": style.COLOURS[0], "alpha": 0.15, "linewidth": 0}
    for number, (label, schedule) in enumerate(schedules.items()):
        waiting = mean_waiting(schedule, edges)
        share = share_held(schedule, edges)
        line = {"label": style.shortened(label), "linewidth": 1.4} | _style(number)
        for axes, values in ((queue, waiting), (held, share)):
            axes.stairs(values, times, baseline=None, **line)
            if is_alone:
                axes.stairs(values, times, **area)
    style.plain_axes(queue)
    queue.set_ylim(bottom=0.0)
    style.whole_marks(queue, "y")
    queue.set_ylabel("waiting jobs")
    style.finish_shares(held, "processors held")
    for axes in further:
        hours = np.arange(len(price) + 1) * HOUR_S / scale.unit
        axes.stairs(price, hours, baseline=None, color=style.FAINT, linewidth=1.2)
        style.plain_axes(axes)
        axes.set_ylabel("price")
        axes.set_xlim(times[0], times[-1])
    style.finish_time(further[0] if further else held, scale, common_calendar(schedules.values()))
    stretch = (scale.last - scale.first) / (len(edges) - 1)
    if stretch > 1:
        text = f"each step is the mean of {style.duration_text(stretch)}"
        queue.set_title(text, loc="right", fontsize=9, color=style.FAINT)
    if not is_alone:
        columns = max(1, LETTERS // (10 + max(len(style.shortened(label)) for label in schedules)))
        queue.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=9
        )
    return figure


def draw_distribution(schedules: Labelled, view: View) -> Figure:
    """Draw the share of jobs with more than some bounded slowdown, and with more than some wait."""
    figure = style.blank_figure(style.WIDTH_IN, 4.6)
    style.write_title(figure, view.title(schedules))
    left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.06})
    for number, (label, schedule) in enumerate(schedules.items()):
        jobs = view.submitted(schedule)
        bsld, wait = schedule.bsld()[jobs], schedule.per_job()["wait_time"][jobs]
        name, waited = style.shortened(label), (wait > 0).mean()
        text = f"{name}: mean {bsld.mean():,.4g}"
        left.step(*_tail(bsld, 1.0), where="post", label=text, **_style(number))
        text = f"{name}: mean {style.duration_text(wait.mean())}, {_share(waited)} wait"
        right.step(*_tail(wait, 1.0), where="post", label=text, **_style(number))
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlim(left=1.0)
        style.plain_axes(axes)
        axes.legend(loc="lower left", fontsize=9, framealpha=0.9, edgecolor="none")
    left.set_yscale("log")
    left.set_ylim(top=1.0)
    style.plain_numbers(left, "y", _share)
    left.set_ylabel("share of jobs with more")
    style.plain_numbers(left, "x")
    left.set_xlabel("bounded slowdown")
    style.mark_durations(right)
    right.set_xlabel("wait")
    settings = (schedule.settings for schedule in schedules.values())
    thresholds = {made.threshold for made in settings if made is not None and made.threshold}
    for seconds in sorted(thresholds):
        right.axvline(seconds, color=style.FAINT, linewidth=0.8, linestyle=":")
        right.annotate(
            "threshold",
            (seconds, 1),
            (-3, -3),
            ("data", "axes fraction"),
            "offset points",
            ha="right",
            va="top",
            rotation=90,
            fontsize=9,
            color=style.FAINT,
        )
    return figure


def _price_of(schedules: Labelled) -> Any:
    """Return the price of each hour that the first schedule with one has; None = none has."""
    for schedule in schedules.values():
        for event in schedule.events:
            if hasattr(event, "calendar"):
                return event.calendar(schedule.workload)[1] / MILLIONTHS
    return None


def _style(number: int) -> dict[str, Any]:
    """Return colour and stroke of the line of a schedule."""
    return {
        "color": style.COLOURS[number % len(style.COLOURS)],
        "linestyle": style.DASHES[number % len(style.DASHES)],
    }


def _tail(values: style.FloatArray, least: float) -> tuple[style.FloatArray, style.FloatArray]:
    """Return points of the share of values above x, from x = least to where the share is 0."""
    ordered, n = np.sort(values), len(values)
    ranks = np.concatenate([np.linspace(0, n - 1, N_POINTS), n - np.geomspace(1, n, N_POINTS)])
    x = np.unique(np.maximum(ordered[ranks.astype(np.int64)], least))
    share = (n - np.searchsorted(ordered, x, side="right")) / n
    # The last point has no value above it: its line falls to half a job.
    return np.append(x, x[-1]), np.append(share, 0.0).clip(min=0.5 / n)


def _share(value: float) -> str:
    """Write a share in percent."""
    return f"{100 * value:.3g} %"
