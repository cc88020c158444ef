"""Outages beside caps, costs and trials: against the reference, and what holds of schedules."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import engines
import hpcgym
import reference_dependencies
from dependent_cases import conditional_tables, lives_of
from dependent_cases import workload_of as chains_of
from drawn_lives import modes, orders, outages
from engines import by_reference
from hpcgym.core.backfill import as_mode
from hpcgym.core.parts.outages import Outage
from reference_lives import LivesWithOutages
from reference_outages import Outage as Down
from strategies import busy_workloads, one_of


@st.composite
def cases(draw):
    """Draw a workload, its outages, and settings with a mode that has a cap, costs or trials."""
    workload = draw(busy_workloads())
    if draw(st.booleans()):
        flags = draw(st.integers(0, 2 ** len(workload) - 1))
        workload = replace(workload, requeue=(flags >> np.arange(len(workload)) & 1) == 1)
    drawn = {
        "policy": draw(orders),
        "backfill": str(draw(modes(overhead=False))),
        "backfill_order": draw(st.none() | st.none() | orders),
        "threshold": draw(one_of((None, 0, 30, 100, 400))),
        "kill_at_limit": draw(st.booleans()),
        "estimates": draw(one_of(("requested", "requested", "exact"))),
    }
    return workload, draw(outages(workload.machine_processors)), drawn


def reference_of(workload, events, **given):
    """Return starts and attempts by the reference."""
    made, offset = [], workload.time_offset
    again = None if workload.requeue is None else np.flatnonzero(workload.requeue).tolist()
    mode = as_mode(given["backfill"])
    may_be_killed = mode.requeueable(workload)

    class Listed(LivesWithOutages):
        requeue = np.flatnonzero(may_be_killed).tolist() if len(may_be_killed) else None
        outages = tuple(
            Down(one.from_ - offset, one.to - offset, one.processors, one.announced - offset)
            for one in events
        )

        def run(self, event_semantics):
            made.append(self)
            return super().run(event_semantics)

    Listed.again = again
    kept = dict(engines.KINDS)
    engines.KINDS.update({"trial": Listed, "cost-benefit": Listed})
    try:
        starts = by_reference(workload, **given)
    finally:
        engines.KINDS.update(kept)
    return starts, sorted((*one[:4], one.reason) for one in made[0].attempts)


def attempts_of(schedule):
    """Return the attempts of a schedule as the reference has them."""
    frame = schedule.attempts_frame()
    row = {job: at for at, job in enumerate(schedule.workload.job_id.tolist())}
    instants = frame[["taken_time", "start_time", "end_time"]] - schedule.workload.time_offset
    times = (instants[key].tolist() for key in instants)
    ends = frame["reason"].replace("killed at its request", "completed").tolist()
    return sorted(zip([row[job] for job in frame["job_id"]], *times, ends, strict=True))


@given(case=cases())
def test_every_start_and_every_attempt_is_as_the_reference_says(case):
    workload, events, given = case
    starts, attempts = reference_of(workload, events, **given)
    schedule = hpcgym.simulate(workload, events=events, **given)
    assert attempts_of(schedule) == attempts
    assert schedule.start_time.tolist() == [start.start_time for start in starts]
    assert schedule.backfilled.tolist() == [start.backfilled for start in starts]
    assert schedule.thresholded.tolist() == [start.thresholded for start in starts]


@st.composite
def chains(draw):
    """Draw jobs behind others, some of which must not be started again, and outages."""
    rows = draw(conditional_tables())
    flags = draw(st.integers(0, 2 ** len(rows) - 1))
    return rows, (flags >> np.arange(len(rows)) & 1) == 1, draw(outages(4))


@given(
    case=chains(),
    policy=st.sampled_from(sorted(reference_dependencies.SCORES)),
    backfill=one_of(("easy", "none")),
    threshold=one_of((None, 0, 20)),
    kind=one_of(("ignore", "start", "feedback")),
)
def test_jobs_behind_lost_ones_come_or_are_cancelled_as_the_reference_says(
    case, policy, backfill, threshold, kind
):
    rows, requeue, events = case
    given = {"backfill": backfill, "threshold": threshold, "dependencies": kind}
    downs = [Down(one.from_, one.to, one.processors, one.announced) for one in events]
    lose = np.flatnonzero(~requeue).tolist()
    expected = reference_dependencies.simulate(rows, 4, policy, outages=downs, lose=lose, **given)
    workload = chains_of(rows, requeue=requeue)
    made = hpcgym.simulate(workload, policy, events=events, **given)
    assert lives_of(made) == expected
    assert made.complete
    if made.lost is None:
        return
    # No job is both lost and cancelled, and each that has no start is one of them.
    cancelled = np.zeros(len(rows), bool) if made.cancelled is None else made.cancelled
    assert not (made.lost & cancelled).any()
    assert ((made.start_time < 0) == (made.lost | cancelled)).all()
    assert not made.lost[requeue].any()


def test_the_job_behind_a_lost_one_is_cancelled_or_comes_by_its_condition():
    """The first of three jobs is lost at 20; one needs its success, the other its failure."""
    jobs = hpcgym.Workload.from_arrays(
        [0, 0, 0],
        [100, 5, 5],
        [100, 5, 5],
        [4, 1, 1],
        machine_processors=4,
        after=[-1, 0, 0],
        condition=[0, 1, 2],
        requeue=[False, True, True],
    )
    event = Outage(20, 30, 1, announced=20)
    made = hpcgym.simulate(jobs, events=[event], dependencies="start")
    assert made.start_time.tolist() == [-1, -1, 20]
    assert made.lost.tolist() == [True, False, False]
    assert made.cancelled.tolist() == [False, True, False]
    assert made.to_frame()["started"].tolist() == ["lost", "cancelled", "in_order"]
    assert (made.metrics()["n_lost"], made.metrics()["n_cancelled"]) == (1, 1)


def jobs_of(*rows, **columns):
    """Return jobs of 4 processors by submit time, run time, request and processors."""
    return hpcgym.Workload.from_arrays(
        *map(list, zip(*rows, strict=True)), machine_processors=4, **columns
    )


def ends(schedule):
    """Return job, end and reason of each attempt."""
    frame = schedule.attempts_frame()
    return list(zip(frame["job_id"], frame["end_time"], frame["reason"], strict=True))


def test_a_trial_gives_way_to_an_outage_before_a_job_that_started_earlier():
    """One of 4 processors goes down at 5: the job on trial goes, and it may be tried once more."""
    jobs = jobs_of((0, 100, 100, 3), (0, 50, 200, 4), (0, 10, 400, 1))
    mode = "easy+trial:limit=20,kills=1"
    made = hpcgym.simulate(jobs, backfill=mode, events=[Outage(5, 8, 1, announced=5)])
    assert ends(made)[-2:] == [(3, 5, "node down"), (3, 18, "completed")]
    assert made.start_time.tolist() == [0, 100, 8]


def test_an_outage_takes_a_plain_trial_before_a_guaranteed_one_and_that_before_a_running_job():
    """V gives way to G at 8, while P is on trial; outages begin at 10 and 12, each of one."""
    rows = (0, 40, 40, 2), (5, 100, 100, 1), (6, 30, 30, 4), (7, 50, 200, 1), (8, 9, 150, 1)
    mode = "easy+trial:limit=60,young=100,request=50,times=1,share=0.5,guarantee=20"
    events = [Outage(at, 300, 1, announced=at) for at in (10, 12)]
    made = hpcgym.simulate(jobs_of(*rows), backfill=mode, events=events)
    down = [(job, end) for job, end, reason in ends(made) if reason == "node down"]
    assert sorted(down) == [(4, 10), (5, 12)]


def test_what_a_guaranteed_trial_held_is_given_back_once_where_it_starts():
    """A gives way to B and C at 1, and to D at 15; an outage leaves two processors before."""
    jobs = jobs_of((1, 100, 100, 2), (1, 20, 20, 1), (1, 20, 20, 1), (2, 20, 20, 1))
    mode = "easy+trial:limit=20,young=50,request=50,share=1,guarantee=20"
    made = hpcgym.simulate(jobs, backfill=mode, events=[Outage(10, 15, 2)])
    assert made.start_time.tolist() == [21, 1, 1, 15]
    assert ends(made)[:2] == [(1, 1, "gave way"), (1, 15, "gave way")]


def test_a_job_on_trial_meets_an_outage_by_the_end_estimated_from_its_trials_start():
    """T is on trial from 1 on, behind the head of 3 that fits at 10; at 5 the wider N is the head.

    An outage of three of 4 processors begins at 39, just when T's 38 s are over: T stays.
    """
    jobs = jobs_of((0, 10, 10, 2), (0, 40, 40, 1), (1, 10, 10, 3), (1, 38, 38, 1), (5, 2, 2, 4))
    made = hpcgym.simulate(jobs, "SAF", backfill="easy+trial:limit=20", events=[Outage(39, 50, 3)])
    assert made.start_time.tolist() == [0, 0, 52, 1, 50]


def test_no_trial_begins_that_a_known_outage_would_end():
    """A trial of 20 s would meet the outage of the last idle processor at 15."""
    jobs = jobs_of((0, 100, 100, 3), (0, 50, 200, 4), (0, 10, 400, 1))
    known, unknown = (
        hpcgym.simulate(jobs, backfill="easy+trial:limit=20", events=[Outage(15, 16, 1, at)])
        for at in (0, 15)
    )
    assert known.start_time[2] == 16
    assert unknown.start_time[2] == 0
