"""Sleeping jobs on a real Slurm, with trials and without, beside what simulations foretell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpcgym.base.errors import EvaluationError
from hpcgym.core.workload import Workload
from hpcgym.evaluation.statistics import mean_of
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.accounting import read_accounting
from research.slurm_chroot import begin

N_JOBS = 80
CPUS = 32
WITHIN_S = 360
WIDTHS, SHARES = (1, 2, 4, 8, 16, 32), (0.25, 0.2, 0.2, 0.2, 0.1, 0.05)
RUN_S = (2, 120)
REQUEST_MIN = (4, 60)
LIMIT_S, KILLS, RESTART_S, EVERY_S = 10, 2, 6, 1
BOUND_S = 1
"""Of the bounded slowdown: most jobs run for less than the usual 10 s a few times over."""
ARMS = ("plain", "trials")
HOUR_OF_KILLS = 1000
RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "trials"
FORETOLD = {
    "plain": "easy",
    "trials": f"easy+trial:limit={LIMIT_S},kills={KILLS},restart={RESTART_S}",
}


def drawn_jobs(seed: int) -> Workload:
    """Draw jobs that sleep 2 to 120 s, log-uniformly, and request 4 to 60 min whatever they do."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, WITHIN_S, N_JOBS))
    return Workload(
        job_id=np.arange(1, N_JOBS + 1),
        submit_time=submit - submit[0],
        run_time=np.exp(rng.uniform(np.log(RUN_S[0]), np.log(RUN_S[1]), N_JOBS)).astype(np.int64),
        requested_time=60 * rng.integers(*REQUEST_MIN, N_JOBS, endpoint=True),
        processors=rng.choice(WIDTHS, N_JOBS, p=SHARES),
        user=np.zeros(N_JOBS, dtype=np.int64),
        wait_time=np.full(N_JOBS, -1),
        machine_processors=CPUS,
        name=f"drawn {seed}",
    )


