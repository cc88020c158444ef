"""Search which jobs go on trial, and print it beside URGENT-YOUNG and controls, on three logs.

    python scripts/lending.py [--minutes 60] [--seeds 3] [--only SEED] [--output FOLDER]

The weeks `train` are searched on, the weeks `validation` choose, and the weeks `test` judge, with
ten jittered copies of each. Minutes are those of one core. What was searched is kept in the
folder, so that the same command goes on from there. `--only` searches one seed and judges nothing,
so that seeds can run side by side.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.errors import HpcgymError
from hpcgym.output import make_folder
from hpcgym.progress import shown
from hpcgym.text_table import machine_text
from research import lending


def main() -> int:
    """Search for each seed, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", type=int, metavar="SEED")
    parser.add_argument("--output", type=Path, default=Path("runs/lending"))
    options = parser.parse_args()
    try:
        folder = make_folder(options.output)
        with shown():
            if options.only is not None:
                lending.search(options.only, options.minutes, folder)
                return 0
            rows = table(options.seeds, options.minutes, folder)
        print(machine_text(rows, "markdown"))
    except HpcgymError as error:
        sys.exit(f"lending: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from what is kept")
    return 0


def table(seeds: int, minutes: float, folder: Path) -> pd.DataFrame:
    """Return a row for each search, for what it began at, and for the controls."""
    judges = lending.Judges("test", 10)
    controls = {
        "start: smallest area first": lambda shown: lending.lend_by(np.zeros(lending.SIZE), shown),
        "control: by chance": lending.at_random,
        "control: none": lambda shown: np.full(len(shown["cluster"]), lending.N_SLOTS),
    }
    rows = []
    for name, choose in controls.items():
        rows.append({"what chooses": name, **columns(judges, judges(choose))})
        print(*rows[-1].values(), flush=True)
    for seed in range(seeds):
        numbers, n_tried, value = lending.search(seed, minutes, folder)
        reached = judges(lambda shown, numbers=numbers: lending.lend_by(numbers, shown))
        print(f"seed {seed}: {n_tried} rules tried, {value:.3f} on validation weeks", flush=True)
        rows.append({"what chooses": f"search, seed {seed}", **columns(judges, reached)})
        print(*rows[-1].values(), flush=True)
    return pd.DataFrame(rows)


def columns(judges: lending.Judges, reached: list[lending.Judged]) -> dict[str, str]:
    """Return the ratios to URGENT-YOUNG, of all logs and of each."""
    pairs = zip(lending.LOGS, reached, judges.rule, strict=True)
    ratios = {log: f"{mine.bsld.sum() / rule.bsld.sum():.3f}" for log, mine, rule in pairs}
    return {f"to {lending.RULE}": str(judges.to_rule(reached)), **ratios}


if __name__ == "__main__":
    sys.exit(main())
