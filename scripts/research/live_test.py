"""FCFS beside `--apply` on a real Slurm: the same sleeping jobs under both, and a simulation.

In the middle of each run the controller is killed and started again, in both arms alike; in that
of `--apply`, so is the process that applies.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.base.errors import EvaluationError, LiveError
from hpcgym.base.output import writing
from hpcgym.core.metrics import bsld
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.evaluation.statistics import mean_of
from hpcgym.machine import Machine
from hpcgym.schedule.simulate import simulate
from hpcgym.site.live.apply import cycle, lines_of, plan_of, read_factors, restore
from hpcgym.site.live.changes import Bounds
from hpcgym.site.live.journal import opened
from hpcgym.site.live.readings import asked, read_queue
from hpcgym.site.live.run_times import no_past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import Stage
from hpcgym.trace import load_workload
from research.own_slurm import ALONE, kill_controller, start, start_controller
from research.toy_slurm import CPUS_A_NODE, N_NODES, SleepingJob, drawn_jobs, printed, run_through

ARMS = ("fcfs", "apply")
PARTITION, POLICY = "batch", "SAF"
BOUNDS = Bounds(job=20_000, user=10_000_000, cycle=10_000_000)
TICK_S = 2.0
HOLD_S = 600
CONTROLLER_KILLED_S = 130.0
AGENT_KILLED_S = (40.0, 90.0)
"""When each is killed, s after the first submission; the last comes by 120 s."""
DOWN_S = 1.0
SAVES_S = 20.0
N_WAITING = 12
METRICS = {"wait": "mean wait, s", "bsld": "mean bounded slowdown"}


def agent_command(script: Path, folder: Path) -> list[str]:
    """Return the command that applies the order until it is killed."""
    return [sys.executable, str(script), "--output", str(folder), "--inside", "agent"]


def arm_command(script: Path, folder: Path, seed: int, arm: str) -> list[str]:
    """Return the command that makes one run in namespaces of its own."""
    inside = ["--output", str(folder), "--inside", f"{arm}-{seed}"]
    return [*ALONE, sys.executable, str(script), *inside]


def apply_for_ever(folder: Path) -> None:
    """Apply the order again and again; where Slurm does not answer, try later."""
    settings = SchedulerSettings(POLICY)
    while True:
        try:
            with opened(folder / "journal.jsonl") as journal:
                reading = read_queue(asked("squeue"), asked("sprio"), asked("sinfo"))
                stages = [Stage(machine, no_past()) for machine in snapshots_of(reading)]
                lines = [
                    line
                    for stage in stages
                    for line in lines_of(stage, stage.wanted_order(settings))
                ]
                waiting, factors = reading.waiting, read_factors()
                plan = plan_of(lines, waiting, [PARTITION], BOUNDS, journal, factors)
                cycle(plan, journal, HOLD_S)
        except LiveError as error:
            print(f"agent: {error}", file=sys.stderr, flush=True)
        time.sleep(TICK_S)


class Agent:
    """The process that applies the order."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.command, self.log = command, log
        self.start()

    def start(self) -> None:
        """Start it, also anew."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, stderr=log)

    def kill(self) -> None:
        """Kill it as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def state_of(output: Path, arm: str, seed: int) -> Path:
    """Return the folder of what a run's daemons write, which is of no use after it."""
    return output / f"slurm-{arm}-{seed}"


def run_arm(script: Path, output: Path, arm: str, seed: int) -> None:
    """Make one run, in namespaces of its own, and write what Slurm says of each job."""
    folder = state_of(output, arm, seed)
    start(folder)
    command = agent_command(script, folder)
    agent = Agent(command, output / f"{arm}-{seed}.log") if arm == "apply" else None
    timers = [threading.Timer(CONTROLLER_KILLED_S, _crash_after_saving, [folder])]
    if agent:
        timers += [threading.Timer(at, _restart, [agent]) for at in AGENT_KILLED_S]
    for timer in timers:
        timer.start()
    ids, _ = run_through(drawn_jobs(seed), f"{arm} {seed}")
    for timer in timers:
        timer.join()
    if agent:
        agent.kill()
        _write(output / f"restored-{seed}.csv", restored(folder, agent))
    _write(output / f"{arm}-{seed}.csv", recorded(ids))
    printed("scontrol", "shutdown")


def _crash(folder: Path) -> None:
    """Kill the controller, and start it again a little later."""
    kill_controller(folder)
    time.sleep(DOWN_S)
    start_controller()


def _crash_after_saving(folder: Path) -> None:
    """Do so as the controller has just saved its jobs, so that both arms keep all of them.

    It saves every few seconds. What it has not saved it forgets: jobs, starts, site factors.
    """
    saved = folder / "controller" / "job_state"
    before, until = saved.stat().st_mtime_ns, time.monotonic() + SAVES_S
    while saved.stat().st_mtime_ns == before and time.monotonic() < until:
        time.sleep(0.02)
    _crash(folder)


def _restart(agent: Agent) -> None:
    """Kill what applies, and start it again a little later."""
    agent.kill()
    time.sleep(DOWN_S)
    agent.start()


def _write(path: Path, table: pd.DataFrame) -> None:
    """Write a table."""
    with writing(path) as partial:
        table.to_csv(partial, index=False)


