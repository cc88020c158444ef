"""A Slurm of one's own for a while: two made-up nodes, in namespaces that no other process sees.

Needs root, and Slurm's daemons with munge, which need not run. The first process of the namespaces
is the one that starts them, so that the daemons end with it, however it ends.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from hpcgym.base.errors import EvaluationError
from research.slurm_arm import SCHEDULER
from research.toy_slurm import CPUS_A_NODE, N_NODES, printed

ALONE = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")
"""What a command is put behind, to run in namespaces of its own."""

_WEIGHTS = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": 3600,
    "PriorityMaxAge": "0-01:00:00",
    "PriorityWeightPartition": 10000,
    "PriorityCalcPeriod": "00:01",
}
"""First come, first served, as priorities: a point a second, and ties by job id."""


def start(folder: Path) -> None:
    """Start a controller and the nodes; what they write is in a folder.

    Raises:
        EvaluationError: They do not come up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        "mount -t tmpfs tmpfs /etc/slurm",
        "mount -t tmpfs tmpfs /run",
        "ip link set lo up",
        "ip addr add 10.9.9.9/24 dev lo",  # Slurm resolves no address where all are loopback's
        "install -d -o munge -m 755 /run/munge",
        "su -s /bin/sh munge -c /usr/sbin/munged",
    ):
        subprocess.run(command.split(), check=True)
    Path("/etc/slurm/slurm.conf").write_text(_configuration(folder))
    start_controller()
    for node in range(1, N_NODES + 1):
        subprocess.run(["slurmd", "-N", f"n{node}"], check=True)
    for _ in range(60):
        if printed("sinfo", "-h", "-t", "idle", "-o", "%D", "-p", "batch").strip() == str(N_NODES):
            return
        time.sleep(0.5)
    raise EvaluationError(f"the nodes do not come up; see {folder}")


def start_controller() -> None:
    """Start a controller, also anew after it was killed."""
    subprocess.run(["slurmctld"], check=True)


def kill_controller(folder: Path) -> None:
    """Kill the controller as a crash would."""
    os.kill(int((folder / "slurmctld.pid").read_text()), signal.SIGKILL)


def _configuration(folder: Path) -> str:
    """Return slurm.conf."""
    host = socket.gethostname()
    keys = {
        "ClusterName": "toy",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        "ReturnToService": 2,
        "StateSaveLocation": folder / "controller",
        "SlurmdSpoolDir": folder / "%n",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "slurmd.%n.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": folder / "slurmd.%n.log",
        "SlurmdParameters": "config_overrides",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": SCHEDULER,
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "KillWait": 1,
        "MinJobAge": 3600,
        **_WEIGHTS,
    }
    lines = [f"{key}={value}" for key, value in keys.items()]
    lines += [
        f"NodeName=n{node} NodeAddr=127.0.0.1 NodeHostname={host} Port={17000 + node} "
        f"CPUs={CPUS_A_NODE} RealMemory=64000 State=UNKNOWN"
        for node in range(1, N_NODES + 1)
    ]
    lines.append(f"PartitionName=batch Nodes=n[1-{N_NODES}] Default=YES MaxTime=INFINITE State=UP")
    return "\n".join([*lines, ""])
