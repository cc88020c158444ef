"""Print a Markdown table of recorded waits beside simulated ones, for each log.

    python scripts/recorded_waits.py theta_2022 mira_2018.swf cerit.csv

A log is a name or a file that `hpcgym simulate` takes; names are looked up in HPCGYM_TRACES.
`scripts/make_mira.py` makes Mira's log, and `hpcgym traces import` a table of CERIT's.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import shown
from hpcgym.machine import Machine
from hpcgym.trace import load_workload
from research.recorded_waits import SETTINGS, beside, how_held
from research.tables import Tables, csv_option


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="+", metavar="LOG")
    parser.add_argument("--machine", type=Path, help="a machine of nodes, TOML, for all logs")
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="SETTING"
    )
    csv_option(parser)
    given = parser.parse_args()
    tables, every = Tables(given.csv), []
    try:
        machine = None if given.machine is None else Machine.from_toml(given.machine)
        with shown():
            for log in given.logs:
                jobs = load_workload(log, machine=machine)
                title = f"{jobs.name}, {len(jobs):,} jobs"
                rows = [
                    {
                        "setting": row.name,
                        "mean, h": f"{row.mean:.2f}",
                        "median, h": f"{row.median:.2f}",
                        "p90, h": f"{row.p90:.2f}",
                        "correlation of queues": f"{row.likeness:.2f}",
                        "room": f"{row.room:.2f}",
                    }
                    for row in beside(jobs, given.settings)
                ]
                Tables().show("", pd.DataFrame(rows), f"\n{title}; {how_held(jobs)}")
                every += [{"log": title} | row for row in rows]
                tables.write("recorded_waits", pd.DataFrame(every))
    except HpcgymError as error:
        sys.exit(f"recorded_waits: {error}")


if __name__ == "__main__":
    main()
