"""Print the tables of docs/environment.md: what each id is and what scores there; constants.

    python scripts/environment_table.py [ID ...] [--weeks N] [--pick]

A score is the mean of `info["ratio"]` over the test weeks, or over their first N. Random actions
play each week once. Rules run as by `hpcgym evaluate`, actions in the environment. Which decisions
matter is drawn: one random action among zeros, at 48 decisions of every sixtieth week.
With --pick it prints the table of `hpcgym/Windows-pick-test-v0` alone, on N windows.
"""

import argparse

import pandas as pd

from hpcgym.base.text_table import machine_text
from research.id_tables import CONSTANTS, IDS, row_of, row_of_constant, row_of_decisions
from research.pick import table_of

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", default=IDS, metavar="ID")
    parser.add_argument("--weeks", type=int, metavar="N", help="the first N weeks only")
    parser.add_argument("--pick", action="store_true", help="the table of pick alone")
    given = parser.parse_args()
    if given.pick:
        print(machine_text(table_of({}, n_windows=given.weeks), "markdown"))
        raise SystemExit
    for rows in (
        [row_of(name, given.weeks) for name in given.ids],
        [row_of_decisions(name, given.weeks) for name in given.ids],
        [row_of_constant(action, given.weeks) for action in CONSTANTS],
    ):
        print(machine_text(pd.DataFrame(rows), "markdown"), end="\n\n")
