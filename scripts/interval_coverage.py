"""Print how often intervals hold what they are of: the tables of docs/evaluation.md.

    python scripts/interval_coverage.py [--draws 1000] [--no-logs] [--csv FOLDER]

Weeks are drawn from generated populations, and from real logs.
"""

import argparse
import sys

import pandas as pd

from hpcgym.base.errors import HpcgymError
from research import interval_coverage as found
from research.gap_coverage import gap_rows
from research.tables import Tables, csv_option


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--no-logs", action="store_true", help="generated populations only")
    csv_option(parser)
    options = parser.parse_args()
    tables = Tables(options.csv)
    draws, with_logs = options.draws, not options.no_logs
    try:
        weeks, as_good = found.populations(with_logs=with_logs)
        logs = found.STRETCHES if with_logs else ()
        for name, title, rows in (
            ("ratios", "ratios", found.ratio_rows(weeks, draws)),
            (
                "best_of_five",
                "the best of five, falsely below SAF",
                found.choice_rows(as_good, draws),
            ),
            ("gaps", "gaps closed", gap_rows(draws)),
            ("pairs_of_days", "differences of pairs of days", found.pair_rows(draws)),
            ("weeks_in_a_row", "weeks in a row", found.rows_in_a_row(draws, logs)),
        ):
            tables.show(name, pd.DataFrame(rows), f"\n{title}, %")
    except HpcgymError as error:
        sys.exit(f"interval_coverage: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
