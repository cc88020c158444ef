"""A Slurm that is a file: what its commands print, and how `scontrol update` changes it.

    python fake_slurm.py STATE scontrol|sprio|squeue|sinfo|sacctmgr [ARGUMENT]...

`STATE` is JSON: `jobs` by id with `base`, `site`, and, where it is so, `set` (priority by hand),
`shown` (a priority that is not the sum of its terms), `hidden` (not in sprio) or `array`; `config`;
`up`; `level` of the user. `told` collects what was updated. `die` kills the parent after so many
updates, `breaks` loses the controller before the first. `printed` has what others print.
"""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

CONFIG = {"PriorityType": "priority/multifactor", "PriorityFlags": "", "SlurmUser": "slurm(64030)"}


class Slurm:
    """The file, its commands on the path, and what cycles do to it."""

    def __init__(self, folder, monkeypatch):
        self.path = folder / "state.json"
        self.journal = folder / "journal.jsonl"
        for name in ("scontrol", "sprio", "sacctmgr", "squeue", "sinfo"):
            script = folder / name
            words = f"{sys.executable} {__file__} {self.path} {name}"
            script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        self.write(jobs={}, config=CONFIG, up=True, level="Operator", told=[], printed={})

    def read(self):
        """Return the state."""
        return json.loads(self.path.read_text())

    def write(self, **changed):
        """Change the state."""
        before = self.read() if self.path.exists() else {}
        self.path.write_text(json.dumps(before | changed))

    def jobs(self, **by_name):
        """Have these jobs, each with a j before its id, and nothing told."""
        self.write(jobs={name.lstrip("j"): of_job for name, of_job in by_name.items()}, told=[])

    def sites(self):
        """Return the site factors."""
        return {int(job): of_job["site"] for job, of_job in self.read()["jobs"].items()}

    def told(self):
        """Return what was told last of each job."""
        return dict(self.read()["told"])

    def order(self):
        """Return the jobs as Slurm takes them."""
        jobs = self.read()["jobs"]
        return sorted(
            map(int, jobs), key=lambda job: -jobs[str(job)]["base"] - jobs[str(job)]["site"]
        )


def save(path, state):
    """Write the state, whole."""
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(state))
    partial.rename(path)


def sprio(state, columns):
    """Print priorities, with all terms as `FACTORS` of readings asks for them, or without."""
    for job, of_job in state["jobs"].items():
        if of_job.get("hidden"):
            continue
        if "%A" not in columns:
            print(f"{job}|batch|{of_job['base'] + of_job['site']}|{of_job['site']}|")
        elif "set" in of_job:
            print(f"{job}|batch|{of_job['set']}|0|0|0|0|0|0|0|0||")
        else:
            priority = of_job.get("shown", max(of_job["base"] + of_job["site"], 1))
            nice = of_job.get("nice", 0)
            terms = f"{of_job['base'] + nice - 7}|0|4|0|0|0|cpu=3|"
            print(f"{job}|batch|{priority}|{of_job['site']}|{nice}|{terms}")


def update(path, state):
    """Update jobs as told on standard input; return whether all were there."""
    fine = True
    if state.get("breaks"):
        print("Unable to contact slurm controller (connect failure)", file=sys.stderr)
        return False
    for line in sys.stdin:
        told = re.fullmatch(r"update JobId=(\d+) SiteFactor=(-?\d+)\n", line)
        assert told, line
        job, site = told.groups()
        state["told"].append([int(job), int(site)])
        if job not in state["jobs"]:
            print(f"Invalid job id specified for job {job}", file=sys.stderr)
            fine = False
        elif state["jobs"][job].get("refuses"):
            print(f"Access/permission denied for job {job}", file=sys.stderr)
            fine = False
        else:
            reached = [job, *(k for k, v in state["jobs"].items() if v.get("array") == int(job))]
            for each in reached:
                state["jobs"][each]["site"] = int(site)
        save(path, state)
        if state.get("die") == len(state["told"]):
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(0.5)
    return fine


def main():
    """Do what the command of this name does."""
    path = Path(sys.argv[1])
    state = json.loads(path.read_text())
    program, *words = sys.argv[2:]
    if words == ["ping"]:
        print(f"Slurmctld(primary) at head is {'UP' if state['up'] else 'DOWN'}")
        return 0 if state["up"] else 1
    elif not state["up"]:
        print("Unable to contact slurm controller (connect failure)", file=sys.stderr)
        return 1
    elif words == ["show", "config"]:
        print("".join(f"{key:<24}= {value}\n" for key, value in state["config"].items()))
    elif program == "sprio":
        sprio(state, words[-1])
    elif program in state["printed"]:
        print(state["printed"][program], end="")
    elif program == "sacctmgr":
        print(state["level"])
    elif program == "scontrol" and not words:
        return 0 if update(path, state) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
