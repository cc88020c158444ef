"""The environment on machines of nodes under "easy+trial": beside simulate() and beside itself."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st

import reference_nodes
from env_cases import ACTIONS, env_of, episodes_of, random_action
from hpcgym import simulate
from hpcgym.base.errors import ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from nodes_env_cases import HETERO, SOME, Case, busy_case, drawn

TRIED = "easy+trial:limit=120"


def tried_case(**changes: Any) -> Case:
    """Return jobs with a long queue that request twice what they run at least."""
    case = busy_case(backfill=TRIED, **changes)
    table = [job._replace(run_time=job.run_time // 2) for job in case.table]
    return case._replace(table=table, seed=3)


def is_pair_equal(shown: dict[str, np.ndarray], many: dict[str, np.ndarray]) -> bool:
    """Tell whether both simulations of a vector show what a scalar environment does."""
    return all(np.array_equal(np.stack([value] * 2), many[key]) for key, value in shown.items())


def play_beside_a_vector(case: Case) -> int:
    """Play the same random actions in a scalar environment and in two of a vector.

    Return the trials in vain.
    """
    rules = case.rules
    env = env_of(case.workload, rules)
    many = SchedulingVectorEnv(
        episodes_of(case.workload, rules),
        num_envs=2,
        action=rules.action,
        decide=rules.decide,
        reward=rules.reward,
        baseline=rules.baseline,
        policies=rules.policies or None,
        n_slots=rules.n_slots,
        expectations=rules.expectations,
        autoreset_mode=AutoresetMode.DISABLED,
    )
    generator = np.random.default_rng(case.seed)
    assert is_pair_equal(env.reset(seed=1)[0], many.reset(seed=[1, 1])[0])
    over = False
    while not over:
        action = random_action(rules, generator)
        shown, reward, over, _, _ = env.step(action)
        seen, rewards, terminated, _, _ = many.step(np.stack([action] * 2))
        assert is_pair_equal(shown, seen)
        assert rewards.tolist() == [reward] * 2
        assert terminated.tolist() == [over] * 2
    for schedule in many.call("schedule"):
        assert schedule.start_time.tolist() == env.schedule().start_time.tolist()
    assert env._state is not None
    return int(env._state.n_attempts[0])


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_a_vector_plays_as_the_scalar_environment_does(action: str) -> None:
    assert play_beside_a_vector(tried_case(action=action)) > 0


@given(random=st.randoms(use_true_random=False))
def test_drawn_episodes_are_played_alike(random: Random) -> None:
    case = drawn(random, backfill="easy+trial:limit=600", backfill_order=None)
    play_beside_a_vector(case)


def play_a_policy(episodes: Any, policy: str, episode: int | None = None) -> tuple[float, Any]:
    """Play an episode by one policy; return the sum of the rewards, and the schedule."""
    env = SchedulingEnv(episodes, action="policy", policies=("LCFS", policy), baseline=policy)
    env.reset(options={} if episode is None else {"episode": episode})
    total, over = 0.0, False
    while not over:
        _, reward, over, _, _ = env.step(1)
        total += reward
    return total, env.schedule()


@pytest.mark.parametrize("policy", SOME)
def test_a_fixed_policy_starts_jobs_when_and_where_simulate_does(policy: str) -> None:
    case = tried_case(action="policy", policies=("LCFS", policy))
    episodes = episodes_of(case.workload, case.rules)
    total, made = play_a_policy(episodes, policy)
    expected = simulate(case.workload, policy, backfill=TRIED, threshold=20_000)
    assert expected.metrics()["share_killed"] > 0
    assert made.start_time.tolist() == expected.start_time.tolist()
    for j in range(len(case.table)):
        assert made.placement.of(j) == expected.placement.of(j)
    # The rewards add up to the difference to the baseline, which is the same.
    assert total == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_a_week_of_the_bundled_scenario_is_played_as_simulate_does() -> None:
    episodes = Episodes(HETERO)
    scheduler = replace(episodes.scenario.scheduler, backfill="easy+trial")
    episodes = Episodes(replace(episodes.scenario, scheduler=scheduler))
    total, made = play_a_policy(episodes, "SAF", 2)
    workload: Workload = episodes.workload(episodes.position(2))
    expected = simulate(workload, "SAF", backfill="easy+trial", threshold=200_000)
    assert expected.metrics()["share_killed"] > 0.01
    assert made.start_time.tolist() == expected.start_time.tolist()
    assert total == pytest.approx(0, abs=1e-6)


def test_actions_about_trials_are_refused_on_nodes() -> None:
    with pytest.raises(ScenarioError, match="action 'trials' counts processors"):
        SchedulingEnv(HETERO, action="trials", backfill="easy+trial")


def test_a_picked_job_on_trial_runs_on_and_one_that_starts_ends_trials() -> None:
    """Job 2 is on trial from 2 on; picked at 10 it starts, as it began."""
    machine = reference_nodes.one_partition([reference_nodes.Node(2)] * 2)
    job = reference_nodes.Job
    case = tried_case(action="job", decide="event")
    rows = [job(0, 100, 100, 1), job(1, 100, 100, 4), job(2, 200, 300, 1), job(10, 50, 50, 3)]
    case = Case(machine, rows, replace(case.rules, processors=4), 1)
    env = env_of(case.workload, case.rules)
    env.reset()
    while env.now < 10:
        env.step(list(env._slot).index(min(j for j in env._slot if j >= 0)))
    env.step(list(env._slot).index(2))
    assert env.schedule().start_time.tolist()[2] == 2
    env.step(list(env._slot).index(3))
    assert env.schedule().start_time.tolist()[3] < 0
