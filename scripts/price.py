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
import pandas as pd

from hpcgym.agent.price import PriceNet, PriceRule
from hpcgym.evaluation.gap import gap_closed, gap_text
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
    text_of,
)
from research.tables import Tables, csv_option

EACH = 5  # one week in so many gets a plan that is played at other run times
FEW = 100  # weeks on which all rules are tried, the best of which are on all


def search(part: str) -> None:
    """Print the best rule of each family on a part of the weeks, and what it reaches."""
    few, weeks = Weeks(f"{part}:{FEW}"), Weeks(part)
    for family, rules in FAMILIES.items():
        for value, rule in best_of(few, weeks, rules)[:3]:
            print(f"{family}, of {len(rules)} rules: {value:+.3f} {rule}", flush=True)


def judge(weeks: Weeks, files: list[Path | None]) -> pd.DataFrame:
    """Return what rules and networks reach on some weeks, and how they compare."""
    heads = {f"J less that of {one}": "" for one in ("SAF", BEST)}
    rows = [{"agent": "SAF"} | heads | weeks.seen(weeks.play(SAF.choose)[0])]
    best, _ = weeks.play((rules := rules_of_the_shelf())[BEST].choose)
    rows.append(row(BEST, best, {}) | weeks.seen(best))
    for name, rule in {"zeros": PriceRule(100, 0.25, 0.95), **rules}.items():
        if name != BEST:
            reached = weeks.play(rule.choose)[0]
            rows.append(row(name, reached, {BEST: best}) | weeks.seen(reached))
    found = []
    for file in files:
        reached, actions = weeks.play(chooser(file))
        found.append(reached)
        seen, controls = weeks.seen(reached), controls_of(actions)
        others = {BEST: best, **{one: weeks.play(controls[one])[0] for one in controls}}
        rows.append(row("PRICE-NET" if file is None else file.stem, reached, others) | seen)
    if len(found) > 1:
        rows.append(row(f"mean of {len(found)}", np.mean(found, axis=0), {BEST: best}))
    return pd.DataFrame(rows).fillna("")


def plan(part: str) -> pd.DataFrame:
    """Return what plans reach in the weeks they were found for, and where jobs run otherwise."""
    rules = rules_of_the_shelf()
    agents = {BEST: rules[BEST].choose, "PRICE-NET": PriceNet.read().choose}
    found = []
    for week in Weeks(part).numbers[::EACH]:
        found.append(other_run_times(week, agents, begins_of(rules)))
        print(week, " ".join(f"{value:+.3f}" for value in found[-1]), flush=True)
    table = pd.DataFrame({"agent": [*agents, "plan"]})
    heads = ("in the week of the plan", "at other run times")
    for head, values in zip(heads, np.split(np.transpose(found), len(heads)), strict=True):
        table[head] = [*map(text_of, values)]
    table["gap closed there"] = ["0", gap_text(gap_closed(*values, np.ones(len(found)))), "1"]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("rules", "judge", "plan"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--part", help="of the weeks; of another scenario all")
    parser.add_argument("--scenario", default=SCENARIO)
    parser.add_argument("--noise", type=float, default=0, help="of a forecast a day ahead")
    parser.add_argument("--months", action="store_true", help="of the part's logs, not its weeks")
    csv_option(parser)
    options = parser.parse_args()
    for file in options.files:
        if not file.is_file():
            parser.error(f"{file}: no such file")
    if options.what == "rules":
        search(options.part or "train")
    elif options.what == "plan":
        Tables(options.csv).show("other_run_times", plan(options.part or "test"))
    else:
        part = options.part or ("test" if options.scenario == SCENARIO else None)
        workloads = months_of(part or "test") if options.months else ()
        weeks = Weeks(part, priced(options.scenario, options.noise), workloads=workloads)
        name = "months" if workloads else "noise" if options.noise else options.scenario
        title = f"{options.scenario}, {len(weeks.numbers)} {'months' if workloads else 'weeks'}"
        Tables(options.csv).show(name, judge(weeks, options.files or [None]), title)


if __name__ == "__main__":
    main()
