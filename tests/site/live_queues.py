"""Queues of tests: jobs and nodes by what matters, texts as Slurm prints them, fake commands."""

import random
from pathlib import Path

import numpy as np

from hpcgym.site.live.readings import Node, QueuedJob, Reading, WaitingJob
from hpcgym.site.live.run_times import Past

RECORDED = Path(__file__).parents[2] / "docs" / "datasets" / "live-queue"
"""What a toy cluster printed."""

NOW = 1_000_000
PLAIN = {
    "account": "phys",
    "partition": "batch",
    "qos": "normal",
    "nice": 0,
    "exclusive": False,
    "dependency": "",
    "nodes": 1,
}


def waits(job_id, cpus, limit_s, *, user="ana", waited=60, **further):
    """Return a job that waits for processors."""
    values = {
        "reason": "Priority",
        "priority": 100,
        "eligible_time": NOW - waited,
        "start_time": None,
        **further,
    }
    return WaitingJob(
        job_id=job_id,
        cpus=cpus,
        limit_s=limit_s,
        user=user,
        submit_time=NOW - waited,
        pending_s=waited,
        elapsed_s=0,
        node_list="",
        state="PENDING",
        **{**PLAIN, "array_id": str(job_id), **values},
    )


def runs(job_id, cpus, limit_s, elapsed_s, *, node_list="n1", **further):
    """Return a running job."""
    values = {"user": "ben", "state": "RUNNING", "array_id": str(job_id), **further}
    return QueuedJob(
        job_id=job_id,
        cpus=cpus,
        limit_s=limit_s,
        elapsed_s=elapsed_s,
        start_time=NOW - elapsed_s,
        submit_time=NOW - elapsed_s,
        eligible_time=NOW - elapsed_s,
        pending_s=0,
        reason="None",
        priority=100,
        node_list=node_list,
        **{**PLAIN, **values},
    )


def nodes(*sizes, partition="batch", state="mixed", tier=1, first=1, held=0):
    """Return nodes of some sizes."""
    return tuple(
        Node(f"n{first + k}", partition, state, cpus, held, tier) for k, cpus in enumerate(sizes)
    )


def reading(waiting=(), running=(), of=None):
    """Return a reading of one node, unless others are given."""
    return Reading(NOW, tuple(waiting), tuple(running), of or nodes(16))


def past_of(**seconds):
    """Return a past in which each user's jobs ran so many seconds."""
    users = [user for user in seconds for _ in range(2)]
    column = np.array([seconds[user] for user in users])
    ends = np.full(len(users), NOW - 5000)
    ones, names = np.ones_like(column), np.array(users, dtype=object)
    rows = np.arange(len(users))
    return Past(names, ends - column, column, column, ones, ends, names, rows, True, "")


def drawn(seed):
    """Draw a machine with running and waiting jobs, and what their users' jobs ran before."""
    rng = random.Random(seed)
    cpus, running, waiting = rng.choice([4, 16, 40]), [], []
    free = cpus
    while free and rng.random() < 0.9:
        held, limit = rng.randint(1, free), 60 * rng.randint(1, 20)
        running.append(runs(len(running) + 1, held, limit, rng.randint(0, limit - 1)))
        free -= held
    for k in range(rng.randint(1, 14)):
        begin = {"eligible_time": NOW + rng.randint(1, 900)} if rng.random() < 0.2 else {}
        waiting.append(
            waits(
                100 + k,
                rng.randint(1, cpus),
                60 * rng.randint(1, 20),
                user=rng.choice(["ana", "chi"]),
                waited=rng.randint(0, 5000),
                priority=rng.randint(1, 4),
                **begin,
            )
        )
    past = past_of(ana=rng.randint(1, 600), chi=rng.randint(1, 600), ben=rng.randint(1, 600))
    return reading(waiting, running, nodes(cpus)), past


def fake_commands(folder, monkeypatch, **scripts):
    """Put programs first on the path that log how they are called; return the log."""
    log = folder / "asked.txt"
    for name, script in scripts.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{script}\n', encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log
