"""Pictures of a schedule on a machine of nodes: what each node held, and what no job could use.

Source: Specification, section 13, "Metrics".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import printable
from hpcgym.core import node_metrics
from hpcgym.evaluation.pictures import style
from hpcgym.evaluation.pictures.view import label_of, thresholds_of
from hpcgym.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.core.nodes import Placement
    from hpcgym.machine import Machine

N_COLUMNS = 1_000  # columns of the picture of nodes; each shows the mean of its stretch of time
N_POINTS = 250  # points of a line over time, each a mean as well

UNUSABLE = "#8a8f98"
DOWN = "#e8e8e8"

SHARP_NODES = 400
"""Nodes at most that are drawn with sharp edges; of more, rows share dots and are averaged."""

DRAWN_PARTITIONS = 40  # partitions that have a bar; of more the first in the machine's file
NAMED_GROUPS = 30  # groups whose names have room beside the nodes

NAMES = {"cpus": "cpus", "gpus": "GPUs", "memory_mb": "memory"}


def draw_schedule(schedule: Schedule, path: str | Path, *, force: bool = False) -> None:
    """Draw a schedule on a machine of nodes into a file.

    Above, one row per node, by group: the share of its cpus held; bars beside them mark the nodes
    of each partition. In the middle, what is held of each resource. Below, the fragmentation.

    Args:
        path: A file ending in .png, .pdf or .svg.
        force: Whether to replace a file that is there.

    Raises:
        HpcgymError: The schedule counts processors or is unfinished, matplotlib is not installed,
            or the name ends otherwise.
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    style.format_of(path)  # refuse before a long picture is drawn
    style.save(schedule_figure(schedule), path, force=force)


def schedule_figure(schedule: Schedule, between: tuple[int, int] | None = None) -> Figure:
    """Return such a figure, to be saved or shown by the caller; see `draw_schedule`.

    `between` are the first and the last instant drawn, s.

    Raises:
        HpcgymError: The schedule counts processors or is unfinished, or matplotlib is not
            installed.
    """
    machine, placement = schedule.workload.machine, schedule.placement
    if machine is None or placement is None:
        raise HpcgymError(
            f"{schedule.workload.name}: this schedule counts processors; nodes are drawn of one on "
            "a machine of nodes"
        )
    usage = node_metrics.usage(*schedule.on_nodes())
    scale = style.time_scale(*(between or (int(usage["time"][0]), int(usage["time"][-1]))))
    bands = 0.19 * min(len(machine.partitions), DRAWN_PARTITIONS)
    nodes_in = min(max(0.06 * machine.n_nodes, 2.2), 5.5)
    figure = style.blank_figure(style.WIDTH_IN, nodes_in + 4.2)
    title = schedule.workload.name
    if schedule.settings is not None:
        title += f": {label_of(schedule)}, placement {schedule.settings.placement}"
        title += thresholds_of({title: schedule})
    style.write_title(figure, title)
    axes = figure.subplots(
        3,
        2,
        squeeze=False,
        sharex="col",
        height_ratios=(nodes_in, 1.7, 0.9),
        width_ratios=(9.0, bands),
    )
    draw_occupation(axes[0, 0], schedule, machine, placement, scale)
    draw_partitions(axes[0, 1], machine)
    draw_utilisation(axes[1, 0], schedule, usage, scale)
    draw_fragmentation(axes[2, 0], schedule, usage, scale)
    for empty in axes[1:, 1]:
        empty.set_axis_off()
    style.finish_time(axes[2, 0], scale, style.Calendar.of(schedule.workload))
    return figure


def draw_occupation(
    axes: Axes, schedule: Schedule, machine: Machine, placement: Placement, scale: style.TimeScale
) -> None:
    """Draw nodes as rows, group by group, darker where more of their cpus are held."""
    edges = scale.edges(N_COLUMNS)
    share = node_metrics.occupation(
        schedule.workload, schedule.start_time, schedule.run_time, placement, edges
    )
    order = np.argsort(machine.node_group, kind="stable")
    extent = (scale.first / scale.unit, scale.last / scale.unit, machine.n_nodes, 0)
    image = axes.imshow(
        share[order],
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        extent=extent,
        interpolation="nearest" if machine.n_nodes <= SHARP_NODES else "antialiased",
    )
    bar = axes.figure.colorbar(
        image, cax=axes.inset_axes((0.75, 1.02, 0.25, 0.025)), orientation="horizontal"
    )
    bar.set_ticks([0.0, 0.5, 1.0], labels=["0 %", "50 %", "100 %"])
    bar.ax.tick_params(labelsize=9, labeltop=True, labelbottom=False, length=0)
    title = "share of each node's cpus held"
    if _draw_downtimes(axes, schedule, order, scale):
        title += "; hatched: down"
    axes.set_title(title, loc="left", fontsize=9)
    _mark_groups(axes, machine)
    axes.tick_params(axis="x", labelbottom=False)


