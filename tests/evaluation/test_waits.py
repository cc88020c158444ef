"""Long waits and their ratios, compared with plain Python."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.evaluation import Evaluation, cross_validate, evaluate
from hpcgym.evaluation.statistics import draw_weeks
from hpcgym.evaluation.waits import (
    RATIOS,
    interval_text,
    long_waits,
    mean_ratios,
    packed,
    pooled_p999,
    table_columns,
    unpacked,
)
from hpcgym.scenario.episodes import Episodes
from hpcgym.schedule import simulate

WEEKS = "1-6"


def p999_by_hand(waits: list[int]) -> int:
    """Return the shortest wait that at most one job in 1000 exceeds."""
    return sorted(waits)[-1 - len(waits) // 1000]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Three agents on some bundled weeks, with a copy of each."""
    agents = ["FCFS", "SMITH", "URGENT-OPEN"]
    return evaluate(agents, weeks=WEEKS, jitter=600, replicas=1, progress=False)


@given(st.lists(st.lists(st.integers(0, 10**7), min_size=1), min_size=1, max_size=4))
def test_packed_waits_come_back_ascending(runs: list[list[int]]) -> None:
    found = unpacked([packed(np.array(one)) for one in runs])
    assert found.tolist() == sorted(wait for one in runs for wait in one)


@given(st.data())
def test_p999_is_that_of_all_jobs_of_the_weeks_drawn(data: st.DataObject) -> None:
    n_jobs, most = data.draw(st.sampled_from([(3, 5), (400, 40), (1100, 10**6)]))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    weeks = [np.sort(generator.integers(0, most, n_jobs + week)) for week in range(3)]
    draws = data.draw(st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(any))
    jobs = [int(w) for week, n in zip(weeks, draws, strict=True) for w in week.tolist() * n]
    found = pooled_p999(weeks, np.array([draws, [1, 1, 1]], dtype=float))
    assert found[0] == p999_by_hand(jobs)
    assert found[1] == p999_by_hand([int(w) for week in weeks for w in week])


def test_statistics_are_those_of_the_schedules_in_plain_python(evaluation: Evaluation) -> None:
    episodes = Episodes("synthetic-256-weeks").select(WEEKS)
    threshold = episodes.settings.threshold
    assert threshold is not None
    originals = replace(evaluation, frame=evaluation.frame.query("replica == 0"))
    waits: dict[str, list[list[int]]] = {}
    for policy in ("FCFS", "SAF"):
        made = [
            simulate(episodes.workload(week), policy, threshold=threshold)
            for week in range(len(episodes))
        ]
        waits[policy] = [[int(w) for w in one.wait_time] for one in made]
    own, saf = ([w for week in waits[name] for w in week] for name in ("FCFS", "SAF"))
    beyond = [Fraction(sum(w > threshold for w in jobs), len(jobs)) for jobs in (own, saf)]
    found = originals.summary().set_index("agent").loc["FCFS"]
    assert found["p999_wait_time"] == p999_by_hand(own)
    assert found["share_beyond_threshold"] == float(beyond[0])
    expected = (
        p999_by_hand(own) / p999_by_hand(saf),
        max(own) / max(saf),
        float(beyond[0] / beyond[1]),
    )
    assert tuple(found[name] for name in RATIOS) == pytest.approx(expected)


def test_intervals_are_the_percentiles_over_the_same_draws_in_plain_python(
    evaluation: Evaluation,
) -> None:
    draws = draw_weeks(6, resamples=40, seed=3)
    own, saf = evaluation.waits_by_week("FCFS")
    found = long_waits(own, saf, draws, evaluation.threshold)
    for sample, counts in enumerate(draws.astype(int).tolist()):
        jobs, others = (
            [int(w) for week, n in zip(weeks, counts, strict=True) for w in week.tolist() * n]
            for weeks in (own, saf)
        )
        beyond = [sum(w > (evaluation.threshold or 0) for w in one) for one in (jobs, others)]
        expected = [
            p999_by_hand(jobs) / p999_by_hand(others),
            max(jobs) / max(others),
            beyond[0] / beyond[1] if beyond[1] else math.inf,
        ]
        assert [one.resampled[sample] for one in found.ratios] == pytest.approx(expected)
    for one in found.ratios[:2]:
        low, high = np.quantile(one.resampled, (0.025, 0.975))
        assert (one.estimate.low, one.estimate.high) == pytest.approx((low, high))


def test_a_share_over_zero_is_a_dash_and_never_a_number() -> None:
    some, none = [np.array([0, 9]), np.array([1, 2])], [np.array([0, 4]), np.array([1, 2])]
    draws = draw_weeks(2, resamples=50)
    for agent, baseline in ((none, none), (some, none)):
        found = long_waits(agent, baseline, draws, threshold=5)
        assert math.isnan(found.estimates[2].value)
        assert table_columns([found.estimates])[4].cells == ["-"]
        assert str(found.estimates[2]) == "-"
    kept = long_waits(none, some, draws, threshold=5)
    assert (kept.estimates[2].value, interval_text(kept.estimates[2], ".3f")) == (0.0, "")
    assert long_waits(some, some, draws, None).columns()["share_beyond_ratio"] != 1


def test_a_mean_over_logs_leaves_no_log_out() -> None:
    half = [np.array([0, 8]), np.array([0, 6])], [np.array([0, 16]), np.array([0, 12])]
    draws = draw_weeks(2, resamples=50)
    one, none = (long_waits(*half, draws, threshold) for threshold in (5, 15))
    other = long_waits(*half, draws, threshold=20)
    assert [ratio.estimate.value for ratio in mean_ratios([one, none])] == [0.5, 0.5, 0.0]
    means = [ratio.estimate.value for ratio in mean_ratios([one, other])]
    assert means[:2] == [0.5, 0.5]
    assert math.isnan(means[2])


def test_the_baseline_is_one_to_itself_and_every_row_has_a_contest(evaluation: Evaluation) -> None:
    table = evaluation.summary().set_index("agent")
    assert [table.loc["SAF", name] for name in RATIOS] == [1.0, 1.0, 1.0]
    assert table.loc["SAF", "max_wait_ratio_high"] == 1.0
    assert table["contest"].to_dict() == {
        "FCFS": "guarded",
        "SMITH": "guarded",
        "URGENT-OPEN": "open",
        "SAF": "guarded",
    }


@pytest.mark.parametrize("width", [60, 80, 120])
def test_table_of_waits_fits_and_keeps_the_ratios(evaluation: Evaluation, width: int) -> None:
    lines = [line for line, _ in evaluation.waits_table().lines(width)]
    assert all(len(line) <= width for line in lines)
    for one in evaluation.summaries:
        assert any(f"{one.waits.estimates[0].value:.3f}" in line for line in lines)
    assert any("open " in line for line in lines)


def test_training_seeds_are_pooled_and_logs_averaged() -> None:
    weeks = [Episodes("synthetic-256-weeks").select("1-5"), Episodes("tiny")]
    found = cross_validate("SPF", weeks[:1], jitter=600, replicas=1, baselines=[], progress=False)
    own, saf = found.evaluation.waits_by_week("SPF")
    assert [len(week) for week in own] == [len(week) for week in saf]
    rows = found.evaluation.frame.query("agent == 'SPF'")
    assert sum(map(len, own)) == rows["n_jobs"].sum()
    assert max(week[-1] for week in own) == rows["max_wait_time"].max()
