"""Train learners from scratch by an environment's id alone, and draw what they reach.

    python scripts/learning_curves.py [sb3] [zoo] [hpcgym] [cleanrl] [--scenario NAME]...

Each trains `--seeds` times for `--minutes`, one after the other, and is judged on test weeks and
their jittered copies. Finished trainings are kept in the folder, so that the same command goes on
from there. CleanRL's scripts are not shipped: `--cleanrl FOLDER` names them.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.statistics import draw_weeks, ratio_of_sums
from hpcgym.output import make_folder
from hpcgym.progress import shown, steps
from hpcgym.report.style import blank_figure, plain_axes, save
from hpcgym.text_table import machine_text
from research import curves

SCENARIOS = ("synthetic-busy-weeks", "kth-sp2-weeks")


def main() -> int:
    """Train what is not kept yet, print the table and draw the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("learners", nargs="*", help=", ".join(curves.LEARNERS))
    parser.add_argument("--scenario", action="append", metavar="NAME", help="default: two")
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
    torch.set_num_threads(2)
    try:
        folder = make_folder(given.output)
        for scenario in given.scenario or SCENARIOS:
            chosen = [one for one in learners if one != "cleanrl" or scenario == SCENARIOS[0]]
            with shown(), steps(len(chosen) * given.seeds, scenario, "trainings") as work:
                for _ in trainings(chosen, scenario, given, folder):
                    work.advance()
            table = table_of(folder, scenario, chosen)
            print(f"\n{scenario}, ratio to SAF on test weeks\n\n{machine_text(table, 'markdown')}")
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
        found = [_rows(name, 0, 0.0, 0, one) for name, one in curves.constants(scenario)]
        pd.concat(found).to_csv(rules, index=False)
    for learner in learners:
        for seed in range(given.seeds):
            path = folder / f"{scenario} {learner} {given.minutes:g} min seed {seed}.csv"
            if not path.exists():
                own = {"folder": given.cleanrl} if learner == "cleanrl" else {}
                points = curves.learned(learner, scenario, seed, 60 * given.minutes, **own)
                found = [_rows(learner, seed, *point) for point in points]
                pd.concat(found).to_csv(path, index=False)
            yield


def _rows(name: str, seed: int, seconds: float, n: int, judged: curves.Judged) -> pd.DataFrame:
    """Return what was judged, a row for each week and copy."""
    week, copy = np.indices(judged.bsld.shape)
    columns = {"week": week, "copy": copy, "bsld": judged.bsld, "saf": judged.saf}
    rows = pd.DataFrame({key: column.ravel() for key, column in columns.items()})
    return rows.assign(name=name, seed=seed, seconds=seconds, steps=n)


def judged_of(rows: pd.DataFrame) -> curves.Judged:
    """Return what was judged, from its rows; copies of all seeds count as copies."""
    of_week = [rows[rows["week"] == week] for week in sorted(rows["week"].unique())]
    return curves.Judged(*(np.array([one[key] for one in of_week]) for key in ("bsld", "saf")))


def kept(folder: Path, scenario: str, learner: str) -> pd.DataFrame:
    """Return the rows of all seeds of a learner."""
    return pd.concat(map(pd.read_csv, sorted(folder.glob(f"{scenario} {learner} * seed *.csv"))))


def table_of(folder: Path, scenario: str, learners: list[str]) -> pd.DataFrame:
    """Return a row for each rule and learner: at its start and its end, and over the start."""
    rules = pd.read_csv(folder / f"{scenario} rules.csv")
    rows = []
    for name in rules["name"].unique():
        one = judged_of(rules[rules["name"] == name])
        rows.append({"agent": name, "at its end": str(one.ratio)})
    for learner in learners:
        found = kept(folder, scenario, learner)
        by_seed = [one for _, one in found.groupby("seed")]
        ends = [one[one["seconds"] == one["seconds"].max()] for one in by_seed]
        last = judged_of(pd.concat(ends))
        row = {"agent": learner, "at its end": str(last.ratio)}
        row["each seed"] = ", ".join(f"{judged_of(one).ratio.value:.3f}" for one in ends)
        row["steps"] = f"{np.mean([one['steps'].max() for one in by_seed]):,.0f}"
        if found["seconds"].min() < found["seconds"].max() / 10:
            begun = judged_of(
                pd.concat([one[one["seconds"] == one["seconds"].min()] for one in by_seed])
            )
            over = ratio_of_sums(last.bsld, begun.bsld, draw_weeks(len(last.bsld)))
            row |= {"at its start": f"{begun.ratio.value:.3f}", "end over start": str(over)}
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def draw(folder: Path, scenario: str, learners: list[str]) -> None:
    """Draw the ratio of each learner by time: the mean of its seeds, and each."""
    figure = blank_figure(8.0, 4.6)
    axes = figure.subplots()
    rules = pd.read_csv(folder / f"{scenario} rules.csv")
    end = 0.0
    for number, learner in enumerate(learners):
        found, lines = kept(folder, scenario, learner), []
        for _, rows in found.groupby("seed"):
            times = sorted(rows["seconds"].unique())
            values = [judged_of(rows[rows["seconds"] == one]).ratio.value for one in times]
            lines.append((times, values))
            end = max(end, times[-1])
            axes.plot(
                np.array(times) / 60, values, "-o", color=f"C{number}", alpha=0.3, markersize=3
            )
        least = min(len(times) for times, _ in lines)
        middle = [np.mean([line[part][:least] for line in lines], axis=0) for part in (0, 1)]
        axes.plot(middle[0] / 60, middle[1], "-", color=f"C{number}", linewidth=2, label=learner)
    for name in rules["name"].unique():
        value = judged_of(rules[rules["name"] == name]).ratio.value
        axes.axhline(value, color="0.6", linewidth=0.7)
        axes.annotate(name, (end / 60, value), fontsize=7, color="0.4", ha="right", va="bottom")
    axes.set_xlabel("training, minutes")
    axes.set_ylabel("bounded slowdown on test weeks, ratio to SAF's")
    plain_axes(axes)
    axes.legend(frameon=False, fontsize=8)
    save(figure, folder / f"{scenario}.png", force=True)


if __name__ == "__main__":
    sys.exit(main())
