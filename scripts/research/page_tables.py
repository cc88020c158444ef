"""Tables of pages, of what `hpcgym` writes of evaluations: agents, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path

import pandas as pd

from hpcgym.evaluation.aggregate import ALL_LOGS
from research.ladder import BESIDE, FIVE

RESULTS = Path(__file__).parents[2] / "agents" / "results.csv"
"""What `update_agents.py` writes."""

SMALL = "synthetic-256-weeks"
RECORDED, WAITS = "trust.recorded", ("mean", "median", "p90")
SHORT_H = 0.1  # a mean wait below it is written with more digits


def shelf_results() -> pd.DataFrame:
    """Return agents/results.csv, with the names of columns that evaluations have."""
    return pd.read_csv(RESULTS).rename(columns={"ratio_to_saf": "ratio"})


def cell(row: pd.Series, name: str = "ratio") -> str:
    """Return a number of a row with its interval; logarithms have a sign."""
    form = "{:+.3f}" if name == "log_ratio" else "{:.3f}"
    texts = [form.format(row[key]) for key in (name, f"{name}_low", f"{name}_high")]
    return "{} [{}, {}]".format(*texts)


def short(scenario: str) -> str:
    """Name a log without what all names of scenarios end in."""
    return scenario.removesuffix("-weeks")


def by_log(results: pd.DataFrame, agents: Sequence[str], logs: Sequence[str]) -> pd.DataFrame:
    """Return the ratios to SAF of some agents, a row for each log."""
    found = results.set_index(["agent", "scenario"])
    rows = []
    for log in logs:
        cells = {name: cell(found.loc[name, log]) for name in agents}
        rows.append({"log": short(log)} | cells)
    return pd.DataFrame(rows)


def trials(results: pd.DataFrame) -> pd.DataFrame:
    """Return the agents with trials on the logs that rules were chosen with, and beside them."""
    agents = ("URGENT-BENEFIT", "SAF-TRIAL", "SAF-CAP-YOUNG", "URGENT-YOUNG")
    return by_log(results, agents, (SMALL, *FIVE, *BESIDE))


def old_logs(results: pd.DataFrame) -> pd.DataFrame:
    """Return PPO-TRIALS on logs that its training never saw."""
    name, logs = "PPO-TRIALS", (*FIVE[3:], *BESIDE, SMALL)
    table = by_log(results, (name, "URGENT-YOUNG"), logs)
    found = results[results["agent"] == name].set_index("scenario").loc[[*logs]]
    table[f"longest wait of {name}, to SAF's"] = [f"{one:.3f}" for one in found["max_wait_ratio"]]
    beyond = [f"{one:.3f}" for one in found["share_beyond_ratio"]]
    return table.assign(**{"jobs beyond the threshold, likewise": beyond})


def agents_by_log(found: pd.DataFrame) -> pd.DataFrame:
    """Return agents on a generated log, on the bundled one, and their range over five real ones."""
    shelf, rows = shelf_results().set_index(["agent", "scenario"]), []
    for _, one in found[found["agent"] != "SAF"].iterrows():
        real = [shelf.loc[one["agent"], log]["ratio"] for log in FIVE]
        row = {"agent": one["agent"], one["file"]: cell(one)}
        row[SMALL] = cell(shelf.loc[one["agent"], SMALL])
        rows.append(row | {"five real logs": f"{min(real):.3f} to {max(real):.3f}"})
    return pd.DataFrame(rows)


def across(found: pd.DataFrame, kinds: Sequence[str] = ("achievable",)) -> pd.DataFrame:
    """Return agents of some kinds by their mean over logs, with each log beside it."""
    rows, known = [], found[found["kind"].isin(kinds)].drop_duplicates(["agent", "scenario"])
    for name, own in known.groupby("agent", sort=False):
        logs = own.set_index("scenario")
        mean = logs.loc[ALL_LOGS]
        row = {"agent": name, "geometric mean": cell(mean)}
        row["mean log ratio"] = cell(mean, "log_ratio")
        row |= {short(log): cell(logs.loc[log]) for log in logs.index if log != ALL_LOGS}
        rows.append((mean["ratio"], row))
    return pd.DataFrame([row for _, row in sorted(rows, key=lambda pair: pair[0])])


def knowing(found: pd.DataFrame) -> pd.DataFrame:
    """Return those that know run times or the week."""
    return across(found, ("hindsight", "clairvoyant"))


def means(found: pd.DataFrame) -> pd.DataFrame:
    """Return the means over logs alone, of ratios to another baseline than SAF."""
    table = across(found)[["agent", "geometric mean"]]
    return table.rename(columns={"geometric mean": "ratio to the baseline"})


def gap_closed(found: pd.DataFrame) -> pd.DataFrame:
    """Return ratios and gaps closed."""
    rows = found.sort_values("ratio")
    gaps = [cell(row, "gap_closed") for _, row in rows.iterrows()]
    ratios = [cell(row) for _, row in rows.iterrows()]
    return pd.DataFrame({"agent": rows["agent"], "ratio to SAF": ratios, "gap closed": gaps})


def other_logs(found: pd.DataFrame) -> pd.DataFrame:
    """Return agents on logs of files that are named as these are."""
    agents = ("URGENT-BENEFIT", "SAF-TRIAL", "SAF-CAP-TRIAL", "URGENT-YOUNG")
    table = by_log(found.assign(scenario=found["file"]), agents, [*dict.fromkeys(found["file"])])
    last = found[found["agent"] == agents[-1]]["max_wait_ratio"]
    return table.assign(**{f"{agents[-1]}: longest wait": [f"{one:.3f}" for one in last]})


def report_fidelity(found: pd.DataFrame) -> pd.DataFrame:
    """Return how near reports come to what was recorded, with holds and without; waits in h."""
    rows = []
    for _, one in found.iterrows():
        row = {"log": one["file"], "recorded": waits(one, "trust.recorded")}
        row["simulated"] = waits(one, "trust.simulated")
        row["correlation"] = f"{one['trust.correlation']:.2f}"
        row["beyond"] = beyond(one, "trust.simulated", one["trust.correlation"])
        plain = "trust.without_holds."
        is_held = f"{plain}simulated.mean" in one and not isnan(one[f"{plain}simulated.mean"])
        row["without holds"] = waits(one, f"{plain}simulated") if is_held else "the same"
        beside = one[f"{plain}correlation"] if is_held else one["trust.correlation"]
        row["its correlation"] = f"{beside:.2f}"
        row["its beyond"] = beyond(one, f"{plain if is_held else 'trust.'}simulated", beside)
        row["waiting of held jobs"] = f"{one['trust.held_share']:.0%}" if is_held else "none"
        rows.append(row)
    return pd.DataFrame(rows)


def waits(report: pd.Series, where: str) -> str:
    """Return mean, median and 90th percentile of waits."""
    digits = 1 if report[f"{where}.mean"] >= SHORT_H else 4
    return " / ".join(f"{report[f'{where}.{name}']:.{digits}f}" for name in WAITS)


def beyond(report: pd.Series, where: str, correlation: float) -> str:
    """Return what of simulated waits and their correlation is beyond the aim."""
    from hpcgym.site.causes import missed  # a room that may be deleted

    of_log, made = ({key: report[f"{side}.{key}"] for key in WAITS} for side in (RECORDED, where))
    return ", ".join(missed(of_log, made, correlation)) or "nothing"


Table = Callable[[pd.DataFrame], pd.DataFrame]
SHELF: dict[str, Table] = {"trials": trials, "old_logs": old_logs}
"""Of agents/results.csv."""

OF_FILES: dict[str, Table] = {
    **dict.fromkeys(("orders", "planner", "shelf_on_last_blocks"), across),
    **dict.fromkeys(("ppo_from_smith_history", "ppo_from_smith_reg"), across),
    **dict.fromkeys(("on_top_of_urgent_benefit", "on_top_of_urgent_open"), across),
    "knowing": knowing,
    "learned_by_pairs": means,
    "controls": means,
    "agents_by_log": agents_by_log,
    "gap_closed": gap_closed,
    "report_fidelity": report_fidelity,
    "trials_other_logs": other_logs,
}
"""Of files that `hpcgym` writes: `cross-validate`, `evaluate`, and of `report` the .json."""
