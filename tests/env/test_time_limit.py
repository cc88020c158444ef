"""A time limit: it truncates, pays nothing more, and is refused where that would be wrong."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import MaxAndSkipObservation, TimeLimit

import hpcgym
from env_cases import ACCRUING, PLAIN, busy_workload, episodes_of, plain_env, plain_vector
from hpcgym.base.errors import ActionError, ScenarioError
from hpcgym.core import constants as s
from hpcgym.env.reward import REWARDS, register_reward
from hpcgym.env.vector import SchedulingVectorEnv

BUSY = busy_workload(4)
FCFS = np.zeros(6, dtype=np.float32)
AT_ONCE = ("bsld_start", "bsld_end", "log_ratio", "relative")
"""Rewards that pay at starts or at the end, so that no limit may cut an episode short."""


def make(max_episode_steps: int, **keywords: Any) -> gymnasium.Env:
    """Make the registered environment on the busy workload."""
    return gymnasium.make(
        "HPCBatch-v0",
        scenario=episodes_of(BUSY),
        max_episode_steps=max_episode_steps,
        **PLAIN | keywords,
    )


def limited(limit: int, **keywords: Any) -> dict[str, gymnasium.Env]:
    """Make environments that end after as many steps, each by another limit."""
    scenario = episodes_of(BUSY)
    return {
        "max_episode_steps": make(limit, **keywords),
        "by hand": TimeLimit(plain_env(scenario, **keywords), limit),
        "the shortest of three": TimeLimit(TimeLimit(make(80, **keywords), limit), 90),
    }


def play(env: gymnasium.Env) -> tuple[list[float], list[dict[str, Any]], bool, bool]:
    """Play an episode as FCFS; return rewards, infos, terminated and truncated."""
    env.reset(seed=0)
    rewards, infos, terminated, truncated = [], [], False, False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(FCFS)
        rewards.append(reward)
        infos.append(info)
    return rewards, infos, terminated, truncated


def test_time_limit_truncates_and_says_that_the_metrics_are_not_complete() -> None:
    rewards, infos, terminated, truncated = play(make(40))
    assert (len(rewards), terminated, truncated) == (40, False, True)
    assert infos[-1]["complete"] == 0
    assert 0 < infos[-1]["n_jobs"] < len(BUSY)
    assert infos[-1]["episode_number"] == 1
    assert infos[:-1] == [{}] * 39


@pytest.mark.parametrize("max_episode_steps", [1, 2, 40, 100])
def test_what_was_paid_is_a_lower_bound(max_episode_steps: int) -> None:
    env = make(max_episode_steps)
    rewards, _, _, truncated = play(env)
    assert truncated
    made, now = env.unwrapped.schedule(), env.unwrapped.now
    arrived = BUSY.submit_time <= now
    start = np.where(made.start_time < 0, now, made.start_time)
    p = np.minimum(BUSY.run_time, BUSY.requested_time)
    bsld = np.maximum((start - BUSY.submit_time + p) / np.maximum(p, 10), 1.0)
    assert sum(rewards) == pytest.approx(-bsld[arrived].sum() / len(BUSY), rel=1e-9)
    finished = hpcgym.simulate(BUSY, "FCFS").bsld().mean()
    assert -sum(rewards) <= finished  # a lower bound of what going on would have cost


@pytest.mark.parametrize("reward", [*ACCRUING, lambda job: job.processors / 3600])
def test_a_truncation_pays_what_the_step_would_have_paid_anyway(reward: Any) -> None:
    """So its last step is worth as much as the same step of an episode that goes on."""
    for baseline in (None, "SAF"):
        keywords: dict[str, Any] = {"reward": reward, "baseline": baseline}
        rewards, _, _, truncated = play(make(23, **keywords))
        assert (len(rewards), truncated) == (23, True)
        assert rewards == play(plain_env(episodes_of(BUSY), **keywords))[0][:23]


@pytest.mark.parametrize("reward", AT_ONCE)
def test_rewards_at_starts_or_at_the_end_let_nothing_cut_an_episode_short(reward: str) -> None:
    keywords: dict[str, Any] = {"reward": reward, "baseline": "SAF"}
    words = f"reward '{reward}' pays at starts or at the end, so no time limit"
    for env in limited(31, **keywords).values():
        with pytest.raises(ScenarioError, match=words):
            env.reset()
        assert env.unwrapped.label is None  # nothing has begun
    with pytest.raises(ScenarioError, match=words):
        plain_vector(episodes_of(BUSY), num_envs=2, max_episode_steps=31, **keywords)
    env = plain_env(episodes_of(BUSY), **keywords)
    env.reset()
    env.step(FCFS)
    with pytest.raises(ScenarioError, match=words):
        env.truncate()
    env.step(FCFS)  # the episode goes on


def test_rewards_of_ones_own_may_be_cut_only_where_they_accrue() -> None:
    for form in (s.PAY_AT_START, s.PAY_AT_END, s.PAY_AS_ACCRUED):
        register_reward("own", lambda job: 1.0, form=form)
        env = make(3, reward="own")
        try:
            if form == s.PAY_AS_ACCRUED:
                assert len(play(env)[0]) == 3
            else:
                with pytest.raises(ScenarioError, match="reward 'own' pays at starts"):
                    env.reset()
        finally:
            del REWARDS["own"]


def test_truncate_ends_an_episode_and_tells_how_it_stands() -> None:
    env, alone = plain_env(episodes_of(BUSY)), make(17)
    with pytest.raises(ActionError, match="call reset"):
        env.truncate()
    env.reset(seed=0)
    for _ in range(17):
        assert env.step(FCFS)[2:4] == (False, False)
    assert env.truncate() == play(alone)[1][-1]
    for call in (env.truncate, lambda: env.step(FCFS)):
        with pytest.raises(ActionError, match="call reset"):
            call()
    assert env.metrics()["complete"] is False
    env.reset()
    assert env.step(FCFS)[4] == {}


def test_time_limit_beyond_the_end_or_at_the_last_step_changes_nothing() -> None:
    steps = len(play(make(10_000))[0])
    for limit in (10_000, steps):
        rewards, infos, terminated, truncated = play(make(limit))
        assert (terminated, truncated) == (True, limit == steps)
        assert infos[-1]["complete"] == 1
        fcfs = hpcgym.simulate(BUSY, "FCFS").bsld().mean()
        assert sum(rewards) == pytest.approx(-fcfs, rel=1e-9)


@pytest.mark.parametrize("reward", ACCRUING)
def test_pair_at_a_time_limit_compares_what_both_have_cost_by_then(reward: str) -> None:
    """An agent that does as its baseline is even with it wherever it is cut short."""
    for max_episode_steps in (1, 17, 60):
        rewards, *_ = play(make(max_episode_steps, reward=reward, baseline="FCFS"))
        assert sum(rewards) == pytest.approx(0.0, abs=1e-9)


def test_time_limit_before_the_first_submission_owes_nothing() -> None:
    late = hpcgym.Workload.from_arrays([500], [10], [10], [1], machine_processors=1)
    for reward in ACCRUING:
        env = gymnasium.make(
            "HPCBatch-v0",
            scenario=episodes_of(late),
            action="weights",
            decide=60,
            reward=reward,
            baseline="SAF",
            max_episode_steps=3,
        )
        env.reset()
        total = 0.0
        for _ in range(3):
            _, paid, _, truncated, info = env.step(FCFS)
            total += paid
        assert truncated
        assert total == 0.0
        assert info["n_jobs"] == 0


def test_episode_is_over_after_its_time_limit() -> None:
    env = make(3)
    play(env)
    with pytest.raises(ActionError, match="reset"):
        env.unwrapped.step(FCFS)
    rewards, *_ = play(env)
    assert len(rewards) == 3


@pytest.mark.long
@pytest.mark.parametrize("reward", ACCRUING)
def test_every_limit_pays_the_same_and_so_does_the_vector(reward: str) -> None:
    keywords: dict[str, Any] = {"reward": reward, "baseline": "SAF"}
    envs = plain_vector(episodes_of(BUSY), num_envs=2, max_episode_steps=31, **keywords)
    envs.reset(seed=0)
    steps = [envs.step(np.stack([FCFS, FCFS])) for _ in range(31)]
    expected = [step[1][1] for step in steps]
    assert expected[-1] != 0
    for limit, env in limited(31, **keywords).items():
        for _ in range(2):  # a limit found at one reset is found at the next
            rewards, infos, terminated, truncated = play(env)
            assert (rewards, terminated, truncated) == (expected, False, True), limit
            for key, value in infos[-1].items():
                assert steps[-1][-1][key][1] == value, (limit, key)
            assert {"ratio", "complete"} < infos[-1].keys()


def test_limits_of_steps_that_repeat_an_action_count_those_steps() -> None:
    inner = plain_env(episodes_of(BUSY), observation="flat")
    rewards, infos, *_ = play(TimeLimit(MaxAndSkipObservation(inner, skip=4), 5))
    assert len(rewards) == 5
    # The first action of the last step ends it.
    assert sum(rewards) == pytest.approx(sum(play(make(17))[0]), rel=1e-12)
    assert infos[-1]["complete"] == 0


def test_limit_of_another_environment_is_none_of_ours() -> None:
    class Outer(gymnasium.Env[Any, Any]):
        """An environment that plays another one inside."""

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            self.inner = plain_env(episodes_of(BUSY))
            return self.inner.reset(seed=0)

        def step(self, action: Any) -> Any:
            return self.inner.step(action)

    _, _, terminated, truncated = play(TimeLimit(Outer(), 3))
    assert (terminated, truncated) == (False, True)
    alone = TimeLimit(Outer(), 3)
    play(alone)
    assert not alone.unwrapped.inner.step(FCFS)[3]  # it goes on


def test_unwrapped_environment_keeps_the_limit_of_its_reset() -> None:
    env = make(4)
    env.reset(seed=0)
    inner = copy.deepcopy(env.unwrapped)
    assert [inner.step(FCFS)[3] for _ in range(4)] == [False, False, False, True]
    inner.reset(seed=0)
    assert [inner.step(FCFS)[3] for _ in range(6)] == [False] * 6


def test_specs_of_made_environments_make_environments_and_vectors() -> None:
    made = gymnasium.make("HPCBatch-v0", scenario="tiny", action="order", max_episode_steps=3)
    for spec in (made.spec, EnvSpec.from_json(made.spec.to_json())):
        again, envs = gymnasium.make(spec), gymnasium.make_vec(spec, num_envs=2)
        assert isinstance(envs, SchedulingVectorEnv)
        for env in (made, again, envs):
            env.reset(seed=0)
        total = 0.0
        for step in range(3):
            action = np.full(made.action_space.shape, 0.5, dtype=np.float32)
            *_, paid, _, truncated, info = made.step(action)
            assert again.step(action)[1:4] == (paid, False, truncated)
            _, rewards, _, are_cut, infos = envs.step(np.stack([action] * 2))
            assert (rewards.tolist(), are_cut.tolist()) == ([paid] * 2, [truncated] * 2)
            assert truncated == (step == 2)
            total += paid
        assert infos["mean_bsld"].tolist() == [info["mean_bsld"]] * 2
        assert total < 0
