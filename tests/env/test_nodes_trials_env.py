"""The environment on machines of nodes under "easy+trial": beside simulate() and beside itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import reference_nodes
from env_cases import env_of
from hpcgym.base.errors import ScenarioError
from hpcgym.env.scheduling import SchedulingEnv
from nodes_env_cases import HETERO, Case, busy_case

TRIED = "easy+trial:limit=120"


def tried_case(**changes: Any) -> Case:
    """Return jobs with a long queue that request twice what they run at least."""
    case = busy_case(backfill=TRIED, **changes)
    table = [job._replace(run_time=job.run_time // 2) for job in case.table]
    return case._replace(table=table, seed=3)


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
