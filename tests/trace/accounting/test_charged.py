"""Sites that charge threads or whole cores: a job holds what it was charged, and says so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import TraceError
from hpcgym.machine import Machine, NodeType
from hpcgym.machine.files import read_machine
from hpcgym.trace import load_with_report
from hpcgym.trace.accounting import read_accounting, to_workload, write_accounting
from reference import Job, simulate

DATA = Path(__file__).parents[2] / "data" / "accounting"
BEGIN = 1_760_000_000
CORES, THREADS, N_NODES, N_JOBS = 4, 2, 6, 400
HEADER = "JobID|User|Submit|Eligible|Start|End|State|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|ReqNodes"
HEADER += "|ReqCPUS|ReqTRES|AllocTRES"
SAID = "hold what they were charged, not what they asked for"


def charged_for(asked: int) -> int:
    """Return the threads of whole cores."""
    return -(-asked // THREADS) * THREADS


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """Draw 400 jobs; return their accounting under EASY in charged units, and their waits, s.

    The scheduler is the plain-Python reference, which knows nothing of what jobs asked for.
    """
    draw = np.random.default_rng(52)
    asked = draw.choice([1, 1, 1, 2, 3, 3, 5, 6], N_JOBS).tolist()  # none has a whole node
    submit = np.sort(draw.integers(0, 1_200_000, N_JOBS)).tolist()
    run = draw.integers(60, 86_000, N_JOBS).tolist()
    limit = [-(-p // 60) * 60 * int(draw.integers(1, 4)) for p in run]
    jobs = [
        Job(*job)
        for job in zip(submit, run, limit, map(charged_for, asked), range(N_JOBS), strict=True)
    ]
    starts = simulate(jobs, N_NODES * CORES * THREADS)
    lines = [HEADER]
    for number, (job, start, cpus) in enumerate(zip(jobs, starts, asked, strict=True), start=1):
        entered, begun = BEGIN + job.submit_time, BEGIN + start.start_time
        times = f"{entered}|{entered}|{begun}|{begun + job.run_time}"
        held = f"1|{job.processors}|1|{cpus}|billing={cpus},cpu={cpus},node=1"
        given = f"billing={cpus},cpu={job.processors},node=1"
        spans = f"{job.run_time}|{job.requested_time // 60}"
        lines.append(f"{number}|u{job.user % 9}|{times}|COMPLETED|{spans}|{held}|{given}")
    file = tmp_path_factory.mktemp("threads") / "sacct.txt"
    file.write_text("\n".join(lines) + "\n")
    waits = [s.start_time - job.submit_time for s, job in zip(starts, jobs, strict=True)]
    return file, waits


NODES = Machine((NodeType(N_NODES, cpus=CORES * THREADS),))


@pytest.mark.parametrize("machine", [None, NODES])
def test_jobs_that_hold_whole_cores_wait_as_recorded(
    drawn: tuple[Path, list[int]], machine: Machine | None
) -> None:
    """They waited hours; by what they asked for they would wait hours less."""
    file, waits = drawn
    assert np.mean(waits) > 3 * 3600
    found = read_accounting(file, machine=machine)
    assert found.machine_processors == N_NODES * CORES * THREADS
    jobs = to_workload(found, machine)
    assert jobs.wait_time.tolist() == waits
    assert hpcgym.simulate(jobs).wait_time.tolist() == waits
    asked = found.runs.assign(chunks=1, cpus=read_asked(file))
    fewer = to_workload(replace(found, runs=asked), machine)
    assert hpcgym.simulate(fewer).wait_time.mean() < np.mean(waits) - 3600


def read_asked(file: Path) -> list[int]:
    """Return what jobs asked for, in the order of the file."""
    at = HEADER.split("|").index("ReqCPUS")
    return [int(line.split("|")[at]) for line in file.read_text().splitlines()[1:]]


def test_what_jobs_hold_is_said_by_imports_and_simulations(drawn: tuple[Path, list[int]]) -> None:
    file, _ = drawn
    asked = np.array(read_asked(file))
    charged = np.array([charged_for(one) for one in asked.tolist()])
    other = charged != asked
    times = charged[other].sum() / asked[other].sum()
    line = f"{other.sum()} attempts {SAID}, {times:.2f} times as many processors"
    found = read_accounting(file)
    assert f"noted      {line.replace(' attempts', ' ')}" in str(found)
    assert line in load_with_report(file)[1].reading  # what `hpcgym simulate` prints


def test_two_threads_of_a_core_are_held_on_nodes_as_site_files_state_them(tmp_path: Path) -> None:
    """Four jobs of one thread each fill two cores, two at a time."""
    machine = read_machine(DATA / "node-of-two-cores-four-threads.txt").machine
    file = DATA / "sacct-hyperthreads.txt"
    table = tmp_path / "jobs.csv"
    write_accounting(table, read_accounting(file))
    for log, nodes in ((file, machine), (file, None), (table, machine)):
        jobs = hpcgym.load_workload(log, machine=nodes, machine_processors=4)
        assert hpcgym.simulate(jobs).wait_time.mean() == 1800 == jobs.wait_time.mean()


def test_on_nodes_smaller_than_charges_for_one_jobs_hold_what_they_asked_for(
    drawn: tuple[Path, list[int]],
) -> None:
    """The machine is stated in cores, so charges in threads do not fit its sizes; that is said."""
    file, _ = drawn
    found = read_accounting(file, machine=Machine((NodeType(N_NODES, cpus=CORES + 1),)))
    assert (found.runs["chunks"] * found.runs["cpus"]).tolist() == read_asked(file)
    assert "yet hold what they asked for" in found.in_short


@pytest.mark.parametrize(
    ("asked", "charged", "layout"),
    [
        ("2|4|cpu=4,gres/gpu=2,node=2", 8, (2, 4, 1, True)),  # chunks of one node each stay
        ("1|3|cpu=3,node=1", 4, (4, 1, 0, False)),  # no third of a charge
        ("1|6|cpu=6,gres/gpu=2,node=1", 8, (2, 4, 1, False)),
        ("3|3|cpu=3,node=3", 4, (4, 1, 0, False)),
        ("1|8|cpu=8,node=1", 4, (4, 1, 0, False)),  # nodes that a job gave back
    ],
)
def test_a_charge_is_laid_out_in_the_chunks_that_were_asked_for(
    tmp_path: Path, asked: str, charged: int, layout: tuple[int, int, int, bool]
) -> None:
    file = tmp_path / "sacct.txt"
    fields = "JobID|State|Submit|Start|End|NCPUS|ReqNodes|ReqCPUS|ReqTRES"
    file.write_text(f"{fields}\n1|COMPLETED|5|6|16|{charged}|{asked}\n")
    run = read_accounting(file).runs.iloc[0]
    assert tuple(run[["chunks", "cpus", "gpus", "spread"]]) == layout
    assert run["chunks"] * run["cpus"] == charged == run["charged"]


def test_rows_of_several_clusters_are_refused_by_column_and_clusters(tmp_path: Path) -> None:
    file = DATA / "two-clusters.txt"
    message = r"2 clusters in the column Cluster: east \(2 rows\), west \(1 rows\)"
    with pytest.raises(TraceError, match=message):
        read_accounting(file)
    rows = [line for line in file.read_text().splitlines() if "|west|" not in line]
    (tmp_path / "east.txt").write_text("\n".join(rows))
    assert read_accounting(tmp_path / "east.txt").runs["job_id"].tolist() == [100, 101]
