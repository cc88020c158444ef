"""Outages beside caps, costs and trials: against the reference, and what holds of schedules."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_dependencies
from dependent_cases import conditional_tables, lives_of
from dependent_cases import workload_of as chains_of
from drawn_lives import assert_lives, cases, outages
from hpcgym.core.backfill import as_mode
from hpcgym.core.constants import GAVE_WAY, NODE_DOWN, TRIAL_OVER
from hpcgym.core.parts.outages import Outage
from hpcgym.schedule.attempts import COMPLETED, KILLED
from reference_outages import Outage as Down
from strategies import one_of


@given(case=cases())
def test_every_start_and_every_attempt_is_as_the_reference_says(case):
    workload, events, given = case
    assert_lives(workload, events, **given)


@given(case=cases())
def test_what_holds_of_every_schedule_whose_jobs_may_be_taken_off(case):
    workload, events, given = case
    schedule = hpcgym.simulate(workload, events=events, **given)
    frame, vain, q = schedule.attempts_frame(), schedule.attempts, workload.processors
    trial = getattr(as_mode(given["backfill"]), "trial", None)
    ran = np.ones(len(workload), bool) if schedule.lost is None else ~schedule.lost
    # No useful run is lost or counted twice, and no attempt begins before the job or another ends.
    useful = frame[frame["reason"].isin([COMPLETED, KILLED])]
    assert useful["job_id"].tolist() == workload.job_id[ran].tolist()
    lasted = useful["end_time"] - useful["start_time"]
    assert lasted.tolist() == schedule.run_time[ran].tolist()
    assert (schedule.start_time >= workload.submit_time)[ran].all()
    assert (frame["taken_time"] <= frame["end_time"]).all()
    before = frame.groupby("job_id")["end_time"].shift()
    assert not (frame["taken_time"] < before).any()
    # Kills stay within their bounds, and an outage ends attempts at its beginning only.
    reasons, most = vain.reason, {GAVE_WAY: 0, TRIAL_OVER: 0}
    if trial is not None:
        most = {GAVE_WAY: trial.times * (trial.young > 0), TRIAL_OVER: trial.kills}
    for reason, of_reason in (
        (GAVE_WAY, reasons == GAVE_WAY),
        (TRIAL_OVER, (reasons != GAVE_WAY) & (reasons != NODE_DOWN)),
    ):
        assert np.bincount(vain.job[of_reason]).max(initial=0) <= most[reason]
    assert set(vain.end[reasons == NODE_DOWN].tolist()) <= {one.from_ for one in events}
    # Work is conserved: what attempts hold is the useful runs and the waste.
    held = ((frame["end_time"] - frame["taken_time"]) * frame["processors"]).sum()
    overhead = 0 if trial is None else trial.overhead
    cleared = (reasons == TRIAL_OVER) * overhead * q[vain.job]
    work, wasted = (schedule.run_time * q)[ran].sum(), (vain.wasted_time * q).sum()
    assert held + cleared.sum() == work + wasted
    # Never more than the processors that are there, at any instant.
    rows = [(one.from_, one.to, one.processors) for one in events]
    rows += frame[["taken_time", "end_time", "processors"]].itertuples(index=False, name=None)
    changes = [(begin, n) for begin, _, n in rows] + [(end, -n) for _, end, n in rows]
    busy = 0
    for _, n in sorted(changes):
        busy += n
        assert busy <= workload.machine_processors
    # Utilisation is of what was there, in cells of many, too.
    if not ran.any():
        return
    metrics = schedule.metrics()
    first, last = workload.submit_time[ran].min(), schedule.end_time[ran].max()
    lacking = sum(
        one.processors * max(min(one.to, last) - max(one.from_, first), 0) for one in events
    )
    there = workload.machine_processors * metrics["makespan"] - lacking
    assert metrics["utilisation"] == (work / there if there else 0.0)
    settings = {key: value for key, value in given.items() if key != "policy"}
    many = hpcgym.simulate_many([workload], [given["policy"]], events=events, **settings)
    for name in ("utilisation", "max_wait_time", "makespan", "max_bsld", "n_backfilled"):
        assert many[name][0, 0] == metrics[name]


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
