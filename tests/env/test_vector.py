"""The vector environment beside Gymnasium's own of the scalar one: equal to the bit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from env_cases import ACTIONS, REWARDS, busy_workload, episodes_of
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from hpcgym.env.vector import SchedulingVectorEnv

BUSY = episodes_of(busy_workload(3, n=90), threshold=1_800)
MODES = list(AutoresetMode)
MODE_IDS = [mode.name for mode in MODES]

KINDS = [
    {"action": action, "decide": decide, "reward": reward}
    for action in ACTIONS
    for decide in ("contested", "event", 300)
    for reward in REWARDS
    if decide != 300 or action in ("weights", "policy")
]
"""Every kind of action, decision and reward."""


def kind_id(kind: dict[str, Any]) -> str:
    """Name a kind as test reports show it."""
    return "-".join(str(value) for value in kind.values())


def pair(
    num_envs: int,
    scenario: Any = BUSY,
    mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    threads: int = 1,
    **keywords: Any,
) -> tuple[SyncVectorEnv, SchedulingVectorEnv]:
    """Make Gymnasium's vector of the scalar environment, and ours."""
    if keywords.get("reward") in ("log_ratio", "relative"):
        keywords["baseline"] = "FCFS"
    theirs = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=num_envs,
        scenario=scenario,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **keywords,
    )
    ours = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=num_envs,
        scenario=scenario,
        autoreset_mode=mode,
        threads=threads,
        **keywords,
    )
    assert isinstance(theirs, SyncVectorEnv)
    assert isinstance(ours, SchedulingVectorEnv)
    return theirs, ours


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Compare what two environments give: types, keys, shapes and every bit."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, (tuple, list)):
        assert len(one) == len(other), where
        for place, (mine, yours) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, yours, f"{where}/{place}")
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert one.tobytes() == other.tobytes(), f"{where}: {one} is not {other}"
    elif isinstance(one, np.ndarray):
        assert_same(one.tolist(), other.tolist(), where)
    else:
        assert one == other, where


def assert_same_schedules(theirs: SyncVectorEnv, ours: SchedulingVectorEnv) -> None:
    """Compare the schedules made so far, job by job."""
    for one, other in zip(theirs.call("schedule"), ours.call("schedule"), strict=True):
        assert one.start_time.tobytes() == other.start_time.tobytes()
        assert one.backfilled.tobytes() == other.backfilled.tobytes()
        assert one.thresholded.tobytes() == other.thresholded.tobytes()


def play_in_lockstep(
    theirs: SyncVectorEnv, ours: SchedulingVectorEnv, steps: int, seed: int = 5, **reset: Any
) -> int:
    """Step both with the same random actions; return how many episodes ended."""
    theirs.action_space.seed(seed)
    assert_same(theirs.reset(seed=seed, **reset), ours.reset(seed=seed, **reset))
    assert theirs.np_random_seed == ours.np_random_seed
    ended = 0
    for _ in range(steps):
        actions = theirs.action_space.sample()
        gave, mine = theirs.step(actions), ours.step(actions)
        assert_same(gave, mine)
        over = gave[2] | gave[3]
        ended += int(over.sum())
        if not over.any():
            continue
        if ours.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP:
            assert_same_schedules(theirs, ours)
        if ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
            one, other = ({"options": {"reset_mask": over.copy()}} for _ in range(2))
            assert_same(theirs.reset(**one), ours.reset(**other))
    assert_same_schedules(theirs, ours)
    return ended


def longest(env: VectorEnv) -> int:
    """Return enough steps for every environment to play an episode to its end, and go on."""
    env.action_space.seed(5)
    env.reset(seed=5)
    for step in range(10_000):
        if env.step(env.action_space.sample())[2].any():
            return 2 * step + 10
    raise AssertionError("no episode ended")


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_every_kind_equals_the_scalar_environment_to_the_bit(kind: dict[str, Any]) -> None:
    threads = 1 + KINDS.index(kind) % 2
    theirs, ours = pair(7, threads=threads, **kind)
    assert play_in_lockstep(theirs, ours, longest(ours)) >= 7


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
@pytest.mark.parametrize("num_envs", [1, 2, 7, 64])
def test_any_number_of_environments_equals_as_many_scalar_ones(
    num_envs: int, mode: AutoresetMode, threads: int
) -> None:
    """Over whole episodes of a week each, drawn anew by each environment."""
    theirs, ours = pair(
        num_envs, "synthetic-256-weeks", mode, threads, n_slots=16, baseline="SAF", decide=14_400
    )
    assert play_in_lockstep(theirs, ours, 130) >= num_envs


@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
@pytest.mark.parametrize("horizon", [1, 9, 40])
def test_horizon_settles_the_account_as_the_scalar_environment_does(
    mode: AutoresetMode, horizon: int
) -> None:
    for reward in REWARDS:
        theirs, ours = pair(3, mode=mode, reward=reward, max_episode_steps=horizon)
        assert play_in_lockstep(theirs, ours, 3 * horizon) >= 3
