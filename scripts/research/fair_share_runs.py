"""Sleeping jobs of users who share a real Slurm by fair share and limits, recorded.

The four users are among those that every Debian has, since a job needs a user that exists.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.base.errors import EvaluationError
from hpcgym.base.output import writing
from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload
from research.toy_slurm import SleepingJob, printed, recorded_text, run_through

SHARES = {"physics": 3, "chemistry": 1}
USERS = {"games": "physics", "man": "physics", "news": "chemistry", "mail": "chemistry"}
N_CPUS, MOST_JOBS, MOST_CPUS, MOST_TASKS, N_TASKS = 32, 6, 16, 2, 6
"""Of the node; running jobs of a user, running cpus of chemistry, running tasks of an array."""
CONFIGURATION = """\
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=100000
PriorityMaxAge=01:00:00
PriorityDecayHalfLife=00:10:00
PriorityCalcPeriod=1
AccountingStorageEnforce=associations,limits,qos
"""
SCHEDULER = "bf_interval=1,bf_resolution=1,bf_continue,bf_max_job_test=5"
"""What must stand in SchedulerParameters, besides the cluster's own."""
TREE = ["sacctmgr", "show", "assoc", "tree", "-P"]
KEPT = {
    "config": ["scontrol", "show", "config"],
    "tree": TREE,
    "qos": ["sacctmgr", "show", "qos", "-P"],
}
"""What is written beside the runs: how the scheduler was set."""
IntArray = NDArray[np.int64]
CPUS, CHANCES = (1, 2, 4, 8, 16), (0.3, 0.2, 0.2, 0.2, 0.1)


def prepare() -> None:
    """Tell the accounting who there is, and who may have how much.

    Raises:
        EvaluationError: The Slurm that is there is set otherwise.
    """
    config = {
        key.strip(): value.strip()
        for key, _, value in (line.partition("=") for line in printed(*KEPT["config"]).splitlines())
    }
    if config.get("PriorityType") != "priority/multifactor" or "bf_max_job_test=5" not in (
        config.get("SchedulerParameters", "")
    ):
        raise EvaluationError(
            f"slurm.conf must state the lines below, and SchedulerParameters {SCHEDULER}\n"
            f"{CONFIGURATION}"
        )
    if "chemistry" in printed(*TREE):
        return
    for account, shares in SHARES.items():
        printed("sacctmgr", "-i", "add", "account", account, f"fairshare={shares}")
    for user, account in USERS.items():
        printed("sacctmgr", "-i", "add", "user", user, f"account={account}", "fairshare=1")
    printed("sacctmgr", "-i", "modify", "qos", "normal", "set", f"MaxJobsPerUser={MOST_JOBS}")
    limit = f"GrpTRES=cpu={MOST_CPUS}"
    printed("sacctmgr", "-i", "modify", "account", "chemistry", "set", limit)


def drawn_jobs(seed: int, n_jobs: int = 80, within: float = 180.0) -> list[SleepingJob]:
    """Draw jobs of 5 to 60 s of four users; one in twenty is an array of tasks of 5 to 20 s."""
    rng = np.random.default_rng(seed)
    delays = np.sort(rng.uniform(0.0, within, n_jobs))
    delays -= delays[0]
    users = rng.choice(list(USERS), n_jobs)
    arrays = set(rng.choice(n_jobs, n_jobs // 20, replace=False).tolist())
    jobs = []
    for job, (delay, user) in enumerate(zip(delays, users, strict=True)):
        options: tuple[str, ...] = (f"--uid={user}", f"--account={USERS[user]}")
        seconds = int(rng.integers(5, 21 if job in arrays else 61))
        if job in arrays:
            options += (f"--array=0-{N_TASKS - 1}%{MOST_TASKS}",)
        cpus = rng.choice(CPUS[1:3]) if job in arrays else rng.choice(CPUS, p=CHANCES)
        limit = int(np.ceil(seconds * rng.uniform(1.0, 8.0) / 60.0))
        jobs.append(SleepingJob(f"f{seed}-{job}", delay, 1, int(cpus), seconds, limit, options))
    return jobs


def record_run(seed: int, folder: Path) -> Path:
    """Run drawn jobs on the Slurm that is there and write its accounting, unless it is there."""
    path = folder / f"run-{seed}.txt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        prepare()
        for name, command in KEPT.items():
            with writing(folder / f"{name}.txt", force=True) as partial:
                partial.write_text(printed(*command))
        ids, _ = run_through(drawn_jobs(seed), f"run {seed}")
        with writing(path) as partial:
            partial.write_text(recorded_text(ids))
    return path


def jobs_of(path: Path, late: int = 0) -> Workload:
    """Read a recorded run; waits count from the submission, for tasks of arrays too.

    Args:
        path: What `record_run` wrote.
        late: How long after its end the cpus of a job are free, s.
    """
    rows = pd.read_csv(path, sep="|", dtype=str)
    submit, start, ran, minutes, cpus, job_id = (
        rows[field].astype(int)
        for field in ("Submit", "Start", "ElapsedRaw", "TimelimitRaw", "NCPUS", "JobIDRaw")
    )
    array, task = (rows["JobID"].str.partition("_")[part] for part in (0, 1))
    table = pd.DataFrame(
        {
            "job_id": job_id,
            "submit_time": submit,
            "wait_time": start - submit,
            "run_time": ran + late,
            "requested_time": 60 * minutes,
            "chunks": cpus,
            "cpus": 1,
            "user": rows["User"],
            "group": rows["Account"],
            "queue": rows["QOS"],
            "array": array.where(task == "_", "-1").astype(int),
            "array_limit": np.where(task == "_", MOST_TASKS, -1),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{path.stem}.csv"
        table.sort_values(["submit_time", "job_id"]).to_csv(file, index=False)
        return load_workload(file, machine_processors=N_CPUS)


def simulated(path: Path) -> dict[str, dict[str, IntArray]]:
    """Return the waits of a run, s, by user and setting: as recorded, then simulated.

    Each setting adds one of Slurm's rules, as the files beside the run state them.
    """
    config, tree, qos = (path.with_name(f"{name}.txt") for name in KEPT)
    fair = {"policy": f"slurm:{config},{tree}"}
    limited = fair | {"events": [f"limits:{tree},{qos}", "limit:per=array"]}
    settings: dict[str, dict[str, Any]] = {
        "FCFS, EASY": {},
        "fair share, EASY": fair,
        "fair share and limits, EASY": limited,
        "all three": limited | {"backfill": f"slurm:{config}"},
    }
    jobs = jobs_of(path)
    waits = {"recorded": jobs.wait_time}
    waits |= {name: simulate(jobs, **setting).wait_time for name, setting in settings.items()}
    for late in (1, 2):
        what = f"all three, cpus free {late} s late"
        waits[what] = simulate(jobs_of(path, late), **settings["all three"]).wait_time
    users = jobs.named("user")
    return {user: {name: wait[users == user] for name, wait in waits.items()} for user in USERS}
