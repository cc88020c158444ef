"""Jobs that are taken off the machine wait anew, in every mode, as plain Python says."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent

COMPARED = """
import math
import sys
from heapq import heapify

import numpy as np

import toy_event, toy_eviction, toy_mode  # all three, so that tests of each share their kernels

sys.path.insert(0, "..")
import engines
import hpcgym
import reference

AT, EVERY, TIMES = {when}


def kill(machine, j):
    q = machine.jobs[j].processors
    machine.ends = [end for end in machine.ends if end[2] != j]
    heapify(machine.ends)
    machine.releases = [(end, k) for end, k in machine.releases if k != j]
    machine.free += q
    machine.started -= 1
    if hasattr(machine, "counted"):
        machine.counted.discard(j)
    for ranking in machine.rankings:
        ranking.add(j, machine.first_score(ranking, j))
        ranking.score = dict(sorted(ranking.score.items()))


def run_batch(machine):
    clearings = [AT + k * EVERY for k in range(TIMES)]
    while True:
        t = min(machine.next_submission(), machine.next_end(), *clearings[:1])
        if t == math.inf or ([t] == clearings[:1] and machine.started == len(machine.jobs)):
            return
        while machine.next_end() == t:
            machine.complete()
        if clearings and clearings[0] == t:
            clearings.pop(0)
            for *_, j in sorted(machine.ends, key=lambda end: end[2]):
                kill(machine, j)
        while machine.next_submission() == t:
            machine.submit()
        machine.schedule(t)


reference.Machine.run_batch = run_batch
jobs = hpcgym.load_workload("synthetic-256")
jobs = jobs.select(np.arange({n_jobs}))
event = f"clear:at={{AT}},every={{EVERY}},times={{TIMES}}"
for place, mode in enumerate({modes}):
    for threshold in (None, 40_000):
        policy = ("FCFS", "WFP3", "SMITH-REG")[place % 3]
        settings = dict(policy=policy, backfill=mode, threshold=threshold)
        ours = hpcgym.simulate(jobs, events=[event], **settings)
        theirs = engines.by_reference(jobs, **settings)
        assert ours.start_time.tolist() == [start.start_time for start in theirs], settings
        assert ours.backfilled.tolist() == [start.backfilled for start in theirs], settings
        assert ours.thresholded.tolist() == [start.thresholded for start in theirs], settings
        plain = hpcgym.simulate(jobs, **settings)
        assert ours.start_time.tolist() != plain.start_time.tolist()
print("same")
"""


def run(code):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


LIMITED = """
import numpy as np

import toy_eviction
import hpcgym
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator

jobs = hpcgym.load_workload("synthetic-256").select(np.arange(300))
clear = "clear:at=50000,every=9000,times=12"
limit, nobody = "limit:per=user,jobs=2,submitted=3", "limit:per=user,jobs=1,name=nobody"
none = Simulator(jobs, SchedulerSettings("FCFS", events=[clear, nobody]))
assert none.state.group_first.shape[1] == 2  # a place for each event, where no job counts
simulator = Simulator(jobs, SchedulerSettings("FCFS", events=[clear, nobody, limit]))
simulator.run()
assert simulator.start_time.min() >= 0
begin, end = simulator.start_time, simulator.start_time + simulator.table.run_time
for at in begin:
    runs = (begin <= at) & (end > at)
    assert np.bincount(jobs.user[runs]).max() <= 2
for user in range(int(jobs.user.max()) + 1):
    mine = np.flatnonzero(jobs.user == user)
    for rank, job in enumerate(mine[3:], start=3):  # it began once all but two before it had ended
        assert (end[mine[:rank]] > begin[job]).sum() <= 2, (user, job)
held = hpcgym.simulate(jobs, events=[clear, nobody, limit])
assert set(held.limited_by.tolist()) == {"", limit}
plain = hpcgym.simulate(jobs, events=[limit])
assert plain.start_time.tolist() != begin.tolist()
print("held")
"""


def test_jobs_that_are_taken_off_the_machine_stay_within_limits(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert run(LIMITED) == "held"


MODES = ["none", "easy", "easy:cap=0.5,long=3600", "cost-benefit", "depth:k=2", "conservative"]


@pytest.mark.parametrize(
    ("modes", "n_jobs"), [pytest.param(["easy"], 400, marks=pytest.mark.slow), (MODES, 150)]
)
def test_jobs_that_are_taken_off_the_machine_start_again_as_the_reference_says(
    modes, n_jobs, monkeypatch
):
    """All modes as Python, which takes less than to compile them; one compiled in slow tests."""
    if modes is MODES:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert run(COMPARED.format(when=(50_000, 9_000, 12), modes=modes, n_jobs=n_jobs)) == "same"
