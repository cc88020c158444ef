#!/usr/bin/env python3
"""Run sleeping jobs on a Slurm of one node that this program starts and ends; inside a chroot.

    python3 slurm_arm.py JOBS.json OUTPUT [--recipe FOLDER] [--cpus 32] [-- AGENT OPTIONS]

It needs namespaces of its own (mount, network, processes), as `research.slurm_chroot` makes them,
and Python's standard library only. With a recipe Slurm has its configuration, and its agent runs
beside it as an operator. Jobs are of a user without rights; both must be there. OUTPUT gets
`sacct.txt` and logs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

BASE = """\
ClusterName=toy
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire={restart}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
StateSaveLocation={state}/ctld
SlurmdSpoolDir={state}/%n
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd.%n.pid
SlurmctldLogFile={output}/slurmctld.log
SlurmdLogFile={output}/slurmd.%n.log
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters={scheduler}
PriorityType=priority/basic
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStorageEnforce=associations,limits,qos
KillWait=1
MinJobAge=7200
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname={host} CPUs={cpus} RealMemory=64000 State=UNKNOWN
"""
PLAIN = "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
SCHEDULER = (
    "bf_interval=1,bf_resolution=1,bf_continue,bf_max_job_test=1000,default_queue_depth=1000,"
    "batch_sched_delay=1,sched_interval=1,sched_min_interval=200000"
)
DATABASE = """\
AuthType=auth/munge
DbdHost=localhost
SlurmUser=root
LogFile={output}/slurmdbd.log
PidFile={state}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=toy
StorageLoc=slurm_acct_db
"""
FIELDS = (
    "JobIDRaw,JobID,User,Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,"
    "State,ReqCPUS,NCPUS,ReqNodes,NNodes,ReqTRES,AllocTRES,ExitCode,Reason,JobName"
)
USER, OPERATOR = "worker", "agent"
CONF = Path("/etc/slurm")
TRIES, TRY_S = 60, 0.5


def call(*words: str, user: str = "", check: bool = True, given: str = "") -> str:
    """Run a command and return what it prints."""
    if user:
        words = ("runuser", "-u", user, "--", *words)
    done = subprocess.run(words, capture_output=True, text=True, input=given, check=False)
    if check and done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def until(*words: str, says: str = "") -> None:
    """Call a command until it succeeds and prints a text."""
    for _ in range(TRIES):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0 and says in done.stdout:
            return
        time.sleep(TRY_S)
    sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


def start_database(state: Path, output: Path) -> None:
    """Start munge, the database and slurmdbd, and let users and an operator in."""
    for folder in ("/run/munge", "/run/mysqld"):
        Path(folder).mkdir(exist_ok=True)
    shutil.chown("/run/munge", "munge")
    call("runuser", "-u", "munge", "--", "munged")
    call("mariadb-install-db", "--user=root", f"--datadir={state}/db", "--skip-test-db")
    sql = "/run/mysqld/mysqld.sock"
    command = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={state}/db"]
    command += [f"--socket={sql}", "--skip-networking", "--innodb-buffer-pool-size=64M"]
    with (output / "mariadbd.log").open("w") as log:
        subprocess.Popen(command, stdout=log, stderr=log)
    until("mariadb-admin", f"--socket={sql}", "-u", "root", "ping")
    call(
        *("mariadb", f"--socket={sql}", "-u", "root", "-e"),
        "create database slurm_acct_db; create user 'slurm'@'localhost' identified by 'toy'; "
        "grant all on slurm_acct_db.* to 'slurm'@'localhost'",
    )
    path = CONF / "slurmdbd.conf"
    path.write_text(DATABASE.format(output=output, state=state))
    path.chmod(0o600)
    call("slurmdbd")
    until("sacctmgr", "-n", "list", "qos")


def write_slurm_conf(state: Path, output: Path, given: argparse.Namespace) -> None:
    """Write slurm.conf, which all commands read, with the recipe's lines where there is one."""
    text = BASE.format(
        host=socket.gethostname(),
        cpus=given.cpus,
        state=state,
        output=output,
        restart=given.restart - 1,
        scheduler=SCHEDULER,
    )
    text += PLAIN if given.recipe is None else (given.recipe / "trials.conf").read_text()
    (CONF / "slurm.conf").write_text(text)
    (CONF / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    if given.recipe is not None:
        shutil.copy(given.recipe / "job_submit.lua", CONF)


def start_slurm(recipe: Path | None) -> None:
    """Let users and an operator in, and start the controller and the node."""
    call("sacctmgr", "-i", "add", "cluster", "toy")
    lines = [] if recipe is None else (recipe / "sacctmgr.txt").read_text().splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            call("sacctmgr", "-i", *line.split())
    qos = "normal" if recipe is None else "normal,trial"
    call("sacctmgr", "-i", "add", "account", "all")
    for user in (USER, OPERATOR):
        words = ("user", user, "account=all", f"qos={qos}", "defaultqos=normal")
        call("sacctmgr", "-i", "add", *words)
    call("sacctmgr", "-i", "modify", "user", OPERATOR, "set", "adminlevel=operator")
    call("slurmctld")
    call("slurmd", "-N", "n1")
    until("sinfo", "-h", "-t", "idle", "-o", "%D", "-p", "main", says="1")


def run_jobs(jobs: list[dict[str, object]]) -> list[str]:
    """Submit jobs when it is their time, wait until all have ended, and return their ids."""
    begun = time.monotonic()
    ids: list[str] = []
    while len(ids) < len(jobs) or call("squeue", "-h", "-o", "%i"):
        passed = time.monotonic() - begun
        while len(ids) < len(jobs) and float(str(jobs[len(ids)]["delay"])) <= passed:
            job = jobs[len(ids)]
            words = ["sbatch", "--parsable", "-J", str(job["name"]), "-n", str(job["cpus"])]
            words += ["-t", str(job["minutes"]), "-o", "/dev/null", "-D", "/"]
            script = f"exec sleep {job['seconds']}"
            ids.append(call(*words, "--wrap", script, user=USER).strip())
        time.sleep(0.5)
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--state", type=Path, default=Path("/srv/state"))
    parser.add_argument("--cpus", type=int, default=32)
    parser.add_argument("--restart", type=int, default=121, help="s from a kill to a restart")
    parser.add_argument("agent", nargs="*", help="options of the agent")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    (given.state / "ctld").mkdir(parents=True)
    write_slurm_conf(given.state, given.output, given)
    start_database(given.state, given.output)
    start_slurm(given.recipe)
    agent = None
    if given.recipe is not None:
        shutil.chown(given.output, OPERATOR)
        words = ["runuser", "-u", OPERATOR, "--", "python3", str(given.recipe / "agent.py")]
        words += ["--journal", str(given.output / "journal.jsonl"), *given.agent]
        with (given.output / "agent.log").open("w") as log:
            agent = subprocess.Popen(words, stdout=log, stderr=log)
    ids = run_jobs(json.loads(given.jobs.read_text()))
    if agent is not None and agent.poll() is not None:
        sys.exit(f"the agent ended by itself: {(given.output / 'agent.log').read_text()}")
    time.sleep(3.0)  # the accounting of the last jobs
    os.environ["SLURM_TIME_FORMAT"] = "%s"
    text = call("sacct", "-a", "-X", "--duplicates", "-j", ",".join(ids), "-P", "-o", FIELDS)
    (given.output / "sacct.txt").write_text(text)


if __name__ == "__main__":
    main()