def recorded(ids: Iterable[str]) -> pd.DataFrame:
    """Return when each job was submitted, started and ended, Unix s."""
    listed = printed("env", "SLURM_TIME_FORMAT=%s", "scontrol", "-o", "show", "job")
    wanted, rows = set(ids), []
    for line in listed.splitlines():
        told = dict(re.findall(r"(\w+)=(\S+)", line))
        if told["JobId"] in wanted:
            times = {key: int(told[f"{key}Time"]) for key in ("Submit", "Start", "End")}
            rows.append({"job": int(told["JobId"]), **times})
    if len(rows) != len(wanted):
        raise EvaluationError(f"the controller has {len(rows)} of {len(wanted)} jobs")
    return pd.DataFrame(rows).sort_values("job")


def restored(folder: Path, agent: Agent) -> pd.DataFrame:
    """Kill what applies and the controller, restore, and return priorities before and after.

    Priorities are less the points of age. Everything is killed at its worst: while site factors
    are in force, and more are being told.
    """
    for job in range(N_NODES):
        SleepingJob(f"full{job}", 0, 1, CPUS_A_NODE, 300, 10).submit()
    time.sleep(3)
    rng = np.random.default_rng(0)
    for job in range(N_WAITING):
        SleepingJob(f"wait{job}", 0, 1, 1, 1, int(rng.integers(1, 60))).submit()
    time.sleep(3)
    before = _ageless()
    agent.start()
    _until(lambda: any(site for _, site in _ageless().values()))
    agent.kill()
    applied = _ageless()
    _crash(folder)
    _until(lambda: len(_ageless()) == len(before))
    with opened(folder / "journal.jsonl") as journal:
        restore(journal)
    after = _ageless()
    rows = []
    for job in before:
        moments = {"before": before[job], "applied": applied[job], "after": after[job]}
        row = {"job": job}
        for when, (priority, site) in moments.items():
            row |= {f"priority_{when}": priority, f"site_{when}": site}
        rows.append(row)
    return pd.DataFrame(rows)


def _ageless() -> dict[int, tuple[int, int]]:
    """Return by waiting job its priority less the points of age, and its site factor."""
    text = printed("sprio", "-h", "-o", "%i %Y %A %S")
    rows = [[int(cell) for cell in line.split()] for line in text.splitlines()]
    return {job: (priority - age, site) for job, priority, age, site in rows}


def _until(true: Callable[[], bool], within: float = 60.0) -> None:
    """Wait until something is so."""
    until = time.monotonic() + within
    while not true():
        if time.monotonic() > until:
            raise LiveError(f"nothing happened within {within:.0f} s")
        time.sleep(0.2)


def foretold(seed: int) -> dict[str, dict[str, float]]:
    """Return the metrics of both arms by simulation, before anything runs."""
    jobs = _workload(drawn_jobs(seed))
    found = {}
    for arm, policy in zip(ARMS, ("FCFS", POLICY), strict=True):
        schedule = simulate(jobs, policy, backfill="conservative")
        found[arm] = _metrics(schedule.wait_time, jobs.run_time)
    return found


def _workload(jobs: list[SleepingJob]) -> Workload:
    """Return sleeping jobs as a workload on the nodes; each takes a second more than it sleeps."""
    table = pd.DataFrame(
        {
            "job_id": np.arange(1, len(jobs) + 1),
            "submit_time": [int(np.ceil(job.delay)) for job in jobs],
            "wait_time": 0,
            "run_time": [job.seconds + 1 for job in jobs],
            "requested_time": [60 * job.limit for job in jobs],
            "chunks": [job.nodes for job in jobs],
            "cpus": [job.cpus // job.nodes for job in jobs],
            "spread": True,
        }
    )
    nodes = Machine.from_dict({"nodes": [{"count": N_NODES, "cpus": CPUS_A_NODE}]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        table.to_csv(path, index=False)
        return load_workload(path, machine=nodes)


def seen(output: Path, seed: int) -> dict[str, dict[str, float]]:
    """Return the metrics of both arms as Slurm recorded them."""
    found = {}
    for arm in ARMS:
        table = pd.read_csv(output / f"{arm}-{seed}.csv")
        wait = (table["Start"] - table["Submit"]).to_numpy()
        found[arm] = _metrics(wait, (table["End"] - table["Start"]).to_numpy())
    return found


def _metrics(wait: np.ndarray, run_time: np.ndarray) -> dict[str, float]:
    """Return the mean wait and the mean bounded slowdown."""
    return {"wait": float(wait.mean()), "bsld": float(bsld(wait, run_time).mean())}


def compared(
    by_seed: Mapping[int, Mapping[str, Mapping[str, float]]], what: str
) -> dict[str, float]:
    """Return means of both arms, and the mean change in percent with its 95 % interval."""
    both = np.array([[of[arm][what] for arm in ARMS] for of in by_seed.values()])
    change = 100 * (both[:, 1] / both[:, 0] - 1)
    return dict(zip(ARMS, both.mean(axis=0), strict=True)) | mean_of(change).columns("change")


def restoring(output: Path, seeds: Iterable[int]) -> tuple[int, int, int]:
    """Return how many jobs had a site factor, and how many are as before, of how many."""
    tables = [pd.read_csv(output / f"restored-{seed}.csv") for seed in seeds]
    table = pd.concat(tables)
    same = (table["priority_before"] == table["priority_after"]) & (
        table["site_before"] == table["site_after"]
    )
    return int((table["site_applied"] != 0).sum()), int(same.sum()), len(table)
