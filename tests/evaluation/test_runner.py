"""The evaluation protocol: the same weeks and the same jittered copies for every agent."""

import os
import pickle
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import CardError, EvaluationError, ScenarioError
from hpcgym.core.policy import as_policy, register_policy, unregister_policy
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WeekEpisodes
from hpcgym.evaluation import Evaluation, cross_validate, evaluate, ratio_of_sums, runner
from hpcgym.evaluation.runner import Copies, Runner, refuse_namesake
from hpcgym.evaluation.store import Store, digest
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.resample import jitter
from stores import keys_in

WEEK_S = 604_800


@pytest.fixture(scope="module")
def episodes() -> Episodes:
    """Four whole weeks of a busy little machine, with a threshold and requests beyond run times."""
    generator = np.random.default_rng(7)
    n = 900
    run = generator.lognormal(8.0, 1.5, n).astype(np.int64) + 1
    workload = Workload.from_arrays(
        np.sort(generator.integers(0, 6 * WEEK_S, n)),
        run,
        run * generator.integers(1, 5, n),
        generator.integers(1, 33, n),
        machine_processors=32,
        user=generator.integers(0, 9, n),
        name="busy",
    )
    scenario = Scenario(
        name="busy-weeks",
        description="Weeks of a busy little machine.",
        trace=TraceSpec(name="busy", missing_request="drop"),
        machine=MachineSpec(processors=32, largest_request_s=workload.largest_request),
        episode=WeekEpisodes(warm_history=False),
        scheduler=SchedulerSpec(threshold_s=20_000),
    )
    return Episodes(scenario, workload=workload)


@pytest.fixture(scope="module")
def evaluation(episodes: Episodes) -> Evaluation:
    """Three agents on every week and two copies of each."""
    agents = ["FCFS", "SAF", "EASY-SJBF"]
    return evaluate(agents, episodes, jitter=600, replicas=2, seed=3, progress=False)


def test_every_agent_week_and_replica_has_one_row(
    evaluation: Evaluation, episodes: Episodes
) -> None:
    keys = evaluation.frame[["agent", "week", "replica"]]
    expected = [
        (agent, week, replica)
        for week in episodes.numbers
        for agent in ("FCFS", "SAF", "EASY-SJBF")
        for replica in range(3)
    ]
    assert list(keys.itertuples(index=False, name=None)) == expected
    assert evaluation.frame["complete"].all()
    assert evaluation.weeks == episodes.numbers


def test_original_week_is_replica_0_and_scheduled_as_simulate_does(
    evaluation: Evaluation, episodes: Episodes
) -> None:
    settings = episodes.settings
    originals = evaluation.frame.query("replica == 0").set_index(["agent", "week"])
    for index, week in enumerate(episodes.numbers):
        for agent, policy, order in (
            ("FCFS", "FCFS", None),
            ("SAF", "SAF", None),
            ("EASY-SJBF", "FCFS", "SPF"),
        ):
            schedule = simulate(
                episodes.workload(index), policy, backfill_order=order, threshold=settings.threshold
            )
            row = originals.loc[(agent, week)]
            assert row["mean_bsld"] == schedule.bsld().mean()
            assert row["max_wait_time"] == schedule.wait_time.max()
            assert row["n_thresholded"] == schedule.thresholded.sum()


def test_threshold_of_the_scenario_holds_for_all(evaluation: Evaluation) -> None:
    by_agent = evaluation.frame.groupby("agent")["n_thresholded"].sum()
    assert (by_agent > 0).all()


def test_copies_are_the_same_for_every_agent_and_differ_from_each_other(episodes: Episodes) -> None:
    """FCFS under another name meets the very same copies, so every figure agrees."""
    twin = RuleAgent("FCFS", name="twin")
    found = evaluate(["FCFS", twin], episodes, jitter=600, replicas=3, progress=False)
    assert np.array_equal(found.values("FCFS"), found.values("twin"))
    for week in found.values("FCFS"):
        assert len(set(week)) == 4


