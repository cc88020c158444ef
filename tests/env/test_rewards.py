"""What the environment pays: three forms of one sum, pairs, ratios, and by a time limit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hpcgym
from engines import jobs_of
from env_cases import (
    BSLD_FORMS,
    Case,
    busy_workload,
    cases,
    env_of,
    episodes_of,
    plain_env,
    play,
    play_at_random,
    random_action,
    rules_for,
)
from env_twin import cost_of
from hpcgym.base.errors import HpcgymError
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.schedule.schedule import Schedule

BUSY = busy_workload(2)


def with_reward(case: Case, reward: str, baseline: object = None) -> Case:
    """Return the same case with another reward."""
    return case._replace(rules=replace(case.rules, reward=reward, baseline=baseline))


def least_bsld(made: Schedule, now: int) -> float:
    """Return sum_j b_j(now) / N: those that wait count as if they started now."""
    cost = cost_of("bsld", jobs_of(made.workload), made.run_time.tolist())
    total = 0.0
    for j, (start, r) in enumerate(
        zip(made.start_time.tolist(), made.workload.submit_time.tolist(), strict=True)
    ):
        if r <= now:
            reached = now if start < 0 else start
            total += 1 + max(0, reached - r - cost.m[j]) / cost.D[j]
    return total / len(made)


# --- Three forms, one sum -------------------------------------------------------------------------


@given(cases(reward="bsld", baseline=None, event_semantics="batch"))
def test_three_forms_sum_to_minus_the_mean_bsld(case: Case) -> None:
    for reward in BSLD_FORMS:
        env = env_of(case.workload, with_reward(case, reward).rules)
        total = sum(play_at_random(env, case))
        assert total == pytest.approx(-env.metrics()["mean_bsld"], rel=1e-9)
        assert total == pytest.approx(-env.schedule().bsld().mean(), rel=1e-9)


@given(cases(reward="bsld", baseline=None, event_semantics="batch"))
def test_what_is_paid_by_a_time_limit_is_a_lower_bound_and_nothing_follows(case: Case) -> None:
    steps = 1 + case.seed % 6
    env = env_of(case.workload, case.rules)
    paid = sum(play_at_random(env, case, steps))
    if env.schedule().complete:
        return
    closing = env.truncate()
    expected = least_bsld(env.schedule(), env.now)
    assert paid == pytest.approx(-expected, rel=1e-9)
    assert closing["complete"] == 0
    share = closing["n_jobs"] / len(case.workload)
    if share > 0:  # the mean over no job is NaN
        assert closing["mean_bsld"] * share == pytest.approx(expected, rel=1e-9)


@given(cases(reward="bsld", baseline=None, event_semantics="batch"))
def test_bsld_is_bsld_start_shaped_by_what_waits(case: Case) -> None:
    """Paid so far, they differ by Phi = -(1/N) of what the waiting jobs have cost."""
    envs = {
        reward: env_of(case.workload, with_reward(case, reward).rules)
        for reward in ("bsld", "bsld_start")
    }
    generators = {reward: np.random.default_rng(case.seed) for reward in envs}
    paid = dict.fromkeys(envs, 0.0)
    for env in envs.values():
        env.reset()
    terminated = False
    while not terminated:
        for reward, env in envs.items():
            action = random_action(case.rules, generators[reward])
            _, earned, terminated, _, _ = env.step(action)
            paid[reward] += earned
        made, now = env.schedule(), env.now
        of_started = np.where(made.start_time >= 0, made.bsld(), 0.0).sum() / len(made)
        phi = -(least_bsld(made, now) - of_started)
        assert paid["bsld_start"] == pytest.approx(-of_started, rel=1e-9, abs=1e-12)
        assert paid["bsld"] == pytest.approx(paid["bsld_start"] + phi, rel=1e-9)


@pytest.mark.parametrize(
    ("reward", "figure"),
    [("bsld", "mean_bsld"), ("wait", "mean_wait_time"), ("pp_bsld", "mean_pp_bsld")],
)
@given(case=cases(event_semantics="batch", baseline=None, reward="bsld"))
def test_whole_episode_pays_minus_its_mean(reward: str, figure: str, case: Case) -> None:
    env = env_of(case.workload, with_reward(case, reward).rules)
    total = sum(play_at_random(env, case))
    assert total == pytest.approx(-env.metrics()[figure], rel=1e-9, abs=1e-9)


def test_reward_by_hand() -> None:
    """Two processors; A and B take both, B waits for A, C (4 s, one processor) for both.

    0         10        20        30
    AAAAAAAAAABBBBBBBBBBBBBBBBBBBBCCCC      b: A 1, B 1 + 10/20, C 1 + (30 - 5 - 6)/10
    """
    jobs = hpcgym.Workload.from_arrays(
        [0, 0, 5], [10, 20, 4], [10, 20, 40], [2, 2, 1], machine_processors=2
    )
    env = plain_env(episodes_of(jobs), action="policy", policies=["FCFS"], decide="event")
    rewards = play(env, 0)
    # decisions at 0 (A, B), 5 (B, C: nothing fits), 10 (B starts), 30 (C starts)
    assert rewards == pytest.approx(
        [-(2 + 5 / 20 + 1) / 3, -(5 / 20) / 3, -(19 / 10) / 3, 0.0], abs=1e-12
    )
    assert sum(rewards) == pytest.approx(-(1 + 1.5 + 2.9) / 3)
    env = plain_env(
        episodes_of(jobs), action="policy", policies=["FCFS"], decide="event", reward="bsld_start"
    )
    assert play(env, 0) == pytest.approx([-1 / 3, 0, -1.5 / 3, -2.9 / 3])
    env = plain_env(
        episodes_of(jobs), action="policy", policies=["FCFS"], decide="event", reward="bsld_end"
    )
    assert play(env, 0) == pytest.approx([0, 0, 0, -5.4 / 3])


def test_nothing_is_paid_between_picks_of_one_instant() -> None:
    env = env_of(BUSY, rules_for(BUSY, action="job", n_slots=32, policy="FCFS"))
    env.reset()
    generator = np.random.default_rng(0)
    now, together, terminated, total = env.now, 0, False, 0.0
    first = True
    while not terminated:
        picked = int(generator.choice(np.flatnonzero(env.action_masks())))
        _, reward, terminated, _, info = env.step(picked)
        if env.now == now and not first:
            assert reward == 0.0
            together += 1
        now, first, total = env.now, False, total + reward
    assert together > 20
    assert total == pytest.approx(-info["mean_bsld"], rel=1e-9)


# --- Pairs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [*BSLD_FORMS, "wait", "pp_bsld"])
@given(case=cases(event_semantics="batch", reward="bsld", baseline="SAF"))
def test_paired_rewards_sum_to_baseline_minus_agent(reward: str, case: Case) -> None:
    rules = with_reward(case, reward, baseline="SPF").rules
    env = env_of(case.workload, rules)
    total = sum(play_at_random(env, case))
    figure = {"wait": "mean_wait_time", "pp_bsld": "mean_pp_bsld"}.get(reward, "mean_bsld")
    settings = vars(env.settings) | {"policy": "SPF"}
    of_baseline = hpcgym.simulate(case.workload, **settings).metrics()[figure]
    of_agent = env.metrics()[figure]
    assert total == pytest.approx(of_baseline - of_agent, rel=1e-9, abs=1e-9 * of_agent)


@pytest.mark.parametrize("decide", ["contested", "event", 600])
@pytest.mark.parametrize("reward", [*BSLD_FORMS, "wait", "pp_bsld"])
def test_agent_that_does_as_its_baseline_earns_nothing_at_any_step(
    reward: str, decide: str | int
) -> None:
    jobs = replace(BUSY, run_time=np.maximum(BUSY.run_time, 1))  # one pass an instant
    env = plain_env(
        episodes_of(jobs),
        action="policy",
        policies=["SPF", "SAF"],
        decide=decide,
        reward=reward,
        baseline="SPF",
    )
    rewards = play(env, 0)
    assert len(rewards) > 100
    assert np.abs(rewards).max() < 1e-9
    assert abs(sum(play(env, 1))) > 1e-3


def test_pair_is_shown_side_by_side() -> None:
    env = plain_env(episodes_of(BUSY), action="policy", policies=["SAF"], baseline="FCFS")
    env.reset()
    sides = dict.fromkeys(("agent", "baseline"), 0.0)
    terminated = False
    while not terminated:
        _, reward, terminated, _, info = env.step(0)
        agent, baseline = info["agent_term"], info["baseline_term"]
        assert reward == pytest.approx(agent + baseline, abs=1e-12)
        assert agent <= 0 <= baseline
        sides = {"agent": sides["agent"] + agent, "baseline": sides["baseline"] + baseline}
    assert sides["agent"] == pytest.approx(-hpcgym.simulate(BUSY, "SAF").bsld().mean())
    assert sides["baseline"] == pytest.approx(hpcgym.simulate(BUSY, "FCFS").bsld().mean())


def test_ratios_are_paid_once_at_the_end() -> None:
    agent = hpcgym.simulate(BUSY, "SAF").bsld().mean()
    baseline = hpcgym.simulate(BUSY, "FCFS").bsld().mean()
    expected = {
        "log_ratio": -np.log(agent / baseline),
        "relative": (baseline - agent) / max(agent, baseline, 1.0),
    }
    for reward, value in expected.items():
        env = plain_env(
            episodes_of(BUSY), action="policy", policies=["SAF"], reward=reward, baseline="FCFS"
        )
        rewards = play(env, 0)
        assert set(rewards[:-1]) == {0.0}
        assert rewards[-1] == pytest.approx(value, rel=1e-9)


@given(case=cases(event_semantics="batch", reward="bsld", baseline="SAF"))
def test_the_ratio_is_paid_as_bsld_in_units_of_the_baseline(case: Case) -> None:
    plain = play_at_random(env_of(case.workload, with_reward(case, "bsld", "SPF").rules), case)
    env = env_of(case.workload, with_reward(case, "ratio", "SPF").rules)
    settings = vars(env.settings) | {"policy": "SPF"}
    baseline = hpcgym.simulate(case.workload, **settings).metrics()["mean_bsld"]
    paid = np.array(play_at_random(env, case))
    scale = env.metrics()["mean_bsld"] / baseline
    assert paid == pytest.approx(np.array(plain) / baseline, rel=1e-9, abs=1e-9 * scale)
    assert paid.sum() == pytest.approx(1.0 - scale, rel=1e-9, abs=1e-9 * scale)


@given(case=cases(event_semantics="batch", reward="bsld", baseline=None))
def test_the_ratio_without_a_baseline_is_paid_in_units_of_saf(case: Case) -> None:
    plain = play_at_random(env_of(case.workload, case.rules), case)
    env = env_of(case.workload, with_reward(case, "ratio").rules)
    settings = vars(env.settings) | {"policy": "SAF"}
    saf = hpcgym.simulate(case.workload, **settings).metrics()["mean_bsld"]
    paid = play_at_random(env, case)
    assert paid == pytest.approx(np.array(plain) / saf, rel=1e-12)
    assert sum(paid) == pytest.approx(-env.metrics()["mean_bsld"] / saf, rel=1e-9)


@pytest.mark.parametrize("week", [2, 6, 12])
@pytest.mark.parametrize(
    "keywords",
    [
        {"action": "index"},
        {"action": "policy", "policies": ["SPF"], "backfill": "none"},
        {"action": "policy", "policies": ["SPF"], "backfill_order": "LPF"},
        {"action": "weights", "backfill": "conservative"},
    ],
    ids=lambda keywords: "-".join(map(str, keywords.values())),
)
def test_the_ratio_compares_with_saf_under_the_scenarios_own_settings(
    keywords: dict[str, Any], week: int
) -> None:
    env = SchedulingEnv("synthetic-busy-weeks", **keywords)
    env.action_space.seed(week)
    env.reset(options={"episode": week})
    total, terminated = 0.0, False
    while not terminated:
        _, reward, terminated, _, info = env.step(env.action_space.sample())
        total += reward
    settings = vars(env.episodes.scenario.scheduler.settings)
    saf = hpcgym.simulate(env.workload, **settings | {"policy": "SAF"}).bsld().mean()
    assert info["ratio"] == pytest.approx(info["mean_bsld"] / saf, rel=1e-12)
    assert total == pytest.approx(-info["ratio"], rel=1e-9)
    assert settings["backfill_order"] is None and str(settings["backfill"]) == "easy"


def test_saf_itself_earns_minus_one() -> None:
    env = SchedulingEnv("synthetic-busy-weeks", action="policy", policies=["SAF"])
    for week in (3, 9):
        assert sum(play(env, 0, options={"episode": week})) == pytest.approx(-1.0, rel=1e-9)


def test_a_reward_that_compares_needs_a_baseline() -> None:
    for reward in ("log_ratio", "relative"):
        with pytest.raises(HpcgymError, match=f"reward '{reward}' compares with a baseline"):
            SchedulingEnv("tiny", reward=reward)


@pytest.mark.parametrize(
    ("keywords", "at_reset", "in_all"),
    [
        ({"reward": "bsld", "baseline": "SPF"}, 1, 2),
        ({"reward": "ratio", "baseline": "SPF"}, 2, 3),
        ({"reward": "ratio"}, 1, 1),
        ({"reward": "bsld"}, 0, 1),
    ],
)
def test_baseline_and_saf_are_simulated_once_and_only_where_they_are_asked_for(
    keywords: dict[str, Any], at_reset: int, in_all: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SAF for each info of an end; a ratio to a baseline needs its mean before its pay."""
    from hpcgym.env import episode

    made = []

    class Counting(episode.Simulator):
        def __init__(self, *arguments: object) -> None:
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(episode, "Simulator", Counting)
    env = SchedulingEnv("tiny", action="weights", **keywords)
    assert len(made) == 0
    env.reset()
    assert len(made) == at_reset
    for _ in range(3):
        play(env, np.zeros(6, dtype=np.float32))
    assert len(made) == in_all
