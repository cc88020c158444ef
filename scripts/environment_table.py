"""Print the tables of docs/environment.md: what scores by kind of action; constants.

    python scripts/environment_table.py [ACTION ...] [--weeks N] [--pick] [--csv FOLDER]

A score is the mean of `info["ratio"]` over the test weeks, or over their first N. Random actions
play each week once. Rules run as by `hpcgym evaluate`, actions in the environment. Which decisions
matter is drawn: one random action among zeros, at 48 decisions of every sixtieth week.
With --pick it prints the table of `hpcgym/Windows-pick-test-v0` alone, on N windows.
"""

import argparse

import pandas as pd

from research.action_tables import ACTIONS, CONSTANTS, row_of, row_of_constant, row_of_decisions
from research.pick import table_of
from research.tables import Tables, csv_option

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("actions", nargs="*", default=ACTIONS, metavar="ACTION")
    parser.add_argument("--weeks", type=int, metavar="N", help="the first N weeks only")
    parser.add_argument("--pick", action="store_true", help="the table of pick alone")
    csv_option(parser)
    given = parser.parse_args()
    tables = Tables(given.csv)
    if given.pick:
        tables.show("pick", table_of({}, n_windows=given.weeks))
        raise SystemExit
    for name, row, each in (
        ("actions", row_of, given.actions),
        ("decisions", row_of_decisions, given.actions),
        ("constants", row_of_constant, CONSTANTS),
    ):
        tables.show(name, pd.DataFrame([row(item, given.weeks) for item in each]))