def test_copy_is_jittered_by_its_seed_week_and_replica_only(episodes: Episodes) -> None:
    all_weeks = evaluate(["FCFS"], episodes, jitter=600, replicas=2, seed=5, progress=False)
    last = episodes.numbers[-1]
    alone = evaluate(
        ["SAF", "FCFS"], episodes, weeks=str(last), jitter=600, replicas=1, seed=5, progress=False
    )
    assert np.array_equal(alone.values("FCFS")[0], all_weeks.values("FCFS")[-1, :2])
    copy = jitter(
        episodes.workload(len(episodes) - 1), np.random.default_rng([5, last, 1]), seconds=600
    )
    threshold = episodes.settings.threshold
    assert alone.values("FCFS")[0, 1] == simulate(copy, "FCFS", threshold=threshold).bsld().mean()


def test_reference_is_added_where_it_is_not_asked_for(episodes: Episodes) -> None:
    found = evaluate(["LQF"], episodes, weeks="1", progress=False)
    assert found.agents == ("LQF", "SAF")


def test_only_the_saf_of_the_shelf_is_what_ratios_are_taken_to(episodes: Episodes) -> None:
    for other in (
        RuleAgent("FCFS", name="SAF"),
        RuleAgent("SAF", backfill_order="SPF"),
        NamedAgent("SAF", RuleAgent("SAF"), RuleAgent("SAF").env_keywords),
    ):
        with pytest.raises(EvaluationError, match="not the SAF of the shelf"):
            evaluate([other, "SPF"], episodes, weeks="1", progress=False)
    same = RuleAgent("SAF", policies=["FCFS", "SAF"], backfill="easy")
    assert evaluate([same], episodes, weeks="1", progress=False).agents == ("SAF",)


def test_a_rule_of_the_shelf_is_known_by_what_it_is_and_not_by_where_it_was_made(
    episodes: Episodes,
) -> None:
    settings = episodes.settings
    for name in ("SAF", "SMITH-HISTORY", "EASY-SJBF", "DYNP"):
        refuse_namesake(pickle.loads(pickle.dumps(load_agent(name))), settings)
    saf = as_policy("SAF")
    refuse_namesake(RuleAgent(replace(saf, parameters=saf.parameters.copy())), settings)
    for other in (
        replace(saf, parameters=2 * saf.parameters),
        replace(saf, order=as_policy("F1").order),
        replace(saf, formula=lambda features: features.q),
    ):
        with pytest.raises(EvaluationError, match="not the SAF of the shelf"):
            refuse_namesake(RuleAgent(other), settings)


@pytest.mark.long
def test_one_seed_gives_one_result_and_spawned_processes_the_same(
    evaluation: Evaluation, episodes: Episodes
) -> None:
    agents = ["FCFS", "SAF", "EASY-SJBF"]
    again = evaluate(
        agents, episodes, jitter=600, replicas=2, seed=3, executor="local:2", progress=False
    )
    pd.testing.assert_frame_equal(again.frame, evaluation.frame)


def test_agent_that_cannot_be_sent_to_another_process_is_a_clear_error(episodes: Episodes) -> None:
    register_policy("WIDEST", keys=lambda workload: -workload.processors)
    try:
        with pytest.raises(EvaluationError, match="leave the executor"):
            evaluate(["WIDEST"], episodes, executor="local:2", progress=False)
        assert evaluate(["WIDEST"], episodes, progress=False).agents == ("WIDEST", "SAF")
    finally:
        unregister_policy("WIDEST")


