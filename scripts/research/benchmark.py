"""Measure the speed of the simulator, as tables; `research.step_benchmark` does the environment.

Rates are per CPU second, the best of several runs, because machines are shared. Compare ratios
taken in one run, not rates.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from rich.table import Table

from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels.scoring.user_estimates import learn_from
from hpcgym.core.kernels.scoring.user_history import record_completion
from hpcgym.core.kernels.types import open_jobs, open_sim
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.state import in_use, sim_of
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.schedule.batch import simulate_many
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.resample import scale_load
from hpcgym.trace.synthetic import synthetic_workload

Reference = Callable[[list[list[int]], int, str], object]
"""Simulates rows of (submit, run, request, processors, user) on M processors under a policy."""

BACKFILLS = (
    "easy",
    "depth:k=1",
    "depth:k=2",
    "depth:k=8",
    "conservative",
    "conservative:compress=shift",
    "look-ahead",
    "look-ahead:window=inf",
    "relaxed",
    "slack:c=1",
    "multi-queue",
    "multi-queue:delay=2500",
    "slurm",
    "easy+trial",
)
"""The backfilling modes to compare."""

FIRST_LENGTH = 100_000
"""Jobs of the shortest generated log, with which longer ones are compared."""


def _nothing() -> None:
    """Prepare nothing."""


def cpu_seconds(
    work: Callable[[], object], *, before: Callable[[], object] = _nothing, repeats: int = 1
) -> float:
    """Return the CPU time of the quickest of several runs, s; `before` each run is not measured."""
    taken = []
    for _ in range(repeats):
        before()
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def measured(
    workload: Workload,
    policy: str,
    repeats: int,
    backfill: str = "easy",
    threshold: int | None = None,
) -> tuple[float, Simulator]:
    """Measure a whole simulation: CPU time (s), and the simulator at its end."""
    settings = SchedulerSettings(policy=policy, backfill=backfill, threshold=threshold)
    simulator = Simulator(workload, settings)
    return cpu_seconds(simulator.run, before=simulator.reset, repeats=repeats), simulator


def against_reference(log: Workload, reference: Reference, repeats: int) -> Table:
    """Compare jobs per second with those of a plain-Python simulation of the same log."""
    table = Table("policy", "million jobs/s", "times the reference", title=f"{log.name}, EASY")
    fields = (log.submit_time, log.run_time, log.requested_time, log.processors, log.user)
    rows = np.stack(fields, axis=1).tolist()
    for policy in ("FCFS", "SAF"):
        ours, _ = measured(log, policy, repeats)
        plain = partial(reference, rows, log.machine_processors, policy)
        theirs = cpu_seconds(plain, repeats=repeats)
        table.add_row(policy, f"{len(log) / ours / 1e6:.1f}", f"{theirs / ours:.0f}")
    return table


def over_logs(logs: Sequence[Workload], repeats: int) -> Table:
    """Measure FCFS and SAF on whole logs: rates, and the queue lengths behind them."""
    columns = ("log", "policy", "jobs", "Mjobs/s", "Mevents/s", "waiting", "at most")
    table = Table(*columns, title="Whole logs, EASY")
    for log in logs:
        for policy in ("FCFS", "SAF"):
            seconds, simulator = measured(log, policy, repeats)
            counts = simulator.counts()
            rates = (len(log) / seconds / 1e6, counts["events"] / seconds / 1e6)
            queue = (f"{counts['mean_waiting']:.0f}", f"{counts['max_waiting']:,.0f}")
            name = log.name.removesuffix("-cln")
            table.add_row(name, policy, f"{len(log):,}", *(f"{r:.2f}" for r in rates), *queue)
    return table


def over_modes(log: Workload, repeats: int) -> Table:
    """Measure the seconds that a whole log takes under FCFS and SAF in every backfilling mode."""
    table = Table("backfill", "FCFS, s", "SAF, s", title=f"{log.name}, backfilling modes")
    for backfill in BACKFILLS:
        seconds = [measured(log, policy, repeats, backfill)[0] for policy in ("FCFS", "SAF")]
        table.add_row(backfill, *(f"{taken:.3f}" for taken in seconds))
    return table


def over_caps(logs: Sequence[Workload], repeats: int) -> Table:
    """Measure whole logs under a cap and cost-benefit backfilling, beside EASY in the same order.

    Cells show the time as a ratio to EASY's, whose seconds are in the first column. Without kappa
    and cap the schedules are EASY's, and run times are learnt all the same. The second column is
    learning alone, from every job of the log.
    """
    learns, both = "cost-benefit:kappa=0", "cost-benefit:cap=0.97"
    modes = (learns, "easy:cap=0.97", "cost-benefit", both, f"{both},overdue=open")
    columns = ("log", "policy", "easy, s", "learning", *modes)
    table = Table(*columns, title="Whole logs, caps and costs")
    for log in logs:
        for policy in ("SMITH-REG", "SMITH-URGENT", "SAF", "FCFS"):
            runs = [
                measured(log, policy, repeats, mode, threshold=200_000) for mode in ("easy", *modes)
            ]
            easy = runs[0][0]
            times = (_learning(runs[1][1], repeats), *(seconds for seconds, _ in runs[1:]))
            ratios = (f"{seconds / easy:.2f}" for seconds in times)
            name = log.name.removesuffix("-cln")
            table.add_row(name, policy, f"{easy:.3f}", *ratios)
    return table


def _learning(simulator: Simulator, repeats: int) -> float:
    """Return the CPU time, s, in which the regression learns from all jobs, as they have ended."""
    table, sim = simulator.table, sim_of(simulator.state, 0)
    jobs = Struct(table)
    ended = np.argsort(simulator.start_time + table.run_time, kind="stable")
    compiled: Any = njit(learn_from_all)
    learning = partial(compiled, jobs.address, sim.address, ended)
    learning()  # is compiled now, and not measured
    return cpu_seconds(learning, before=simulator.reset, repeats=repeats)


def learn_from_all(jobs_at: int, sim_at: int, ended: NDArray[np.int64]) -> None:
    """Let the regression learn from jobs in the order of their ends, as a simulation does."""
    jobs, sim = open_jobs(jobs_at), open_sim(sim_at)
    for job in ended:
        learn_from(jobs, sim, job)
        record_completion(jobs, sim, job)


def saturated(waiting: int, n_jobs: int) -> Workload:
    """Return jobs on 256 processors whose queue stays about as long as its first burst.

    Args:
        waiting: Jobs submitted at time 0.
        n_jobs: Jobs submitted after them, as fast as the machine works.
    """
    generator = np.random.default_rng(0)
    n = waiting + n_jobs
    run = generator.integers(600, 7_200, n)
    width = generator.integers(1, 65, n)
    gap = float((run * width).mean()) / 256
    submit = np.concatenate([np.zeros(waiting), np.arange(n_jobs) * gap]).astype(np.int64)
    name = f"burst of {waiting}"
    return Workload.from_arrays(submit, run, 2 * run, width, machine_processors=256, name=name)


def _costs(log: Workload, repeats: int) -> list[str]:
    """Return the mean queue length at passes and the CPU time per job, ns, of FCFS and of SAF."""
    cells = []
    for policy in ("FCFS", "SAF"):
        seconds, simulator = measured(log, policy, repeats)
        waiting = simulator.counts()["mean_waiting"]
        cells += [f"{waiting:,.0f}", f"{seconds / len(log) * 1e9:.0f}"]
    return cells


def over_loads(log: Workload, repeats: int) -> Table:
    """Measure the CPU time of a job, and the queue length at passes, while a log's load doubles."""
    columns = ("load", "waiting under FCFS", "ns/job", "waiting under SAF", "ns/job")
    table = Table(*columns, title=f"{log.name}: cost as the load doubles")
    for factor in (0.5, 1.0, 2.0, 4.0):
        table.add_row(f"x {factor:g}", *_costs(scale_load(log, factor), repeats))
    return table


