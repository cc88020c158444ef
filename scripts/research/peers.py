"""AccaSim and hpcgym on one machine of nodes with memory, job by job.

AccaSim runs in an interpreter of its own, on a log in SWF and a description of the machine that
are written here. Both schedules are checked by the same code: what nodes hold, and whether the
first job in order starts by the time that was reserved for it. `unprotected` repeats how AccaSim
backfills, in plain Python, to show that this explains the difference.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.base.errors import EvaluationError
from hpcgym.core import metrics
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.estimates import tsafrir_estimates
from hpcgym.trace.lublin import lublin_workload
from hpcgym.trace.resample import scale_load
from hpcgym.trace.swf import log_of, write_swf
from research.benchmark import cpu_seconds

IntArray = NDArray[np.int64]

MACHINE = Machine((NodeType(32, cpus=16, memory_mb=65_536),))
LOAD = 0.6
"""Of the scarcer of cpus and memory, over the time in which jobs are submitted."""

MEMORY_MB = (1_024, 2_048, 4_096, 8_192, 16_384)
MEMORY_SHARES = (0.2, 0.3, 0.3, 0.15, 0.05)
MINUTE_S = 60
KB_OF_MB = 1_024
EPOCH_S = 1_000
"""AccaSim's time of our 0: at its time 0 it takes the clock for not yet set."""

DRIVER = Path(__file__).with_name("accasim_driver.py")
COLUMNS = (
    *("simulator", "as hpcgym", "as AccaSim", "mean wait, s", "mean bsld", "late heads"),
    *("the latest, h", "overfull nodes", "CPU, s"),
)


class Made(NamedTuple):
    """What a simulator made of a workload.

    Attributes:
        name: Simulator and rule.
        start_time: Start of each job, s, shape (n_jobs,).
        held: Chunks of each job on each node, shape (n_jobs, n_nodes).
        cpu_s: CPU time, s; None = not measured.
    """

    name: str
    start_time: IntArray
    held: IntArray
    cpu_s: float | None = None


