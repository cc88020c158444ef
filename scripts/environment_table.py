"""Print the tables of docs/environment.md: what scores by kind of action; constants.

    python scripts/environment_table.py [ACTION ...] [--weeks N] [--pick]

A score is the mean of `info["ratio"]` over the test weeks, or over their first N. Random actions
play each week once. Rules run as by `hpcgym evaluate`, actions in the environment. Which decisions
matter is drawn: one random action among zeros, at 48 decisions of every sixtieth week.
With --pick it prints the table of `hpcgym/Windows-pick-test-v0` alone, on N windows.
"""

import argparse

import pandas as pd

from hpcgym.base.text_table import machine_text
from research.action_tables import (
    ACTIONS,
    CONSTANTS,
    row_of,
    row_of_constant,
    row_of_decisions,
)
from research.pick import table_of

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("actions", nargs="*", default=ACTIONS, metavar="ACTION")
    parser.add_argument("--weeks", type=int, metavar="N", help="the first N weeks only")
    parser.add_argument("--pick", action="store_true", help="the table of pick alone")
    given = parser.parse_args()
    if given.pick:
        print(machine_text(table_of({}, n_windows=given.weeks), "markdown"))
        raise SystemExit
    for rows in (
        [row_of(kind, given.weeks) for kind in given.actions],
        [row_of_decisions(kind, given.weeks) for kind in given.actions],
        [row_of_constant(action, given.weeks) for action in CONSTANTS],
    ):
        print(machine_text(pd.DataFrame(rows), "markdown"), end="\n\n")
