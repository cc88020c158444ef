"""Outages, announced or not: against the reference, and what holds of every schedule with them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from drawn_lives import assert_lives, cases
from engines import whole
from hpcgym.base.errors import EvaluationError, HpcgymError, PolicyError
from hpcgym.core.parts.outages import Outage
from hpcgym.core.settings import SchedulerSettings
from hpcgym.schedule.export import batsim_frame
from hpcgym.schedule.lost import refuse_lost
from hpcgym.schedule.moldable import simulate_moldable
from hpcgym.trace.swf import read_swf
from strategies import policies

KTH = "KTH-SP2-1996-2.1-cln"
ORDERS = ("FCFS", "SAF", "SMITH", "WFP3", "SMITH-HISTORY", "SMITH-REG")
orders = st.sampled_from(ORDERS) | policies


@given(case=cases(("outages",)))
def test_a_job_is_lost_once_it_is_taken_off_and_metrics_are_those_of_the_others(case):
    workload, events, given = case
    schedule = hpcgym.simulate(workload, events=events, **given)
    assert schedule.complete
    if schedule.lost is None:
        assert workload.requeue is None or workload.requeue.all() or not events
        return
    # A job is lost once it is taken off, and no other is.
    taken_off = schedule.attempts.kills > 0
    assert schedule.lost.tolist() == (taken_off & ~workload.requeue).tolist()
    assert schedule.attempts.kills[~workload.requeue].max(initial=0) <= 1
    # Metrics are those of the jobs that ran usefully.
    found, kept = schedule.metrics(), ~schedule.lost
    assert (found["complete"], found["n_lost"]) == (True, schedule.lost.sum())
    assert found["n_jobs"] == kept.sum()
    if not kept.any():
        return
    waits = (schedule.start_time - workload.submit_time)[kept]
    ends = schedule.end_time[kept]
    assert found["max_wait_time"] == waits.max()
    assert found["makespan"] == ends.max() - workload.submit_time[kept].min()
    assert schedule.metrics(by="class")["n_jobs"].sum() == kept.sum()
    assert schedule.series()["n_jobs"].sum() == kept.sum()
    lasted = max(ends.max(), schedule.attempts.end.max(initial=0)) - workload.submit_time.min()
    wasted = (schedule.attempts.wasted_time * workload.processors).sum()
    assert found["waste"] == wasted / max(workload.machine_processors * lasted, 1)


@given(case=cases(("outages",)))
def test_where_all_jobs_may_be_started_again_the_column_changes_nothing(case):
    workload, events, given = case
    columns = None, np.ones(len(workload), dtype=bool)
    jobs = [replace(workload, requeue=column) for column in columns]
    one, other = (hpcgym.simulate(each, events=events, **given) for each in jobs)
    assert one.metrics().keys() == other.metrics().keys()
    assert one.start_time.tolist() == other.start_time.tolist()
    assert other.lost is None


def jobs_of(*rows, processors=4):
    """Return jobs given by submit time, run time, request and processors."""
    return hpcgym.Workload.from_arrays(
        *map(list, zip(*rows, strict=True)), machine_processors=processors
    )


def starts(jobs, *events, **given):
    return hpcgym.simulate(jobs, events=list(events), **given).start_time.tolist()


def test_a_job_waits_for_an_announced_outage_that_it_would_run_into():
    """2 of 4 processors are down from 50 to 100; a job of 3 that requests 60 s must wait."""
    jobs = jobs_of((0, 60, 60, 3), (0, 50, 50, 3))
    assert starts(jobs, Outage(50, 100, 2)) == [100, 0]
    assert starts(jobs, Outage(50, 100, 2), backfill="none") == [100, 160]


def test_the_head_keeps_its_reservation_before_an_outage():
    """The head fits from 10 to 50 only if nothing else is started that runs beyond 10."""
    jobs = jobs_of((0, 10, 10, 2), (0, 40, 40, 4), (0, 11, 11, 2), (0, 10, 10, 2))
    assert starts(jobs, Outage(50, 1000, 4)) == [0, 10, 1000, 0]


def test_an_unannounced_outage_takes_off_the_job_that_started_last():
    """Two jobs run; at 20 one processor goes down and the younger job begins anew at 30."""
    jobs = jobs_of((0, 100, 100, 2), (10, 100, 100, 2))
    assert starts(jobs, Outage(20, 30, 1, announced=20)) == [0, 30]


def losing(*events):
    """Return a schedule where the second of three jobs must not be started again."""
    jobs = jobs_of((0, 100, 100, 2), (10, 100, 100, 2), (20, 5, 5, 1))
    jobs = replace(jobs, requeue=np.array([True, False, True]))
    return hpcgym.simulate(jobs, events=events or [Outage(20, 30, 1, announced=20)])


def test_a_job_that_must_not_be_started_again_is_lost():
    """At 20 one processor goes down, the younger job goes, and the third starts on what it had."""
    schedule = losing()
    assert schedule.start_time.tolist() == [0, -1, 20]
    assert schedule.lost.tolist() == [False, True, False]
    assert schedule.complete
    assert schedule.attempts_frame()["reason"].tolist() == ["completed", "node down", "completed"]
    frame = schedule.to_frame()
    assert frame["started"].tolist() == ["in_order", "lost", "in_order"]
    assert frame["end_time"].tolist() == [100, -1, 25]
    assert frame["attempts"].tolist() == [1, 1, 1]
    metrics = schedule.metrics()
    assert (metrics["n_jobs"], metrics["n_lost"], metrics["max_wait_time"]) == (2, 1, 0)
    assert metrics["waste"] == 20 / 400
    assert metrics["share_killed"] == 1 / 3
    assert metrics["utilisation"] == 205 / 390
    by_user = schedule.metrics(by="user")
    assert by_user[["n_jobs", "n_lost"]].iloc[0].tolist() == [2, 1]


def test_the_work_of_a_job_lost_after_all_others_have_ended_is_waste_of_the_time_it_took():
    jobs = replace(jobs_of((0, 10, 10, 2), (0, 100, 100, 2)), requeue=np.array([True, False]))
    metrics = hpcgym.simulate(jobs, events=[Outage(50, 60, 3, announced=50)]).metrics()
    assert (metrics["makespan"], metrics["waste"]) == (10, 100 / 200)


def test_where_all_jobs_are_lost_no_mean_is_there():
    jobs = replace(jobs_of((0, 100, 100, 2)), requeue=np.array([False]))
    schedule = hpcgym.simulate(jobs, events=[Outage(50, 60, 3, announced=50)])
    metrics = schedule.metrics()
    assert (metrics["n_jobs"], metrics["n_lost"], metrics["complete"]) == (0, 1, True)
    assert np.isnan(metrics["mean_bsld"])
    with pytest.raises(HpcgymError, match="no job has a useful run"):
        schedule.series()


def test_lost_jobs_are_left_out_of_batsims_table_and_have_no_run_time_in_a_log(tmp_path):
    schedule = losing()
    assert batsim_frame(schedule)["job_id"].tolist() == [1, 3]
    schedule.to_swf(tmp_path / "made.swf")
    records = read_swf(tmp_path / "made.swf").records
    assert records["run_time"].tolist() == [100, -1, 5]
    assert records["wait_time"].tolist() == [0, -1, 0]


def test_agents_are_not_compared_where_jobs_can_be_lost():
    with pytest.raises(EvaluationError, match="leave the column out"):
        refuse_lost(losing())
    refuse_lost(hpcgym.simulate(jobs_of((0, 1, 1, 1)), events=[Outage(1, 2, 1)]))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gantt", "usage", "distribution", "hours", "sizes"])
def test_pictures_of_schedules_with_lost_jobs_are_drawn(kind):
    assert losing().plot(kind) is not None


def test_a_stateful_policy_is_told_when_jobs_are_taken_off():
    """The second job is lost at 20; the third goes at 22, and waits again."""
    told = []

    class Noting(hpcgym.StatefulPolicy):
        def ended(self, job):
            told.append((job.job_id, job.time))

        def scores(self, queue):
            return queue.submit_time

    jobs = jobs_of((0, 100, 100, 2), (10, 100, 100, 2), (20, 50, 50, 2))
    jobs = replace(jobs, requeue=np.array([True, False, True]))
    events = Outage(20, 30, 1, announced=20), Outage(22, 30, 1, announced=22)
    schedule = hpcgym.simulate(jobs, Noting(), events=events)
    assert schedule.lost.tolist() == [False, True, False]
    assert (2, 20) in told


def test_of_jobs_that_started_at_one_instant_the_later_is_taken_off():
    jobs = jobs_of((0, 100, 100, 2), (0, 100, 100, 2))
    assert starts(jobs, Outage(20, 30, 1, announced=20)) == [0, 30]


def test_a_job_that_ends_as_the_outage_begins_is_done():
    jobs = jobs_of((0, 20, 100, 4))
    assert starts(jobs, Outage(20, 30, 4, announced=20)) == [0]


def test_a_job_over_its_estimate_is_taken_off_by_an_announced_outage():
    jobs = jobs_of((0, 100, 10, 4))
    assert starts(jobs, Outage(20, 30, 1), kill_at_limit=False) == [30]


def test_an_outage_that_ends_as_another_begins_takes_no_job_off():
    jobs = jobs_of((0, 100, 100, 2))
    events = Outage(10, 20, 2, announced=10), Outage(20, 30, 2, announced=20)
    assert starts(jobs, *events) == starts(jobs, *events[::-1]) == [0]


def test_times_are_on_the_clock_of_the_log():
    jobs = jobs_of((0, 60, 60, 3), (200, 60, 60, 3))
    part = jobs.select([1], start=150)
    assert starts(part, Outage(220, 300, 2)) == [150]
    assert starts(part, Outage(100, 160, 2)) == [50]
    assert starts(part, Outage(100, 220, 2)) == [70]


def test_many_outages_may_take_one_job_off_each():
    jobs = jobs_of((0, 30, 30, 4))
    every = [Outage(20 * k, 20 * k + 1, 1, announced=20 * k) for k in range(1, 61)]
    schedule = hpcgym.simulate(jobs, events=every)
    assert schedule.start_time.tolist() == [1201]
    assert schedule.attempts.kills.tolist() == [60]


@pytest.mark.long
@pytest.mark.parametrize("policy", ["SAF", "SMITH-REG"])
def test_the_first_jobs_of_a_log_start_as_the_reference_says(real_log, policy):
    workload = whole(real_log(KTH))
    first = workload.select(np.arange(len(workload)) < 2_000)
    schedule = assert_lives(first, weekly_outages(5), policy=policy, threshold=200_000)
    assert schedule.attempts.kills.sum() > 0
    half = replace(first, requeue=np.random.default_rng(0).random(len(first)) < 0.5)
    schedule = assert_lives(half, weekly_outages(5), policy=policy, threshold=200_000)
    assert 0 < schedule.lost.sum() < schedule.attempts.kills.sum()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["FCFS", "SAF", "WFP3"])
def test_a_whole_log_starts_as_the_reference_says(real_log, policy):
    schedule = assert_lives(whole(real_log(KTH)), weekly_outages(46), policy=policy)
    assert schedule.attempts.kills.sum() > 100


def weekly_outages(weeks):
    """Return two outages a week: one announced a day before, and one that is not announced."""
    made = []
    for week in range(1, weeks):
        begin = (week + 1) * 604_800
        made.append(Outage(begin, begin + 14_400, 100, announced=begin - 86_400))
        begin += 300_000
        made.append(Outage(begin, begin + 7_200, 90, announced=begin))
    return made


def test_an_outage_is_text_that_reads_back():
    text = "outage:from=3600,to=7200,processors=64,announced=60; outage:from=9,to=10,processors=1"
    events = SchedulerSettings(events=text).events
    assert events == (Outage(3600, 7200, 64, 60), Outage(9, 10, 1))
    assert [str(event) for event in events] == text.split("; ")


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ("outage:form=3600,to=7200,processors=64", "did you mean 'from'"),
        ("outage:to=7200,processors=64", "needs from"),
        ("outage:from=7200,to=7200,processors=64", "later than from"),
        ("outage:from=1,to=2,processors=0", "processors must be whole, a number >= 1"),
        ("outage:from=1.5,to=2,processors=1", "from must be whole, seconds >= 0"),
        ("outage:from=1,to=2,processors=1,announced=2", "at most from"),
    ],
)
def test_what_is_no_outage_is_refused_by_name(event, named):
    with pytest.raises(PolicyError, match=named):
        SchedulerSettings(events=event)


def test_outages_that_take_more_than_the_machine_are_refused():
    jobs = jobs_of((0, 1, 1, 1))
    with pytest.raises(PolicyError, match="take 5 processors at 20 s"):
        starts(jobs, Outage(10, 30, 3), Outage(20, 25, 2))
    assert starts(jobs, Outage(10, 20, 3), Outage(20, 25, 2)) == [0]


@given(case=cases(("outages",)))
def test_a_policy_in_python_starts_jobs_as_the_same_policy_by_name(case):
    workload, events, given = case
    given = given | {"events": events, "backfill_order": None}
    written = given | {"policy": lambda jobs: jobs.e * jobs.q}
    named = hpcgym.simulate(workload, **given | {"policy": "SAF"}).start_time
    assert hpcgym.simulate(workload, **written).start_time.tolist() == named.tolist()


def test_jobs_of_several_shapes_are_planned_without_outages():
    settings = SchedulerSettings(events=[Outage(1, 2, 1)])
    with pytest.raises(PolicyError, match="without events; got 'outage:from=1,to=2,processors=1'"):
        simulate_moldable(jobs_of((0, 1, 1, 1)), [[(1, 1, 1)]], settings=settings)


def test_outages_on_a_machine_of_nodes_are_refused():
    nodes = hpcgym.Machine((hpcgym.machine.NodeType(2, 64),))
    jobs = hpcgym.load_workload("tiny", machine=nodes)
    with pytest.raises(PolicyError, match="counts processors; of nodes name those that are down"):
        starts(jobs, Outage(1, 2, 1))
