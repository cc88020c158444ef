"""Print the tables of docs/appendices/rules.md from FCFS to clairvoyance, and draw the front.

    python scripts/ladder.py [rungs] [waste] [classes] [--scenario NAME]... [--output runs/ladder]

`rungs` writes the ladder, its front and the weeks that are lost; `waste` the front of agents with
trials; `classes` who gains and who pays. Tables are CSV files in the folder, too. The same command
goes on from finished runs.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.evaluation import Evaluation
from hpcgym.evaluation.aggregate import aggregate_logs
from hpcgym.evaluation.pictures.style import save
from hpcgym.evaluation.waits import RATIOS, ratio_text
from research import ladder
from research.front import front_figure
from research.tables import Tables

LABELS = {name: name for name in ladder.AGENTS if name not in ("FCFS", "SPF", "SAF")}
"""Agents of the picture; the others are far from them."""
RATIO = ("ratio", "ratio_low", "ratio_high")
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
            agents = ("SMITH-REG", ladder.GUARDED, ladder.OPEN, ladder.HEADLINE)
            for name, table in ladder.class_tables(logs, agents, options.replicas):
                Tables(folder).show(name, table, name)
    except HpcgymError as error:
        sys.exit(f"ladder: {error}")
    return 0


def rungs(logs: list[str], beside: list[str], replicas: int, folder: Path) -> None:
    """Run the rungs, print tables, and write summary.csv and front.png."""
    kept = folder / "kept.sqlite"
    found = ladder.rungs([*logs, *beside], replicas, kept)
    every = [ladder.with_thresholds(one, kept) for one in found.evaluations]
    means = aggregate_logs(every[: len(logs)])
    summary = ladder.summary_of(every, means)
    summary.to_csv(folder / "summary.csv", index=False)
    for scenario in ("all logs", *logs, *beside):
        show(summary, scenario, folder)
    Tables(folder).show("steps", ladder.steps(every[: len(logs)]), "steps")
    curve = [ladder.saf_under(one) for one in ladder.THRESHOLDS_S]
    curve.insert(3, "SAF")
    named = {name: name.removeprefix("SAF, ") for name in curve}
    named |= {"SAF": "200,000 s", "SAF, 500,000 s": "", "SAF, no threshold": "500,000 s and none"}
    figure = front_figure(
        ladder.front_points(means, LABELS),
        ladder.front_points(means, named),
        title=TITLE.format(len(logs)),
        curve_name="SAF under other thresholds",
    )
    save(figure, folder / "front.png", force=True)
    for agent in (ladder.GUARDED, ladder.HEADLINE):
        show_weeks(every, agent, folder)


def waste(logs: list[str], replicas: int, folder: Path) -> None:
    """Run the agents with trials, and draw waste.png."""
    found = ladder.trials(logs, replicas, folder / "kept.sqlite").evaluations
    points = ladder.waste_points(found, aggregate_logs(found), ladder.OF_WASTE)
    price = "share of the machine that attempts in vain held, % (lower is better)"
    figure = front_figure(points, title=TITLE.format(len(logs)), price_name=price)
    save(figure, folder / "waste.png", force=True)


def show(summary: pd.DataFrame, scenario: str, folder: Path) -> None:
    """Print the ladder on one log, or over all."""
    rows = summary[summary["scenario"] == scenario].sort_values("ratio")
    table = pd.DataFrame(
        {"agent": rows["agent"], "contest": rows["contest"]}
        | {"ratio": [ladder.cell(*ratio) for ratio in rows[[*RATIO]].itertuples(index=False)]}
        | {name: list(map(ratio_text, rows[name])) for name in RATIOS}
    )
    Tables(folder).show(scenario, table, scenario)


def show_weeks(logs: list[Evaluation], agent: str, folder: Path) -> None:
    """Print by weight of the weeks, and the weeks that cost an agent most."""
    lost = pd.concat([ladder.lost_weeks(log, agent, 3) for log in logs])
    tables = {f"{agent} by weight": ladder.by_weight(logs, agent), f"{agent}, lost": lost}
    for title, table in tables.items():
        Tables(folder).show(title, table, title)


if __name__ == "__main__":
    sys.exit(main())
