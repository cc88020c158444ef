"""Limits of running jobs and processors: against the reference, and cases worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_limits as reference
from engines import jobs_of, whole, workload_of
from fair_share_cases import limited, with_names
from hpcgym.base.errors import PolicyError, WorkloadError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.machine import Machine
from strategies import one_of, workloads

LIMITED = ("FCFS", "SAF", "LCFS", "WFP3", "SQF")


@given(workloads(), st.data())
def test_jobs_start_within_limits_as_in_the_reference(workload, data):
    workload, texts, theirs = data.draw(limited(workload))
    settings = {
        "backfill": data.draw(st.sampled_from(("easy", "none"))),
        "kill_at_limit": data.draw(st.booleans()),
        "threshold": data.draw(one_of((None, 5, 30))),
    }
    if settings["backfill"] == "easy":
        settings["backfill_order"] = data.draw(st.sampled_from((None, "SPF", "WFP3")))
    policy = data.draw(st.sampled_from(LIMITED))
    ours = hpcgym.simulate(workload, policy, events=texts, **settings)
    starts = reference.simulate(
        jobs_of(workload), workload.machine_processors, policy, theirs, **settings
    )
    assert ours.start_time.tolist() == [start.start_time for start in starts]
    assert ours.backfilled.tolist() == [start.backfilled for start in starts]
    begin, end = ours.start_time.tolist(), ours.end_time.tolist()
    last = reference.held_last(jobs_of(workload), begin, end, theirs)
    assert ours.limited_by.tolist() == ["" if each is None else texts[each] for each in last]
    _stays_within(ours, theirs)


def _stays_within(schedule, drawn):
    """Check that no group ever runs more than its limit."""
    begin, end = schedule.start_time, schedule.end_time
    for limit in drawn:
        group = np.array([-1 if each is None else each for each in limit.groups])
        for at in begin:
            runs = (begin <= at) & (end > at)
            for each in set(group[runs].tolist()) - {-1}:
                alike = runs & (group == each)
                assert limit.jobs is None or alike.sum() <= limit.jobs
                cpus = schedule.workload.processors[alike].sum()
                assert limit.cpus is None or cpus <= limit.cpus
                left = np.maximum(begin + schedule.workload.requested_time - at, 0)[alike]
                needed = (schedule.workload.processors[alike] * left).sum()
                assert limit.minutes is None or needed <= 60 * limit.minutes


def test_a_job_beyond_a_limit_gets_no_reservation():
    """User 0 may run one job: its wide second job holds nobody up, and is said to be held."""
    rows = [(0, 10, 10, 2, 0), (1, 10, 10, 4, 0), (2, 100, 100, 2, 1), (3, 5, 5, 2, 1)]
    jobs = workload_of(rows, 4)
    free = hpcgym.simulate(jobs)
    assert free.start_time.tolist() == [0, 10, 20, 3]
    assert free.limited_by is None
    text = "limit:per=user,jobs=1,name=0"
    held = hpcgym.simulate(jobs, events=text)
    assert held.start_time.tolist() == [0, 102, 2, 10]
    assert held.limited_by.tolist() == ["", text, "", ""]
    assert held.to_frame()["limited_by"].tolist() == ["", text, "", ""]


def test_a_job_beyond_the_limit_of_submitted_jobs_enters_once_one_of_them_ends():
    """User 0 may have two: its small third job is not backfilled while both are there."""
    rows = [(0, 10, 10, 2, 0), (1, 10, 10, 4, 0), (2, 3, 3, 1, 0), (3, 4, 4, 1, 1)]
    jobs = workload_of(rows, 4)
    assert hpcgym.simulate(jobs).start_time.tolist() == [0, 10, 2, 3]
    text = "limit:per=user,submitted=2"
    held = hpcgym.simulate(jobs, "SQF", events=text)
    assert held.start_time.tolist() == [0, 13, 10, 3]
    assert held.limited_by.tolist() == ["", "", text, ""]
    held = hpcgym.simulate(jobs, "FCFS", events=text)
    assert held.start_time.tolist() == [0, 10, 20, 3]


def test_limits_of_processors_filters_and_names():
    """Per account 3 processors, and 1 job of user ana under the quality of service high."""
    rows = [(0, 10, 10, 2, 0), (0, 10, 10, 1, 1), (0, 10, 10, 1, 1), (0, 10, 10, 1, 0)]
    jobs = with_names(
        workload_of(rows, 8),
        user=["ana", "ben", "ben", "ana"],
        group=["phys", "phys", "phys", ""],
        queue=["high", "low", "low", "high"],
    )
    schedule = hpcgym.simulate(jobs, events="limit:per=account,cpus=3")
    assert schedule.start_time.tolist() == [0, 0, 10, 0]
    schedule = hpcgym.simulate(jobs, events="limit:per=user,jobs=1,qos=high")
    assert schedule.start_time.tolist() == [0, 0, 0, 10]
    schedule = hpcgym.simulate(jobs, events="limit:per=user,jobs=1,user=ben")
    assert schedule.start_time.tolist() == [0, 0, 10, 0]
    both = "limit:per=qos,jobs=1,name=low;limit:per=account,cpus=2"
    assert hpcgym.simulate(jobs, events=both).start_time.tolist() == [0, 10, 20, 0]


def test_limits_stand_beside_fair_share_and_decisions():
    jobs = hpcgym.load_workload("synthetic-256").select(np.arange(500))
    events = ("limit:per=user,jobs=3", "limit:per=user,cpus=200,name=1")
    schedule = hpcgym.simulate(jobs, "multifactor:fairshare=1000,age=10", events=events[:1])
    begin, end = schedule.start_time, schedule.end_time
    for at in begin[::20]:
        runs = (begin <= at) & (end > at)
        assert np.bincount(jobs.user[runs]).max() <= 3
    simulator = Simulator(
        jobs, SchedulerSettings(events=events[:1]), decide="event", check_invariants=True
    )
    while simulator.run():
        simulator.order_by("FCFS")
    assert (
        simulator.start_time.tolist() == hpcgym.simulate(jobs, events=events[0]).start_time.tolist()
    )


def test_minutes_let_a_job_in_as_time_passes():
    """User 0 may need 19 minutes: two jobs of 10 start a minute apart, the third after the first.

    The fourth is another user's. With jobs that outrun requests what is needed falls more slowly.
    """
    rows = [(0, 100, 600, 1, 0), (0, 600, 600, 1, 0), (0, 600, 600, 1, 0), (0, 5, 600, 1, 1)]
    text = "limit:per=user,minutes=19"
    held = hpcgym.simulate(workload_of(rows, 8), events=text)
    assert held.start_time.tolist() == [0, 60, 120, 0]
    assert held.limited_by.tolist() == ["", text, text, ""]
    rows = [(0, 900, 30, 4, 0), (0, 600, 600, 1, 0), (0, 600, 600, 1, 0)]
    late = hpcgym.simulate(workload_of(rows, 8), events=text, kill_at_limit=False)
    assert late.start_time.tolist() == [0, 0, 60]
    with pytest.raises(WorkloadError, match=r"job 1 \(row 0\) needs 2 processor minutes, .* 1"):
        hpcgym.simulate(workload_of(rows, 8), events="limit:per=user,minutes=1")


@given(workloads(), st.data())
def test_on_nodes_of_a_cpu_minutes_hold_as_where_processors_are_counted(workload, data):
    workload, texts, _ = data.draw(limited(workload))
    settings = {"events": texts, "backfill": data.draw(st.sampled_from(("easy", "none")))}
    machine = Machine.from_dict({"nodes": [{"count": workload.machine_processors, "cpus": 1}]})
    columns = ("submit_time", "run_time", "requested_time", "processors")
    there = hpcgym.Workload.from_arrays(
        *(getattr(workload, name) for name in columns),
        user=workload.user,
        account=workload.account,
        chunks=workload.processors,
        machine=machine,
    )
    policy = data.draw(st.sampled_from(LIMITED))
    here = hpcgym.simulate(workload, policy, **settings)
    assert (
        hpcgym.simulate(there, policy, **settings).start_time.tolist() == here.start_time.tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["FCFS", "WFP3"])
def test_minutes_hold_on_a_whole_log_as_in_the_reference(real_log, policy):
    """Users may need what the largest job does; the log is without the largest of all."""
    log = whole(real_log("KTH-SP2-1996-2.1-cln"))
    log = log.select(log.processors * log.requested_time <= 60 * 6000)
    ours = hpcgym.simulate(log, policy, events="limit:per=user,minutes=6000")
    limit = reference.Limit(log.user.tolist(), minutes=6000)
    theirs = reference.simulate(jobs_of(log), log.machine_processors, policy, [limit])
    assert ours.start_time.tolist() == [start.start_time for start in theirs]
    assert (ours.limited_by != "").sum() > 1000


def on_nodes(rows, machine, **further):
    """Return jobs (submit, run, cpus, user) of one chunk each on a machine of nodes."""
    submit, run, cpus, user = zip(*rows, strict=True)
    return hpcgym.Workload.from_arrays(
        submit, run, run, cpus, user=user, chunks=[1] * len(rows), machine=machine, **further
    )


def test_a_limit_holds_across_partitions_and_an_end_in_one_frees_the_other():
    """Nodes a and b have partitions of their own; user 0 may run one job in all."""
    machine = Machine.from_dict(
        {
            "nodes": [{"count": 2, "cpus": 4}],
            "partitions": [{"name": "a", "nodes": "0"}, {"name": "b", "nodes": "1"}],
        }
    )
    jobs = on_nodes([(0, 10, 4, 0), (1, 5, 4, 0), (2, 3, 4, 1)], machine, partition=[0, 1, 0])
    assert hpcgym.simulate(jobs).start_time.tolist() == [0, 1, 10]
    held = hpcgym.simulate(jobs, events="limit:per=user,jobs=1")
    assert held.start_time.tolist() == [0, 10, 10]


def test_gpus_of_a_user_are_limited():
    machine = Machine.from_dict({"nodes": [{"count": 2, "cpus": 8, "gpus": 4}]})
    rows = [(0, 10, 1, 0), (0, 10, 1, 0), (0, 10, 1, 0), (0, 10, 1, 1)]
    jobs = on_nodes(rows, machine, gpus=[2, 1, 0, 4])
    text = "limit:per=user,gpus=2,name=0"
    held = hpcgym.simulate(jobs, events=text)
    assert held.start_time.tolist() == [0, 10, 0, 0]
    assert held.limited_by.tolist() == ["", text, "", ""]
    with pytest.raises(WorkloadError, match="needs 4 GPUs, and 'limit:per=user,gpus=2' allows 2"):
        hpcgym.simulate(jobs, events="limit:per=user,gpus=2")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("limit:per=users,jobs=1", PolicyError, "did you mean 'user'"),
        ("limit:jobs=1", PolicyError, "needs per"),
        ("limit:per=user", PolicyError, "state jobs, cpus, gpus, submitted or minutes"),
        ("limit:per=user,jobs=0", PolicyError, "jobs must be whole, at least 1, got 0"),
        ("limit:per=user,job=1", PolicyError, "did you mean 'jobs'"),
        ("limit:per=user,cpus=1", WorkloadError, r"job 1 \(row 0\) needs 2 processors"),
        ("limit:per=user,jobs=1;outage:from=5,to=9,processors=1", PolicyError, "makes the passes"),
    ],
)
def test_what_is_no_limit_is_refused(text, error, said):
    with pytest.raises(error, match=said):
        hpcgym.simulate(workload_of([(0, 5, 5, 2, 0)], 2), events=text)
