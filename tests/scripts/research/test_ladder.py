"""The tables from FCFS to clairvoyance, on bundled weeks."""

import numpy as np
import pandas as pd
import pytest

from hpcgym.agent import load_agent
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import Evaluation, evaluate
from hpcgym.evaluation.runner import Runner
from research import ladder

SCENARIO = "synthetic-256-weeks"


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """H and SAF on a few weeks."""
    return evaluate([ladder.GUARDED], SCENARIO, weeks="1-4", progress=False)


def test_sums_by_class_are_those_of_all_jobs(evaluation: Evaluation) -> None:
    runner = Runner([load_agent("SAF")], Episodes(SCENARIO).select("1-4"))
    sums = ladder.class_sums(runner, 0)
    rows = evaluation.frame.query("agent == 'SAF'")
    assert np.array_equal(sums[0].sum(axis=(0, 1)), rows["n_jobs"])
    for place, column in ((1, "mean_bsld"), (2, "mean_wait_time")):
        assert sums[place].sum(axis=(0, 1)) == pytest.approx(rows["n_jobs"] * rows[column])


def test_thresholds_stand_beside_the_agents_on_the_same_weeks(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "THRESHOLDS_S", (200_000, None))
    monkeypatch.setattr(ladder, "Episodes", lambda given: Episodes(given).select("1-4"))
    found = ladder.with_thresholds(evaluation, None).summary().set_index("agent")
    assert found.loc["SAF under 200,000 s", "ratio"] == found.loc["SAF", "ratio"] == 1
    assert found.loc["SAF under no threshold", "max_wait_ratio"] > 1
    assert found.loc["SAF under no threshold", "contest"] == "-"


def test_weeks_add_up_to_the_whole_change(evaluation: Evaluation) -> None:
    weeks = ladder.weeks_of(evaluation, ladder.GUARDED)
    ratio = next(one.ratio.value for one in evaluation.summaries if one.agent == ladder.GUARDED)
    assert weeks["change"].sum() == pytest.approx(ratio - 1)
    assert weeks["change"].is_monotonic_decreasing
    assert weeks["share"].sum() == pytest.approx(1)


def test_lost_weeks_say_what_ten_jobs_have_in_common(evaluation: Evaluation) -> None:
    found = ladder.lost_weeks(evaluation, ladder.GUARDED, 1)
    assert isinstance(found, pd.DataFrame)
    week = ladder.weeks_of(evaluation, ladder.GUARDED)["week"][0]
    assert found["log, week"][0] == f"synthetic-256, {week}"
    assert 0 <= float(found["of them, run up to 2 min"][0]) <= 10
