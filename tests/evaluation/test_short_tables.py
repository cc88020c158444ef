"""The table that a person reads first, and the sentence that says who wins."""

import re
from dataclasses import replace

import numpy as np
import pytest

import hpcgym
from hpcgym.base.text_table import duration
from hpcgym.evaluation import Evaluation, cross_validate, overview, verdict
from hpcgym.evaluation.short_tables import overview_of_logs

WEEKS = "1-8"


@pytest.fixture(scope="module")
def found() -> Evaluation:
    """Rules of each contest on some weeks of the busy log."""
    agents = ["FCFS", "SAF", "URGENT-BENEFIT", "SAF-TRIAL", "URGENT-OPEN"]
    return hpcgym.evaluate(agents, "synthetic-busy-weeks", weeks=WEEKS, progress=False)


def scaled(found: Evaluation, agent: str, factors: np.ndarray) -> Evaluation:
    """Return an evaluation in which an agent has SAF's slowdowns times a factor for each week."""
    frame = found.frame.copy()
    frame.loc[frame["agent"] == agent, "mean_bsld"] = (found.values("SAF")[:, 0] * factors).tolist()
    return replace(found, frame=frame)


def said(found: Evaluation, *agents: str) -> str:
    """Return the verdict on some agents."""
    kept = replace(found, frame=found.frame[found.frame["agent"].isin(agents)])
    return verdict([kept], kept.ranked())


@pytest.mark.long
def test_five_columns_have_hours_and_the_ratio(found: Evaluation) -> None:
    table = overview(found)
    assert [column.label for column in table.columns] == [
        *("agent", "mean wait", "longest wait", "bsld to SAF", "95\u00a0% interval")
    ]
    names = table.columns[0].cells
    assert list(names) == [row.agent for row in found.ranked()]
    for name, mean, longest in zip(names, *(one.cells for one in table.columns[1:3]), strict=True):
        assert mean == duration(found.values(name, "mean_wait_time").mean())
        assert longest == duration(found.values(name, "max_wait_time").max())
    lines = [line for line, _ in table.lines(80)]
    assert max(map(len, lines)) <= 80 and not any("left out" in line for line in lines)
    assert "Kills jobs that run: SAF-TRIAL." in table.notes
    assert "May delay jobs beyond the threshold: URGENT-OPEN." in table.notes


def test_the_best_is_called_so_where_its_interval_ends_below_one(found: Evaluation) -> None:
    steady = scaled(found, "FCFS", np.full(8, 0.75))
    best = "FCFS is best: 25 % below SAF (25 to 25 %) in bounded slowdown."
    assert said(steady, "SAF", "FCFS") == best


def test_what_may_be_luck_is_called_so(found: Evaluation) -> None:
    shaky = scaled(found, "FCFS", np.array([0.1, *[1.05] * 7]))
    unsure = "FCFS has the least bounded slowdown, but may be no better than SAF."
    assert said(shaky, "SAF", "FCFS") == unsure
    worse = scaled(found, "FCFS", np.full(8, 1.5))
    assert said(worse, "SAF", "FCFS") == "SAF has the least bounded slowdown."


def test_agents_that_are_not_told_apart_are_named(found: Evaluation) -> None:
    alike = scaled(scaled(found, "FCFS", np.full(8, 0.5)), "URGENT-BENEFIT", np.full(8, 0.5))
    alike = scaled(alike, "SAF-TRIAL", np.full(8, 0.9))
    text = said(alike, "SAF", "FCFS", "URGENT-BENEFIT", "SAF-TRIAL")
    assert re.fullmatch(
        r"\S+ has the least bounded slowdown, 50 % below SAF \(50 to 50 %, as one of 3\), but may "
        r"be no better than (FCFS|URGENT-BENEFIT)\.",
        text,
    )
    shaky = scaled(alike, "SAF-TRIAL", np.array([0.1, *[0.6] * 7]))
    text = said(shaky, "SAF", "FCFS", "URGENT-BENEFIT", "SAF-TRIAL")
    assert re.search(r"but may be no better than \S+ and \S+;? ?", text)


def test_the_best_guarded_agent_is_named_beside_one_that_kills(found: Evaluation) -> None:
    made = scaled(scaled(found, "SAF-TRIAL", np.full(8, 0.5)), "URGENT-BENEFIT", np.full(8, 0.8))
    text = said(made, "SAF", "SAF-TRIAL", "URGENT-BENEFIT")
    assert text == (
        "SAF-TRIAL is best: 50 % below SAF (50 to 50 %, as one of 2) in bounded slowdown; of those "
        "that kill nothing and keep the threshold it is URGENT-BENEFIT, 20 % below SAF "
        "(20 to 20 %, as one of 2)."
    )


@pytest.mark.long
def test_agents_that_no_scheduler_can_be_do_not_win() -> None:
    done = cross_validate(
        ["SMITH"],
        ["synthetic-busy-weeks", "synthetic-256-weeks"],
        baselines=("KNOWS-SAF",),
        progress=False,
    )
    table = done.overview()
    assert table.columns[0].cells[0] == "KNOWS-SAF"
    assert table.columns[1].label == "kind"
    assert table.notes[0].split()[0] in ("SMITH", "SAF")
    ranked = sorted(done.aggregates, key=lambda one: one.ratio.value)
    assert overview_of_logs(done.evaluations, ranked).notes[0].startswith("KNOWS-SAF is best")
