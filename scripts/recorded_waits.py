"""Print a Markdown table of recorded waits beside simulated ones, for each log.

    python scripts/recorded_waits.py theta_2022 mira_2018.swf cerit.csv

A log is a name or a file that `hpcgym simulate` takes; names are looked up in HPCGYM_TRACES.
`scripts/make_mira.py` makes Mira's log, and `hpcgym traces import` a table of CERIT's.
"""

import argparse
import sys
from pathlib import Path

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import shown
from hpcgym.machine import Machine
from hpcgym.trace import load_workload
from research.recorded_waits import SETTINGS, beside, how_held


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="+", metavar="LOG")
    parser.add_argument("--machine", type=Path, help="a machine of nodes, TOML, for all logs")
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="SETTING"
    )
    given = parser.parse_args()
    try:
        machine = None if given.machine is None else Machine.from_toml(given.machine)
        with shown():
            for log in given.logs:
                jobs = load_workload(log, machine=machine)
                print(f"\n{jobs.name}: {len(jobs):,} jobs; {how_held(jobs)}\n")
                print("| setting | mean, h | median, h | p90, h | correlation of queues | room |")
                print("|---|---|---|---|---|---|")
                for row in beside(jobs, given.settings):
                    print(
                        f"| {row.name} | {row.mean:.2f} | {row.median:.2f} | {row.p90:.2f} "
                        f"| {row.likeness:.2f} | {row.room:.2f} |"
                    )
    except HpcgymError as error:
        sys.exit(f"recorded_waits: {error}")


if __name__ == "__main__":
    main()
