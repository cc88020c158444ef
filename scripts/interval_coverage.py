"""Print how often intervals hold what they are of: the tables of docs/evaluation.md.

    python scripts/interval_coverage.py [--draws 1000] [--no-logs]

Weeks are drawn from generated populations, and from real logs.
"""

import argparse
import sys
from collections.abc import Iterable

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import machine_text
from research import interval_coverage as found
from research.gap_coverage import gap_rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--no-logs", action="store_true", help="generated populations only")
    options = parser.parse_args()
    draws, with_logs = options.draws, not options.no_logs
    try:
        weeks, as_good = found.populations(with_logs=with_logs)
        show("ratios", found.ratio_rows(weeks, draws))
        show("the best of five, falsely below SAF", found.choice_rows(as_good, draws))
        show("gaps closed", gap_rows(draws))
        show("differences of pairs of days", found.pair_rows(draws))
        logs = found.STRETCHES if with_logs else ()
        show("weeks in a row", found.rows_in_a_row(draws, logs))
    except HpcgymError as error:
        sys.exit(f"interval_coverage: {error}")
    return 0


def show(title: str, rows: Iterable[found.Row]) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}, %\n\n{machine_text(pd.DataFrame(rows), 'markdown')}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