class Killed:
    """Ends its process at its first decision, as the system does when memory runs out."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """Decide nothing."""
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_process_that_is_ended_from_outside_is_a_clear_error(episodes: Episodes) -> None:
    with pytest.raises(EvaluationError, match=r"ended from outside.*fewer processes"):
        evaluate(
            [NamedAgent("killed", Killed())],
            episodes,
            weeks="1",
            executor="local:2",
            progress=False,
        )


class FailsLate:
    """Fails a while after its first decision is asked for."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """Decide nothing."""
        time.sleep(0.2)
        raise ValueError("failed late")


@pytest.mark.long
def test_runs_behind_one_that_fails_later_are_kept(episodes: Episodes, tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    late = NamedAgent("late", FailsLate())
    with pytest.raises(ValueError, match="failed late"):
        evaluate([late], episodes, executor="local:2", resume=path, progress=False)
    kept = [Store(path).find(key) or [] for key in keys_in(path)]
    assert {row["agent"] for rows in kept for row in rows} == {"SAF"}


@pytest.mark.long
def test_agent_that_is_no_rule_plays_through_the_environment(episodes: Episodes) -> None:
    """A rule inside a wrapper is no rule to the protocol, and must score as the rule does."""
    rule = RuleAgent("SPF")
    wrapped = NamedAgent("wrapped", rule, rule.env_keywords)
    options = {"weeks": "1-2", "jitter": 600, "replicas": 1, "progress": False}
    found = evaluate([wrapped, "SPF"], episodes, **options)
    own = found.frame[found.frame["agent"] == "wrapped"].drop(columns="agent")
    plain = found.frame[found.frame["agent"] == "SPF"].drop(columns="agent")
    pd.testing.assert_frame_equal(own.reset_index(drop=True), plain.reset_index(drop=True))
    spread = evaluate([wrapped, "SPF"], episodes, executor="local:2", **options)
    pd.testing.assert_frame_equal(spread.frame, found.frame)


class Remembering:
    """Counts its decisions in its state, and notes what it is told of episodes' starts."""

    def __init__(self) -> None:
        self.starts: list[bool] = []

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        assert deterministic
        count = np.zeros(1, dtype=np.int64) if state is None else state[0]
        assert bool(episode_start[0]) == (count[0] == 0)
        self.starts.append(bool(episode_start[0]))
        return np.zeros(6, dtype=np.float32), (count + 1,)


def test_agent_gets_its_state_back_within_an_episode_and_none_at_its_start(
    episodes: Episodes,
) -> None:
    agent = Remembering()
    named = NamedAgent("mine", agent, {"action": "weights"})
    evaluate([named], episodes, weeks="1-2", progress=False)
    assert sum(agent.starts) == 2
    assert len(agent.starts) > 20


@pytest.mark.long
def test_model_of_stable_baselines_is_evaluated_as_it_is(episodes: Episodes) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from hpcgym.env.scheduling import SchedulingEnv

    keywords = {"action": "policy", "policies": ("FCFS", "SAF"), "n_slots": 8}
    model = sb3.PPO("MultiInputPolicy", SchedulingEnv(episodes, **keywords), seed=0, device="cpu")
    agents = [NamedAgent("ppo", model, keywords), "FCFS"]
    found = evaluate(agents, episodes, weeks="1", progress=False)
    assert found.agents == ("ppo", "FCFS", "SAF")
    assert np.isfinite(found.summary()["ratio"]).all()


def test_summary_is_the_statistics_of_the_frame(evaluation: Evaluation) -> None:
    summary = evaluation.summary().set_index("agent")
    weekly = evaluation.frame.groupby(["agent", "week"], sort=False)["mean_bsld"].mean()
    for agent in evaluation.agents:
        assert summary.loc[agent, "sum_bsld"] == pytest.approx(weekly[agent].sum())
        assert summary.loc[agent, "mean_bsld"] == pytest.approx(weekly[agent].mean())
        ratio = ratio_of_sums(evaluation.values(agent), evaluation.values("SAF"))
        assert summary.loc[agent, "ratio"] == ratio.value
        assert tuple(summary.loc[agent, ["ratio_low", "ratio_high"]]) == ratio.ends()
    longest = evaluation.frame.groupby("agent")["max_wait_time"].max()
    assert summary.loc["FCFS", "max_wait_time"] == longest["FCFS"]


