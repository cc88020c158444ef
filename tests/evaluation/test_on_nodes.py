"""What an evaluation tells of runs on a machine of nodes."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import Evaluation, cross_validate, evaluate
from hpcgym.evaluation.on_nodes import metrics_on_nodes, tables_on_nodes
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.schedule.simulate import simulate

SCENARIO = "hetero-64-weeks"
COLUMNS = [
    *("utilisation_cpus", "utilisation_gpus", "utilisation_memory_mb"),
    *("fragmentation", "share_one_group"),
    *("mean_bsld_in_batch", "mean_bsld_in_gpu", "mean_bsld_in_debug"),
]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """A rule, and the baseline once more through the environment, on two weeks."""
    saf = RuleAgent("SAF", policies=["SAF"])
    played = NamedAgent("played", saf, {"action": "policy", "policies": ("SAF",)})
    return evaluate(["FCFS", played], SCENARIO, weeks="3-4", progress=False)


def text_of(table: object, width: int = 80) -> str:
    """Return what a terminal of some width shows."""
    console = Console(width=width)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def test_each_run_has_the_metrics_of_its_schedule(evaluation: Evaluation) -> None:
    episodes = Episodes(SCENARIO).select("3-4")
    runs = evaluation.frame[evaluation.frame["agent"] == "FCFS"].set_index("week")
    assert list(runs)[-len(COLUMNS) :] == COLUMNS
    for position, week in enumerate(episodes.numbers):
        settings = vars(episodes.settings) | {"policy": "FCFS"}
        schedule = simulate(episodes.workload(position), **settings)
        found = runs.loc[week]
        resources = schedule.metrics(by="resource")["utilisation"]
        for name in ("cpus", "gpus", "memory_mb"):
            assert found[f"utilisation_{name}"] == resources[name] > 0
        assert found["fragmentation"] == schedule.fragmentation()
        assert found["share_one_group"] == schedule.placement_metrics()["share_one_group"]
        bsld = schedule.metrics(by="partition")["mean_bsld"]
        for name in ("batch", "gpu", "debug"):
            assert found[f"mean_bsld_in_{name}"] == bsld[name]


def test_an_agent_in_the_environment_has_the_same_metrics_as_its_rule(
    evaluation: Evaluation,
) -> None:
    runs = evaluation.frame.set_index("agent")[COLUMNS]
    pd.testing.assert_frame_equal(
        runs.loc["played"].reset_index(drop=True), runs.loc["SAF"].reset_index(drop=True)
    )
    assert not (runs.loc["FCFS"].to_numpy() == runs.loc["SAF"].to_numpy()).all()


def test_the_table_shows_each_mean_whole_and_in_the_order_of_the_comparison(
    evaluation: Evaluation,
) -> None:
    (table,) = evaluation.further_tables()
    text = text_of(table)
    assert "hetero-64-weeks on nodes: mean over weeks" in text
    names = [one.agent for one in evaluation.ranked()]
    lines = [line.split() for line in text.splitlines() if line.split()[:1] != []]
    rows = [line for line in lines if line[0] in names]
    assert [row[0] for row in rows] == names
    for row in rows:
        expected = [evaluation.values(row[0], column).mean() for column in COLUMNS]
        digits = [3] * 5 + [2] * 3
        assert row[1:] == [f"{mean:.{n}f}" for mean, n in zip(expected, digits, strict=True)]


def test_runs_kept_for_a_second_try_have_the_same_metrics(tmp_path: Path) -> None:
    first, second = (
        evaluate(["FCFS"], SCENARIO, weeks="4", resume=tmp_path / "kept", progress=False).frame
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(second, first)
    assert set(COLUMNS) <= set(first)


def test_a_cross_validation_has_them_too() -> None:
    weeks = Episodes(SCENARIO).select("3-4")
    found = cross_validate("SPF", weeks, baselines=["SAF"], jitter=0, replicas=0, progress=False)
    assert set(COLUMNS) <= set(found.runs)
    assert "SPF" in text_of(found.evaluation.further_tables()[0])


def test_nothing_is_added_where_processors_are_counted() -> None:
    found = evaluate(["FCFS"], "tiny", progress=False)
    assert not [name for name in found.frame if name.startswith(("fragm", "mean_bsld_", "share_o"))]
    assert not [name for name in found.frame if name.startswith("utilisation_")]
    assert found.further_tables() == []


def tiny(*partitions: Partition) -> Workload:
    """Two jobs, one after the other, on one node of four cpus and nothing else."""
    machine = Machine((NodeType(1, cpus=4),), partitions)
    return Workload.from_arrays([0, 0], [100, 100], [100, 100], [4, 2], machine=machine)


def test_a_resource_that_the_machine_lacks_and_one_partition_alone_are_left_out() -> None:
    found = metrics_on_nodes(simulate(tiny()))
    assert math.isnan(found.pop("fragmentation"))  # nothing is free while a job waits
    assert found == {"utilisation_cpus": 0.75, "share_one_group": 1.0}


def test_what_no_run_has_is_an_empty_cell_under_its_partition() -> None:
    schedule = simulate(tiny(Partition("[day]", "0"), Partition("[/night]", "0")))
    found = metrics_on_nodes(schedule)
    assert found["mean_bsld_in_[day]"] == 1.5
    assert math.isnan(found["mean_bsld_in_[/night]"])
    (table,) = tables_on_nodes(pd.DataFrame([{"agent": "FCFS", **found}]), ["FCFS"], "Title")
    text = text_of(table)
    assert "[day]" in text
    assert "[/night]" in text
    (row,) = [line for line in text.splitlines() if line.startswith("FCFS")]
    assert row.split() == ["FCFS", "0.750", "1.000", "1.50"]


def test_many_partitions_go_into_further_tables_and_stay_whole() -> None:
    partitions = [Partition(f"part-{number}", "0") for number in range(20)]
    found = metrics_on_nodes(simulate(tiny(*partitions)))
    bsld = {name: 1000.5 + i for i, name in enumerate(found) if name.startswith("mean_bsld_in_")}
    runs = pd.DataFrame([{"agent": "SMITH-HISTORY", **found, **bsld}])
    text = "".join(text_of(one) for one in tables_on_nodes(runs, ["SMITH-HISTORY"], "Title"))
    assert len(bsld) == 20
    for mean in bsld.values():
        assert text.count(f" {mean:.2f}") == 1
    for one in partitions:
        assert len(re.findall(rf"{one.name}\b", text)) == 1
