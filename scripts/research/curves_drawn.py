"""The table and the picture of learning curves, from the files that hold what was judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.gap import gap_closed, gap_text
from hpcgym.evaluation.pictures.style import blank_figure, plain_axes, save
from hpcgym.evaluation.statistics import ratio_of_sums
from research.curves import Judged

HIGHEST = 1.5
"""Rules beyond this ratio, as FCFS, have no line: the others could not be told apart."""


def rows_of(name: str, seed: int, seconds: float, n: int, judged: Judged) -> pd.DataFrame:
    """Return what was judged, a row for each week and copy."""
    week, copy = np.indices(judged.bsld.shape)
    columns = np.stack([week, copy, judged.bsld, judged.saf]).reshape(4, -1)
    rows = pd.DataFrame(dict(zip(("week", "copy", "bsld", "saf"), columns, strict=True)))
    return rows.assign(name=name, seed=seed, seconds=seconds, steps=n)


def judged_of(rows: pd.DataFrame) -> Judged:
    """Return what was judged, from its rows; copies of all seeds count as copies."""
    of_week = [rows[rows["week"] == week] for week in sorted(rows["week"].unique())]
    return Judged(*(np.array([one[key] for one in of_week]) for key in ("bsld", "saf")))


def gap_of(rows: pd.DataFrame, scenario: str) -> str:
    """Return the gap closed in the test weeks as they are; "" where no scale is known of them.

    Seeds count as one agent: a week's value is their mean.
    """
    scale, weeks = scale_of(scenario, "index"), Episodes(scenario).select("test")
    values = rows[rows["copy"] == 0].assign(value=lambda run: run["bsld"] / run["saf"])
    by_place = values.groupby("week")["value"].mean()
    known = [
        (value, ends)
        for place, value in zip(by_place.index.astype(int), by_place, strict=True)
        if scale and (ends := scale.ends(weeks.numbers[place], weeks.workload(place)))
    ]
    if not known:
        return ""
    weight, static, clairvoyant = zip(*(ends[1:] for _, ends in known), strict=True)
    return gap_text(gap_closed(static, [value for value, _ in known], clairvoyant, weight))


def kept(folder: Path, scenario: str, learner: str) -> pd.DataFrame:
    """Return the rows of all seeds of a learner."""
    return pd.concat(map(pd.read_csv, sorted(folder.glob(f"{scenario} {learner} * seed *.csv"))))


def table_of(folder: Path, scenario: str, learners: list[str]) -> pd.DataFrame:
    """Return a row for each rule and learner: at its start and its end, and over the start."""
    rules = pd.read_csv(folder / f"{scenario} rules.csv")
    rows = []
    for name in rules["name"].unique():
        judged = rules[rules["name"] == name]
        ratio = str(judged_of(judged).ratio)
        rows.append({"agent": name, "at its end": ratio, "gap closed": gap_of(judged, scenario)})
    for learner in learners:
        found = kept(folder, scenario, learner)
        by_seed = [one for _, one in found.groupby("seed")]
        ends = [one[one["seconds"] == one["seconds"].max()] for one in by_seed]
        last = judged_of(pd.concat(ends))
        row = {"agent": learner, "at its end": str(last.ratio)}
        row["gap closed"] = gap_of(pd.concat(ends), scenario)
        row["each seed"] = ", ".join(f"{judged_of(one).ratio.value:.3f}" for one in ends)
        row["minutes"] = f"{np.mean([one['seconds'].max() for one in by_seed]) / 60:.1f}"
        row["steps"] = f"{np.mean([one['steps'].max() for one in by_seed]):,.0f}"
        if found["seconds"].min() < found["seconds"].max() / 10:
            begun = judged_of(
                pd.concat([one[one["seconds"] == one["seconds"].min()] for one in by_seed])
            )
            over = ratio_of_sums(last.bsld, begun.bsld)
            row |= {"at its start": f"{begun.ratio.value:.3f}", "end over start": str(over)}
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def draw(folder: Path, scenario: str, learners: list[str]) -> None:
    """Draw the ratio of each learner by time: the mean of its seeds with its interval, and each."""
    figure = blank_figure(9.0, 4.6)
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
        least = min(len(times) for times, _ in lines) - 1  # points before the end
        middle = [
            np.mean([[*line[part][:least], line[part][-1]] for line in lines], axis=0)
            for part in (0, 1)
        ]
        style = "-" if least else "o"
        low, high = _bands(found, least).T
        axes.fill_between(middle[0] / 60, low, high, color=f"C{number}", alpha=0.15, linewidth=0)
        axes.plot(middle[0] / 60, middle[1], style, color=f"C{number}", linewidth=2, label=learner)
    for name in rules["name"].unique():
        judged = rules[rules["name"] == name]
        value = judged_of(judged).ratio.value
        if value < HIGHEST:
            axes.axhline(value, color="0.6", linewidth=0.7)
            axes.annotate(
                f"{name} ({gap_of(judged, scenario).partition(' [')[0]})",
                (1.01 * end / 60, value),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color="0.4",
            )
    axes.set_xlim(0, 1.01 * end / 60)
    axes.set_xlabel("training, minutes")
    axes.set_ylabel("bounded slowdown, ratio to SAF's (gap closed)")
    plain_axes(axes)
    axes.legend(frameon=False, fontsize=10)
    save(figure, folder / f"{scenario}.png", force=True)


def _bands(found: pd.DataFrame, least: int) -> np.ndarray:
    """Return the interval at each of `least` points and at the end, shape (n, 2), all seeds one."""
    by_seed = [rows for _, rows in found.groupby("seed")]
    ends = []
    for at in [*range(least), -1]:
        times = [sorted(rows["seconds"].unique())[at] for rows in by_seed]
        part = [rows[rows["seconds"] == time] for rows, time in zip(by_seed, times, strict=True)]
        estimate = judged_of(pd.concat(part)).ratio
        ends.append(estimate.ends() or (estimate.value, estimate.value))
    return np.array(ends)
