"""Cross-validation over logs: a block of each is held out at once, and one agent is made of all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.search import W_TRAIN, SearchTrainer
from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import EvaluationError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import baselines, evaluate
from hpcgym.evaluation.aggregate import aggregate_logs
from hpcgym.evaluation.cross_validation import cross_validate
from hpcgym.evaluation.cv_result import CrossValidationResult
from hpcgym.evaluation.folds import time_blocks

pytestmark = pytest.mark.long

RULES = ("FCFS", "SPF")


@dataclass(frozen=True)
class Noting:
    """Notes what it is handed, where a copy of it leads too, and answers with a rule per seed."""

    handed: Any
    name: str = "noting"

    def __deepcopy__(self, memo: dict[int, Any]) -> "Noting":
        return self

    def __repr__(self) -> str:
        return "Noting()"

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent | NamedAgent:
        self.handed.append(([(one.scenario.name, one.numbers) for one in episodes], seed))
        return RuleAgent(RULES[seed], name="whatever")


@pytest.fixture(scope="module")
def other_weeks() -> Episodes:
    """Ten weeks of another log."""
    return Episodes("synthetic-256-weeks").select("1-10")


QUICK: dict[str, Any] = {"folds": 4, "seeds": 2, "jitter": 600, "replicas": 1, "progress": False}


@pytest.fixture(scope="module")
def handed() -> list[Any]:
    """What the trainer of `found` was handed."""
    return []


@pytest.fixture(scope="module")
def found(
    handed: list[Any], marked_weeks: Episodes, other_weeks: Episodes
) -> CrossValidationResult:
    """A trainer and a rule on two logs."""
    logs = [marked_weeks, other_weeks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "HINDSIGHT_EVALUATIONS", 60)
        return cross_validate(
            [Noting(handed), "SMITH"], logs, baselines=["w*", "KNOWS-SAF"], **QUICK
        )


def test_each_fold_is_trained_once_on_what_it_leaves_of_every_log(
    found: CrossValidationResult, handed: list[Any], marked_weeks: Episodes, other_weeks: Episodes
) -> None:
    logs = (marked_weeks, other_weeks)
    blocks = zip(*(time_blocks(log.numbers, 4) for log in logs), strict=True)
    expected = [
        ([(log.scenario.name, fold.training) for log, fold in zip(logs, folds, strict=True)], seed)
        for folds in blocks
        for seed in range(2)
    ]
    assert handed == expected
    rows = found.trainings
    assert rows["scenario"].tolist() == ["marked-weeks", "synthetic-256-weeks"] * 8
    assert rows["test_weeks"].tolist()[:2] == ["1-2", "1-3"]
    assert rows.groupby(["fold", "seed"])["seconds"].nunique().unique().tolist() == [1]


def test_each_log_has_the_figures_it_would_have_alone(
    found: CrossValidationResult, marked_weeks: Episodes, other_weeks: Episodes
) -> None:
    for log, one in zip((marked_weeks, other_weeks), found.evaluations, strict=True):
        plain = evaluate([*RULES, "SMITH"], log, jitter=600, replicas=1, progress=False)
        mean = (plain.values("FCFS") + plain.values("SPF")) / 2
        assert np.allclose(one.values("noting"), mean, rtol=1e-14)
        assert np.array_equal(one.values("SMITH"), plain.values("SMITH"))
        assert np.array_equal(one.values("SAF"), plain.values("SAF"))
        frame = found.runs[found.runs["scenario"] == log.scenario.name]
        held_out = frame[frame["agent"] == "noting"].groupby("fold")["week"].unique()
        blocks = [fold.test for fold in time_blocks(log.numbers, 4)]
        assert [tuple(weeks) for weeks in held_out] == blocks


def test_line_over_logs_is_the_geometric_mean_of_the_ratios(found: CrossValidationResult) -> None:
    frame = found.summary()
    assert frame["scenario"].unique().tolist() == [
        *("marked-weeks", "synthetic-256-weeks", "all logs")
    ]
    one, two, joint = (rows.set_index("agent") for _, rows in frame.groupby("scenario", sort=False))
    assert list(joint.index) == list(one.index) == list(two.index)
    assert np.allclose(joint["ratio"], np.sqrt(one["ratio"] * two["ratio"]), rtol=1e-12)
    assert np.allclose(joint["log_ratio"], (one["log_ratio"] + two["log_ratio"]) / 2, atol=1e-12)
    assert joint["n_weeks"].unique().tolist() == [18]
    assert joint.loc["SAF", ["ratio", "ratio_low", "ratio_high"]].tolist() == [1, 1, 1]
    assert joint.loc["SMITH", "ratio_low"] < joint.loc["SMITH", "ratio"]
    assert joint.loc["noting", "n_seeds"] == 2
    by_seed = [ratios["noting"] for ratios in map(found.seed_ratios_on, found.evaluations)]
    assert found.seed_ratios["noting"] == pytest.approx(tuple(np.sqrt(np.prod(by_seed, axis=0))))
    assert joint["sum_bsld"].isna().all()


def test_two_logs_alike_are_less_uncertain_than_one(other_weeks: Episodes) -> None:
    one = evaluate(["SPF"], other_weeks, progress=False)
    alone = next(line for line in one.summaries if line.agent == "SPF").log_ratio
    two = next(line for line in aggregate_logs([one, one]) if line.agent == "SPF").log_ratio
    assert two.value == pytest.approx(alone.value)
    assert alone.error is not None
    assert two.error == pytest.approx(alone.error * np.sqrt(0.5))
    assert two.degrees == pytest.approx(2 * alone.degrees)


def test_printed_tables_are_one_per_log_and_one_over_all(found: CrossValidationResult) -> None:
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as captured:
        console.print(found.table())
    text = captured.get()
    assert "marked-weeks: 8 weeks" in text
    assert "synthetic-256-weeks: 10 weeks" in text
    assert "2 logs: marked-weeks, synthetic-256-weeks" in text
    assert text.count("noting: trained without the block; ratio by training seed") == 3
    with pytest.raises(EvaluationError, match="no one evaluation over marked-weeks, synthetic"):
        _ = found.evaluation


def test_weights_of_several_logs_are_one_agent_and_kept_whoever_makes_them(
    marked_weeks: Episodes, other_weeks: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = QUICK | {"folds": 2, "seeds": 1, "replicas": 0, "jitter": 0, "baselines": []}
    logs, trainer = [marked_weeks, other_weeks.select("1-6")], replace(W_TRAIN, evaluations=24)
    one = cross_validate(trainer, logs, **options)
    store = tmp_path / "kept.sqlite"
    two = cross_validate(trainer, logs, executor="local:2", resume=store, **options)
    pd.testing.assert_frame_equal(one.runs, two.runs)
    trained: list[object] = []
    monkeypatch.setattr(SearchTrainer, "train", lambda *arguments: trained.append(arguments))
    again = cross_validate(trainer, logs, resume=store, **options)
    assert trained == []
    pd.testing.assert_frame_equal(again.trainings, two.trainings)


def test_trainers_that_look_alike_are_told_apart_by_name(other_weeks: Episodes) -> None:
    first: list[Any] = []
    second: list[Any] = []
    trainers = [Noting(first), Noting(second, name="other")]
    options = QUICK | {"replicas": 0, "jitter": 0, "baselines": []}
    cross_validate(trainers, other_weeks, **options)
    assert len(first) == len(second) == 8


def test_trained_agents_and_rules_meet_on_the_weeks_open_to_all(other_weeks: Episodes) -> None:
    def trained_on(name: str, *weeks: int) -> RuleAgent:
        training = Training({"synthetic-256-weeks": weeks}, 0, 1.0, "", "")
        return replace(RuleAgent("SPF", name=name), training=training)

    options = QUICK | {"replicas": 0, "jitter": 0, "baselines": ["FCFS"]}
    one, two = trained_on("one", 1, 2), trained_on("two", 9)
    met = cross_validate([one, two, "SMITH"], other_weeks, **options).evaluation
    assert met.weeks == (4, 5, 6, 7)
    assert met.agents == ("one", "two", "SMITH", "FCFS", "SAF")
    with pytest.raises(EvaluationError, match="no week of synthetic-256-weeks is open to all of"):
        cross_validate(
            [trained_on("low", 1, 2, 3, 4, 5), trained_on("high", 6, 8, 10)], other_weeks
        )


@pytest.mark.parametrize(
    ("agents", "names", "message"),
    [
        (["SPF", "spf"], ["tiny"], "two agents are called SPF"),
        ([], ["tiny"], "at least one trainer or agent"),
        (["SPF"], [], "at least one scenario"),
        (["SPF"], ["tiny", "tiny"], "tiny and tiny cut one log"),
    ],
)
def test_nothing_or_one_thing_twice_is_refused(
    agents: list[str], names: list[str], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        cross_validate(agents, names, progress=False)


def test_one_log_under_two_names_is_refused(other_weeks: Episodes) -> None:
    """Its weeks may begin at another instant, so that a week held out stands in another's fold."""
    shifted = Episodes(replace(other_weeks.scenario, name="shifted"))
    with pytest.raises(EvaluationError, match="synthetic-256-weeks and shifted cut one log"):
        cross_validate("SPF", [other_weeks, shifted], progress=False)
