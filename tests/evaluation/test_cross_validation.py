"""Cross-validation: nothing of the block is handed out, and nothing is done twice."""

import gc
import pickle
import re
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.search import W_TRAIN
from hpcgym.agent.trainers import TRAINERS, load_trainer
from hpcgym.agent.weights import ConstantAction, weights_agent
from hpcgym.base.errors import CardError, EvaluationError, ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario
from hpcgym.evaluation import cv_plan, evaluate, runner
from hpcgym.evaluation.cross_validation import cross_validate, load_agent_or_trainer
from hpcgym.evaluation.cv_result import CrossValidationResult
from hpcgym.evaluation.folds import time_blocks
from hpcgym.trace.split import logged_end_time
from stores import keys_in

pytestmark = pytest.mark.long

WEEK_S = 604_800
FIRST_REQUEST = 5_000_000  # as of the log in conftest.py: job i asks for so many seconds and i more

RULES = ("FCFS", "SPF", "LPF", "SQF")


@dataclass(frozen=True)
class Spy:
    """Keeps what it is handed, where a copy of it leads too, and answers with a rule per seed."""

    handed: Any
    name: str = "spy"

    def __deepcopy__(self, memo: dict[int, Any]) -> "Spy":
        return self

    def __repr__(self) -> str:
        return "Spy()"

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent | NamedAgent:
        self.handed.append((list(episodes), seed))
        return RuleAgent(RULES[seed], name="whatever")


