"""Plans with reservations: those of cpus are the simulator's, those of nodes hand-worked."""

from pathlib import Path

import numpy as np
import pytest

import hpcgym
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine
from research.slurm_fidelity import Plan, compared
from research.toy_slurm import CPUS_A_NODE, N_NODES, SHAPES, drawn_jobs

NODES = Machine.from_dict({"nodes": [{"count": N_NODES, "cpus": CPUS_A_NODE}]})


def on_nodes(tmp_path: Path, rows: list[tuple[int, int, int, int, int]]) -> Workload:
    """Make jobs of submit time, run time, request, nodes, cpus of each."""
    table = tmp_path / "jobs.csv"
    lines = ["job_id,submit_time,run_time,requested_time,chunks,cpus,spread"]
    lines += [
        f"{job},{submit},{run},{asked},{nodes},{cpus},{str(nodes > 1).lower()}"
        for job, (submit, run, asked, nodes, cpus) in enumerate(rows, 1)
    ]
    table.write_text("\n".join(lines), encoding="utf-8")
    return hpcgym.load_workload(table, machine=NODES)


@pytest.mark.parametrize("seed", range(8))
def test_reservations_of_cpus_are_conservative_backfilling(tmp_path: Path, seed: int) -> None:
    drawn = drawn_jobs(seed, 40)
    rows = [
        (round(job.delay), job.seconds, 60 * job.limit, job.nodes, job.cpus // job.nodes)
        for job in drawn
    ]
    jobs = on_nodes(tmp_path, rows)
    meant = hpcgym.simulate(jobs, backfill="conservative").wait_time
    assert np.array_equal(Plan(jobs, whole=False).waits(), meant)


def test_a_reserved_node_takes_no_job_that_may_outlast_the_wait_for_it(tmp_path: Path) -> None:
    running, head, wide_head = (0, 100, 100, 2, 12), (1, 50, 50, 1, 8), (1, 50, 50, 2, 8)
    long, short = (2, 10, 200, 1, 4), (2, 10, 90, 1, 4)
    cases = [(head, long, 0), (head, short, 0), (wide_head, short, 0), (wide_head, long, 98)]
    for first, small, wait in cases:
        jobs = on_nodes(tmp_path, [running, first, small])
        assert Plan(jobs, whole=False).waits().tolist() == [0, 99, 0]
        assert Plan(jobs).waits().tolist() == [0, 99, wait]


def test_differences_and_ratios_are_to_what_was_recorded() -> None:
    runs = {f"run-{n}": {"recorded": np.array([0, n]), "x": np.array([2, 3 * n])} for n in (1, 3)}
    found = compared(runs).loc["x"]
    assert (found["mean"], found["difference"], found["off"]) == (4.0, 3.0, 3.0)
    assert found["ratio"] == pytest.approx(4.0)
    assert found["difference_high"] - 3.0 == pytest.approx(12.7062, abs=1e-4)  # an error of 1


def test_jobs_are_drawn_again_alike_and_fit_the_nodes() -> None:
    assert drawn_jobs(3) == drawn_jobs(3) != drawn_jobs(4)
    for job in drawn_jobs(3):
        assert (job.nodes, job.cpus) in SHAPES and job.cpus <= CPUS_A_NODE * job.nodes
        assert 5 <= job.seconds <= 60 * job.limit
