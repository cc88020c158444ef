"""Figures of a schedule on a machine of nodes."""

from pathlib import Path

import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.core.nodes import Placement
from hpcgym.core.workload import Workload
from hpcgym.evaluation.pictures import draw_schedule, schedule_figure
from hpcgym.evaluation.pictures.style import time_scale
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.schedule.schedule import Schedule

DAY_S = 86_400


def schedule_on(machine: Machine | None, run_time_s: int = 3 * DAY_S) -> Schedule:
    """Two jobs of 4 cpus on node 0, one after the other; the second waits for the first."""
    size = 16 if machine is None else None
    times = ([0, 0], [run_time_s] * 2, [max(run_time_s, 1)] * 2, [4, 4])
    jobs = Workload.from_arrays(*times, machine_processors=size, machine=machine, name="two")
    never = np.zeros(2, dtype=bool)
    placement = Placement(np.arange(3), np.zeros(2, dtype=np.int64), np.full(2, 4))
    placed = placement if machine else None
    return Schedule(jobs, np.array([0, run_time_s]), jobs.run_time, never, never, placement=placed)


@pytest.fixture
def schedule() -> Schedule:
    """The jobs on four nodes whose groups alternate."""
    nodes = tuple(NodeType(1, cpus=4, gpus=1, group=group) for group in ("a", "b", "a", "b"))
    return schedule_on(Machine(nodes, (Partition("batch", "0-3"), Partition("ends", "0,3"))))


def test_rows_are_nodes_by_group_and_their_colour_is_the_share_of_cpus(schedule: Schedule) -> None:
    pytest.importorskip("matplotlib")
    nodes, *_ = schedule_figure(schedule).get_axes()
    assert [label.get_text() for label in nodes.get_yticklabels()] == ["a (2)", "b (2)"]
    shown = np.asarray(nodes.get_images()[0].get_array())
    assert shown.mean(axis=1).tolist() == pytest.approx([1, 0, 0, 0])


def test_bars_mark_the_nodes_of_each_partition(schedule: Schedule) -> None:
    pytest.importorskip("matplotlib")
    _, partitions, *_ = schedule_figure(schedule).get_axes()
    assert [label.get_text() for label in partitions.get_xticklabels()] == ["batch", "ends"]
    bars = [(bar.get_y(), bar.get_height()) for bar in partitions.patches]
    assert bars == [(0, 4), (0, 1), (3, 1)]  # nodes 0 and 3 are the first and the last row


def test_lines_say_what_each_resource_was_used_at(schedule: Schedule) -> None:
    pytest.importorskip("matplotlib")
    _, _, shares, _, fragmentation, *_ = schedule_figure(schedule).get_axes()
    labels = [text.get_text() for text in shares.get_legend().get_texts()]
    assert labels == ["cpus 25.0 %", "GPUs 0.0 %"]  # nothing of memory, which is not counted
    assert "0.0 % of free cpu time" in fragmentation.get_title("left")
    assert fragmentation.get_xlabel() == "days since the start of the log"


@pytest.mark.parametrize("run_time_s", [0, 1, 40 * 7 * DAY_S])
def test_any_length_of_time_is_drawn(run_time_s: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_schedule(schedule_on(Machine((NodeType(1, 4),)), run_time_s), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("last", "marks"),
    [
        (7, ("seconds", 1)),
        (3 * 3_600, ("minutes", 30)),
        (9 * DAY_S, ("days", 1)),
        (60 * DAY_S, ("weeks", 1)),
        (365 * DAY_S, ("weeks", 4)),
    ],
)
def test_marks_of_time_are_whole_units(last: int, marks: tuple[str, float]) -> None:
    scale = time_scale(0, last)
    assert (scale.name, scale.step) == marks


def test_what_cannot_be_drawn_is_refused(schedule: Schedule, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(HpcgymError, match=r"two: .* counts processors"):
        schedule_figure(schedule_on(None))
    with pytest.raises(HpcgymError, match=r"must end in \.png, \.pdf, \.svg"):
        draw_schedule(schedule, tmp_path / "figure.gif")
    (tmp_path / "figure.png").write_bytes(b"precious")
    with pytest.raises(OutputError, match="exists already"):
        draw_schedule(schedule, tmp_path / "figure.png")


def test_of_many_partitions_the_first_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    parts = tuple(Partition(f"p{k}", "0-3") for k in range(1_000))
    _, bars, *_ = schedule_figure(schedule_on(Machine((NodeType(4, cpus=4),), parts))).get_axes()
    assert [label.get_text() for label in bars.get_xticklabels()] == [f"p{k}" for k in range(40)]
    assert bars.get_xlabel() == "of 1,000 partitions"


@pytest.mark.long
def test_nodes_that_are_down_are_hatched_in_their_rows():
    machine = Machine((NodeType(1, 4, group="b"), NodeType(2, 4, group="a")))
    jobs = hpcgym.Workload.from_arrays([0], [90], [90], [4], machine=machine, chunks=[4])
    schedule = hpcgym.simulate(jobs, events="outage:from=10,to=40,nodes=1/2")
    axes = schedule_figure(schedule).get_axes()[0]
    assert "hatched: down" in axes.get_title("left")
    (down,) = axes.collections
    unit = 90 / axes.get_xlim()[1]
    corners = sorted(tuple(path.vertices[0]) for path in down.get_paths())
    assert corners == [(10 / unit, 1), (10 / unit, 2)]
    plain = schedule_figure(hpcgym.simulate(jobs)).get_axes()[0]
    assert not plain.collections and "down" not in plain.get_title("left")
