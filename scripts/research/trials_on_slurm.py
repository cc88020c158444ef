"""Sleeping jobs on a real Slurm, with trials and without, beside what simulations foretell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpcgym.core.workload import Workload
from hpcgym.errors import EvaluationError
from hpcgym.schedule import simulate
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
        run_time=np.exp(rng.uniform(*np.log(RUN_S), N_JOBS)).astype(np.int64),
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
            command = ["python3", "/tmp/programs/slurm_arm.py", "/tmp/output/jobs.json"]
            command += ["/tmp/output", "--cpus", str(CPUS), "--restart", str(RESTART_S)]
            if arm == "trials":
                command += ["--recipe", "/tmp/recipe", "--", "--stop", "/tmp/stop"]
                command += ["--limit", str(LIMIT_S), "--kills", str(KILLS)]
                command += ["--every", str(EVERY_S), "--kills-an-hour", str(HOUR_OF_KILLS)]
            begun[output] = begin(chroot, output, recipe, command)
    for output, process in begun.items():
        if process.wait():
            log = (output / "arm.log").read_text().strip().splitlines()[-1:]
            raise EvaluationError(f"{output}: {''.join(log)}")
