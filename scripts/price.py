"""Judge agents of action `price` on weeks they never saw, beside the best rules known.

    python scripts/price.py rules                      # searches rules on the training weeks
    python scripts/price.py judge runs/price-*.npz     # networks on the test weeks

J is a week's mean bounded slowdown over SAF's plus 20 times its cost over SAF's. Intervals are t
intervals of paired weeks. `rules` takes some ten minutes of one core, `judge` one for each network.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from hpcgym.agent.price import PriceNet, PriceRule
from research.price import FAMILIES, Weeks, best_of, controls_of, row

BEST = PriceRule(240, 0, 1.0, 0.4, 0.85)
"""The best rule of all families on the training weeks, as `rules` prints it."""

FEW = 100
"""Weeks on which all rules are tried, the best of which are on all."""


def search(part: str) -> None:
    """Print the best rule of each family on a part of the weeks, and what it reaches."""
    few, weeks = Weeks(f"{part}:{FEW}"), Weeks(part)
    for family, rules in FAMILIES.items():
        for value, rule in best_of(few, weeks, rules)[:3]:
            print(f"{family}, of {len(rules)} rules: {value:+.3f} {rule}", flush=True)


def judge(files: list[Path], part: str) -> None:
    """Print what rules and networks reach on a part of the weeks, and how they compare."""
    weeks = Weeks(part)
    best, _ = weeks.play(BEST.choose)
    zeros, _ = weeks.play(PriceRule(100, 0.25, 0.95).choose)
    print(row("zeros", zeros, [("the best rule", best)]))
    print(row("the best rule", best))
    found = []
    for file in files:
        net = PriceNet(dict(np.load(file)))
        reached, actions = weeks.play(net.choose)
        found.append(reached)
        print(row(file.stem, reached, [("the best rule", best)]), flush=True)
        for name, choose in controls_of(actions).items():
            without, _ = weeks.play(choose)
            print(f"  {row(file.stem, reached, [(name, without)])}", flush=True)
    if len(found) > 1:
        print(row(f"mean of {len(found)}", np.mean(found, axis=0), [("the best rule", best)]))


def main() -> None:
    """Search or judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("rules", "judge"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--part", help="of the weeks")
    options = parser.parse_args()
    if options.what == "rules":
        search(options.part or "train")
    else:
        judge(options.files, options.part or "test")


if __name__ == "__main__":
    main()