def write_jobs(jobs: Workload, path: Path) -> None:
    """Write jobs as `slurm_arm` reads them."""
    columns = jobs.submit_time, jobs.processors, jobs.requested_time, jobs.run_time
    rows = zip(jobs.job_id.tolist(), *(column.tolist() for column in columns), strict=True)
    path.write_text(
        json.dumps(
            [
                {"name": f"j{job}", "delay": r, "cpus": q, "minutes": asked // 60, "seconds": run}
                for job, r, q, asked, run in rows
            ]
        )
    )


def arm_of(folder: Path, seed: int, arm: str) -> Path:
    """Return where a run of a seed, with trials or without, is kept."""
    return folder / f"{arm}-{seed}"


def run_arms(chroot: Path, folder: Path, seeds: Sequence[int], recipe: Path = RECIPE) -> None:
    """Run both arms of some seeds side by side, but those that are there.

    Raises:
        EvaluationError: One failed; what its log ends with.
    """
    begun = {}
    for seed in seeds:
        for arm in ARMS:
            output = arm_of(folder, seed, arm)
            if (output / "sacct.txt").exists():
                continue
            output.mkdir(parents=True, exist_ok=True)
            write_jobs(drawn_jobs(seed), output / "jobs.json")
            command = ["python3", "/srv/programs/slurm_arm.py", "/srv/output/jobs.json"]
            command += ["/srv/output", "--cpus", str(CPUS), "--restart", str(RESTART_S)]
            if arm == "trials":
                command += ["--recipe", "/srv/recipe", "--", "--stop", "/srv/stop"]
                command += ["--limit", str(LIMIT_S), "--kills", str(KILLS)]
                command += ["--every", str(EVERY_S), "--kills-an-hour", str(HOUR_OF_KILLS)]
            begun[output] = begin(chroot, output, recipe, command)
    for output, process in begun.items():
        if process.wait():
            log = (output / "arm.log").read_text().strip().splitlines()[-1:]
            raise EvaluationError(f"{output}: {''.join(log)}")


class Outcome(NamedTuple):
    """What became of the jobs of a run.

    Attributes:
        wait: Mean wait from the first submission to the last start, s.
        slowdown: Mean bounded slowdown, with the bound `BOUND_S`.
        longest: Longest wait, s.
        kills: Attempts in vain for each job.
        waste: What they held, as a share of useful work.
        tried: Jobs that ended within a trial; as recorded only.
    """

    wait: float
    slowdown: float
    longest: float
    kills: float
    waste: float
    tried: int = 0


def outcome_of(wait: np.ndarray, run: np.ndarray, kills: float, waste: float) -> Outcome:
    """Return the means of jobs by their waits and useful runs, s."""
    bounded = np.maximum(run, BOUND_S)
    slowdown = np.maximum((wait + run) / bounded, 1.0)
    return Outcome(wait.mean(), slowdown.mean(), wait.max(), kills, waste)


def recorded(path: Path) -> Outcome:
    """Read the accounting of a run: rows of one job are its attempts, and the last is useful."""
    runs = read_accounting(path, counted_from="submit").runs
    runs["start"] = runs["submit_time"] + runs["wait_time"]
    runs["area"] = runs["run_time"] * runs["chunks"] * runs["cpus"]
    by_job = runs.sort_values("start").groupby("job_id")
    last = by_job.last()
    useful = last["area"].sum()
    wait, run = last["start"] - by_job["submit_time"].min(), last["run_time"]
    kills = len(runs) / len(last) - 1
    means = outcome_of(wait.to_numpy(), run.to_numpy(), kills, runs["area"].sum() / useful - 1)
    return means._replace(tried=int((last["partition"] == "trial").sum()))


def foretold(jobs: Workload, backfill: str) -> Outcome:
    """Simulate the jobs under FCFS."""
    found = simulate(jobs, "FCFS", backfill=backfill)
    if "+trial" not in backfill:
        return outcome_of(found.wait_time, jobs.run_time, 0.0, 0.0)
    attempts = found.attempts_frame()
    area = (attempts["end_time"] - attempts["taken_time"]) * attempts["processors"]
    in_vain = attempts["reason"].isin(("trial over", "evicted"))
    waste = float(area[in_vain].sum() / area[~in_vain].sum())
    return outcome_of(found.wait_time, jobs.run_time, float(in_vain.sum() / len(jobs)), waste)


def pairs(folder: Path, seeds: Sequence[int]) -> pd.DataFrame:
    """Return a row for each seed: both arms as recorded, and as foretold."""
    rows = {}
    for seed in seeds:
        jobs = drawn_jobs(seed)
        seen = {arm: recorded(arm_of(folder, seed, arm) / "sacct.txt") for arm in ARMS}
        told = {arm: foretold(jobs, FORETOLD[arm]) for arm in ARMS}
        row: dict[str, float] = {}
        for arm in ARMS:
            row |= {f"{arm}, wait": seen[arm].wait, f"{arm}, slowdown": seen[arm].slowdown}
        row |= {"ratio": ratio(seen), "foretold": ratio(told)}
        trials = seen["trials"], told["trials"]
        for what in ("kills", "waste"):
            row |= {what: getattr(trials[0], what), f"{what}, foretold": getattr(trials[1], what)}
        row["longest"] = seen["trials"].longest / seen["plain"].longest
        rows[str(seed)] = row
    table = pd.DataFrame.from_dict(rows, orient="index")
    means = table.mean()
    for column in ("ratio", "foretold", "longest"):
        means[column] = np.exp(np.log(table[column]).mean())
    table.loc["all"] = means
    return table


def ratio(arms: Mapping[str, Outcome]) -> float:
    """Return the slowdown with trials, relative to that without."""
    return arms["trials"].slowdown / arms["plain"].slowdown


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean, and its 95 % interval."""
    mean = mean_of(np.log(np.asarray(ratios)))
    low, high = mean.ends() or (math.nan, math.nan)
    return math.exp(mean.value), math.exp(low), math.exp(high)


def foretold_of_many(seeds: Sequence[int]) -> list[float]:
    """Return the ratio that is foretold for each of many draws."""
    ratios = []
    for seed in seeds:
        jobs = drawn_jobs(seed)
        ratios.append(ratio({arm: foretold(jobs, FORETOLD[arm]) for arm in ARMS}))
    return ratios
