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
import toy_mode  # alone: it takes the kernels that everybody has

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


MET_ON_NODES = """
import numpy as np

import hpcgym
import toy_event, toy_eviction, toy_mode
from hpcgym.machine import Machine, NodeType

MOST, AT, EVERY, TIMES = 3, 2_000, 5_000, 4
ROOMS = [4] * 6 + [8] * 4

def in_plain_python(jobs, clearings):
    columns = ("submit_time", "run_time", "processors", "chunks")
    submit, run, size, n_chunks = (getattr(jobs, name).tolist() for name in columns)
    free, waiting, on, starts = list(ROOMS), [], {}, {}
    instants = {*submit, *clearings}
    while instants or on:
        now = min(instants | {end for end, _ in on.values()})
        instants.discard(now)
        over = [job for job, (end, _) in on.items() if end == now]
        killed = sorted(set(on) - set(over)) if now in clearings else []
        for job in over + killed:
            for node, cpus in on.pop(job)[1].items():
                free[node] += cpus
        waiting = sorted(waiting + killed + [job for job, at in enumerate(submit) if at == now])
        n_started = 0
        for job in list(waiting):
            each, left, held = size[job] // n_chunks[job], n_chunks[job], {}
            for node, room in enumerate(free):
                if n := min(left, room // each):
                    held[node] = n * each
                    left -= n
            if left == 0 and n_started < MOST:
                for node, cpus in held.items():
                    free[node] -= cpus
                n_started, starts[job], on[job] = n_started + 1, now, (now + run[job], held)
                waiting.remove(job)
    return [starts[job] for job in range(len(submit))]

random = np.random.default_rng(7)
chunks, cpus, length = (random.integers(1, top, 300) for top in (5, 5, 900))
submit = np.sort(random.integers(0, 20_000, 300))
nodes = Machine((NodeType(6, 4), NodeType(4, 8)))
jobs = hpcgym.Workload.from_arrays(
    submit, length, 2 * length, chunks * cpus, machine=nodes, chunks=chunks
)
mode = f"first-fit:most={MOST}"
plain = hpcgym.simulate(jobs, backfill=mode).start_time.tolist()
assert plain == in_plain_python(jobs, [])
event = f"clear:at={AT},every={EVERY},times={TIMES}"
cleared = hpcgym.simulate(jobs, backfill=mode, events=[event]).start_time.tolist()
assert cleared == in_plain_python(jobs, [AT + k * EVERY for k in range(TIMES)]) != plain
print("same")
"""


@pytest.mark.slow  # kernels of nodes with the numbers of toys are compiled
def test_mode_and_event_of_one_file_each_meet_on_nodes():
    assert run(MET_ON_NODES) == "same"
