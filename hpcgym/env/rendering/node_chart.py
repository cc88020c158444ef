"""What a picture of a machine of nodes has beside the jobs: groups, partitions, heads."""

from __future__ import annotations

from hpcgym.base.ranges import number_ranges
from hpcgym.core.nodes import shown_partitions
from hpcgym.env.rendering.frame import BoolArray, Frame, NodesFrame
from hpcgym.env.rendering.pen import (
    CHART,
    FAINT,
    FONT_SMALL,
    HEAD,
    HEAD_TINT,
    INK,
    LINE,
    QUEUE,
    ROW_HEIGHT,
    Box,
    Chart,
    Color,
    Pen,
)
from hpcgym.env.rendering.rows import Rows
from hpcgym.env.rendering.text import duration, totals_of
from hpcgym.schedule.allocation import Interval

NODES_CHART = (188, 96, 582, 460)  # left, top, width and height of the nodes over time
HEADS_SHOWN = 3
THINNEST_LINED_ROW = 5  # height from which rows have lines between them, pixels
_LINED_GROUP, _TWO_LINES = 8, 40
_BAND, _PITCH = 7, 11
_BETWEEN_GROUPS: Color = (176, 178, 180)
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


def draw_rows(pen: Pen, chart: Chart, rows: Rows) -> None:
    """Draw lines between rows that are high enough to be told apart."""
    left, _, width, _ = chart.box
    spans = zip(rows.row_first_cpu.tolist(), rows.cpus.tolist(), strict=True)
    heights = [chart.y((low, low + cpus)) for low, cpus in spans]
    if min(height for _, height in heights) >= THINNEST_LINED_ROW:
        for top, _ in heights:
            pen.line((left, top), (left + width, top), LINE)


def draw_node_axis(pen: Pen, nodes: NodesFrame, chart: Chart, rows: Rows) -> int:
    """Draw groups and partitions beside the rows; return how many groups stay without a name."""
    shown = shown_partitions(nodes.machine).tolist()
    left, top, _, _ = chart.box
    first = left - 5 - len(shown) * _PITCH
    pen.words("nodes", (first - 10, top - 20), FAINT, FONT_SMALL, "right")
    unnamed = _draw_groups(pen, nodes, chart, rows, first - 10)
    for column, partition in enumerate(shown):
        x = first + column * _PITCH
        pen.words(f"{column + 1}", (x + _BAND // 2, top - 20), FAINT, FONT_SMALL, "centre")
        for run in runs_of(nodes.machine.members[partition], nodes, rows):
            y, height = chart.y(run)
            pen.rectangle((x, y, _BAND, height), _PARTITIONS[column])
    return unnamed


def _draw_groups(pen: Pen, nodes: NodesFrame, chart: Chart, rows: Rows, right: int) -> int:
    """Draw a line below each high group and write names; return for how many there is no room."""
    left, _, width, _ = chart.box
    unnamed, written_to = 0, 0
    for number, name in enumerate(nodes.machine.group_names):
        members = nodes.machine.node_group == number
        y, height = chart.y(runs_of(members, nodes, rows)[0])
        if height >= _LINED_GROUP:
            pen.line((right, y + height), (left + width - 1, y + height), _BETWEEN_GROUPS)
        ids = number_ranges(members.nonzero()[0].tolist())
        lines = [name, ids] if name and height >= _TWO_LINES else [name or ids]
        top = y + height // 2 - 7 * len(lines)
        if top < written_to:
            unnamed += 1
            continue
        for text, color in zip(lines, (INK, FAINT), strict=False):
            pen.words(pen.cut(text, right - 6), (right, top + 1), color, FONT_SMALL, "right")
            top += 14
        written_to = top
    return unnamed


def runs_of(members: BoolArray, nodes: NodesFrame, rows: Rows) -> list[Interval]:
    """Return the cpus of some nodes in the picture, ascending, with neighbours joined."""
    runs: list[Interval] = []
    ends = rows.first_cpu + nodes.machine.node_cpus
    spans = zip(rows.first_cpu[members].tolist(), ends[members].tolist(), strict=True)
    for low, high in sorted(spans):
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
    """Write the heads below the queue, or how many there are if they are many."""
    lines = []
    for head in nodes.heads:
        name = pen.cut(nodes.machine.partition_names[head.partition], 100)
        wait = duration(head.shadow_time - frame.now)
        lines.append(f"head of {name}: job {head.job_id}, in {wait}")
    if len(lines) > HEADS_SHOWN:
        lines[HEADS_SHOWN - 1 :] = [f"and {len(lines) - HEADS_SHOWN + 1} more heads"]
    for row, line in enumerate(lines):
        y = CHART[1] + CHART[3] + 36 + 15 * row
        pen.words(line, (QUEUE[0], y), HEAD, FONT_SMALL)


def note_on_rows(pen: Pen, nodes: NodesFrame, rows: Rows, unnamed: int) -> None:
    """Write below the legend what a row is, and what is left out."""
    n, most = nodes.machine.n_nodes, int(rows.nodes_in_row.max())
    notes = ["a row is a node, as high as its cpus"]
    if most > 1:
        notes = [f"{n:,} nodes in {len(rows.cpus):,} rows: a row is up to {most:,} nodes"]
    left_out = len(nodes.machine.partitions) - len(shown_partitions(nodes.machine))
    if left_out:
        notes.append(f"partitions without a band: {left_out:,}")
    if unnamed:
        notes.append(f"groups without a name: {unnamed:,}")
    pen.words("; ".join(notes), (CHART[0], CHART[1] + CHART[3] + 56), FAINT, FONT_SMALL)


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
    for row, partition in enumerate(shown_partitions(nodes.machine).tolist()):
        y += ROW_HEIGHT
        name = pen.cut(nodes.machine.partition_names[partition], 90)
        pen.rectangle((left, y, _BAND, 14), _PARTITIONS[row])
        pen.words(f"{row + 1}", (left + 13, y + 2), FAINT, FONT_SMALL)
        pen.words(name, (left + 26, y + 2), INK, FONT_SMALL)
        total, free = totals_of(nodes, nodes.machine.members[partition])
        for x, unused, all_of_it in zip(columns, free, total, strict=True):
            text = f"{unused / all_of_it:.0%}" if all_of_it else "-"
            pen.words(text, (x, y + 2), INK, FONT_SMALL, "right")