@dataclass(frozen=True)
class Counting:
    """Says how many steps it has taken."""

    name: str = "counting"

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent | NamedAgent:
        saf = ConstantAction((0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        keywords, at_start = {"action": "weights"}, seed == 0
        return NamedAgent("whatever", saf, keywords, steps=100 + seed, ended_at_start=at_start)


def arrays_reached(root: object) -> Iterator[np.ndarray]:
    """Yield every array that an object leads to, by attributes, items, closures and views."""
    seen, stack = set(), [root]
    closed = (type, types.ModuleType, types.BuiltinFunctionType)
    while stack:
        one = stack.pop()
        if id(one) in seen or isinstance(one, closed):
            continue
        seen.add(id(one))
        if isinstance(one, types.FunctionType):  # its module is not what was handed out
            stack.extend(one.__closure__ or ())
            continue
        if isinstance(one, np.ndarray):
            yield one
            stack.append(one.base)
        if isinstance(one, pd.DataFrame):
            stack.extend(one[column].to_numpy() for column in one)
        stack.extend(gc.get_referents(one))


def jobs_reached(root: object) -> set[int]:
    """Return which jobs' requests are anywhere in what an object leads to."""
    found: set[int] = set()
    for array in arrays_reached(root):
        if array.dtype.kind in "iuf":
            values = array[array >= FIRST_REQUEST]
            found |= set((values - FIRST_REQUEST).astype(int).tolist())
    return found


def test_trainer_reaches_no_job_of_the_block_and_none_that_reaches_into_it(
    marked_weeks: Episodes, marked_log: Workload
) -> None:
    """Whatever leads away from what it is handed, histories and pickles included."""
    handed: list[tuple[list[Episodes], int]] = []
    cross_validate(
        *(Spy(handed), marked_weeks),
        folds=4,
        seeds=1,
        jitter=0,
        replicas=0,
        baselines=[],
        progress=False,
    )
    folds = time_blocks(marked_weeks.numbers, 4)
    assert len(handed) == len(folds)
    submit, end = marked_log.submit_time, logged_end_time(marked_log)
    n_crossing = n_remembered = 0
    for fold, ([episodes], _) in zip(folds, handed, strict=True):
        assert episodes.numbers == fold.training
        start, stop = fold.test[0] * WEEK_S, (fold.test[-1] + 1) * WEEK_S
        block = set(np.flatnonzero((submit >= start) & (submit < stop)).tolist())
        crossing = set(np.flatnonzero((submit < start) & (end >= start)).tolist())
        training = {
            job
            for week in fold.training
            for job in np.flatnonzero(submit // WEEK_S == week).tolist()
        }
        for root in (episodes, pickle.loads(pickle.dumps(episodes))):
            reached = jobs_reached(root)
            assert training <= reached
            assert not reached & block
            assert not reached & crossing
            n_remembered += len(reached - training)
        n_crossing += len(crossing)
    assert n_crossing > 0
    assert n_remembered > 0


def test_histories_of_weeks_that_are_not_set_apart_do_hold_the_block(
    marked_weeks: Episodes,
) -> None:
    """So that the test above can fail."""
    block = jobs_reached(marked_weeks.workload(0)) - jobs_reached(marked_weeks.workload(0).history)
    assert jobs_reached(marked_weeks.workload(3).history) & block
    apart = marked_weeks.set_apart([4], held_out=[1, 2])
    assert jobs_reached(apart.workload(0).history)
    assert not jobs_reached(apart) & block


def test_each_fold_is_trained_once_per_seed_and_run_on_its_block(marked_weeks: Episodes) -> None:
    handed: list[tuple[list[Episodes], int]] = []
    options = {"jitter": 600, "replicas": 2, "seed": 3, "progress": False}
    found = cross_validate(
        *(Spy(handed), marked_weeks), folds=4, seeds=2, baselines=["SPF"], **options
    )
    assert [seed for _, seed in handed] == [0, 1] * 4
    plain = evaluate(["FCFS", "SPF"], marked_weeks, **options)
    mean = (plain.values("FCFS") + plain.values("SPF")) / 2
    assert np.allclose(found.evaluation.values("spy"), mean, rtol=1e-14)
    assert np.array_equal(found.evaluation.values("SPF"), plain.values("SPF"))
    assert np.array_equal(found.evaluation.values("SAF"), plain.values("SAF"))
    ratios = {one.agent: one.ratio.value for one in plain.summaries}
    assert found.seed_ratios["spy"] == pytest.approx((ratios["FCFS"], ratios["SPF"]))
    by_fold = found.runs[found.runs["agent"] == "spy"].groupby("fold")["week"].unique()
    assert [tuple(weeks) for weeks in by_fold] == [
        fold.test for fold in time_blocks(marked_weeks.numbers, 4)
    ]


def test_blocks_that_are_not_asked_for_are_neither_trained_for_nor_run(
    marked_weeks: Episodes,
) -> None:
    handed: list[tuple[list[Episodes], int]] = []
    options: dict[str, Any] = {"jitter": 0, "replicas": 0, "baselines": [], "progress": False}
    found = cross_validate(Spy(handed), marked_weeks, folds=4, blocks=[4, 2], seeds=1, **options)
    second, last = time_blocks(marked_weeks.numbers, 4)[1::2]
    assert [episodes.numbers for (episodes,), _ in handed] == [second.training, last.training]
    for agent in ("spy", "SAF"):
        weeks = found.runs[found.runs["agent"] == agent]["week"].unique()
        assert tuple(weeks) == (*second.test, *last.test)


@pytest.fixture(scope="module")
def table(marked_weeks: Episodes) -> CrossValidationResult:
    """Every baseline, quickly searched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcgym.evaluation.baselines.HINDSIGHT_EVALUATIONS", 60)
        patch.setitem(TRAINERS, "weights", lambda: replace(W_TRAIN, evaluations=60))
        return cross_validate(
            "SPF", marked_weeks, folds=4, seeds=2, jitter=600, replicas=2, progress=False
        )


def test_table_has_every_baseline_and_says_which_could_be_had(table: CrossValidationResult) -> None:
    assert dict(table.kinds) == {
        **dict.fromkeys(("SPF", "FCFS", "SAF", "F1", "EASY-PLUS-PLUS"), "achievable"),
        **dict.fromkeys(("MULTI-DELAY", "DYNP", "w*train"), "achievable"),
        **dict.fromkeys(("w*", "w* on copies"), "hindsight"),
        **dict.fromkeys(("KNOWS-SPF", "KNOWS-SAF", "KNOWS-SMITH"), "clairvoyant"),
    }
    summary = table.summary().set_index("agent")
    assert summary.index[0] == "SPF"
    assert set(summary.index) == set(table.kinds)
    assert (summary["kind"] == pd.Series(table.kinds)[summary.index]).all()
    assert summary["n_weeks"].unique().tolist() == [8]
    assert summary.loc["w*train", "n_seeds"] == 2
    low, high = summary.loc["w*train", ["ratio_seeds_low", "ratio_seeds_high"]]
    assert low <= summary.loc["w*train", "ratio"] <= high
    assert summary.drop("w*train")["ratio_seeds_low"].isna().all()


def test_hindsight_is_shown_on_the_original_and_apart_on_the_copies(
    table: CrossValidationResult,
) -> None:
    found = table.evaluation
    assert found.values("w*").shape == (8, 1)
    assert found.values("w* on copies").shape == (8, 2)
    saf = found.values("SAF")
    assert np.array_equal(found.baseline_values("w*"), saf[:, :1])
    assert np.array_equal(found.baseline_values("w* on copies"), saf[:, 1:])
    assert (found.values("w*") <= saf[:, :1]).all()
    summary = {one.agent: one for one in found.summaries}
    on_copies = found.values("w* on copies").mean(axis=1).sum() / saf[:, 1:].mean(axis=1).sum()
    assert summary["w* on copies"].ratio.value == pytest.approx(on_copies)


def test_trainings_say_what_was_trained_on_what(table: CrossValidationResult) -> None:
    rows = table.trainings
    assert rows["agent"].tolist() == ["w*train"] * 8
    assert rows["fold"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert rows["test_weeks"].tolist()[::2] == ["1-2", "3-4", "5-6", "7-8"]
    assert rows["training_weeks"].tolist()[::2] == ["4-8", "1,6-8", "1-3,8", "1-5"]
    assert rows["left_out_weeks"].tolist()[::2] == ["3", "2,5", "4,7", "6"]
    assert all("=" in made for made in rows["made"])


def test_trainings_say_how_many_steps_an_agent_has_learned_from(marked_weeks: Episodes) -> None:
    """A clock may end a training earlier elsewhere; the steps tell."""
    quick: dict[str, Any] = {"folds": 4, "blocks": [2], "seeds": 2, "jitter": 0, "replicas": 0}
    quick |= {"baselines": [], "progress": False}
    steps = cross_validate([Counting(), Spy([])], marked_weeks, **quick).trainings["steps"]
    assert steps.tolist() == [100, 101, pd.NA, pd.NA]


def test_trainings_say_which_of_them_ended_where_they_began(
    marked_weeks: Episodes, tmp_path: Path
) -> None:
    from rich.console import Console

    quick: dict[str, Any] = {"folds": 4, "seeds": 2, "jitter": 0, "replicas": 0}
    quick |= {"baselines": [], "progress": False, "resume": tmp_path / "store.sqlite"}
    for _ in range(2):  # the second finds the trainings in the file
        found = cross_validate([Counting(), Spy([])], marked_weeks, **quick)
        ended = found.trainings.groupby("agent")["ended_at_start"].sum()
        assert ended.to_dict() == {"counting": 4, "spy": 0}
        console = Console(width=120)
        with console.capture() as captured:
            console.print(found.table())
        (counted, spied) = re.findall(r"\w+: trained without.*", captured.get())
        assert counted.rstrip().endswith("; 4 of 8 trainings ended where they began")
        assert "ended" not in spied


def test_printed_table_names_kinds_and_seeds(table: CrossValidationResult) -> None:
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as captured:
        console.print(table.table())
    text = captured.get()
    assert re.search("KNOWS-SMITH +clairvoyant ", text)
    assert re.search(r"w\* +hindsight ", text)
    assert "w*train: trained without the block; ratio by training seed" in text


def test_interrupted_cross_validation_trains_and_runs_nothing_twice(
    marked_weeks: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"folds": 4, "seeds": 2, "jitter": 0, "replicas": 0}
    options |= {"baselines": ["FCFS", "w*"], "progress": False}
    monkeypatch.setattr("hpcgym.evaluation.baselines.HINDSIGHT_EVALUATIONS", 30)
    handed: list[Any] = []
    whole = cross_validate(Spy(handed), marked_weeks, **options)
    handed.clear()
    store = tmp_path / "store.sqlite"
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.Runner, "run", interrupted)
        cross_validate(Spy(handed), marked_weeks, resume=store, **options)
    assert len(handed) == 8
    handed.clear()
    searched = count_calls(monkeypatch, "best_of_week")
    again = cross_validate(Spy(handed), marked_weeks, resume=store, **options)
    assert handed == []
    assert searched == []
    pd.testing.assert_frame_equal(again.runs, whole.runs)
    keys = keys_in(store)
    cross_validate(Spy(handed), marked_weeks, resume=store, **options)
    assert keys_in(store) == keys
    cross_validate(Spy(handed), marked_weeks, resume=store, **(options | {"folds": 2, "seeds": 1}))
    assert len(handed) == 2, "other folds are other trainings"


def interrupted(*arguments: object, **options: object) -> None:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


def count_calls(patch: pytest.MonkeyPatch, name: str) -> list[object]:
    """Note every call of a function that `plan` uses."""
    called: list[object] = []
    function: Callable[..., object] = getattr(cv_plan, name)

    def counted(*arguments: object) -> object:
        called.append(arguments)
        return function(*arguments)

    patch.setattr(cv_plan, name, counted)
    return called


def test_processes_change_nothing(marked_weeks: Episodes) -> None:
    options: dict[str, Any] = {"folds": 2, "seeds": 1, "jitter": 600, "replicas": 1}
    options |= {"baselines": ["KNOWS-SAF"], "progress": False}
    trainer = replace(W_TRAIN, evaluations=24)
    one, two = (
        cross_validate(trainer, marked_weeks, executor=n, **options) for n in (None, "local:2")
    )
    pd.testing.assert_frame_equal(one.runs, two.runs)


def test_trainer_of_no_rule_is_run_through_the_environment(marked_weeks: Episodes) -> None:
    @dataclass(frozen=True)
    class Wrapping:
        name: str = "wrapped"

        def train(self, episodes: Sequence[Episodes], seed: int) -> NamedAgent:
            rule = RuleAgent("SPF")
            return NamedAgent("net", rule, rule.env_keywords)

    options: dict[str, Any] = {"jitter": 0, "replicas": 0, "baselines": ["SPF"]}
    found = cross_validate(Wrapping(), marked_weeks, folds=2, seeds=1, progress=False, **options)
    values = found.evaluation.values
    assert np.array_equal(values("wrapped"), values("SPF"))


def test_trainer_begins_each_fold_without_memory_of_the_last(marked_weeks: Episodes) -> None:
    counts: list[int] = []

    @dataclass
    class Hoarder:
        name: str = "hoarder"
        hoard: list[Episodes] = field(default_factory=list, repr=False)

        def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent:
            self.hoard.extend(episodes)
            counts.append(len(self.hoard))
            return RuleAgent("SPF")

    options: dict[str, Any] = {"jitter": 0, "replicas": 0, "baselines": []}
    cross_validate(Hoarder(), marked_weeks, folds=4, seeds=2, progress=False, **options)
    assert counts == [1] * 8


@pytest.mark.parametrize(
    ("estimates", "kind"),
    [
        *((None, "achievable"), ("requested", "achievable"), ("doubled", "achievable")),
        *(("recent", "achievable"), ("Exact", "clairvoyant")),
        ("f-model:f=3,seed=1", "clairvoyant"),
    ],
)
def test_agents_that_plan_with_run_times_are_clairvoyant(
    marked_weeks: Episodes, estimates: str | None, kind: str
) -> None:
    """An f-model is noise on run times, so that no scheduler could plan with it."""
    plan = cv_plan.CrossValidationPlan([marked_weeks], [(1,)], 2, 1, 0)
    agent = RuleAgent("SPF", estimates=estimates, name="mine")
    kinds = {runs.name: runs.kind for runs in plan.planned_runs([agent], [])}
    assert kinds == {"mine": kind, "SAF": "achievable"}


def test_who_plans_with_the_run_times_of_a_scenario_is_clairvoyant() -> None:
    scenario = load_scenario("synthetic-256-weeks")
    exact = replace(scenario, scheduler=replace(scenario.scheduler, estimates="exact"))
    plan = cv_plan.CrossValidationPlan([Episodes(exact)], [(1,)], 2, 1, 0)
    agents = [RuleAgent("SPF", estimates="requested", name="mine"), load_trainer("weights")]
    kinds = {runs.name: runs.kind for runs in plan.planned_runs(agents, ["EASY-PLUS-PLUS"])}
    assert kinds == {
        "mine": "achievable",
        "w*train": "clairvoyant",
        "EASY-PLUS-PLUS": "achievable",
        "SAF": "clairvoyant",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 0}, "seeds must be a whole number from 1 to .*, got 0"),
        ({"folds": 1}, "at least 2 blocks"),
        ({"folds": 9}, "too few for 9 blocks"),
        ({"blocks": [6]}, "blocks have numbers from 1 to 5, got 6"),
        ({"blocks": []}, r"in blocks \[\] is open"),
        ({"jitter": 0}, "need both above 0"),
        ({"executor": "local:0"}, "local must be a whole number from 1"),
        ({"baselines": ["KNOWS-SFA"]}, "did you mean 'KNOWS-SAF'"),
    ],
)
def test_what_cannot_be_cross_validated_is_refused(
    marked_weeks: Episodes, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        cross_validate("weights", marked_weeks, progress=False, **options)


def test_episodes_that_are_not_weeks_cannot_be_held_out() -> None:
    with pytest.raises(EvaluationError, match="weeks 1 are too few"):
        cross_validate("weights", "tiny", progress=False)
    windows = Episodes("tiny").scenario
    assert windows.episode.kind == "whole"
    with pytest.raises(ScenarioError, match="can be set apart"):
        Episodes("tiny").set_apart([1])


def test_names_of_trainers_and_agents_are_told_apart_and_mended() -> None:
    assert load_agent_or_trainer("Weights").name == "w*train"
    assert load_agent_or_trainer("area=1").name == "area=1"
    with pytest.raises(CardError, match="unknown trainer or agent 'wieghts'; did you mean 'wei"):
        load_agent_or_trainer("wieghts")
    with pytest.raises(CardError, match="unknown trainer 'wieghts'; did you mean 'weights'"):
        load_trainer("wieghts")


def test_trainer_must_make_an_agent_that_can_be_kept(
    marked_weeks: Episodes, tmp_path: Path
) -> None:
    @dataclass(frozen=True)
    class Makes:
        made: Any
        name: str = "odd"

        def train(self, episodes: Sequence[Episodes], seed: int) -> Any:
            return self.made

    options: dict[str, Any] = {"folds": 2, "seeds": 1, "progress": False, "baselines": []}
    with pytest.raises(EvaluationError, match="odd made 'nothing', which is no RuleAgent"):
        cross_validate(Makes("nothing"), marked_weeks, **options)
    kept = NamedAgent("net", RuleAgent("SPF"), {"action": lambda: None})
    with pytest.raises(EvaluationError, match=r"cannot be kept in .*cache"):
        cross_validate(Makes(kept), marked_weeks, resume=tmp_path / "cache", **options)


@pytest.mark.parametrize(
    "other",
    [
        RuleAgent("FCFS", name="SAF"),
        RuleAgent("FCFS", backfill_order="SPF"),
        NamedAgent("SPF", RuleAgent("FCFS")),
        Spy([], name="SAF"),
    ],
    ids=["SAF", "FCFS", "SPF", "trainer"],
)
def test_what_is_cross_validated_cannot_stand_for_a_rule_that_it_is_not(
    marked_weeks: Episodes, other: RuleAgent | NamedAgent | Spy
) -> None:
    with pytest.raises(EvaluationError, match=f"not the {other.name} of the shelf"):
        cross_validate(other, marked_weeks, folds=2, progress=False)


@pytest.mark.parametrize("name", ["w*", "w* on copies", "KNOWS-SAF"])
def test_names_of_baselines_that_no_scheduler_could_be_are_refused(
    marked_weeks: Episodes, name: str
) -> None:
    with pytest.raises(EvaluationError, match="needs another name"):
        cross_validate(RuleAgent("SAF", name=name), marked_weeks, baselines=[], progress=False)


def test_w_star_train_is_one_line_as_agent_and_as_baseline(marked_weeks: Episodes) -> None:
    options: dict[str, Any] = {"folds": 2, "seeds": 1, "jitter": 0, "replicas": 0}
    trainer = replace(W_TRAIN, evaluations=24)
    found = cross_validate(trainer, marked_weeks, baselines=["w*train"], progress=False, **options)
    assert found.evaluation.agents == ("w*train", "SAF")
    area = np.eye(6)[5]
    same = weights_agent(area, [marked_weeks], name="area")
    alone = cross_validate(same, marked_weeks, baselines=[], progress=False, **options)
    assert np.array_equal(alone.evaluation.values("area"), alone.evaluation.values("SAF"))
