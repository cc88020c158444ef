"""Train by PPO with and without each option of the learnability kit; print a table.

    python scripts/ablate_kit.py --scenario sdsc-blue-weeks --steps 1000000 --output runs/ablation

The last of five blocks of weeks is held out. Each option alone is compared with the preset of
`hpcgym/agent/learn/ppo/config.py`, with the same numbers of decisions and seeds. The last average
of networks counts, not the best by validation. `scripts/research/ablation.py` lists the options.
Finished trainings are kept in the folder, and the same command goes on from there.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder

SHOWN = (
    *("half of the weeks generated", "half of the weeks resampled", "SMITH-HISTORY", "preset"),
    *("untrained", "starts at SAF"),
)
"""Rows that are written."""


def main() -> int:
    """Train, evaluate, and write the table."""
    try:
        run(read_arguments())
    except HpcgymError as error:
        sys.exit(f"ablate_kit: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from what is kept")
    return 0


def run(options: argparse.Namespace) -> pd.DataFrame:
    """Ablate; print, write and return the table."""
    from hpcgym.agent.learn.ppo import overridden, preset
    from research.ablation import AUGMENTATIONS, PRESET, SETTINGS, ablate, table_of
    from research.tables import Tables

    folder = make_folder(options.output)
    ends = {"steps": options.steps, "minutes": 0.0, "patience": 0, "gives": "last"}
    config = preset(options.action, **ends)
    config = overridden(config, options.set)
    shared = {
        "seeds": options.seeds,
        "replicas": options.replicas,
        "resume": folder / "kept.sqlite",
    }
    names = options.option or (*SETTINGS, *AUGMENTATIONS)
    found = [ablate(config, options.scenario, names, **shared)]
    if options.mixed_with:
        mixed = options.mixed_with
        found.append(ablate(config, options.scenario, [PRESET], mixed_with=mixed, **shared))
    table = table_of(found)
    Tables(folder).show("kit", table, rows=SHOWN, columns=[*table][:2] + [*table][4:])
    return table


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="sdsc-blue-weeks", metavar="NAME")
    parser.add_argument("--mixed-with", action="append", default=[], metavar="NAME")
    parser.add_argument("--option", action="append", default=[], metavar="NAME")
    parser.add_argument("--action", default="order", help="order, job, policy or weights")
    parser.add_argument("--steps", type=int, default=1_000_000, help="decisions of each training")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--output", type=Path, default=Path("runs/ablation"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
