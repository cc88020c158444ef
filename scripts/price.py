"""Judge agents of action `price` on weeks they never saw, beside the best rules known.

    python scripts/price.py rules                      # searches rules on the training weeks
    python scripts/price.py judge runs/price-*.npz     # networks on the test weeks
    python scripts/price.py plan                       # plans of single weeks that know them
    python scripts/price.py judge --scenario kth-sp2-weeks   # all weeks of a log, made-up prices

J is a week's mean bounded slowdown over SAF's plus 20 times its cost over SAF's. Intervals are t
intervals of paired weeks. `rules` takes some ten minutes of one core, `judge` one for each network.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from hpcgym.agent.price import PriceNet, PriceRule
from research.price import FAMILIES, SCENARIO, Weeks, best_of, controls_of, plan_of, priced, row

FOUND = {
    "kappa": PriceRule(60, 0.25, 1.0),
    "kappa and cap": PriceRule(240, 0, 0.95),
    "kappa, cap by rank": PriceRule(240, 0, 1.0, 0.4, 0.85),
}
"""The best rule of each family on the training weeks, as `rules` prints it."""

BEST = FOUND["kappa, cap by rank"]

SAF = PriceRule(1e9, 0, 1.0)
"""No delay pays, and long jobs may fill the machine: nothing is held back."""

EACH = 25
"""One week in so many gets a plan."""

FEW = 100
"""Weeks on which all rules are tried, the best of which are on all."""


def search(part: str) -> None:
    """Print the best rule of each family on a part of the weeks, and what it reaches."""
    few, weeks = Weeks(f"{part}:{FEW}"), Weeks(part)
    for family, rules in FAMILIES.items():
        for value, rule in best_of(few, weeks, rules)[:3]:
            print(f"{family}, of {len(rules)} rules: {value:+.3f} {rule}", flush=True)


def judge(files: list[Path | None], part: str | None, scenario: str) -> None:
    """Print what rules and networks reach on a part of the weeks, and how they compare."""
    weeks = Weeks(part, priced(scenario))
    print(f"{scenario}, {len(weeks.numbers)} weeks")
    weeks.play(SAF.choose)
    print(f"SAF, {weeks.waits()}")
    best, _ = weeks.play(BEST.choose)
    print(f"the best rule, {weeks.waits()}")
    for name, rule in {"zeros": PriceRule(100, 0.25, 0.95), **FOUND}.items():
        others = [("the best rule", best)] if rule is not BEST else []
        print(row(name, weeks.play(rule.choose)[0], others))
    found = []
    for file in files:
        net = PriceNet.read(file)
        reached, actions = weeks.play(net.choose)
        found.append(reached)
        name = "the network that ships" if file is None else file.stem
        print(row(name, reached, [("the best rule", best)]))
        print(f"  {weeks.waits()}", flush=True)
        for control, choose in controls_of(actions).items():
            without, _ = weeks.play(choose)
            print(f"  {row(name, reached, [(control, without)])}", flush=True)
    if len(found) > 1:
        print(row(f"mean of {len(found)}", np.mean(found, axis=0), [("the best rule", best)]))


def plan(part: str) -> None:
    """Print what the rule, the network and a plan that knows the week reach, and the gap closed."""
    net, weeks = PriceNet.read(), Weeks(part)
    chosen = list(weeks.numbers[::EACH])
    rule = dict(zip(weeks.numbers, weeks.play(BEST.choose)[0], strict=True))
    found = []
    for week in chosen:
        found.append((rule[week], *plan_of(week, net.choose)))
        print(week, "rule {:+.3f}, network {:+.3f}, plan {:+.3f}".format(*found[-1]), flush=True)
    of_rule, of_net, of_plan = np.mean(found, axis=0)
    closed = (of_rule - of_net) / (of_rule - of_plan)
    print(f"mean: {of_rule:+.3f}, {of_net:+.3f}, {of_plan:+.3f}; gap closed {closed:.2f}")


def main() -> None:
    """Search or judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("rules", "judge", "plan"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--part", help="of the weeks; of another scenario all")
    parser.add_argument("--scenario", default=SCENARIO)
    options = parser.parse_args()
    if options.what == "rules":
        search(options.part or "train")
    elif options.what == "plan":
        plan(options.part or "test")
    else:
        usual = "test" if options.scenario == SCENARIO else None
        judge(options.files or [None], options.part or usual, options.scenario)


if __name__ == "__main__":
    main()