def _draw_downtimes(
    axes: Axes, schedule: Schedule, order: node_metrics.IntArray, scale: style.TimeScale
) -> bool:
    """Draw, hatched, when nodes were down, in the rows of `order`; tell whether any were."""
    jobs, start, run, _, outage = schedule.on_nodes()
    node, begin, end = node_metrics.downtimes(jobs, start, run, outage)
    if not len(node):
        return False
    from matplotlib.collections import PolyCollection

    row = np.argsort(order)[node]
    left, right = begin / scale.unit, end / scale.unit
    corners = [(left, row), (right, row), (right, row + 1), (left, row + 1)]
    boxes = list(np.stack([np.stack(corner, axis=1) for corner in corners], axis=1))
    down = PolyCollection(boxes, facecolor=DOWN, edgecolor=UNUSABLE, hatch="////", linewidth=0)
    axes.add_collection(down, autolim=False)
    return True


def _mark_groups(axes: Axes, machine: Machine) -> None:
    """Part the groups by lines, and write their names and sizes."""
    sizes = np.bincount(machine.node_group)
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        axes.axhline(end, color="black", linewidth=0.7)
    every = -(-len(sizes) // NAMED_GROUPS)
    names = [
        f"{printable(name) or 'nodes'} ({size})"
        for name, size in zip(machine.group_names, sizes, strict=True)
    ]
    axes.set_yticks((ends - sizes / 2)[::every], names[::every], fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("nodes by group")


def draw_partitions(axes: Axes, machine: Machine) -> None:
    """Draw one bar for each of the first partitions, beside the nodes that it has."""
    order = np.argsort(machine.node_group, kind="stable")
    names = list(map(printable, machine.partition_names[:DRAWN_PARTITIONS]))
    for column, members in enumerate(machine.members[: len(names), order]):
        change = np.flatnonzero(np.diff(members.astype(np.int8), prepend=0, append=0))
        first, end = change[::2], change[1::2]
        colour = style.COLOURS[column % len(style.COLOURS)]
        axes.bar(np.full(len(first), column), end - first, 0.7, first, color=colour, linewidth=0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(machine.n_nodes, 0)
    if len(names) < len(machine.partitions):
        axes.set_xlabel(f"of {len(machine.partitions):,} partitions", fontsize=9)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.tick_params(axis="x", labelsize=9, length=0, labeltop=True, labelbottom=False)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def draw_utilisation(
    axes: Axes, schedule: Schedule, usage: dict[str, node_metrics.IntArray], scale: style.TimeScale
) -> None:
    """Draw the share of each resource that is held."""
    edges = scale.edges(N_POINTS)
    table = schedule.metrics("resource")
    for key, colour in zip(node_metrics.RESOURCES, style.LINES, strict=False):
        capacity = table["capacity"][key]
        if capacity:
            share = node_metrics.mean_between(usage["time"], usage[key], edges) / capacity
            label = f"{NAMES[key]} {100 * table['utilisation'][key]:.1f} %"
            axes.stairs(share, edges / scale.unit, color=colour, linewidth=1.3, label=label)
    style.finish_shares(axes, "share held")
    axes.tick_params(axis="x", labelbottom=False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize=9)


def draw_fragmentation(
    axes: Axes, schedule: Schedule, usage: dict[str, node_metrics.IntArray], scale: style.TimeScale
) -> None:
    """Draw the share of the free cpus that no waiting job can use; nothing while none waits."""
    edges = scale.edges(N_POINTS)
    free, unusable = (
        node_metrics.mean_between(usage["time"], values, edges)
        for values in node_metrics.free_while_waiting(schedule.workload, usage)
    )
    with np.errstate(invalid="ignore"):
        share = unusable / free
    axes.stairs(share, edges / scale.unit, fill=True, color=UNUSABLE, alpha=0.6, linewidth=0)
    mean = node_metrics.fragmentation(schedule.workload, usage)
    text = f"{100 * mean:.1f} % of free cpu time while jobs waited"
    if np.isnan(mean):
        text = "no job waited"
    title = f"fragmentation, free cpus that no waiting job can use: {text}"
    axes.set_title(title, loc="left", fontsize=9)
    style.finish_shares(axes, "share")
