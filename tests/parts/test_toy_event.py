"""An event of one file happens, compiled, by its text, wherever schedules are made."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # compiles kernels in a process of its own

HERE = Path(__file__).parent


@pytest.fixture
def uncompiled(monkeypatch):
    """Run kernels as Python, where that takes less than to compile them."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def run(code):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


COMPARED = """
import hpcgym
import numpy as np
import toy_event

jobs = hpcgym.load_workload("synthetic-256").select(np.arange(300))
columns = ("submit_time", "run_time", "requested_time", "processors")
taken = [np.concatenate([[first], getattr(jobs, name)])
         for name, first in zip(columns, (0, 90_000, 90_000, 60), strict=True)]
with_one_more = hpcgym.Workload.from_arrays(*taken, machine_processors=256)
late = "late:processors=60,at=90000"
for policy in ("FCFS", "SAF", "WFP3"):
    ours = hpcgym.simulate(jobs, policy, backfill="none", events=[late])
    theirs = hpcgym.simulate(with_one_more, policy, backfill="none")
    assert theirs.start_time[0] == 0
    assert ours.start_time.tolist() == theirs.start_time[1:].tolist(), policy
    plain = hpcgym.simulate(jobs, policy, backfill="none")
    assert ours.start_time.tolist() != plain.start_time.tolist()
print("same")
"""


def test_processors_that_come_late_are_a_job_that_holds_them_until_then(uncompiled):
    assert run(COMPARED) == "same"


MET = """
import hpcgym
import numpy as np
import toy_event, toy_eviction, toy_mode

MOST, LATE, AT = 3, 60, 90_000

def in_plain_python(jobs, late):
    columns = ("submit_time", "run_time", "processors")
    submit, run, size = (getattr(jobs, name).tolist() for name in columns)
    free, waiting, running, starts = 256 - late, [], [], {}
    instants = {*submit, AT}
    while instants:
        now = min(instants)
        instants.remove(now)
        free += late * (now == AT) + sum(size[job] for end, job in running if end == now)
        running = [(end, job) for end, job in running if end > now]
        waiting += [job for job, at in enumerate(submit) if at == now]
        n_started = 0
        for job in list(waiting):
            if size[job] <= free and n_started < MOST:
                n_started, free, starts[job] = n_started + 1, free - size[job], now
                waiting.remove(job)
                running.append((now + run[job], job))
                instants.add(now + run[job])
    return [starts[job] for job in range(len(submit))]

jobs = hpcgym.load_workload("synthetic-256").select(np.arange(600))
mode = f"first-fit:most={MOST}"
plain = hpcgym.simulate(jobs, backfill=mode).start_time.tolist()
assert plain == in_plain_python(jobs, 0)
late = hpcgym.simulate(jobs, backfill=mode, events=[f"late:processors={LATE},at={AT}"])
assert late.start_time.tolist() == in_plain_python(jobs, LATE) != plain
print("same")
"""


def test_mode_and_event_of_one_file_each_meet_and_neither_knows_the_other(uncompiled):
    assert run(MET) == "same"


REFUSED = """
import hpcgym
import toy_event
import toy_eviction

def said(log, events, machine=None, **settings):
    jobs = hpcgym.load_workload(log, machine=machine)
    try:
        hpcgym.simulate(jobs, events=events, **settings)
    except hpcgym.HpcgymError as error:
        print(error)

said("tiny", ["lat:processors=3"])
said("tiny", ["late:processor=3"])
said("tiny", ["late"])
said("tiny", ["late:processors=3"], event_semantics="pyss")
said("tiny", ["late:processors=3"], policy="DYNP")
said("tiny", ["late:processors=3"], backfill="gang:rows=2")
nodes = hpcgym.Machine((hpcgym.machine.NodeType(2, 64),))
said("tiny", ["late:processors=3"], machine=nodes)
toy_event.LateProcessors.numbers = lambda event, workload: [event.processors, 2**62]
said("tiny", ["late:processors=3"], backfill="none")
"""


def test_events_that_cannot_be_are_refused_with_the_reason(uncompiled):
    said = run(REFUSED).splitlines()
    assert (
        said[0] == "unknown event 'lat'; did you mean 'late'? "
        "Allowed: outage, limit, limits, price, late, clear"
    )
    assert said[1].startswith("unknown parameter of event 'late' 'processor'; did you mean 'proc")
    assert said[2] == "event 'late' needs processors: 'late:processors=...'"
    assert "got event_semantics 'pyss', which has a pass for each" in said[3]
    assert said[4] == "policy 'DYNP' plans without events; got event 'late:processors=3'"
    assert "needs a backfilling mode; got backfill 'gang:rows=2'" in said[5]
    assert said[6].startswith("event 'late:processors=3' counts processors; got a machine of nodes")
    assert said[7] == "jobs wait that fit no more, and no event is to come"


KEPT = """
import hpcgym
{imported}
from hpcgym.core.kernels import entry_points
jobs = hpcgym.load_workload("tiny")
made = hpcgym.simulate(jobs, backfill="none", events={events})
kept_in = entry_points.run._cache._path("(int64, int64)", Target())
print(made.start_time.min(), *kept_in.name.split("-")[1:])
"""
TARGET = """
class Target:
    def codegen(self):
        return self
    def magic_tuple(self):
        return ()
"""


def test_kernels_of_a_simulation_with_more_numbers_are_kept_apart_and_run_events():
    """Nothing starts before all processors come."""
    late = '[f"late:processors={jobs.machine_processors},at=1000000"]'
    plain, alike, larger = (
        run(TARGET + KEPT.format(imported=imported, events=events)).split()
        for imported, events in (
            ("", "[]"),
            ("import toy_mode", "[]"),
            ("import toy_event, toy_eviction", late),
        )
    )
    assert plain == alike and plain[1:] != larger[1:]
    assert larger[0] == "1000000"
