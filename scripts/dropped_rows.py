"""Count the rows of logs that are no jobs, by what cleaning says of them.

python scripts/dropped_rows.py LOG... [--csv FOLDER]
"""

import argparse

import pandas as pd

from hpcgym.trace.clean import CANCELLED_AT_ONCE
from hpcgym.trace.load import load_with_report
from hpcgym.trace.swf import NEVER_HELD
from research.tables import Tables, csv_option

REASONS = ("no run time", NEVER_HELD, CANCELLED_AT_ONCE, "no processors")


def row_of(log: str) -> dict[str, object]:
    """Return the rows of a log, those that are no jobs by reason, and its jobs."""
    _, report = load_with_report(log)
    counts = {reason: report.count(reason) for reason in REASONS}
    return {"log": log, "rows": report.records, **counts, "jobs": report.jobs}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logs", nargs="+", metavar="LOG")
    csv_option(parser)
    given = parser.parse_args()
    Tables(given.csv).show("no_jobs", pd.DataFrame(map(row_of, given.logs)))
