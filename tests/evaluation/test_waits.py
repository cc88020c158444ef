"""Long waits and their ratios, compared with plain Python."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import Evaluation, cross_validate, evaluate
from hpcgym.evaluation.waits import RATIOS, long_waits, mean_ratios, packed, table_columns, unpacked
from hpcgym.schedule.simulate import simulate

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


@given(st.sampled_from([5, 40, 10**6]), st.integers(1, 3500), st.integers(0, 99))
def test_p999_is_that_of_all_jobs(most: int, n_jobs: int, seed: int) -> None:
    waits = np.sort(np.random.default_rng(seed).integers(0, most, n_jobs))
    assert long_waits(waits, waits, None).values[0] == p999_by_hand(waits.tolist())


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


def test_a_share_over_zero_is_a_dash_and_never_a_number() -> None:
    some, none = np.array([0, 1, 2, 9]), np.array([0, 1, 2, 4])
    for agent, baseline in ((none, none), (some, none)):
        found = long_waits(agent, baseline, threshold=5)
        assert math.isnan(found.ratios[2])
        assert table_columns([found.ratios])[2].cells == ["-"]
    assert long_waits(none, some, threshold=5).ratios[2] == 0.0
    assert math.isnan(long_waits(some, some, None).columns()["share_beyond_ratio"])


def test_long_waits_have_no_interval(evaluation: Evaluation) -> None:
    ends = [name for name in evaluation.summary() if name.endswith(("_low", "_high"))]
    assert ends == ["ratio_low", "ratio_high", "log_ratio_low", "log_ratio_high"]
    assert not any("interval" in column.label for column in evaluation.waits_table().columns)


def test_a_mean_over_logs_leaves_no_log_out() -> None:
    half = np.array([0, 0, 6, 8]), np.array([0, 0, 12, 16])
    one, none = (long_waits(*half, threshold) for threshold in (5, 15))
    other = long_waits(*half, threshold=20)
    assert mean_ratios([one, none]) == (0.5, 0.5, 0.0)
    means = mean_ratios([one, other])
    assert means[:2] == (0.5, 0.5)
    assert math.isnan(means[2])


def test_the_baseline_is_one_to_itself_and_every_row_has_a_contest(evaluation: Evaluation) -> None:
    table = evaluation.summary().set_index("agent")
    assert [table.loc["SAF", name] for name in RATIOS] == [1.0, 1.0, 1.0]
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
        assert any(f"{one.waits.ratios[0]:.3f}" in line for line in lines)
    assert any("open " in line for line in lines)


def test_training_seeds_are_pooled_and_logs_averaged() -> None:
    weeks = [Episodes("synthetic-256-weeks").select("1-5"), Episodes("tiny")]
    found = cross_validate("SPF", weeks[:1], jitter=600, replicas=1, baselines=[], progress=False)
    own, saf = found.evaluation.pooled_waits("SPF")
    rows = found.evaluation.frame.query("agent == 'SPF'")
    assert len(own) == len(saf) == rows["n_jobs"].sum()
    assert own[-1] == rows["max_wait_time"].max()