def drawn(n_jobs: int, seed: int) -> Workload:
    """Draw jobs of the Lublin-Feitelson model, with estimates and memory, for `MACHINE`.

    Each chunk has one cpu. Its memory is drawn from `MEMORY_MB`, but at most what all nodes have
    room for at the job's width. Submit and run times are whole minutes, so that much coincides.
    """
    generator = np.random.default_rng(seed)
    jobs = lublin_workload(n_jobs, generator, machine_processors=MACHINE.cpus)
    on_a_node = -(-jobs.processors // MACHINE.n_nodes)
    drawn_mb = generator.choice(MEMORY_MB, n_jobs, p=MEMORY_SHARES)
    run_time = _whole_minutes(np.maximum(jobs.run_time, 1))
    workload = Workload.from_arrays(
        jobs.submit_time,
        run_time,
        tsafrir_estimates(run_time, generator),
        jobs.processors,
        name="drawn",
        machine=MACHINE,
        chunks=jobs.processors,
        memory_mb=np.minimum(drawn_mb, MACHINE.node_memory_mb.min() // on_a_node),
    )
    scaled = scale_load(workload, LOAD / max(loads(workload)))
    return replace(scaled, submit_time=_whole_minutes(scaled.submit_time))


def _whole_minutes(seconds: IntArray) -> IntArray:
    """Round times up to whole minutes, in s."""
    return -(-seconds // MINUTE_S) * MINUTE_S


def loads(workload: Workload) -> tuple[float, float]:
    """Return the shares of cpus and of memory that the jobs need while jobs are submitted."""
    need, capacity = needs(workload), capacities(workload)
    worked = (need * chunks_of(workload)[:, None] * workload.run_time[:, None]).sum(axis=0)
    cpus, memory = worked / capacity.sum(axis=0) / int(workload.submit_time[-1])
    return float(cpus), float(memory)


def chunks_of(workload: Workload) -> IntArray:
    """Return the chunks of each job of a workload on nodes."""
    assert workload.chunks is not None
    return workload.chunks


def needs(workload: Workload) -> IntArray:
    """Return cpus and memory (MB) of a chunk of each job, shape (n_jobs, 2)."""
    assert workload.memory_mb is not None
    return np.stack([workload.processors // chunks_of(workload), workload.memory_mb], axis=1)


def capacities(workload: Workload) -> IntArray:
    """Return cpus and memory (MB) of each node, shape (n_nodes, 2)."""
    assert workload.machine is not None
    return np.stack([workload.machine.node_cpus, workload.machine.node_memory_mb], axis=1)


def hpcgym_made(workload: Workload, backfill: str, repeats: int = 5) -> Made:
    """Schedule by hpcgym: FCFS, the nodes with the lowest ids."""
    run = partial(simulate, workload, "FCFS", backfill=backfill, placement="lowest")
    schedule = run()
    seconds = cpu_seconds(run, repeats=repeats)
    return Made(f"hpcgym, `{backfill}`", schedule.start_time, held_in(schedule), seconds)


def held_in(schedule: Schedule) -> IntArray:
    """Return the chunks of each job on each node, shape (n_jobs, n_nodes)."""
    placement = schedule.placement
    assert placement is not None and schedule.workload.machine is not None
    held = np.zeros((len(schedule), schedule.workload.machine.n_nodes), dtype=np.int64)
    jobs = np.repeat(np.arange(len(schedule)), np.diff(placement.first))
    held[jobs, placement.node] = placement.chunks
    return held


def write_input(workload: Workload, folder: Path) -> None:
    """Write jobs and machine for AccaSim.

    Writes `jobs.swf`, with memory in KB per processor, and `system.json`, with that of a node.
    """
    assert workload.machine is not None
    log = log_of(workload)
    log.records["requested_memory"] = needs(workload)[:, 1] * KB_OF_MB
    write_swf(folder / "jobs.swf", log, force=True)
    types = {f"type{number}": one for number, one in enumerate(workload.machine.nodes)}
    system = {
        "groups": {
            name: {"core": one.cpus, "mem": one.memory_mb * KB_OF_MB} for name, one in types.items()
        },
        "resources": {name: one.count for name, one in types.items()},
        "equivalence": {"processor": {"core": 1}},
        "start_time": EPOCH_S - workload.time_offset,
    }
    (folder / "system.json").write_text(json.dumps(system, indent=1), encoding="utf-8")


def accasim_made(workload: Workload, dispatcher: str, python: Path, folder: Path) -> Made:
    """Schedule by AccaSim with its first-fit allocator; `folder` gets its files.

    Raises:
        EvaluationError: The interpreter cannot be run, or has no AccaSim, or AccaSim fails.
    """
    write_input(workload, folder)
    command = [str(python), "-W", "ignore", str(DRIVER), dispatcher, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise EvaluationError(f"--python {python}: cannot be run: {error.strerror}") from None
    if done.returncode:
        raise EvaluationError(_why(done.stderr, python))
    said = json.loads(done.stdout.splitlines()[-1])
    start, held = read_output((folder / "sched-jobs.swf").read_text(encoding="utf-8"), workload)
    return Made(f"AccaSim {said['version']}, `{dispatcher}`", start, held, said["cpu_s"])


def _why(stderr: str, python: Path) -> str:
    """Say what to do about a failed run."""
    if "No module named 'accasim'" in stderr:
        return (
            f"{python} has no AccaSim. Install it apart from hpcgym: `python -m venv accasim`, "
            "`accasim/bin/pip install accasim`; then add `--python accasim/bin/python`"
        )
    return f"AccaSim failed under {python}: {(stderr.strip() or 'it said nothing')[-500:]}"


def read_output(text: str, workload: Workload) -> tuple[IntArray, IntArray]:
    """Read start and chunks by node of each job, from the lines of AccaSim's output."""
    assert workload.machine is not None
    row = {int(job): j for j, job in enumerate(workload.job_id)}
    start = np.full(len(workload), -1, dtype=np.int64)
    held = np.zeros((len(workload), workload.machine.n_nodes), dtype=np.int64)
    for line in text.splitlines():
        job, started, nodes = line.split(";")
        j = row[int(job)]
        start[j] = int(started) - EPOCH_S
        np.add.at(held[j], [int(number) - 1 for number in re.findall(r"node_(\d+)", nodes)], 1)
    if len(missing := workload.job_id[start < 0]):
        raise EvaluationError(f"AccaSim started no job {missing[0]} ({len(missing)} such jobs)")
    return start, held


def overfull_nodes(workload: Workload, made: Made) -> int:
    """Count the nodes that ever hold more cpus or memory than they have."""
    over = np.zeros(made.held.shape[1], dtype=bool)
    for now in np.unique(made.start_time):
        over |= (_free(workload, made, _running(workload, made, now)) < 0).any(axis=1)
    return int(over.sum())


def _running(workload: Workload, made: Made, now: int) -> NDArray[np.bool_]:
    """Tell which jobs have started and not ended, shape (n_jobs,)."""
    start = made.start_time
    return (start >= 0) & (start <= now) & (start + workload.run_time > now)


def _free(workload: Workload, made: Made, runs: NDArray[np.bool_]) -> IntArray:
    """Return what these jobs leave free on each node, shape (n_nodes, 2)."""
    return capacities(workload) - made.held[runs].T @ needs(workload)[runs]


def _placed(free: IntArray, need: IntArray, chunks: int) -> IntArray | None:
    """Return the chunks on each node, lowest id first, or None where they have no room."""
    room = (free // need).min(axis=1)
    taken = np.clip(chunks - (np.cumsum(room) - room), 0, room)
    return taken if taken.sum() == chunks else None


def delays(workload: Workload, made: Made) -> IntArray:
    """Return how much later than reserved each head starts, s, in order of submission.

    A job that waits is head once all jobs before it have started. Its reservation is the earliest
    estimated release at which it has room, as seen then: jobs that start in order at that instant
    are counted, those that are backfilled at it are not. A head that starts earlier counts as 0.

    Source: Specification, section 13, "What must hold".
    """
    late = []
    before = 0
    for j, start in enumerate(made.start_time.tolist()):
        now = max(int(workload.submit_time[j]), before)
        before = max(before, start)
        if start > now:
            late.append(max(0, start - _reserved(workload, made, j, now)))
    return np.array(late, dtype=np.int64)


def _reserved(workload: Workload, made: Made, j: int, now: int) -> int:
    """Return the time reserved for a job that becomes head now, s."""
    runs = _running(workload, made, now)
    runs[j:] &= made.start_time[j:] < now
    free, need = _free(workload, made, runs), needs(workload)
    releases = made.start_time + workload.requested_time
    for other in sorted(np.flatnonzero(runs), key=releases.__getitem__):
        free += np.outer(made.held[other], need[other])
        if _placed(free, need[j], int(chunks_of(workload)[j])) is not None:
            return int(releases[other])
    raise EvaluationError(f"job {workload.job_id[j]} has no room on the empty machine")


def unprotected(workload: Workload, name: str, *, holds: bool) -> Made:
    """Start jobs in order, and whatever fits behind the first that does not.

    Args:
        holds: Whether a head is tried again only from the time on that was reserved for it.
    """
    n = len(workload)
    chunks, need = chunks_of(workload), needs(workload)
    held = np.zeros((n, len(capacities(workload))), dtype=np.int64)
    made = Made(name, np.full(n, -1, dtype=np.int64), held)
    instants = workload.submit_time.tolist()
    reserved = 0
    while instants:
        now = heappop(instants)
        if instants[:1] == [now]:
            continue  # one pass at an instant
        free = _free(workload, made, _running(workload, made, now))
        waiting = np.flatnonzero((made.start_time < 0) & (workload.submit_time <= now)).tolist()
        in_order = True
        for j in waiting:
            kept_back = holds and in_order and reserved > now
            taken = None if kept_back else _placed(free, need[j], int(chunks[j]))
            if taken is not None:
                free -= np.outer(taken, need[j])
                made.start_time[j], held[j] = now, taken
                heappush(instants, now + int(workload.run_time[j]))
                reserved = 0 if in_order else reserved
            elif in_order:
                in_order = False
                reserved = reserved or _reserved(workload, made, j, now)
        if not instants and (made.start_time < 0).any():
            instants.append(reserved)  # nothing else is left to wait for
    return made


def comparison(workload: Workload, python: Path, folder: Path) -> pd.DataFrame:
    """Run both on a workload and return a table; `folder` gets AccaSim's files.

    Raises:
        EvaluationError: AccaSim cannot be run.
    """
    rows = []
    for backfill, dispatcher in (("none", "FirstInFirstOut"), ("easy", "EASYBackfilling")):
        ours = hpcgym_made(workload, backfill)
        theirs = accasim_made(workload, dispatcher, python, folder)
        rows += [_row(workload, made, ours, theirs) for made in (ours, theirs)]
    for name, holds in (("plain Python, greedy", False), ("plain Python, as AccaSim", True)):
        rows.append(_row(workload, unprotected(workload, name, holds=holds), ours, theirs))
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(workload: Workload) -> str:
    """Say what a workload asks for, and how much its memory matters to hpcgym's EASY."""
    cpus, memory = loads(workload)
    start = [
        simulate(jobs, "FCFS", backfill="easy").start_time
        for jobs in (workload, replace(workload, memory_mb=np.zeros_like(workload.job_id)))
    ]
    equal = int((start[0] == start[1]).sum())
    instants = len(np.unique(workload.submit_time))
    return (
        f"{len(workload):,} jobs at {instants:,} instants; load of cpus {cpus:.2f}, of memory "
        f"{memory:.2f}. If memory were not counted, EASY would start {equal:,} of them when it "
        "does now."
    )


def _equal(made: Made, other: Made) -> str:
    """Count the jobs with equal starts and, in brackets, those that have equal nodes as well."""
    starts = made.start_time == other.start_time
    nodes = (made.held == other.held).all(axis=1)
    return f"{starts.sum():,} ({(starts & nodes).sum():,})"


def _row(workload: Workload, made: Made, ours: Made, theirs: Made) -> Sequence[str]:
    """Return a row of the table."""
    wait = (made.start_time - workload.submit_time).mean()
    bsld = metrics.per_job(workload, made.start_time, workload.run_time)["bsld"].mean()
    late = delays(workload, made)
    return (
        made.name,
        *(_equal(made, other) for other in (ours, theirs)),
        f"{wait:,.1f}",
        f"{bsld:,.2f}",
        f"{(late > 0).sum()} of {len(late)}",
        f"{late.max(initial=0) / 3600:.1f}",
        str(overfull_nodes(workload, made)),
        "" if made.cpu_s is None else f"{made.cpu_s:.4f}",
    )
