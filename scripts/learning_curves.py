"""Train learners from scratch by an environment's id alone, and draw what they reach.

    python scripts/learning_curves.py [sb3] [zoo] [hpcgym] [cleanrl] [--scenario NAME]...

Each trains `--seeds` times for `--minutes`, one after the other, and is judged on test weeks and
their jittered copies. Finished trainings are kept in the folder, so that the same command goes on
from there. CleanRL's scripts are not shipped: `--cleanrl FOLDER` names them.
"""

import argparse
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import torch

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.base.progress import shown, steps
from research import curves
from research.curves_drawn import draw, rows_of, table_of
from research.tables import Tables

SCENARIOS = ("many-weeks",)
COLUMNS = ("agent", "at its end", "gap closed", "steps", "at its start", "end over start")
"""What is written of learners."""

CLEANRL = ("tyro", "tensorboard")
"""What CleanRL's scripts import besides."""


def main() -> int:
    """Train what is not kept yet, print the table and draw the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("learners", nargs="*", help=", ".join(curves.LEARNERS))
    parser.add_argument("--scenario", action="append", metavar="NAME", help="default: many-weeks")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cleanrl", type=Path, metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=Path("runs/learning_curves"))
    given = parser.parse_args()
    learners = given.learners or ["sb3", "zoo", "hpcgym", *(["cleanrl"] if given.cleanrl else [])]
    if unknown := set(learners) - set(curves.LEARNERS):
        parser.error(
            f"unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(curves.LEARNERS)}"
        )
    if "cleanrl" in learners and given.cleanrl is None:
        parser.error("cleanrl needs --cleanrl FOLDER, where its ppo_continuous_action.py is")
    if "cleanrl" in learners and (lacking := [one for one in CLEANRL if find_spec(one) is None]):
        parser.error(f"cleanrl needs {' and '.join(lacking)}: pip install {' '.join(lacking)}")
    torch.set_num_threads(1)
    try:
        folder = make_folder(given.output)
        for scenario in given.scenario or SCENARIOS:
            chosen = [one for one in learners if one != "cleanrl" or scenario == SCENARIOS[0]]
            with shown(), steps(len(chosen) * given.seeds, scenario, "trainings") as work:
                for _ in trainings(chosen, scenario, given, folder):
                    work.advance()
            table = table_of(folder, scenario, chosen)
            title = f"\n{scenario}, ratio to SAF on test weeks"
            name = "curves" if scenario == SCENARIOS[0] else f"{scenario} curves"
            Tables(folder).show(name, table, title, rows=chosen, columns=COLUMNS)
            draw(folder, scenario, chosen)
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
                own = {"folder": given.cleanrl} if learner == "cleanrl" else {}
                points = curves.learned(learner, scenario, seed, 60 * given.minutes, **own)
                found = [rows_of(learner, seed, *point) for point in points]
                pd.concat(found).to_csv(path, index=False)
            yield


if __name__ == "__main__":
    sys.exit(main())
