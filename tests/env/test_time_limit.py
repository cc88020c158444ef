"""A time limit set by Gymnasium's `max_episode_steps`: it truncates, and settles the account."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import hpcgym
from env_cases import BSLD_FORMS, busy_workload, episodes_of
from hpcgym.errors import ActionError

BUSY = busy_workload(4)
FCFS = np.zeros(6, dtype=np.float32)


def make(max_episode_steps: int, **keywords: Any) -> gymnasium.Env:
    """Make the registered environment on the busy workload."""
    return gymnasium.make(
        "HPCBatch-v0", scenario=episodes_of(BUSY), max_episode_steps=max_episode_steps, **keywords
    )


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
    assert infos[-1]["metrics"]["complete"] is False
    assert infos[-1]["metrics"]["n_jobs"] < len(BUSY)
    assert infos[-1]["label"] == "whole"
    assert all("metrics" not in info for info in infos[:-1])


@pytest.mark.parametrize("max_episode_steps", [1, 2, 40, 100])
def test_three_forms_pay_the_same_lower_bound(max_episode_steps: int) -> None:
    totals = []
    for reward in BSLD_FORMS:
        env = make(max_episode_steps, reward=reward)
        rewards, infos, _, truncated = play(env)
        assert truncated
        totals.append(sum(rewards))
        terms = sum(sum(info["reward_terms"].values()) for info in infos)
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
    assert infos[-1]["metrics"]["complete"] is True
    assert sum(rewards) == pytest.approx(-hpcgym.simulate(BUSY, "FCFS").bsld().mean(), rel=1e-9)


def test_time_limit_at_the_last_step_pays_once() -> None:
    steps = len(play(make(10_000))[0])
    for reward in BSLD_FORMS:
        rewards, infos, terminated, _ = play(make(steps, reward=reward))
        assert terminated
        assert infos[-1]["metrics"]["complete"] is True
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
        assert info["metrics"]["n_jobs"] == 0


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
    assert not info["final_info"]["metrics"]["complete"].any()
