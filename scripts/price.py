"""Judge agents of action `price` on weeks they never saw, beside the best rules known.

    python scripts/price.py rules                      # searches rules on the training weeks
    python scripts/price.py judge runs/price-*.npz     # networks, or cards, on the test weeks
    python scripts/price.py judge --months             # months of the same logs, weeks in a row
    python scripts/price.py judge --noise 0.3          # forecasts that miss
    python scripts/price.py plan                       # plans of single weeks, at other run times
    python scripts/price.py judge --scenario kth-sp2-weeks   # all weeks of a log, made-up prices

J is a week's mean bounded slowdown over SAF's plus 20 times its cost over SAF's. Intervals are t
intervals of paired weeks. `rules` takes some ten minutes of one core, `judge` one for each network.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from hpcgym.agent.price import PriceNet, PriceRule
from hpcgym.evaluation.gap import gap_closed
from hpcgym.evaluation.statistics import mean_of
from research.price import (
    BEST,
    FAMILIES,
    SAF,
    SCENARIO,
    Weeks,
    begins_of,
    best_of,
    chooser,
    controls_of,
    months_of,
    other_run_times,
    priced,
    row,
    rules_of_the_shelf,
)

EACH = 5
"""One week in so many gets a plan that is played at other run times."""

FEW = 100
"""Weeks on which all rules are tried, the best of which are on all."""


def search(part: str) -> None:
    """Print the best rule of each family on a part of the weeks, and what it reaches."""
    few, weeks = Weeks(f"{part}:{FEW}"), Weeks(part)
    for family, rules in FAMILIES.items():
        for value, rule in best_of(few, weeks, rules)[:3]:
            print(f"{family}, of {len(rules)} rules: {value:+.3f} {rule}", flush=True)


def judge(weeks: Weeks, files: list[Path | None]) -> None:
    """Print what rules and networks reach on some weeks, and how they compare."""
    weeks.play(SAF.choose)
    print(f"SAF, {weeks.waits()}")
    rules = rules_of_the_shelf()
    best, _ = weeks.play(rules[BEST].choose)
    print(f"{BEST}, {weeks.waits()}")
    for name, rule in {"zeros": PriceRule(100, 0.25, 0.95), **rules}.items():
        others = [(BEST, best)] if name != BEST else []
        print(row(name, weeks.play(rule.choose)[0], others), flush=True)
    found = []
    for file in files:
        reached, actions = weeks.play(chooser(file))
        found.append(reached)
        name = "PRICE-NET" if file is None else file.stem
        print(row(name, reached, [(BEST, best)]))
        print(f"  {weeks.waits()}", flush=True)
        for control, choose in controls_of(actions).items():
            without, _ = weeks.play(choose)
            print(f"  {row(name, reached, [(control, without)])}", flush=True)
    if len(found) > 1:
        print(row(f"mean of {len(found)}", np.mean(found, axis=0), [(BEST, best)]))


def plan(part: str) -> None:
    """Print what plans reach in the weeks they were found for, and where jobs run otherwise."""
    rules = rules_of_the_shelf()
    agents = {BEST: rules[BEST].choose, "PRICE-NET": PriceNet.read().choose}
    found = []
    for week in Weeks(part).numbers[::EACH]:
        found.append(other_run_times(week, agents, begins_of(rules)))
        print(week, " ".join(f"{value:+.3f}" for value in found[-1]), flush=True)
    wheres = ("", " at other run times")
    for where, values in zip(wheres, np.split(np.transpose(found), len(wheres)), strict=True):
        for name, column in zip((*agents, "plan"), values, strict=True):
            print(f"{name}{where}: {mean_of(column)}")
        print(f"gap closed{where}: {gap_closed(*values, np.ones(len(found)))}")


def main() -> None:
    """Search or judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("rules", "judge", "plan"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--part", help="of the weeks; of another scenario all")
    parser.add_argument("--scenario", default=SCENARIO)
    parser.add_argument("--noise", type=float, default=0, help="of a forecast a day ahead")
    parser.add_argument("--months", action="store_true", help="of the part's logs, not its weeks")
    options = parser.parse_args()
    if options.what == "rules":
        search(options.part or "train")
    elif options.what == "plan":
        plan(options.part or "test")
    else:
        part = options.part or ("test" if options.scenario == SCENARIO else None)
        workloads = months_of(part or "test") if options.months else ()
        weeks = Weeks(part, priced(options.scenario, options.noise), workloads=workloads)
        print(f"{options.scenario}, {len(weeks.numbers)} {'months' if workloads else 'weeks'}")
        judge(weeks, options.files or [None])


if __name__ == "__main__":
    main()
