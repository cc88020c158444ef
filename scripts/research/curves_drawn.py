"""The table and the picture of learning curves, from the files that hold what was judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.gap import gap_text
from hpcgym.evaluation.pictures.style import blank_figure, plain_axes, save
from hpcgym.evaluation.statistics import Estimate, ratio_of_sums
from research.curves import Judged, action_of
from research.price import SCENARIO as PRICES
from research.scales import closed_by

LOWEST, HIGHEST = -1.0, 1.5
"""Rules of a gap closed below, or a ratio above this, as FCFS, have no line: the others could not
be told apart."""


def rows_of(name: str, seed: int, seconds: float, n: int, judged: Judged) -> pd.DataFrame:
    """Return what was judged, a row for each week and copy."""
    week, copy = np.indices(judged.bsld.shape)
    columns = np.stack([week, copy, *judged]).reshape(2 + len(judged), -1)
    rows = pd.DataFrame(dict(zip(("week", "copy", *Judged._fields), columns, strict=True)))
    return rows.assign(name=name, seed=seed, seconds=seconds, steps=n)


def judged_of(rows: pd.DataFrame) -> Judged:
    """Return what was judged, from its rows; copies of all seeds count as copies."""
    of_week = [rows[rows["week"] == week] for week in sorted(rows["week"].unique())]
    return Judged(*(np.array([one[key] for one in of_week]) for key in Judged._fields))


def gap_of(rows: pd.DataFrame, scenario: str) -> Estimate | None:
    """Return the gap closed in the test weeks as they are; None where no scale is known of them.

    Seeds count as one agent: a week's value is their mean.
    """
    scale = scale_of(scenario, action_of(scenario))
    weeks = Episodes(scenario).select("test")
    values = rows[rows["copy"] == 0].assign(value=lambda run: run["bsld"] / run["saf"])
    by_place = values.groupby("week")["value"].mean()
    places = by_place.index.astype(int)
    numbers = [weeks.numbers[place] for place in places]
    return closed_by(by_place, scale, numbers, [*map(weeks.workload, places)])


def kept(folder: Path, scenario: str, learner: str, minutes: float) -> pd.DataFrame:
    """Return the rows of all seeds of a learner that was trained for so long."""
    files = folder.glob(f"{scenario} {learner} {minutes:g} min seed *.csv")
    return pd.concat(map(pd.read_csv, sorted(files)))


def table_of(folder: Path, scenario: str, learners: list[str], minutes: float) -> pd.DataFrame:
    """Return a row for each rule and learner: at its start and its end, and over the start."""
    rules = pd.read_csv(folder / f"{scenario} rules.csv")
    rows = [
        {"agent": name} | reached(rules[rules["name"] == name], scenario)
        for name in rules["name"].unique()
    ]
    for learner in learners:
        found = kept(folder, scenario, learner, minutes)
        by_seed = [one for _, one in found.groupby("seed")]
        ends = [one[one["seconds"] == one["seconds"].max()] for one in by_seed]
        row = {"agent": learner} | reached(pd.concat(ends), scenario)
        each = [gap_text(gap_of(one, scenario)) for one in ends]
        row["gap closed by each seed"] = "; ".join(each)
        row["minutes"] = f"{np.mean([one['seconds'].max() for one in by_seed]) / 60:.1f}"
        row["steps"] = f"{np.mean([one['steps'].max() for one in by_seed]):,.0f}"
        if found["seconds"].min() < found["seconds"].max() / 10:
            starts = [one[one["seconds"] == one["seconds"].min()] for one in by_seed]
            begun, last = judged_of(pd.concat(starts)), judged_of(pd.concat(ends))
            over = str(ratio_of_sums(last.bsld, begun.bsld))
            row |= {"at its start": f"{begun.ratio.value:.3f}", "end over start": over}
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def reached(rows: pd.DataFrame, scenario: str) -> dict[str, str]:
    """Return what was reached at the end: the ratio to SAF or J, the gap closed, the waits."""
    judged = judged_of(rows)
    ends = ", ".join(f"{end:.3f}" for end in judged.ratio.ends() or ())
    return {
        "at its end": f"{judged.ratio.value:.3f}" + (f" [{ends}]" if ends else ""),
        "gap closed": gap_text(gap_of(rows, scenario)),
        "longest wait, h": f"{judged.wait.mean() / 3600:.0f}",
    }


def draw(folder: Path, scenario: str, learners: list[str], minutes: float) -> None:
    """Draw what each learner closes of the gap by time: its mean with an interval, and each seed.

    Where no gap is known it is the ratio to SAF.
    """
    figure = blank_figure(9.0, 4.6)
    axes = figure.subplots()
    rules = pd.read_csv(folder / f"{scenario} rules.csv")
    known = gap_of(rules[rules["name"] == rules["name"][0]], scenario)
    has_gap = known is not None and not np.isnan(known.value)

    def measured(rows: pd.DataFrame) -> Estimate:
        closed = gap_of(rows, scenario) if has_gap else None
        return judged_of(rows).ratio if closed is None else closed

    end = 0.0
    for number, learner in enumerate(learners):
        found, lines = kept(folder, scenario, learner, minutes), []
        by_seed = [rows for _, rows in found.groupby("seed")]
        for rows in by_seed:
            at = [part for _, part in rows.groupby("seconds")]
            times = [part["seconds"].iloc[0] / 60 for part in at]
            lines.append((times, at))
            end = max(end, times[-1])
            values = [measured(part).value for part in at]
            axes.plot(times, values, "-o", color=f"C{number}", alpha=0.3, markersize=3)
        least = min(len(times) for times, _ in lines) - 1  # points before the end
        places = [*range(least), -1]
        middle = np.mean([[times[place] for place in places] for times, _ in lines], axis=0)
        means = [measured(pd.concat([at[place] for _, at in lines])) for place in places]
        low, high = np.transpose([one.ends() or (one.value, one.value) for one in means])
        axes.fill_between(middle, low, high, color=f"C{number}", alpha=0.15, linewidth=0)
        values, style = [one.value for one in means], "-" if least else "o"
        axes.plot(middle, values, style, color=f"C{number}", linewidth=2, label=learner)
    for name in rules["name"].unique():
        judged = rules[rules["name"] == name]
        value = measured(judged).value
        if value > LOWEST if has_gap else value < HIGHEST:
            axes.axhline(value, color="0.6", linewidth=0.7)
            axes.annotate(
                f"{name} ({judged_of(judged).ratio.value:.3f})",
                (1.01 * end, value),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color="0.4",
            )
    axes.set_xlim(0, 1.01 * end)
    axes.set_xlabel("training, minutes of one core")
    what = "J" if scenario == PRICES else "ratio to SAF"
    axes.set_ylabel(f"gap closed; of rules also {what}" if has_gap else what)
    plain_axes(axes)
    axes.legend(frameon=False, fontsize=10)
    save(figure, folder / f"{scenario}.png", force=True)
