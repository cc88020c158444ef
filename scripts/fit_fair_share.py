"""Fit the first decay of OpenPBS's fair share on a recorded log, and judge it on another.

    python scripts/fit_fair_share.py PBSstrict.swf:none PBSeasy.swf:easy --processors 4

Both logs state waits. `fair-share` is run with OpenPBS's defaults: usage counts half after 24 h,
the order is made at each pass. When the last decay was before the log begins is not stated. Each
600 s of the first 24 h are tried on the first log. The one whose largest error of a user's mean
wait is least is kept. The table says how near both logs then are.
"""

import argparse
import sys
from typing import NamedTuple

import numpy as np

import hpcgym
from hpcgym.base.errors import HpcgymError

STEP_S = 600
DAY_S = 86_400


class Recorded(NamedTuple):
    """A log with waits, and how its scheduler backfilled."""

    workload: hpcgym.Workload
    backfill: str

    def beside(self, policy: str) -> tuple[list[float], float]:
        """Return how far each user's mean wait is off, %, and the share of starts within a job."""
        schedule = hpcgym.simulate(self.workload, policy, backfill=self.backfill)
        jobs = self.workload
        wait = schedule.start_time - jobs.submit_time
        off = [
            100 * (wait[mine].mean() / jobs.wait_time[mine].mean() - 1)
            for mine in (jobs.user == user for user in np.unique(jobs.user))
        ]
        near = np.abs(wait - jobs.wait_time) <= np.median(jobs.run_time)
        return off, float(near.mean())


def recorded(text: str, processors: int) -> Recorded:
    """Read a log, and its mode behind the last colon."""
    path, _, backfill = text.rpartition(":")
    return Recorded(hpcgym.load_workload(path, machine_processors=processors), backfill)


def main() -> None:
    """Fit, judge, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fit", metavar="LOG:BACKFILL")
    parser.add_argument("judge", metavar="LOG:BACKFILL")
    parser.add_argument("--processors", type=int, required=True)
    given = parser.parse_args()
    try:
        fit, judge = (recorded(text, given.processors) for text in (given.fit, given.judge))
        errors = {
            first: max(map(abs, fit.beside(f"fair-share:first={first}")[0]))
            for first in range(STEP_S, DAY_S + 1, STEP_S)
        }
        chosen = f"fair-share:first={min(errors, key=lambda first: errors[first])}"
        print("| log | policy | users' mean waits, % off | starts within a median run time |")
        print("|---|---|---|---|")
        for policy in ("FCFS", "fair-share", chosen):
            for what, log in (("fit", fit), ("judged", judge)):
                off, near = log.beside(policy)
                users = ", ".join(f"{each:+.1f}" for each in off)
                print(f"| {log.workload.name}, {what} | {policy} | {users} | {near:.0%} |")
    except HpcgymError as error:
        sys.exit(f"fit_fair_share: {error}")


if __name__ == "__main__":
    main()
