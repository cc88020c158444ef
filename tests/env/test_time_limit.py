"""A time limit, of the environment or of a wrapper: it truncates, and settles the account."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import MaxAndSkipObservation, TimeLimit

import hpcgym
from env_cases import BSLD_FORMS, busy_workload, episodes_of, plain_env, plain_vector, terms_of
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.errors import ActionError, ScenarioError

BUSY = busy_workload(4)
FCFS = np.zeros(6, dtype=np.float32)
FORMS = (*BSLD_FORMS, "wait", "pp_bsld", "ratio", "log_ratio", "relative")


def make(max_episode_steps: int, **keywords: Any) -> gymnasium.Env:
    """Make the registered environment on the busy workload."""
    return gymnasium.make(
        "HPCBatch-v0", scenario=episodes_of(BUSY), max_episode_steps=max_episode_steps, **keywords
    )


def limited(horizon: int, **keywords: Any) -> dict[str, gymnasium.Env]:
    """Make environments that end after as many steps, each by another limit."""
    scenario = episodes_of(BUSY)
    inside = plain_env(scenario, horizon=horizon, **keywords)
    return {
        "horizon": inside,
        "max_episode_steps": make(horizon, **keywords),
        "by hand": TimeLimit(plain_env(scenario, **keywords), horizon),
        "the shortest of three": TimeLimit(TimeLimit(make(80, **keywords), horizon), 90),
        "both at once": TimeLimit(plain_env(scenario, horizon=horizon, **keywords), horizon),
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
    assert infos[-1]["label"] == 0
    assert all(info["complete"] == info["n_jobs"] == -1 for info in infos[:-1])


@pytest.mark.parametrize("max_episode_steps", [1, 2, 40, 100])
def test_three_forms_pay_the_same_lower_bound(max_episode_steps: int) -> None:
    totals = []
    for reward in BSLD_FORMS:
        env = make(max_episode_steps, reward=reward)
        rewards, infos, _, truncated = play(env)
        assert truncated
        totals.append(sum(rewards))
        terms = sum(sum(terms_of(info)) for info in infos)
        assert terms == pytest.approx(totals[-1], rel=1e-12)
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-9)
    made, now = env.unwrapped.schedule(), env.unwrapped.now
    arrived = BUSY.submit_time <= now
    start = np.where(made.start_time < 0, now, made.start_time)
    p = np.minimum(BUSY.run_time, BUSY.requested_time)
    bsld = np.maximum((start - BUSY.submit_time + p) / np.maximum(p, 10), 1.0)
    assert totals[0] == pytest.approx(-bsld[arrived].sum() / len(BUSY), rel=1e-9)
    finished = hpcgym.simulate(BUSY, "FCFS").bsld().mean()
    assert -totals[0] <= finished  # a lower bound of what going on would have cost


def test_time_limit_beyond_the_end_changes_nothing() -> None:
    rewards, infos, terminated, truncated = play(make(10_000))
    assert (terminated, truncated) == (True, False)
    assert infos[-1]["complete"] == 1
    assert sum(rewards) == pytest.approx(-hpcgym.simulate(BUSY, "FCFS").bsld().mean(), rel=1e-9)


def test_time_limit_at_the_last_step_pays_once() -> None:
    steps = len(play(make(10_000))[0])
    for reward in BSLD_FORMS:
        rewards, infos, terminated, _ = play(make(steps, reward=reward))
        assert terminated
        assert infos[-1]["complete"] == 1
        expected = -hpcgym.simulate(BUSY, "FCFS").bsld().mean()
        assert sum(rewards) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("reward", [*BSLD_FORMS, "wait", "pp_bsld", "log_ratio", "relative"])
def test_pair_at_a_time_limit_compares_what_both_have_cost_by_then(reward: str) -> None:
    """An agent that does as its baseline is even with it wherever it is cut short."""
    for max_episode_steps in (1, 17, 60):
        rewards, *_ = play(make(max_episode_steps, reward=reward, baseline="FCFS"))
        assert sum(rewards) == pytest.approx(0.0, abs=1e-9)


def test_time_limit_before_the_first_submission_owes_nothing() -> None:
    late = hpcgym.Workload.from_arrays([500], [10], [10], [1], machine_processors=1)
    for reward in (*BSLD_FORMS, "log_ratio", "relative"):
        env = gymnasium.make(
            "HPCBatch-v0",
            scenario=episodes_of(late),
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


def test_time_limit_serves_vectors_of_environments() -> None:
    """Gymnasium's own vector environment resets on its own and passes the final metrics on."""
    envs = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
        scenario=episodes_of(BUSY),
        max_episode_steps=5,
    )
    envs.reset(seed=0)
    for _ in range(5):
        _, _, terminated, truncated, info = envs.step(np.stack([FCFS, FCFS]))
    assert truncated.all()
    assert not terminated.any()
    assert info["final_info"]["complete"].tolist() == [0, 0]
    assert (info["final_info"]["n_jobs"] > 0).all()


@pytest.mark.parametrize("reward", FORMS)
def test_every_limit_pays_the_same_and_so_does_the_vector(reward: str) -> None:
    keywords: dict[str, Any] = {"reward": reward, "baseline": "SAF"}
    envs = plain_vector(episodes_of(BUSY), num_envs=2, horizon=31, **keywords)
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


def test_limits_of_steps_that_repeat_an_action_count_those_steps() -> None:
    inner = plain_env(episodes_of(BUSY), observation="flat", reward="bsld_end")
    rewards, infos, *_ = play(TimeLimit(MaxAndSkipObservation(inner, skip=4), 5))
    alone = plain_env(episodes_of(BUSY), reward="bsld_end", horizon=17)
    assert len(rewards) == 5
    assert sum(rewards) == sum(play(alone)[0]) < 0  # the first action of the last step ends it
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


@pytest.mark.parametrize("name", ["HPCBatch-v0", "HPCBatch-order-flat-v0"])
def test_specs_of_made_environments_make_environments_and_vectors(name: str) -> None:
    made = gymnasium.make(name, scenario="tiny", reward="bsld_end", max_episode_steps=3)
    for spec in (made.spec, EnvSpec.from_json(made.spec.to_json())):
        again, envs = gymnasium.make(spec), gymnasium.make_vec(spec, num_envs=2)
        assert isinstance(envs, SchedulingVectorEnv)
        for env in (made, again, envs):
            env.reset(seed=0)
        for step in range(3):
            action = np.full(made.action_space.shape, 0.5, dtype=np.float32)
            *_, paid, _, truncated, info = made.step(action)
            assert again.step(action)[1:4] == (paid, False, truncated)
            _, rewards, _, are_cut, infos = envs.step(np.stack([action] * 2))
            assert (rewards.tolist(), are_cut.tolist()) == ([paid] * 2, [truncated] * 2)
            assert infos["mean_bsld"].tolist() == [info["mean_bsld"]] * 2
            assert truncated == (step == 2)
        assert paid < 0


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True, "9"])
def test_horizon_is_a_whole_number_of_steps(horizon: Any) -> None:
    with pytest.raises(ScenarioError, match="horizon must be a whole number from 1 to"):
        plain_env("tiny", horizon=horizon)