def over_queue_lengths(longest: int, repeats: int) -> Table:
    """Measure the CPU time of a job while the queue doubles, up to this longest burst."""
    columns = ("FCFS, waiting", "ns/job", "SAF, waiting", "ns/job")
    table = Table(*columns, title="Cost as the queue grows")
    burst = 125
    while burst <= longest:
        table.add_row(*_costs(saturated(burst, 50_000), repeats))
        burst *= 2
    return table


class Replayed(NamedTuple):
    """The cost of a log of some length in a process of its own.

    Attributes:
        fcfs_s: CPU time of a replay under FCFS, s.
        saf_s: CPU time of a replay under SAF, s.
        most_waiting: Longest queue of both.
        state_bytes: What the simulators held in the end beyond the schedule, of both the larger.
        bytes_before: Peak memory of the process before there was a log.
        bytes_after: Peak memory of the process in the end.
    """

    fcfs_s: float
    saf_s: float
    most_waiting: int
    state_bytes: int
    bytes_before: int
    bytes_after: int


def peak_memory() -> int:
    """Return the peak resident memory of this process, bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # a parent's memory enters ru_maxrss, but not this
        figures = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(figures["VmHWM"].split()[0]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def replayed(n_jobs: int, repeats: int) -> Replayed:
    """Generate a log with users and estimates, replay it, and measure time and memory.

    The memory is that of the generator, the job table, `simulate` and the metrics together.
    """
    simulate(synthetic_workload(100, np.random.default_rng(0))).metrics()
    before = peak_memory()
    log = synthetic_workload(n_jobs, np.random.default_rng(0), load=0.7)
    taken, waiting, held = [], 0, 0
    for policy in ("FCFS", "SAF"):
        seconds, simulator = measured(log, policy, repeats)
        taken.append(seconds)
        waiting = max(waiting, int(simulator.counts()["max_waiting"]))
        held = max(held, held_beyond_schedule(simulator))
        del simulator
        simulate(log, policy).metrics()
    return Replayed(taken[0], taken[1], waiting, held, before, peak_memory())


def held_beyond_schedule(simulator: Simulator) -> int:
    """Return what a simulation holds beyond the start and the flag of each job, bytes.

    Memory counts as held if it was in use at any time since the reset.
    """
    state = in_use(simulator.state)
    whole = sum(array.nbytes for array in state.arrays.values())
    return int(whole - state.start_time.nbytes - state.flag.nbytes)


def over_lengths(longest: int, repeats: int) -> Table:
    """Measure time and memory as a generated log grows, each length in a process of its own.

    Returns:
        Rates, and their ratios to the shortest log's; what the simulator holds beyond the schedule;
        the peak memory of the process, generating and metrics included, and how much of it each job
        adds.
    """
    columns = ("jobs", "FCFS, Mjobs/s", "ratio", "SAF, Mjobs/s", "ratio")
    memory = ("waiting, at most", "state, kB", "peak, MB", "bytes/job")
    table = Table(*columns, *memory, title="Generated logs, load 0.7: cost as the log grows")
    n_jobs, first = FIRST_LENGTH, None
    while n_jobs <= longest:
        command = [sys.executable, __file__, str(n_jobs), str(repeats)]
        run = subprocess.run(command, check=True, env=os.environ, capture_output=True, text=True)
        it = Replayed(*json.loads(run.stdout))
        first = first or it
        cells = [f"{n_jobs:,}"]
        for ours, theirs in ((it.fcfs_s, first.fcfs_s), (it.saf_s, first.saf_s)):
            rate = n_jobs / ours
            cells += [f"{rate / 1e6:.2f}", f"{rate / (FIRST_LENGTH / theirs):.2f}"]
        grown = (it.bytes_after - it.bytes_before) / n_jobs
        cells += [f"{it.most_waiting:,}", f"{it.state_bytes / 1e3:,.0f}"]
        table.add_row(*cells, f"{it.bytes_after / 1e6:,.0f}", f"{grown:.0f}")
        n_jobs *= 10
    return table


def many(scenario: str, n_vectors: int) -> Table:
    """Measure `simulate_many` on the first hundred weeks of a scenario.

    Vectors are drawn from the unit sphere. A weight on the wait, or on the expansion factor, makes
    an order that changes with time.

    Args:
        scenario: Name of a scenario of weeks.
        n_vectors: Weight vectors of each kind.

    Returns:
        Jobs per CPU second, which is per core; the wall time on all cores; and the CPU time that
        ten thousand vectors would take at this rate, in minutes of one core.

    Source: RR-9212, section 4: policies that cover the space of weights.
    """
    episodes = Episodes(scenario)
    workloads = [episodes.workload(index) for index in range(min(len(episodes), 100))]
    drawn = np.random.default_rng(0).normal(size=(n_vectors, 6))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    pure = np.zeros_like(drawn)
    pure[::2, 1] = pure[1::2, 5] = 1.0
    still = np.array([1, 1, 0, 1, 0, 1])
    kinds = {
        "pure: SPF and SAF": pure,
        "q, e, rho, area": drawn * still,
        "with wait": drawn * (still + np.array([0, 0, 1, 0, 0, 0])),
        "all six": drawn,
    }
    columns = ("weights", "million jobs/s per core", "wall, s", "10,000 vectors, core-min")
    title = f"simulate_many, {scenario}: {len(workloads)} weeks, {n_vectors:,} vectors"
    table = Table(*columns, title=title)
    simulate_many(workloads[:1], weights=drawn[:1])
    for kind, weights in kinds.items():
        start, cpu = time.perf_counter(), time.process_time()
        result = simulate_many(workloads, weights=weights, metrics=("sum_bsld",))
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        rate = int(result.n_jobs.sum()) * n_vectors / cpu / 1e6
        minutes = cpu / 60 * 10_000 / n_vectors
        table.add_row(kind, f"{rate:.2f}", f"{wall:.1f}", f"{minutes:.1f}")
    return table


if __name__ == "__main__":  # a new process measures a long log: `over_lengths`
    print(json.dumps(replayed(int(sys.argv[1]), int(sys.argv[2]))))
