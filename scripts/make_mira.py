"""Make the log `mira_2018` of ALCF's jobs as the repository DIR-LAB/lumos publishes them.

    python scripts/make_mira.py data_mira.csv.gz mira_2018.swf

A node of Mira is a processor, of 49,152. The request is the wall time that was asked for, and the
status 1 where the job passed, 5 where it was killed, else 0. Users are numbered as they come.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import writing

STATUS = {"Pass": 1, "Killed": 5}
HEADER = """; Computer: Mira, IBM Blue Gene/Q, Argonne Leadership Computing Facility
; MaxProcs: 49152
; MaxNodes: 49152
; UnixStartTime: 0
; Note: made by scripts/make_mira.py of hpcgym from lumos-site/data/data_mira.csv of DIR-LAB/lumos
"""


def lines_of(jobs: pd.DataFrame) -> list[str]:
    """Return a line of SWF for each job, by submission."""
    jobs = jobs.sort_values(["submit_time", "job"], kind="stable")
    users = pd.factorize(jobs["user"])[0] + 1
    status = jobs["new_status"].map(STATUS).fillna(0).astype(int)
    whole = jobs[["submit_time", "wait_time", "run_time", "node_num", "wall_time"]].round()
    rows = zip(*(whole[name].astype(int) for name in whole), status, users, strict=True)
    return [
        f"{place} {submit} {wait} {run} {nodes} -1 -1 {nodes} {wall} -1 {ended} {user}"
        " -1 -1 -1 -1 -1 -1\n"
        for place, (submit, wait, run, nodes, wall, ended, user) in enumerate(rows, 1)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("jobs", type=Path, help="lumos-site/data/data_mira.csv, packed or not")
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    try:
        table = pd.read_csv(given.jobs)
        with writing(given.output) as path:
            path.write_text(HEADER + "".join(lines_of(table)), encoding="utf-8")
    except (HpcgymError, OSError, KeyError, ValueError) as error:
        sys.exit(f"make_mira: {given.jobs}: {error}")
