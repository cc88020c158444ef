"""The environment on machines of nodes under "easy+trial": beside simulate() and beside itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import reference_nodes
from env_cases import ACTIONS, assert_vector_plays_alike, env_of, episodes_of
from hpcgym import simulate
from hpcgym.base.errors import ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from nodes_env_cases import HETERO, SOME, Case, busy_case

TRIED = "easy+trial:limit=120"


def tried_case(**changes: Any) -> Case:
    """Return jobs with a long queue that request twice what they run at least."""
    case = busy_case(backfill=TRIED, **changes)
    table = [job._replace(run_time=job.run_time // 2) for job in case.table]
    return case._replace(table=table, seed=3)


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_a_vector_plays_as_the_scalar_environment_does(action: str) -> None:
    case = tried_case(action=action)
    keywords = {"policies": SOME} if action == "policy" else {}
    episodes = episodes_of(case.workload, case.rules)
    assert_vector_plays_alike(scenario=episodes, action=action, n_slots=12, **keywords)


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
