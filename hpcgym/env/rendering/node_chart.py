"""What a picture of a machine of nodes has beside the jobs: groups, partitions, heads."""

from __future__ import annotations

from hpcgym.core.nodes import shown_partitions
from hpcgym.env.rendering.frame import BoolArray, Frame, Interval, NodesFrame
from hpcgym.env.rendering.pen import (
    CHART,
    FAINT,
    FONT_SMALL,
    HEAD,
    HEAD_TINT,
    INK,
    QUEUE,
    ROW_HEIGHT,
    Box,
    Chart,
    Color,
    Pen,
)
from hpcgym.env.rendering.rows import Rows
from hpcgym.env.rendering.text import duration, totals_of
from hpcgym.ranges import number_ranges

NODES_CHART = (188, 96, 582, 460)
"""Left, top, width and height of the nodes over time."""
HEADS_SHOWN = 3
_BAND, _PITCH = 7, 11
_PARTITIONS: tuple[Color, ...] = (
    (34, 62, 110),
    (160, 84, 20),
    (38, 104, 58),
    (112, 48, 108),
    (18, 112, 120),
    (122, 82, 46),
    (88, 86, 156),
    (150, 54, 80),
)


def draw_node_axis(pen: Pen, nodes: NodesFrame, chart: Chart, rows: Rows) -> None:
    """Draw the groups and the partitions beside the rows."""
    shown = shown_partitions(nodes.machine).tolist()
    left, top, _, _ = chart.box
    first = left - 5 - len(shown) * _PITCH
    for place, partition in enumerate(shown):
        x = first + place * _PITCH
        pen.words(f"{place + 1}", (x + _BAND // 2, top - 20), FAINT, FONT_SMALL, "centre")
        for run in runs_of(nodes.machine.members[partition], nodes, rows):
            y, height = chart.y(run)
            pen.rectangle((x, y, _BAND, height), _PARTITIONS[place])
    _draw_groups(pen, nodes, chart, rows, first - 6)


def _draw_groups(pen: Pen, nodes: NodesFrame, chart: Chart, rows: Rows, right: int) -> None:
    """Write the groups' names beside their rows, and draw lines between them."""
    left, _, width, _ = chart.box
    pen.words("nodes", (right, chart.box[1] - 20), FAINT, FONT_SMALL, "right")
    written_to = 0
    for number, name in enumerate(nodes.machine.group_names):
        members = nodes.machine.node_group == number
        for low, high in runs_of(members, nodes, rows):
            y, height = chart.y((low, high))
            pen.line((right - 2, y), (left + width, y), FAINT)
        middle = y + height // 2
        ids = number_ranges(members.nonzero()[0].tolist())
        if height >= 32 and name:
            pen.words(pen.cut(name, right - 14), (right - 8, middle - 13), INK, FONT_SMALL, "right")
            pen.words(pen.cut(ids, right - 14), (right - 8, middle + 2), FAINT, FONT_SMALL, "right")
        elif middle - 6 >= written_to:
            text = pen.cut(name or ids, right - 14)
            pen.words(text, (right - 8, middle - 6), INK, FONT_SMALL, "right")
            written_to = middle + 6


def runs_of(members: BoolArray, nodes: NodesFrame, rows: Rows) -> list[Interval]:
    """Return the cpus of some nodes in the picture, ascending, with neighbours joined."""
    runs: list[Interval] = []
    ends = rows.first_cpu + nodes.machine.node_cpus
    for low, high in sorted(
        zip(rows.first_cpu[members].tolist(), ends[members].tolist(), strict=True)
    ):
        if runs and runs[-1][1] == low:
            runs[-1] = (runs[-1][0], high)
        else:
            runs.append((low, high))
    return runs


def draw_heads(pen: Pen, nodes: NodesFrame, chart: Chart, rows: Rows) -> None:
    """Hatch each head's earliest start on the nodes of its partition."""
    for head in nodes.heads:
        for run in runs_of(nodes.machine.members[head.partition], nodes, rows):
            y, height = chart.y(run)
            pen.hatch((chart.x(head.shadow_time), y, 7, height), HEAD, HEAD_TINT)


def write_heads(pen: Pen, frame: Frame, nodes: NodesFrame) -> None:
    """Write the heads below the queue."""
    y = CHART[1] + CHART[3] + 36
    for head in nodes.heads[:HEADS_SHOWN]:
        name = nodes.machine.partition_names[head.partition][:16]
        wait = duration(head.shadow_time - frame.now)
        pen.words(f"head of {name}: job {head.job_id}, in {wait}", (QUEUE[0], y), HEAD, FONT_SMALL)
        y += 15


def note_on_rows(pen: Pen, nodes: NodesFrame, rows: Rows) -> None:
    """Write below the legend what a row is, and what is left out."""
    most = int(rows.nodes_in_row.max())
    n, n_rows = nodes.machine.n_nodes, len(rows.cpus)
    text = "a row is a node, as high as its cpus"
    if most > 1:
        text = (
            f"{n:,} nodes in {n_rows:,} rows: a row is up to {most:,} nodes, as high as their cpus"
        )
    left_out = len(nodes.machine.partitions) - len(shown_partitions(nodes.machine))
    if left_out:
        text += f"; {left_out:,} more partitions, of lower tiers, have no band"
    pen.words(text, (CHART[0], CHART[1] + CHART[3] + 56), FAINT, FONT_SMALL)


def queue_above(nodes: NodesFrame) -> Box:
    """Return the place of the queue, above the table of partitions."""
    left, top, width, height = QUEUE
    return left, top, width, height - ROW_HEIGHT * (len(shown_partitions(nodes.machine)) + 2)


def draw_partitions(pen: Pen, nodes: NodesFrame) -> None:
    """Write the free share of each resource in each partition, below the queue."""
    left, _, width, _ = QUEUE
    box = queue_above(nodes)
    y = box[1] + box[3] + ROW_HEIGHT
    columns = (left + 160, left + 215, left + width - 6)
    pen.words("free in partition", (left, y), FAINT, FONT_SMALL)
    for x, title in zip(columns, ("cpus", "GPUs", "memory"), strict=True):
        pen.words(title, (x, y), FAINT, FONT_SMALL, "right")
    for place, partition in enumerate(shown_partitions(nodes.machine).tolist()):
        y += ROW_HEIGHT
        name = pen.cut(nodes.machine.partition_names[partition], 90)
        pen.rectangle((left, y, _BAND, 14), _PARTITIONS[place])
        pen.words(f"{place + 1}", (left + 13, y + 2), FAINT, FONT_SMALL)
        pen.words(name, (left + 26, y + 2), INK, FONT_SMALL)
        total, free = totals_of(nodes, nodes.machine.members[partition])
        for x, own, all_of_it in zip(columns, free, total, strict=True):
            text = f"{own / all_of_it:.0%}" if all_of_it else "-"
            pen.words(text, (x, y + 2), INK, FONT_SMALL, "right")
