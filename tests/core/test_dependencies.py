"""Jobs that wait for the job before them, or are held: against the reference, and through files."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_dependencies as reference
from hpcgym.core.columns import COLUMNS
from hpcgym.core.dependencies import EXCHANGED, EXCHANGED_ON_NODES
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.predecessors import find_cycle
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.errors import HpcgymError, PolicyError, TraceError, WorkloadError
from hpcgym.evaluation.store import digest
from hpcgym.trace import clean, read_swf, resample, scale_load, write_swf
from hpcgym.trace.resample import jitter, join_weeks, resample_week
from hpcgym.trace.swf import log_of
from hpcgym.trace.tables import read_log
from strategies import one_of, requests_for, sizes_up_to

KINDS = ("ignore", "start", "feedback")
ANY_MODE = (
    *("none", "easy", "easy:cap=0.5,long=10", "easy:cap=0.5,long=10,by=request", "depth:k=2"),
    *("conservative", "look-ahead", "relaxed:omega=0.5", "slack:c=1", "multi-queue:delay=7"),
    *("cost-benefit", "easy+trial:limit=5,young=60,request=10"),
)
ANY_ORDER = ("FCFS", "SAF", "SPF", "LCFS", "WFP3", "F1", "SMITH", "SAF-HISTORY", "SMITH-REGRESSION")


@st.composite
def tables(draw, max_jobs=14, machine=4):
    """Draw jobs in chains and fans, some of which are after later ones, held, or both."""
    n = draw(st.integers(1, max_jobs))
    turn = draw(st.permutations(range(n)))  # a job is after jobs of an earlier turn only
    place = {job: at for at, job in enumerate(turn)}
    submit_time, rows = 0, []
    for job in range(n):
        submit_time += draw(one_of((0, 0, 0, 1, 2, 5, 10)))
        run_time = draw(one_of((0, 0, 1, 2, 5, 5, 10, 60)))
        before = turn[: place[job]]
        after = draw(st.sampled_from(before)) if before and draw(st.booleans()) else -1
        held = draw(one_of((-1, -1, -1, 0, 1, 5, 20, 60)))
        rows.append(
            reference.Job(
                submit_time,
                run_time,
                draw(requests_for(run_time)),
                draw(sizes_up_to(machine)),
                after,
                draw(one_of((0, 0, 1, 5, 40))),
                submit_time + held if held >= 0 else -1,
            )
        )
    return rows


def workload_of(rows, machine=4, **others):
    """Return rows as the package holds them, by one user each two jobs."""
    columns = dict(zip(reference.Job._fields, zip(*rows, strict=True), strict=True))
    users = np.arange(len(rows)) // 2
    return hpcgym.Workload.from_arrays(
        **columns, user=users, machine_processors=machine, **others
    )


def lives_of(schedule):
    """Return a schedule as the reference does."""
    jobs = schedule.jobs.submit_time.tolist()
    return [
        reference.Life(*one)
        for one in zip(jobs, schedule.start_time.tolist(), schedule.thresholded.tolist(), strict=True)
    ]


@given(
    rows=tables(),
    policy=st.sampled_from(tuple(reference.SCORES)),
    backfill=one_of(("none", "easy")),
    threshold=one_of((None, 0, 1, 5, 20)),
    kind=one_of(KINDS),
)
def test_every_job_starts_as_the_reference_says(rows, policy, backfill, threshold, kind):
    settings = {"backfill": backfill, "threshold": threshold, "dependencies": kind}
    expected = reference.simulate(rows, 4, policy, **settings)
    assert lives_of(hpcgym.simulate(workload_of(rows), policy, **settings)) == expected


@given(
    rows=tables(),
    policy=st.sampled_from(ANY_ORDER),
    backfill=one_of(ANY_MODE),
    threshold=one_of((None, 0, 5, 20)),
    kind=one_of(KINDS),
    estimates=one_of((("requested", "none"), ("exact", "none"), ("recent", "reqtime"))),
)
def test_a_job_is_scheduled_as_one_submitted_when_it_is_eligible(
    rows, policy, backfill, threshold, kind, estimates
):
    """The same jobs, submitted when these were eligible, start alike under every mode and order."""
    estimated, correction = estimates
    settings = {"backfill": backfill, "threshold": threshold, "estimates": estimated}
    settings["correction"] = "none" if "trial" in backfill else correction
    jobs = workload_of(rows)
    got = hpcgym.simulate(jobs, policy, **settings, dependencies=kind)
    eligible = got.jobs.submit_time
    again = workload_of([job._replace(after=-1, eligible=-1) for job in rows]).resubmitted(eligible)
    order = np.argsort(eligible, kind="stable")
    theirs = hpcgym.simulate(again, policy, **settings)
    for key in ("start_time", "backfilled", "thresholded"):
        assert getattr(got, key)[order].tolist() == getattr(theirs, key).tolist(), key
    if got.attempts is not None:
        assert got.attempts.wasted_time[order].tolist() == theirs.attempts.wasted_time.tolist()
        assert got.attempts.kills[order].tolist() == theirs.attempts.kills.tolist()
    # And the instants are those that the rule names.
    after, think = (getattr(jobs, key) for key in ("after", "think_time"))
    least = jobs.submit_time.copy()
    if kind == "feedback":
        least[after >= 0] = 0
    least = np.maximum(least, jobs.eligible)
    waits = (after >= 0) & (kind != "ignore")
    least[waits] = np.maximum(least, got.end_time[after] + think)[waits]
    assert eligible.tolist() == least.tolist()


@given(rows=tables(), kind=one_of(KINDS), check=st.booleans())
def test_a_simulation_goes_on_from_a_copy_and_begins_anew(rows, kind, check):
    settings = SchedulerSettings("SAF", threshold=5, dependencies=kind)
    simulator = Simulator(workload_of(rows), settings, check_invariants=check)
    copied, pickled = simulator.copy(), pickle.loads(pickle.dumps(simulator))
    for one in (simulator, copied, pickled):
        one.run()
    expected = simulator.start_time.tolist()
    assert copied.start_time.tolist() == pickled.start_time.tolist() == expected
    after = pickle.loads(pickle.dumps(simulator))
    assert after.start_time.tolist() == expected
    assert after.table.run_time.tolist() == simulator.table.run_time.tolist()
    assert after.eligible_time.tolist() == simulator.eligible_time.tolist()
    assert (after.table.processors == simulator.workload.processors).all()
    simulator.reset()
    assert (simulator.start_time == -1).all()
    simulator.run()
    assert simulator.start_time.tolist() == expected
