"""The environment in backfilling modes that remember something, or look at several jobs at once."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import hpcgym
from env_cases import ACTIONS, BUSY, busy_workload, episodes_of, plain_env
from hpcgym.base.errors import PolicyError, ScenarioError

MODES = ("look-ahead:window=6", "relaxed:omega=0.5", "slack:c=0.5", "slurm:interval=90")
MODES += ("committed", "committed:fill=before", "multi-queue:bounds=600/3600,delay=3600")
PAIRS = [(m, a) for m in MODES for a in ACTIONS if not (m.startswith("slack") and a == "job")]


def played(env: Any, actions: list[Any]) -> tuple[list[float], Any]:
    """Play an episode with these actions, the last one to its end; return rewards and schedule."""
    env.reset(seed=1)
    rewards, over, step = [], False, 0
    while not over:
        _, reward, terminated, truncated, _ = env.step(actions[min(step, len(actions) - 1)])
        rewards.append(reward)
        over, step = terminated or truncated, step + 1
    return rewards, env.unwrapped.schedule()


@pytest.mark.parametrize(("backfill", "action"), PAIRS)
def test_actions_steer_what_starts(backfill: str, action: str) -> None:
    env = gymnasium.make("HPCBatch-v0", scenario=BUSY, backfill=backfill, action=action, n_slots=12)
    space = env.action_space
    space.seed(4)
    schedules = [played(env, [space.sample() for _ in range(50)])[1] for _ in range(3)]
    assert len({schedule.start_time.tobytes() for schedule in schedules}) > 1


def test_picking_a_job_is_refused_where_promises_are_kept() -> None:
    with pytest.raises(ScenarioError, match="keeps every reservation; choose action 'order'"):
        plain_env("tiny", action="job", backfill="slack:c=1")


@pytest.mark.parametrize("backfill", ["look-ahead", "slack:c=1"])
def test_candidates_in_an_order_of_their_own_are_refused(backfill: str) -> None:
    with pytest.raises(PolicyError, match="which takes none; these do: easy, depth, relaxed"):
        plain_env("tiny", backfill=backfill, backfill_order="SPF")


@pytest.mark.parametrize("semantics", ["batch", "one-by-one"])
@pytest.mark.parametrize("backfill", ["committed", "committed:fill=before"])
@pytest.mark.parametrize("policy", ["SPF", "WFP3"])
def test_agent_that_picks_by_a_policy_is_asked_while_no_job_is_waited_for(
    backfill: str, policy: str, semantics: str
) -> None:
    """Slot 127 is empty, and stands for the first job of the policy."""
    workload = busy_workload(3, n=90)
    settings = {"backfill": backfill, "event_semantics": semantics, "kill_at_limit": False}
    env = plain_env(episodes_of(workload, policy=policy, **settings), action="job", n_slots=128)
    env.reset()
    over, picks = False, 0
    while not over:
        assert env._begun_state.chosen[0] == 0
        *_, over, _, _ = env.step(127)
        picks += 1
    expected = hpcgym.simulate(workload, policy, **settings)
    assert np.array_equal(env.schedule().start_time, expected.start_time)
    assert 20 < picks <= 90  # one for each job, but where all fit together
