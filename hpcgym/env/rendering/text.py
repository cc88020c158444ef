"""A frame as text: the machine over time, the head's reservation, the queue."""

from __future__ import annotations

import numpy as np

from hpcgym.env.rendering.frame import (
    Frame,
    Interval,
    Placement,
    TimeAxis,
    fit,
    jobs_in_view,
    placed,
    time_axis,
)

TEXT_WIDTH = 100
"""Columns of the text."""
TEXT_ROWS = 16
"""Largest number of rows for the machine."""
TEXT_JOBS = 10
"""Largest number of waiting jobs listed."""
_MARGIN = 7


def ansi(frame: Frame, placement: Placement | None = None) -> str:
    """Return a frame as text of at most 100 columns, readable without colours.

    Each row is a share of the processors and each column a stretch of time. A job is a letter,
    upper case until now, lower case from now to its estimated end. `placement` holds the earlier
    frames of the episode.
    """
    placement = placed(frame, placement)
    axis = time_axis(frame)
    n_rows = min(TEXT_ROWS, frame.machine_processors)
    n_columns = TEXT_WIDTH - _MARGIN
    instants = axis.first + (np.arange(n_columns) + 0.5) * (axis.last - axis.first) / n_columns
    middles = (np.arange(n_rows) + 0.5) * frame.machine_processors / n_rows
    cells = np.full((n_rows, n_columns), ".")
    cells[:, instants < 0] = " "

    def fill(intervals: list[Interval], start: float, end: float, letter: str) -> None:
        first, last = np.searchsorted(instants, [start, end])
        for low, high in intervals:
            bottom, top = np.searchsorted(middles, [low, high])
            cells[bottom:top, first:last] = letter

    for job, start, end in jobs_in_view(frame, axis):
        letter = _letter(job)
        where = placement.intervals.get(job, [])
        fill(where, start, min(end, frame.now), letter)
        fill(where, max(start, frame.now), end, letter.lower())
    head = frame.reservation
    if head is not None:
        free = placement.free_at(frame.started, head.shadow_time)
        end = head.shadow_time + head.estimate
        fill(fit(free, head.processors), head.shadow_time, end, "/")
    cells[:, n_columns // 2] = "|"

    labels = [""] * n_rows
    labels[0], labels[-1] = "1", str(frame.machine_processors)
    lines = [frame.title, _state_line(frame), ""]
    for row in reversed(range(n_rows)):
        lines.append(f"{labels[row]:>{_MARGIN - 1}} " + "".join(cells[row]))
    lines.append(" " * _MARGIN + _tick_line(axis, n_columns))
    lines.append(
        " " * _MARGIN + "A ran or runs   a until its estimated end   / the head's reservation"
        "   . idle   | now"
    )
    lines.append("")
    lines.append(_head_line(frame))
    lines.extend(_queue_lines(frame))
    return "\n".join(line.rstrip()[:TEXT_WIDTH] for line in lines) + "\n"


def duration(seconds: float) -> str:
    """Return a duration in few characters, with its unit.

    Example:
        >>> duration(45), duration(5_000), duration(20_000), duration(500_000)
        ('45 s', '83 min', '5.6 h', '5.8 d')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3_600:
        return f"{seconds / 3_600:.1f} h"
    return f"{seconds / 86_400:.1f} d"


def clock(instant: int) -> str:
    """Return an instant as day, counted from 0, and time of day since the episode's start.

    Example:
        >>> clock(184_500)
        'day 2 03:15:00'
    """
    day, rest = divmod(instant, 86_400)
    return f"day {day} {rest // 3_600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def _state_line(frame: Frame) -> str:
    """Return the time, and how full machine and queue are."""
    busy, size = frame.busy_processors, frame.machine_processors
    return (
        f"{clock(frame.now)}   busy {busy:,} of {size:,} processors ({busy / size:.0%})   "
        f"running {int(frame.started.running.sum()):,}   waiting {len(frame.waiting.job):,}"
    )


def _head_line(frame: Frame) -> str:
    """Return the reservation of the head in words."""
    head = frame.reservation
    if head is None:
        return "head: none, no job is held back"
    return (
        f"head: job {head.job_id} wants {head.processors:,} processors for "
        f"{duration(head.estimate)}; reserved in {duration(head.shadow_time - frame.now)}, "
        f"{clock(head.shadow_time)}, {head.extra_processors:,} extra"
    )


def _queue_lines(frame: Frame) -> list[str]:
    """Return one line for each of the first waiting jobs."""
    if not len(frame.waiting.job):
        return ["queue: empty"]
    lines = [f"queue: {'job':>9} {'processors':>11} {'estimate':>10} {'waited':>9}"]
    shown = zip(*(column[:TEXT_JOBS].tolist() for column in frame.waiting), strict=True)
    for job, job_id, wait, estimate, processors, thresholded in shown:
        lines.append(
            f"{_letter(job):>6} {job_id:>9} {processors:>11,} "
            f"{duration(estimate):>10} {duration(wait):>9}"
            + ("  over the threshold" if thresholded else "")
        )
    rest = len(frame.waiting.job) - TEXT_JOBS
    if rest > 0:
        lines.append(f"{'':>7}... and {rest:,} more")
    return lines


def _letter(job: int) -> str:
    """Return the letter of a job; every 26th job shares it."""
    return chr(ord("A") + job % 26)


def _tick_line(axis: TimeAxis, n_columns: int) -> str:
    """Return the times of the marks, each below its column."""
    line = [" "] * (n_columns + 16)
    free = 0
    for instant in axis.ticks():
        column = int((instant - axis.first) / (axis.last - axis.first) * n_columns)
        label = f"'{tick_label(instant, axis.tick)}"
        if column >= free and column + len(label) <= n_columns:
            line[column : column + len(label)] = label
            free = column + len(label) + 1
    return "".join(line[:n_columns])


def tick_label(instant: int, tick: int) -> str:
    """Return the time of a mark, no finer than the distance of the marks; days count from 0.

    Example:
        >>> tick_label(184_500, 300), tick_label(172_800, 86_400)
        ('d2 03:15', 'day 2')
    """
    day, rest = divmod(instant, 86_400)
    hour, minute, second = rest // 3_600, rest // 60 % 60, rest % 60
    if tick % 86_400 == 0:
        return f"day {day}"
    time = f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if tick % 60 else "")
    return f"d{day} {time}" if day else time
