"""The environment where nodes are down: schedules, rewards, vectors, and what is shown."""

from random import Random

import gymnasium
import numpy as np
import pytest

import hpcgym
from env_cases import assert_vector_plays_alike
from hpcgym.core.observation_fields import JobField
from hpcgym.env.scenario.load import parse_scenario

TEXT = """
description = "Nodes go down, announced or not."
trace = { name = "tiny", missing_request = "drop" }
episode = { kind = "whole" }

[machine]
largest_request_s = 1000

[[machine.nodes]]
count = 2
cpus = 2
group = "left"

[[machine.nodes]]
count = 2
cpus = 2
gpus = 1
group = "right"

[[outage]]
from = 20
to = 60
nodes = ["left", 3]
announced = 20

[[outage]]
from = 100
to = 140
nodes = "0-1"

[[outage]]
from = 150
to = 160
nodes = 2
announced = 120
"""


def scenario():
    """Return a scenario of such a machine."""
    return parse_scenario(TEXT, name="down")


def crowd(seed):
    """Return jobs that wait for each other on it."""
    random, n = Random(seed), 60
    submit = np.cumsum([random.choice((0, 0, 1, 4)) for _ in range(n)])
    run = [random.choice((1, 5, 20, 30)) for _ in range(n)]
    chunks = np.array([random.choice((1, 1, 2, 4)) for _ in range(n)])
    return hpcgym.Workload.from_arrays(
        submit - submit[0],
        run,
        [length * random.choice((1, 2)) for length in run],
        chunks,
        machine=scenario().machine.nodes,
        chunks=chunks,
    )


def run(env, act, seed=0):
    """Run an episode with `act`, a function of the step; return rewards, schedule and info."""
    env.reset(options={"workload": crowd(seed)})
    rewards, is_over = [], False
    while not is_over:
        _, reward, is_over, _, info = env.step(act(len(rewards)))
        rewards.append(reward)
    return rewards, env.unwrapped.schedule(), info


def test_an_agent_that_always_chooses_a_policy_makes_the_schedule_of_that_policy():
    keywords = {"action": "policy", "policies": ["SPF", "SAF"], "decide": "contested"}
    env = gymnasium.make("HPCBatch-v0", scenario=scenario(), **keywords)
    settings = vars(scenario().scheduler.settings)
    for seed in range(6):
        _, made, info = run(env, lambda step: 1, seed)
        plain = hpcgym.simulate(made.workload, **settings | {"policy": "SAF"})
        assert plain.attempts.kills.sum() > 0
        assert made.start_time.tolist() == plain.start_time.tolist()
        assert info["utilisation"] == pytest.approx(plain.metrics()["utilisation"], rel=1e-12)


@pytest.mark.parametrize(("reward", "metric"), [("bsld", "mean_bsld"), ("wait", "mean_wait_time")])
def test_rewards_add_up_to_the_metric_where_nodes_are_down(reward, metric):
    keywords = {"action": "policy", "reward": reward, "baseline": None}
    env = gymnasium.make("HPCBatch-v0", scenario=scenario(), **keywords)
    rewards, _, info = run(env, lambda step: step % 3)
    assert sum(rewards) == pytest.approx(-info[metric], rel=1e-9)


def test_a_picked_job_starts_exactly_where_it_is_shown_to_fit():
    env = gymnasium.make("HPCBatch-v0", scenario=scenario(), action="job")
    seen, is_over = {0: 0, 1: 0}, False
    observation, _ = env.reset(options={"workload": crowd(0)})
    while not is_over:
        now, slots = int(env.unwrapped._sim.fields.now), env.unwrapped._slot
        rows, picked = observation["jobs"].reshape(len(slots), -1), slots[0]
        fits = int(rows[0][JobField.FITS_NOW])
        observation, _, is_over, *_ = env.step(0)
        assert (env.unwrapped.schedule().start_time[picked] == now) == (fits == 1)
        seen[fits] += 1
    assert min(seen.values()) > 10


def test_vector_equals_the_scalar_environment_where_nodes_are_down():
    assert_vector_plays_alike(scenario=scenario(), action="policy")
