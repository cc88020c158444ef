"""A frame as text: the machine over time, the head's reservation, the queue.

On a machine of nodes what is free in each partition and group replaces the machine over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hpcgym.base.text_table import printable
from hpcgym.core.nodes import shown_partitions
from hpcgym.env.rendering.frame import (
    BoolArray,
    Frame,
    NodesFrame,
    Placement,
    TimeAxis,
    jobs_in_view,
    placed,
    time_axis,
)
from hpcgym.env.rendering.rows import RowPlacement
from hpcgym.schedule.allocation import Interval, fit

TEXT_WIDTH = 100  # columns of the text
TEXT_ROWS = 16  # largest number of rows for the machine
TEXT_JOBS = 10  # largest number of waiting jobs listed
TEXT_GROUPS = 8  # largest number of groups of nodes listed
_MARGIN = 7
_BAR = 20
_COLUMNS = {"nodes": 6, "idle": 6, "cpus free": 18, "GPUs free": 15, "GB free": 20}
"""Titles and widths of what is shown of partitions and groups."""


def ansi(frame: Frame, placement: Placement | RowPlacement | None = None) -> str:
    """Return a frame as text of at most 100 columns, readable without colours.

    Each row is a share of the processors and each column a stretch of time. A job is a letter,
    upper case until now, lower case from now to its estimated end. `placement` holds the earlier
    frames of the episode.
    """
    if frame.nodes is not None:
        return _ansi_of_nodes(frame, frame.nodes)
    assert not isinstance(placement, RowPlacement)
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
    lines = [printable(frame.title), _state_line(frame), ""]
    for row in reversed(range(n_rows)):
        lines.append(f"{labels[row]:>{_MARGIN - 1}} " + "".join(cells[row]))
    legend = "A ran or runs   a until its estimated end   / the head's reservation"
    lines.append(" " * _MARGIN + _tick_line(axis, n_columns))
    lines.append(" " * _MARGIN + legend + "   . idle   | now")
    lines += ["", _head_line(frame), *_queue_lines(frame)]
    return "\n".join(line.rstrip()[:TEXT_WIDTH] for line in lines) + "\n"


def _ansi_of_nodes(frame: Frame, nodes: NodesFrame) -> str:
    lines = [printable(frame.title), _state_line(frame), "", *_free_lines(nodes), ""]
    lines += _heads_lines(frame, nodes) + _queue_lines(frame)
    return "\n".join(line.rstrip()[:TEXT_WIDTH] for line in lines) + "\n"


def _free_lines(nodes: NodesFrame) -> list[str]:
    """Return one line for each partition and each group: nodes, and what of them is free."""
    machine = nodes.machine
    shown = shown_partitions(machine).tolist()
    partitions = [
        (machine.partition_names[partition], machine.members[partition]) for partition in shown
    ]
    groups = [
        (name or "(no name)", machine.node_group == number)
        for number, name in enumerate(machine.group_names[:TEXT_GROUPS])
    ]
    return [
        *_free_table("partition", partitions, nodes),
        *_left_out(len(machine.partitions) - len(partitions), "partitions"),
        *_free_table("group", groups, nodes),
        *_left_out(len(machine.group_names) - len(groups), "groups"),
    ]


def _free_table(title: str, sets: Sequence[tuple[str, BoolArray]], nodes: NodesFrame) -> list[str]:
    """Return a heading, and a line for each named set of nodes."""
    lines = [_free_row(title, _COLUMNS) + "  used cpus"]
    for name, members in sets:
        total, free = totals_of(nodes, members)
        idle = int((members & ~is_used(nodes)).sum())
        cells = (f"{members.sum():,}", f"{idle:,}", *map(free_of, free, total, (1, 1, 1_000)))
        bar = "#" * round(_BAR * (1 - free[0] / total[0]))
        lines.append(f"{_free_row(name, cells)}  {bar:.<{_BAR}}")
    return lines


def _free_row(name: str, cells: Iterable[str]) -> str:
    columns = zip(cells, _COLUMNS.values(), strict=True)
    return f"{printable(name)[:12]:<12}" + "".join(f"{cell:>{width}}" for cell, width in columns)


def totals_of(nodes: NodesFrame, members: BoolArray) -> tuple[list[int], list[int]]:
    """Return cpus, GPUs and memory, MB, of some nodes, and what of each is free."""
    machine = nodes.machine
    columns = (machine.node_cpus, machine.node_gpus, machine.node_memory_mb)
    return [int(column[members].sum()) for column in columns], nodes.free[members].sum(0).tolist()


def is_used(nodes: NodesFrame) -> BoolArray:
    """Return whether a job has a part of each node, shape (n_nodes,)."""
    used: BoolArray = nodes.free[:, 0] < nodes.machine.node_cpus
    return used


def free_of(free: int, total: int, unit: int) -> str:
    """Return how much of a resource is free in text; "-" where there is none.

    Example:
        >>> free_of(300, 1_200, 1), free_of(0, 0, 1)
        ('300 of 1,200', '-')
    """
    return f"{free // unit:,} of {total // unit:,}" if total else "-"


def _left_out(n: int, what: str) -> list[str]:
    """Return a line that says how many more there are, if any."""
    return [f"... and {n:,} more {what}"] if n > 0 else []


def _heads_lines(frame: Frame, nodes: NodesFrame) -> list[str]:
    """Return one line for the head of each component; they are at most three."""
    if not nodes.heads:
        return ["head: none, no job is held back"]
    lines = []
    for head in nodes.heads[:3]:
        name = printable(nodes.machine.partition_names[head.partition])[:20]
        lines.append(
            f"head: job {head.job_id} of {name}; reserved in "
            f"{duration(head.shadow_time - frame.now)}, {clock(head.shadow_time)}"
        )
    return lines + _left_out(len(nodes.heads) - 3, "heads")


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
    asked = _asked_of_nodes(frame)
    lines = [f"queue: {'job':>9} {'processors':>11}{asked[0]} {'estimate':>10} {'waited':>9}"]
    shown = zip(*(column[:TEXT_JOBS].tolist() for column in frame.waiting), strict=True)
    for row, (job, job_id, wait, estimate, processors, thresholded) in enumerate(shown, start=1):
        lines.append(
            f"{_letter(job):>6} {job_id:>9} {processors:>11,}{asked[row]} "
            f"{duration(estimate):>10} {duration(wait):>9}"
            + ("  over the threshold" if thresholded else "")
        )
    rest = len(frame.waiting.job) - TEXT_JOBS
    if rest > 0:
        lines.append(f"{'':>7}... and {rest:,} more")
    return lines


def _asked_of_nodes(frame: Frame) -> list[str]:
    """Return columns about chunks and partitions: their heading, then those of each listed job."""
    n = min(len(frame.waiting.job), TEXT_JOBS)
    if frame.nodes is None:
        return [""] * (n + 1)
    asked = [("chunks", "partition")]
    asked += [(chunks_of(frame, row), partition_of(frame, row)[:12]) for row in range(n)]
    return [f" {chunks:>12}  {partition:<12}" for chunks, partition in asked]


def chunks_of(frame: Frame, row: int) -> str:
    """Return the chunks and cpus of each that a waiting job asks for, such as "4 x 16"."""
    assert frame.nodes is not None
    chunks = int(frame.nodes.chunks[row])
    return f"{chunks:,} x {int(frame.waiting.processors[row]) // chunks:,}"


def partition_of(frame: Frame, row: int) -> str:
    """Return the name of the partition that a waiting job asks for."""
    assert frame.nodes is not None
    return printable(frame.nodes.machine.partition_names[int(frame.nodes.partition[row])])


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
