"""A mode of one file runs compiled, by its text, everywhere where modes run."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent

COMPARED = """
import sys
import gymnasium
import numpy as np
import hpcgym
import toy_event, toy_eviction, toy_mode  # all three, so that tests of each share their kernels

class InPython(hpcgym.OwnBackfill):
    def start(self, now):
        free, chosen = now.free_processors, []
        for job in now.queue:
            if job.processors <= free and len(chosen) < 3:
                chosen.append(job)
                free -= job.processors
        return chosen

jobs = hpcgym.load_workload("synthetic-256")
jobs = jobs.select(np.arange(len(jobs)) < 600)
for policy in ("FCFS", "SAF", "WFP3"):
    plain = hpcgym.simulate(jobs, policy=policy, backfill=InPython(), threshold=50_000)
    ours = hpcgym.simulate(jobs, policy=policy, backfill="first-fit:most=3", threshold=50_000)
    assert ours.start_time.tolist() == plain.start_time.tolist(), policy
    assert ours.backfilled.tolist() == plain.backfilled.tolist(), policy
vector = gymnasium.make_vec(
    "HPCBatch-v0", num_envs=2, scenario="synthetic-256-weeks", backfill="first-fit", action="order"
)
vector.reset(seed=1)
for _ in range(20):
    vector.step(vector.action_space.sample())
print("same")
"""


def run(code):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def test_mode_in_one_file_starts_what_the_same_mode_in_python_starts():
    assert run(COMPARED) == "same"


LATE = """
import hpcgym
jobs = hpcgym.load_workload("tiny")
hpcgym.simulate(jobs)
import toy_mode
from hpcgym.core.kernels.types import Counter, Sim
class Counted(Sim):
    n_counted: Counter
Counted.__module__, toy_mode.Counted = "toy_mode", Counted
hpcgym.simulate(jobs, backfill="first-fit")
"""


def test_mode_that_adds_to_a_simulation_too_late_is_told_so():
    assert "toy_mode adds Counted to what a simulation holds" in run(LATE)
