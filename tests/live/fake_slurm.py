"""A Slurm that is a file: what its commands print, and how `scontrol update` changes it.

    python fake_slurm.py STATE scontrol|sprio|sacctmgr [ARGUMENT]...

`STATE` is JSON: `jobs` by id with `base`, `site`, and, where it is so, `set` (priority by hand),
`hidden` (not in sprio) or `array`; `config`; `up`; `level` of the user. `told` collects what was
updated, and `die` kills the parent after so many updates.
"""

import json
import os
import re
import signal
import sys
from pathlib import Path

STATE = Path(sys.argv[1])


def save(state):
    """Write the state, whole."""
    partial = STATE.with_suffix(".part")
    partial.write_text(json.dumps(state))
    partial.rename(STATE)


def sprio(state):
    """Print the priorities as `hpcgym.live.apply.FACTORS` asks for them."""
    for job, of_job in state["jobs"].items():
        if of_job.get("hidden"):
            continue
        if "set" in of_job:
            print(f"{job}|batch|{of_job['set']}|0|0|0|0|0|0|0|0|")
        else:
            priority = max(of_job["base"] + of_job["site"], 1)
            nice = of_job.get("nice", 0)
            terms = f"{of_job['base'] + nice - 7}|0|4|0|0|0|cpu=3"
            print(f"{job}|batch|{priority}|{of_job['site']}|{nice}|{terms}")


def update(state):
    """Update jobs as told on standard input; return whether all were there."""
    fine = True
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
        save(state)
        if state.get("die") == len(state["told"]):
            os.kill(os.getppid(), signal.SIGKILL)
    return fine


def main():
    """Do what the command of this name does."""
    state = json.loads(STATE.read_text())
    program, *words = sys.argv[2:]
    if words == ["ping"]:
        print(f"Slurmctld(primary) at head is {'UP' if state['up'] else 'DOWN'}")
    elif not state["up"]:
        print("Unable to contact slurm controller (connect failure)", file=sys.stderr)
        return 1
    elif words == ["show", "config"]:
        print("".join(f"{key:<24}= {value}\n" for key, value in state["config"].items()))
    elif program == "sprio":
        sprio(state)
    elif program == "sacctmgr":
        print(state["level"])
    elif program == "scontrol" and not words:
        return 0 if update(state) else 1
    return 0


sys.exit(main())
