"""Print the tables of docs/appendices/rules.md from FCFS to clairvoyance, and draw the front.

    python scripts/ladder.py [rungs] [waste] [classes] [--scenario NAME]... [--output runs/ladder]

`rungs` writes the ladder, its front and the weeks that are lost; `waste` the front of agents with
trials; `classes` who gains and who pays. Tables are CSV files in the folder, too: those of pages
`rungs`, `steps`, `saf_thresholds`, `rules_by_log`, `rules_by_weight`, `lost_weeks`,
`rules_by_class` and `trials_by_class`. The same command goes on from finished runs.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.evaluation.aggregate import aggregate_logs
from hpcgym.evaluation.pictures.style import save
from research import ladder
from research.front import front_figure
from research.tables import Tables

LABELS = {name: name for name in ladder.AGENTS if name not in ("FCFS", "SPF", "SAF")}
"""Agents of the picture; the others are far from them."""
SHOWN = ("SAF under 100,000 s", "SAF", "SAF under 300,000 s", "SAF under no threshold")
"""Points of the curve that a page has in numbers."""
TITLE = "{} logs, geometric means of ratios to SAF's, 95 % intervals"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["rungs", "waste", "classes"])
    parser.add_argument("--scenario", action="append", metavar="NAME", help="default: seven logs")
    parser.add_argument("--replicas", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("runs/ladder"))
    options = parser.parse_args()
    chosen = options.scenario or [*ladder.FIVE, *ladder.BESIDE]
    logs = [name for name in chosen if name not in ladder.BESIDE]
    beside = [name for name in chosen if name in ladder.BESIDE]
    try:
        folder = make_folder(options.output)
        if "rungs" in options.parts:
            rungs(logs, beside, options.replicas, folder)
        if "waste" in options.parts:
            waste(logs, options.replicas, folder)
        if "classes" in options.parts:
            classes(logs, options.replicas, folder)
    except HpcgymError as error:
        sys.exit(f"ladder: {error}")
    return 0


def rungs(logs: list[str], beside: list[str], replicas: int, folder: Path) -> None:
    """Run the rungs, print tables, and write summary.csv and front.png."""
    kept = folder / "kept.sqlite"
    played = ladder.rungs([*logs, *beside], replicas, kept).evaluations
    every = [ladder.with_thresholds(one, kept) for one in played]
    means = aggregate_logs(every[: len(logs)])
    summary = ladder.summary_of(every, means)
    summary.to_csv(folder / "summary.csv", index=False)
    tables, found = Tables(folder), ladder.of_all_logs(summary)
    curve = [ladder.saf_under(one) for one in ladder.THRESHOLDS_S]
    left_out = (*ladder.TRIALS, *curve)
    tables.show("rungs", found, rows=[name for name in found["rung"] if name not in left_out])
    tables.show("saf_thresholds", found, rows=SHOWN, columns=[*found][:1] + [*found][2:5])
    tables.show("steps", ladder.steps(every[: len(logs)]))
    tables.show("rules_by_log", ladder.by_log(every))
    tables.show("rules_by_weight", ladder.by_weight(every, ladder.GUARDED))
    numbers = [2] * len(logs) + [1] * len(beside)
    lost = map(ladder.lost_weeks, every, [ladder.GUARDED] * len(every), numbers)
    tables.show("lost_weeks", pd.concat(lost))
    curve.insert(3, "SAF")
    named = {name: name.removeprefix("SAF under ") for name in curve}
    named |= {
        "SAF": "200,000 s",
        "SAF under 500,000 s": "",
        "SAF under no threshold": "500,000 s and none",
    }
    figure = front_figure(
        ladder.front_points(means, LABELS),
        ladder.front_points(means, named),
        title=TITLE.format(len(logs)),
        curve_name="SAF under other thresholds",
    )
    save(figure, folder / "front.png", force=True)


def waste(logs: list[str], replicas: int, folder: Path) -> None:
    """Run the agents with trials, and draw waste.png."""
    found = ladder.trials(logs, replicas, folder / "kept.sqlite").evaluations
    points = ladder.waste_points(found, aggregate_logs(found), ladder.OF_WASTE)
    price = "share of the machine that attempts in vain held, % (lower is better)"
    figure = front_figure(points, title=TITLE.format(len(logs)), price_name=price)
    save(figure, folder / "waste.png", force=True)


def classes(logs: list[str], replicas: int, folder: Path) -> None:
    """Print who gains and who pays, by class of jobs."""
    agents = (ladder.GUARDED, ladder.OPEN, ladder.HEADLINE)
    table = ladder.by_class(logs, agents, replicas)
    heads = [*table]
    Tables(folder).show("rules_by_class", table, columns=heads[:-2])
    Tables(folder).write("trials_by_class", table, [*ladder.SIZES][:1], heads[1:4] + heads[-2:])


if __name__ == "__main__":
    sys.exit(main())
