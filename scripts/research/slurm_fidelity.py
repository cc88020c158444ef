"""Waits that a real Slurm recorded beside those of simulations of the same jobs.

Slurm's backfilling plans for whole nodes: where a waiting job is to start later, no job that may
still run then starts on its nodes, though cpus would be left. `Plan` plans so, in plain Python, to
tell how much of the misfit that is.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.core.workload import Workload
from hpcgym.evaluation.statistics import mean_of
from hpcgym.machine import Machine
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload
from hpcgym.trace.accounting import read_accounting
from research.toy_slurm import CPUS_A_NODE, N_NODES, N_PROCESSORS

SETTINGS: dict[str, dict[str, Any]] = {
    "FCFS, EASY": {},
    "FCFS, EASY, shortest backfilled first": {"backfill_order": "SPF"},
    "FCFS, depth:k=2": {"backfill": "depth:k=2"},
    "FCFS, conservative": {"backfill": "conservative"},
    "FCFS, no backfilling": {"backfill": "none"},
    "SAF, EASY": {"policy": "SAF"},
}
COUNTED: dict[str, dict[str, Any]] = {
    name: SETTINGS[name] for name in ("FCFS, EASY", "FCFS, conservative", "FCFS, no backfilling")
}
SLURMS = "FCFS, Slurm's backfilling"
AS_IMPORTED = "FCFS, conservative, cpus on any node"
WHOLE = "FCFS, conservative, whole nodes reserved"
LATE = "the same, a cpu free 1 s after an end"
LATE_S = 2
COLUMNS = ["job_id", "submit_time", "wait_time", "run_time", "requested_time", "chunks", "cpus"]
COLUMNS += ["spread"]

IntArray = NDArray[np.int64]


def workload_of(path: Path, *, on_one_node: bool = True) -> Workload:
    """Read a recorded run as jobs on the nodes of the toy cluster, by submission.

    An import cannot tell that a job asked for one node, since 1 is also what it asks for by
    default; `on_one_node` says so.
    """
    runs = read_accounting(path).runs[COLUMNS]
    if on_one_node:
        alone = ~runs["spread"]
        runs["cpus"] = runs["cpus"].where(~alone, runs["cpus"] * runs["chunks"])
        runs["chunks"] = runs["chunks"].where(~alone, 1)
    nodes = Machine.from_dict({"nodes": [{"count": N_NODES, "cpus": CPUS_A_NODE}]})
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / f"{path.stem}.csv"
        runs.to_csv(table, index=False)
        return load_workload(table, machine=nodes)


class Reservation(NamedTuple):
    """What a waiting job is to hold of a node, from an instant until another."""

    node: int
    begin: int
    end: int
    cpus: int


@dataclass
class Plan:
    """FCFS where every waiting job has a reservation, made anew at a pass each second.

    Attributes:
        jobs: Each runs in chunks, each on a node of its own.
        whole: Whether a reservation is of whole nodes, as Slurm's are, or of the cpus it needs.
        lag: How long after its end the cpus of a job are free, s.
        start: When each job started that has, s.
        nodes: Where it runs.
    """

    jobs: Workload
    whole: bool = True
    lag: int = 0
    start: dict[int, int] = field(default_factory=dict)
    nodes: dict[int, list[int]] = field(default_factory=dict)

    def waits(self) -> IntArray:
        """Schedule all jobs and return their waits, s."""
        submit, n_jobs = self.jobs.submit_time, len(self.jobs)
        now = 0
        while len(self.start) < n_jobs:
            self.make_pass(now)
            now += 1
        return np.array([self.start[job] for job in range(n_jobs)]) - submit

    def make_pass(self, now: int) -> list[int]:
        """Start what may start now, and return it."""
        reserved: list[Reservation] = []
        begun = []
        submitted = np.flatnonzero(self.jobs.submit_time <= now).tolist()
        for job in [one for one in submitted if one not in self.start]:
            at, nodes = self.earliest(job, now, reserved)
            if at == now:
                self.start[job], self.nodes[job] = now, nodes
                begun.append(job)
            else:
                end = at + int(self.jobs.requested_time[job])
                reserved += [Reservation(node, at, end, self.cpus(job)) for node in nodes]
        return begun

    def earliest(self, job: int, now: int, reserved: list[Reservation]) -> tuple[int, list[int]]:
        """Return when a job can start, and on which nodes, the lowest that serve."""
        ends = {self.expected_end(one, now) for one in self.running(now)}
        for at in sorted({now} | ends | {one.end for one in reserved}):
            fit = [node for node in range(N_NODES) if self.fits(job, node, at, now, reserved)]
            if len(fit) >= self.n_nodes(job):
                return at, fit[: self.n_nodes(job)]
        raise AssertionError("a job is wider than the machine")

    def fits(self, job: int, node: int, at: int, now: int, reserved: list[Reservation]) -> bool:
        """Tell whether a node has cpus for a job from an instant on, for its whole request."""
        end, needed = at + int(self.jobs.requested_time[job]), self.cpus(job)
        others = [one for one in reserved if one.node == node and one.begin < end and one.end > at]
        if self.whole:
            return not others and self.free(node, at, now) >= needed
        instants = {at} | {one.begin for one in others if one.begin > at}
        return all(
            self.free(node, instant, now)
            - sum(one.cpus for one in others if one.begin <= instant < one.end)
            >= needed
            for instant in instants
        )

    def n_nodes(self, job: int) -> int:
        """Return on how many nodes a job runs."""
        chunks = self.jobs.chunks
        return 1 if chunks is None else int(chunks[job])

    def cpus(self, job: int) -> int:
        """Return the cpus that a job holds of each of its nodes."""
        return int(self.jobs.processors[job]) // self.n_nodes(job)

    def running(self, now: int) -> list[int]:
        """Return the jobs that hold cpus."""
        runs = self.jobs.run_time
        return [job for job, start in self.start.items() if start + runs[job] + self.lag > now]

    def expected_end(self, job: int, now: int) -> int:
        """Return when a running job is expected to end, later than now."""
        return max(self.start[job] + int(self.jobs.requested_time[job]), now + 1)

    def free(self, node: int, at: int, now: int) -> int:
        """Return the cpus of a node that running jobs are expected to leave free at an instant."""
        held = [
            self.cpus(job)
            for job in self.running(now)
            if node in self.nodes[job] and (at == now or self.expected_end(job, now) > at)
        ]
        return CPUS_A_NODE - sum(held)


def punctual(path: Path, *, whole: bool) -> float:
    """Return which share of jobs started when a plan would have started them, or `LATE_S` later.

    At each second the plan begins with the jobs that Slurm had started, where it had, so a start
    that differs does not count again in what follows from it.
    """
    jobs = workload_of(path)
    start = (jobs.submit_time + jobs.wait_time).tolist()
    nodes = nodes_of(path)
    planned: dict[int, int] = {}
    for now in range(max(start) + 1):
        before = [job for job in range(len(jobs)) if start[job] < now]
        known = {job: start[job] for job in before}
        plan = Plan(jobs, whole, 0, known, {job: nodes[job] for job in before})
        for job in plan.make_pass(now):
            planned.setdefault(job, now)
    return float(
        np.mean(
            [
                0 <= start[job] - planned.get(job, start[job] + 1) <= LATE_S
                for job in range(len(jobs))
            ]
        )
    )


def nodes_of(path: Path) -> list[list[int]]:
    """Return the nodes on which jobs ran, by submission."""
    rows = pd.read_csv(path, sep="|").sort_values(["Eligible", "JobIDRaw"])["NodeList"]
    return [[int(one) - 1 for one in re.findall(r"[12]", names)] for names in rows]


def simulated(path: Path) -> dict[str, IntArray]:
    """Return the waits of each job of a run, s: as recorded, then by each setting."""
    jobs = workload_of(path)
    found = {"recorded": jobs.wait_time}
    for name, setting in SETTINGS.items():
        found[name] = simulate(jobs, **setting).wait_time
    anywhere = workload_of(path, on_one_node=False)
    found[AS_IMPORTED] = simulate(anywhere, backfill="conservative").wait_time
    return found | {WHOLE: Plan(jobs).waits(), LATE: Plan(jobs, lag=1).waits()}


def counted(path: Path) -> dict[str, IntArray]:
    """Return the waits of each job of a run on nodes of one cpu each, which are processors, s.

    Slurm's backfilling is that of the configuration beside the run.
    """
    runs = read_accounting(path).runs.sort_values(["submit_time", "job_id"], kind="stable")
    jobs = Workload.from_arrays(
        runs["submit_time"] - runs["submit_time"].min(),
        runs["run_time"],
        runs["requested_time"],
        runs["cpus"] * runs["chunks"],
        wait_time=runs["wait_time"],
        machine_processors=N_PROCESSORS,
        name=path.stem,
    )
    slurms = {SLURMS: {"backfill": f"slurm:{path.with_name('config.txt')}"}}
    found = {"recorded": jobs.wait_time}
    for name, setting in (COUNTED | slurms).items():
        found[name] = simulate(jobs, **setting).wait_time
    return found


def means_by_run(runs: Mapping[str, Mapping[str, IntArray]]) -> pd.DataFrame:
    """Return the mean wait of each run, a row each, by setting, s."""
    return pd.DataFrame(
        {run: {name: waits.mean() for name, waits in of.items()} for run, of in runs.items()}
    ).T


def compared(runs: Mapping[str, Mapping[str, IntArray]]) -> pd.DataFrame:
    """Compare each setting with what was recorded, over runs.

    Returns:
        A row for each setting: `mean` wait; `difference`, simulated - recorded, with `low` and
        `high` of its 95 % interval over runs; `ratio` of the sums; `off`, the mean
        absolute difference of a job; `likeness`, the mean over runs of the correlation of waits.
    """
    means = means_by_run(runs)
    differences = means.sub(means["recorded"], axis=0)
    rows = {}
    for name in means:
        difference = mean_of(differences[name])
        pairs = [(of["recorded"], of[name]) for of in runs.values()]
        rows[name] = {
            "mean": means[name].mean(),
            **difference.columns("difference"),
            "ratio": means[name].sum() / means["recorded"].sum(),
            "off": np.mean([np.abs(one - other).mean() for one, other in pairs]),
            "likeness": np.mean([np.corrcoef(one, other)[0, 1] for one, other in pairs]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def markdown(table: pd.DataFrame, heads: Sequence[str]) -> str:
    """Return a frame as a Markdown table of numbers, with the index in front."""
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in table.iterrows():
        cells = " | ".join(f"{value:.2f}" for value in row)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)