def test_single_week_has_no_interval_and_says_so(episodes: Episodes) -> None:
    found = evaluate(["FCFS"], episodes, weeks="2", progress=False)
    assert found.summary()["ratio_low"].isna().all()
    assert "one week: no interval" in str(found.table())


@pytest.mark.parametrize(
    ("agents", "options", "message"),
    [
        ([], {}, "at least one agent"),
        ("SAF", {}, "give a list"),
        (["FCFS", "fcfs"], {}, "two agents are called FCFS"),
        (["FCFS"], {"jitter": 600}, "need both"),
        (["FCFS"], {"replicas": 3}, "need both"),
        (["FCFS"], {"jitter": -1, "replicas": 3}, "jitter must be a whole number from 0"),
        (["FCFS"], {"executor": "local:0"}, "local must be a whole number from 1"),
        (["FCFS"], {"seed": -1}, "a seed must be a whole number from 0, got -1"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    episodes: Episodes, agents: list[str], options: dict[str, int], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        evaluate(agents, episodes, progress=False, **options)


def test_unknown_agents_scenarios_and_weeks_are_refused_by_name(episodes: Episodes) -> None:
    with pytest.raises(CardError, match="did you mean 'FCFS'"):
        evaluate(["FCSF"], episodes, progress=False)
    with pytest.raises(ScenarioError, match="did you mean 'tiny'"):
        evaluate(["FCFS"], "tinny", progress=False)
    with pytest.raises(ScenarioError, match="99"):
        evaluate(["FCFS"], episodes, weeks="99", progress=False)


def test_ratios_are_to_the_agent_that_is_named(episodes: Episodes) -> None:
    to_saf = evaluate(["FCFS", "SPF"], episodes, progress=False)
    found = evaluate(["FCFS", "SPF"], episodes, baseline="fcfs", progress=False)
    assert found.frame.equals(to_saf.frame)
    ratios = {one.agent: one.ratio.value for one in found.summaries}
    sums = {name: to_saf.values(name).sum() for name in ("FCFS", "SPF", "SAF")}
    assert ratios == pytest.approx({name: one / sums["FCFS"] for name, one in sums.items()})
    assert "FCFS" in str(found.table().notes)
    added = evaluate(["SPF"], episodes, baseline="LPF", progress=False)
    assert added.baseline == "LPF"
    with pytest.raises(CardError, match="did you mean 'SAF'"):
        evaluate(["SPF"], episodes, baseline="SAFF", progress=False)
    weeks: dict[str, Any] = {"jitter": 0, "replicas": 0, "baselines": (), "progress": False}
    crossed = cross_validate(["SPF", "FCFS"], episodes, **weeks)
    assert crossed.against("SPF").evaluations[0].baseline == "SPF"
    with pytest.raises(EvaluationError, match="unknown baseline 'SPQ'; did you mean 'SPF'"):
        crossed.against("SPQ")


def test_a_week_is_digested_once_for_all_agents_and_once_for_other_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digested = []

    def noted(workload: Workload, *others: object) -> str:
        digested.append(others)
        return digest(workload, *others)

    weeks = Episodes("synthetic-256-weeks").select("3-4")
    fresh = {week: replace(weeks.workload(week)) for week in range(2)}  # other objects, equal jobs
    monkeypatch.setattr(runner, "digest", noted)
    keys = {
        name: [Runner([load_agent(name)], weeks, copies).key((week, 0)) for week in range(2)]
        for name, copies in {"SAF": Copies(600, 1, 77), "SPF": Copies(600, 1, 77)}.items()
    }
    assert len(digested) == 2 and len({*keys["SAF"], *keys["SPF"]}) == 4
    assert Runner([load_agent("SAF")], weeks, Copies(600, 1, 78)).key((0, 0)) != keys["SAF"][0]
    assert len(digested) == 3
    monkeypatch.setattr(Episodes, "workload", lambda self, week: fresh[week])
    again = Runner([load_agent("SAF")], weeks, Copies(600, 1, 77))
    assert [again.key((week, 0)) for week in range(2)] == keys["SAF"]
    assert len(digested) == 5
