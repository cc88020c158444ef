"""Train learners from scratch by an environment's id, and draw what they reach.

    python scripts/learning_curves.py [sb3] [zoo] [hpcgym] [--scenario NAME]...

Each trains `--seeds` times for `--minutes`, one after the other, and is judged on test weeks and
their jittered copies. Finished trainings are kept in the folder, so that the same command goes on
from there.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.base.progress import shown, steps
from research import curves
from research.curves_drawn import draw, rows_of, table_of
from research.tables import Tables

SCENARIOS = {"many-weeks": "curves", "price-weeks": "price_curves"}
"""Names of tables, by scenario."""

COLUMNS = ["agent", "at its end", "gap closed", "longest wait, h", "steps", "at its start"]
COLUMNS += ["end over start"]
"""What is written of learners."""


def main() -> int:
    """Train what is not kept yet, print the table and draw the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("learners", nargs="*", help=", ".join(curves.LEARNERS))
    parser.add_argument("--scenario", action="append", metavar="NAME", help="default: many-weeks")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("runs/curves"))
    given = parser.parse_args()
    learners = given.learners or ["sb3", "zoo", "hpcgym"]
    if unknown := set(learners) - set(curves.LEARNERS):
        parser.error(
            f"unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(curves.LEARNERS)}"
        )
    torch.set_num_threads(1)
    try:
        folder = make_folder(given.output)
        for scenario in given.scenario or ["many-weeks"]:
            with shown(), steps(len(learners) * given.seeds, scenario, "trainings") as work:
                for _ in trainings(learners, scenario, given, folder):
                    work.advance()
            table = table_of(folder, scenario, learners, given.minutes)
            title = f"\n{scenario}, on test weeks"
            name = SCENARIOS.get(scenario, f"{scenario} curves")
            columns = COLUMNS + ["gap closed by each seed"] * (given.seeds > 1)
            Tables(folder).show(name, table, title, rows=learners, columns=columns)
            draw(folder, scenario, learners, given.minutes)
    except HpcgymError as error:
        sys.exit(f"learning_curves: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from what is kept")
    print(f"\nwritten to {folder}")
    return 0


def trainings(
    learners: list[str], scenario: str, given: argparse.Namespace, folder: Path
) -> Iterator[None]:
    """Train what has no file yet, and judge the rules; yield after each training."""
    if not (rules := folder / f"{scenario} rules.csv").exists():
        found = [rows_of(name, 0, 0.0, 0, one) for name, one in curves.constants(scenario)]
        pd.concat(found).to_csv(rules, index=False)
    for learner in learners:
        for seed in range(given.seeds):
            path = folder / f"{scenario} {learner} {given.minutes:g} min seed {seed}.csv"
            if not path.exists():
                points = curves.LEARNERS[learner](scenario, seed, 60 * given.minutes)
                found = [rows_of(learner, seed, *point) for point in points]
                pd.concat(found).to_csv(path, index=False)
            yield


if __name__ == "__main__":
    sys.exit(main())
