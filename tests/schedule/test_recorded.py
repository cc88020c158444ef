"""Recorded starts as a schedule: replayed, checked against the machine, and a baseline."""

import dataclasses
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.agent.shelf import load_agent, load_card
from hpcgym.base.errors import HpcgymError, PolicyError, WorkloadError
from hpcgym.cli import app
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.on_nodes import BY_PARTITION, metrics_on_nodes
from hpcgym.schedule.recorded import overfull
from hpcgym.schedule.schedule import Schedule

TINY = hpcgym.load_workload("tiny")


def workload(waits: list[int], processors: int = 4) -> Workload:
    """Make jobs of three processors, submitted at once, which run 100 s and ask for 60 s."""
    n = len(waits)
    columns = [0] * n, [100] * n, [60] * n, [3] * n
    return Workload.from_arrays(*columns, wait_time=waits, machine_processors=processors)


@pytest.mark.parametrize("named", [{"policy": "recorded"}, {"backfill": "recorded"}])
def test_jobs_start_when_the_log_says(named: dict[str, str]) -> None:
    found = hpcgym.simulate(TINY, **named)
    assert np.array_equal(found.start_time, TINY.submit_time + TINY.wait_time)
    assert found.metrics()["mean_wait_time"] == TINY.wait_time.mean() > 0
    assert not found.backfilled.any() and not found.thresholded.any()


def test_jobs_end_at_their_request_unless_they_may_run_on() -> None:
    jobs = workload([0, 60])
    assert hpcgym.simulate(jobs, "recorded").end_time.tolist() == [60, 120]
    runs_on = hpcgym.simulate(jobs, "recorded", kill_at_limit=False)
    assert runs_on.end_time.tolist() == [100, 160]


def counted(jobs: Workload, start: np.ndarray, end: np.ndarray) -> tuple[int, int]:
    """Count second by second what a schedule holds beyond the machine, in plain Python."""
    held = {
        second: sum(
            int(q)
            for q, one, other in zip(jobs.processors, start, end, strict=True)
            if one <= second < other
        )
        for second in range(int(end.max()) + 1)
    }
    over = [second for second, n in held.items() if n > jobs.machine_processors]
    return len(over), max(held.values())


def test_what_does_not_fit_is_counted_second_by_second() -> None:
    generator = np.random.default_rng(5)
    for _ in range(200):
        n = int(generator.integers(1, 8))
        submit = np.sort(generator.integers(0, 20, n))
        run, wait = generator.integers(0, 15, (2, n))
        jobs = Workload.from_arrays(
            submit,
            run,
            np.maximum(run, 1),
            generator.integers(1, 4, n),
            wait_time=wait,
            machine_processors=4,
        )
        schedule = hpcgym.simulate(jobs, "recorded")
        found = overfull(schedule)
        seconds, most = counted(jobs, schedule.start_time, schedule.end_time)
        assert (found.seconds, found.most) == (seconds, most)
        assert (found.n_jobs > 0) == (seconds > 0)


def test_every_schedule_that_is_simulated_fits() -> None:
    jobs = hpcgym.load_workload("synthetic-256")
    assert overfull(hpcgym.simulate(jobs, "SAF")).n_jobs == 0


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"1 of 2 jobs have no recorded wait, job 2 first"):
        hpcgym.simulate(workload([5, -1]), "recorded")
    with pytest.raises(PolicyError, match="has no pass to backfill in"):
        hpcgym.simulate(TINY, "recorded", backfill="conservative")
    with pytest.raises(PolicyError, match=r"'SAF' orders the queue; .* the policy must be FCFS"):
        hpcgym.simulate(TINY, "SAF", backfill="recorded")
    with pytest.raises(HpcgymError, match="starts jobs when the log says"):
        gymnasium.make("HPCBatch-v0", scenario="tiny", backfill="recorded")


def on_nodes() -> tuple[Schedule, Schedule]:
    """Simulate jobs on nodes, and replay the starts as if a log had recorded them."""
    jobs = Episodes("hetero-64-weeks").workload(0)
    simulated = hpcgym.simulate(jobs, "SAF")
    logged = dataclasses.replace(jobs, wait_time=simulated.wait_time)
    return simulated, hpcgym.simulate(logged, "recorded")


def test_on_nodes_starts_and_waits_are_those_of_the_log() -> None:
    simulated, replayed = on_nodes()
    assert np.array_equal(replayed.start_time, simulated.start_time)
    for by in (None, "partition"):
        meant, found = (one.metrics(by=by) for one in (simulated, replayed))
        for metric in ("mean_wait_time", "mean_bsld", "max_wait_time"):
            assert np.array_equal(found[metric], meant[metric]), metric
    assert overfull(replayed).n_jobs == 0


def test_on_nodes_what_needs_a_placement_is_refused_or_left_out() -> None:
    simulated, replayed = on_nodes()
    ask = [
        lambda: replayed.metrics(by="resource"),
        replayed.fragmentation,
        replayed.usage,
        replayed.placement_metrics,
    ]
    for asked in ask:
        with pytest.raises(HpcgymError, match="recorded starts name none"):
            asked()
    assert not {"n_nodes", "n_groups", "nodes"} & set(replayed.to_frame())
    assert set(metrics_on_nodes(replayed)) == {
        name for name in metrics_on_nodes(simulated) if name.startswith(BY_PARTITION)
    }


def test_other_simulators_may_stand_as_policies_too() -> None:
    one, other = hpcgym.simulate(TINY, "gang:rows=3"), hpcgym.simulate(TINY, backfill="gang:rows=3")
    assert np.array_equal(one.end_time, other.end_time)


def test_ratios_are_to_what_the_log_recorded() -> None:
    found = evaluate(["FCFS"], "tiny", baseline="recorded", progress=False)
    (fcfs,) = (one for one in found.summaries if one.agent == "FCFS")
    recorded = hpcgym.simulate(Episodes("tiny").workload(0), "recorded").metrics()["mean_bsld"]
    assert found.baseline == "RECORDED"
    assert fcfs.ratio.value == pytest.approx(fcfs.mean_bsld / recorded)


def test_copies_move_jobs_and_their_recorded_starts_alike() -> None:
    found = evaluate(["recorded"], "tiny", jitter=30, replicas=2, progress=False)
    waits = found.values("RECORDED", "mean_wait_time")
    assert waits.shape == (1, 3) and len(np.unique(waits)) == 1


def test_the_command_says_where_a_log_does_not_fit_its_machine(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    rows = ["job_id,submit_time,wait_time,run_time,requested_time,chunks"]
    rows += [f"{job},0,{10 * job},100,100,3" for job in (1, 2)]
    table.write_text("\n".join(rows), encoding="utf-8")
    command = ["simulate", str(table), "--policy", "recorded", "--processors"]
    fits, over = (CliRunner().invoke(app, [*command, n]) for n in ("6", "4"))
    assert fits.exit_code == over.exit_code == 0 and "does not fit" not in fits.stdout
    assert "up to 6 of 4 processors are held, for 1m30s; 1 jobs start meanwhile" in over.stdout


def test_an_agent_of_the_shelf_is_its_card_and_not_a_mode_of_its_name() -> None:
    assert str(load_agent("gang").backfill) == load_card("GANG").environment["backfill"]
    assert str(load_agent("gang:rows=2").backfill) == "gang:rows=2"
