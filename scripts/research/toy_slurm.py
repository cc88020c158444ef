"""A real Slurm on one machine: sleeping jobs go in as drawn, and sacct says what became of them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcgym.base.errors import EvaluationError
from hpcgym.base.output import writing
from hpcgym.base.progress import steps
from hpcgym.trace.accounting.slurm import COMMAND

N_NODES, CPUS_A_NODE = 2, 16
SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (2, 8), (2, 16))
"""Nodes and cpus of a job in all."""
SHARES = (0.3, 0.2, 0.2, 0.15, 0.05, 0.05, 0.05)
N_PROCESSORS = 16
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Nodes of a job where each has one cpu."""
SHARES_OF_WIDTHS = (0.3, 0.2, 0.1, 0.15, 0.05, 0.1, 0.05, 0.05)
TICK_S = 1.0


@dataclass(frozen=True)
class SleepingJob:
    """A job that sleeps.

    Attributes:
        name: Its name, by which it is known again.
        delay: When it is submitted, in s after the first.
        nodes: Nodes that it asks for.
        cpus: Cpus that it asks for, in all; as many on each node.
        seconds: How long it sleeps.
        limit: Its time limit, in minutes.
        options: More options of sbatch.
    """

    name: str
    delay: float
    nodes: int
    cpus: int
    seconds: int
    limit: int
    options: tuple[str, ...] = ()

    def submit(self) -> str:
        """Hand it in, and return its id."""
        command = ["sbatch", "--parsable", "-J", self.name, "-N", str(self.nodes)]
        command += ["-n", str(self.cpus), f"--ntasks-per-node={self.cpus // self.nodes}"]
        command += ["-t", str(self.limit), "-o", "/dev/null", *self.options]
        return printed(*command, "--wrap", f"exec sleep {self.seconds}").strip()


def printed(*command: str) -> str:
    """Return what a command prints.

    Raises:
        EvaluationError: It fails, or there is none of this name.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EvaluationError(f"{command[0]}: {error.strerror}; is Slurm installed?") from error
    if done.returncode:
        raise EvaluationError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def drawn_jobs(
    seed: int, n_jobs: int = 60, within: float = 120.0, *, single: bool = False
) -> list[SleepingJob]:
    """Draw jobs of 5 to 60 s that ask for more minutes than they need.

    With `single` each node has one cpu.
    """
    rng = np.random.default_rng(seed)
    delays = np.sort(rng.uniform(0.0, within, n_jobs))
    singles = [(width, width) for width in WIDTHS]
    kinds = singles if single else list(SHAPES)
    shapes = rng.choice(len(kinds), n_jobs, p=SHARES_OF_WIDTHS if single else SHARES)
    seconds = rng.integers(5, 61, n_jobs)
    limits = np.ceil(seconds * rng.uniform(1.0, 8.0, n_jobs) / 60.0).astype(int)
    return [
        SleepingJob(f"s{seed}-{job}", delay - delays[0], *kinds[int(shape)], int(sleep), int(limit))
        for job, (delay, shape, sleep, limit) in enumerate(
            zip(delays, shapes, seconds, limits, strict=True)
        )
    ]


def run_through(jobs: Sequence[SleepingJob], name: str) -> tuple[list[str], float]:
    """Submit jobs when it is their time and wait until all have ended.

    Returns their ids, and the mean number of processes that could run meanwhile.
    """
    ids: list[str] = []
    loads: list[float] = []
    begun = time.monotonic()
    with steps(len(jobs), name, "jobs") as done:
        left = len(jobs)
        while left or len(ids) < len(jobs):
            passed = time.monotonic() - begun
            while len(ids) < len(jobs) and jobs[len(ids)].delay <= passed:
                ids.append(jobs[len(ids)].submit())
            now_left = len(jobs) - len(ids) + n_in_queue(ids)
            done.advance(left - now_left)
            left = now_left
            loads.append(os.getloadavg()[0])
            time.sleep(TICK_S)
    return ids, float(np.mean(loads))


def n_in_queue(ids: Iterable[str]) -> int:
    """Count jobs that wait, run or are being ended."""
    listed = ",".join(ids)
    return len(printed("squeue", "-h", "-o", "%i", "-j", listed).split()) if listed else 0


def recorded_text(ids: Iterable[str]) -> str:
    """Return what the accounting holds of these jobs, as `hpcgym traces import` asks for it."""
    fields = COMMAND.partition(" -o ")[2].replace("ReqTRES", "NodeList,ReqTRES")
    return printed("env", "SLURM_TIME_FORMAT=%s", *of_jobs(ids), "-P", "-o", fields)


def recorded_json(ids: Iterable[str]) -> str:
    """Return the same as JSON, which Slurm 22.05 leaves empty where SLURM_TIME_FORMAT is set."""
    return printed(*of_jobs(ids), "--json")


def of_jobs(ids: Iterable[str]) -> list[str]:
    """Return the command that asks the accounting about jobs, without their steps."""
    return ["sacct", "-a", "-X", "--duplicates", "-j", ",".join(ids)]


def record_run(seed: int, folder: Path, *, single: bool = False) -> Path:
    """Run drawn jobs on the Slurm that is there and write its accounting, unless it is there.

    What Slurm says of its configuration is written beside it.
    """
    path = folder / f"run-{seed}.txt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with writing(folder / "config.txt", force=True) as partial:
            partial.write_text(printed("scontrol", "show", "config"))
        ids, load = run_through(drawn_jobs(seed, single=single), f"run {seed}")
        with writing(folder / f"load-{seed}.txt", force=True) as partial:
            partial.write_text(f"{load:.2f}\n")
        with writing(path) as partial:
            partial.write_text(recorded_text(ids))
    return path
