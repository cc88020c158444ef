"""The environment where nodes are down: what is shown of the jobs that fit."""

from random import Random

import gymnasium
import numpy as np

import hpcgym
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
