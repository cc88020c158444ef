"""Starts that `hpcgym.site.live` expects of a real Slurm's queue, beside those that came."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate
from hpcgym.site.live.readings import asked, read_queue
from hpcgym.site.live.run_times import ask_accounting, no_past, read_past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import BACKFILL, Stage
from research.toy_slurm import TICK_S, SleepingJob, drawn_jobs, n_in_queue, of_jobs, printed

SETTLE_S = 5.0
"""Time that Slurm gets to start what fits."""

IntArray = NDArray[np.int64]


def submit_anywhere(job: SleepingJob) -> str:
    """Hand a job in that takes its cpus on whatever nodes, and return its id."""
    command = ["sbatch", "--parsable", "-J", job.name, "-n", str(job.cpus), "-t", str(job.limit)]
    return printed(*command, "-o", "/dev/null", "--wrap", f"exec sleep {job.seconds}").strip()


def errors_of_run(seed: int, n_jobs: int, *, any_node: bool = False) -> dict[str, IntArray]:
    """Submit drawn jobs at once, and return how much later each forecast is than what came, s.

    Shape (n_waiting,), of the jobs that waited when the queue was read.
    """
    submit = submit_anywhere if any_node else SleepingJob.submit
    ids = [submit(job) for job in drawn_jobs(seed, n_jobs, 0.0)]
    time.sleep(SETTLE_S)
    reading = read_queue(asked("squeue"), asked("sprio"), asked("sinfo"))
    (snapshot,) = snapshots_of(reading)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sacct.txt"
        path.write_text(ask_accounting(1, reading.now), encoding="utf-8")
        past = read_past(path, reading.now)
    while n_in_queue(ids):
        time.sleep(TICK_S)
    text = printed(
        "env", "SLURM_TIME_FORMAT=%s", *of_jobs(ids), "-n", "-P", "-o", "JobID,Start,End"
    )
    cells = (line.split("|") for line in text.splitlines())
    return errors(
        Stage(snapshot, no_past()),
        Stage(snapshot, past),
        {name: (int(start), int(end)) for name, start, end in cells},
    )


def errors(
    by_limits: Stage, by_past: Stage, came: Mapping[str, tuple[int, int]]
) -> dict[str, IntArray]:
    """Return how much later each forecast is than what came, s, shape (n_waiting,).

    Args:
        by_limits: The queue, of which limits are known.
        by_past: The same, with what its users' jobs ran before.
        came: Start and end of each job by name, Unix s.
    """
    snapshot, order = by_limits.snapshot, by_limits.slurm_order()
    jobs = [snapshot.waiting[at] for at in by_limits.tasks]
    running = [came[job.array_id][1] - snapshot.now for job, _ in snapshot.running]
    ran = [came[job.array_id][1] - came[job.array_id][0] for job in jobs]
    known = replace(by_limits.queue(), run_time=np.array([*running, *ran]).clip(1))
    start = np.array([came[job.array_id][0] for job in jobs])
    expected = {
        "Slurm's own": np.array([job.start_time or 0 for job in jobs]),
        "by limits": by_limits.starts(order),
        "by users' last jobs": by_past.starts(order),
        "by the run times that came": by_limits.starts(order, queue=known),
        "the same, EASY": by_limits.starts(order, "easy", queue=known),
    }
    assert BACKFILL != "easy"  # else the last two are one
    stated = np.array([job.start_time is not None for job in jobs])
    return {
        name: (starts - start)[stated if name == "Slurm's own" else slice(None)]
        for name, starts in expected.items()
    } | {"the wait from then on": start - snapshot.now}


MADE, BURSTS, OF_A_BURST, APART_S = "made", 10, 30, 7_200
USERS = ("ana|phys", "chi|phys", "ben|chem")


def with_past(text: str) -> str:
    """Return accounting of a toy with a made past in place of what has ended.

    Bursts of jobs are drawn and simulated, first come, first served. A user's jobs last about as
    long, and ask for twice as much.
    """
    head, *rows = text.splitlines()
    rows = [row for row in rows if "|COMPLETED|" not in row]
    begin = min(int(row.split("|")[8]) for row in rows) - BURSTS * APART_S
    made: list[str] = []
    for seed in range(BURSTS):
        jobs = drawn_jobs(seed, OF_A_BURST, APART_S / 10)
        usual = np.array([120 * (1 + at % 3) for at in range(len(jobs))])
        run = usual * np.array([95 + job.seconds // 6 for job in jobs]) // 100
        limit, cpus = 2 * usual // 60, [job.cpus for job in jobs]
        submit = np.array([round(job.delay) for job in jobs]) + begin + seed * APART_S
        queue = Workload.from_arrays(submit - begin, run, 60 * limit, cpus, machine_processors=32)
        start = simulate(queue, backfill=BACKFILL).start_time + begin
        for at, job in enumerate(jobs):
            number, sizes = 9_000 + len(made), f"{job.nodes}|{job.cpus}"
            times = f"{submit[at]}|{submit[at]}|{start[at]}|{start[at] + run[at]}"
            made.append(
                f"{number}|{number}|{USERS[at % 3]}|batch|normal|COMPLETED|None|{times}|{run[at]}"
                f"|{limit[at]}|{sizes}|{sizes}|||{MADE}"
            )
    return "\n".join([head, *made, *rows, ""])
