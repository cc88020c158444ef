"""Print how often ranges of starts hold what came: the table of docs/advise.md.

    python scripts/range_coverage.py [--toy FOLDER]

Logs are looked up in HPCGYM_TRACES. They are simulated under FCFS with EASY, or taken as recorded:
LOG:recorded. With --toy a real Slurm is asked, too, which must be as scripts/live_advice.py says;
its answers are kept in the folder, and runs that are there are not run again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import machine_text
from research.range_coverage import of_log, rows_of_log, rows_of_readings
from research.recorded_queues import record
from research.tables import Tables, csv_option

LOGS = ("KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln")
LOGS += ("KTH-SP2-1996-2.1-cln:recorded",)
HEADS = ["jobs", "forecasts", "with a range, %", "held, %", "tell, %", "of these held, %"]
HEADS += ["median error, h", "median width, h"]
SHOWN = ["held, %", "tell, %", "of these held, %", "median error, h", "median width, h"]
"""What is written of waiting jobs, and of those submitted now that find no room."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="*", metavar="LOG[:recorded]", default=LOGS)
    parser.add_argument("--queues", type=int, default=6_000, help="of each log; default 6000")
    parser.add_argument("--toy", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=5, help="beside one before; default 5")
    parser.add_argument("--jobs", type=int, default=60, help="of each run; default 60")
    csv_option(parser)
    given = parser.parse_args()
    rows: list[Sequence[str]] = []
    try:
        for log in given.logs:
            name, _, setting = log.partition(":")
            forecasts = of_log(name, setting or "easy", given.queues)
            rows += rows_of_log(log, forecasts)
        if given.toy:
            record(given.toy, given.runs + 1, given.jobs)
            rows += rows_of_readings(given.toy)
    except HpcgymError as error:
        sys.exit(f"range_coverage: {error}")
    table = pd.DataFrame(rows, columns=HEADS)
    print(f"{machine_text(table, 'markdown')}\n")
    shown = table[SHOWN].to_numpy().tolist()
    kinds = zip(table["jobs"][2::3], shown[2::3], shown[1::3], strict=True)  # of KINDS, in order
    written = [[name.removesuffix(", waiting"), *waiting, *new] for name, waiting, new in kinds]
    heads = ["jobs", *SHOWN, *(f"new: {head}" for head in SHOWN)]
    Tables(given.csv).write("ranges", pd.DataFrame(written, columns=heads))


if __name__ == "__main__":
    main()
