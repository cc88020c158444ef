"""Outages of nodes, announced or not: against the reference, and what holds of every schedule."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given

import hpcgym
from drawn_machines import draw_case
from hpcgym.base.errors import MachineError, PolicyError
from hpcgym.core.parts.outages import Outage
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType
from hpcgym.machine.downtime import Downtime
from nodes_lived import Lived, attempts_of, check, draw_outages, draws
from nodes_of_kernels import first_difference, result_of
from strategies import REQUESTED_TIMES_S


def draw_hit(random: Random, *most: int) -> Lived:
    """Draw a case with a job, and its outages."""
    case = draw_case(random, *most)
    while not case.jobs:
        case = draw_case(random, *most)
    sooner = random.choice((1, 1, 4))
    jobs = [job._replace(submit_time=job.submit_time // sooner) for job in case.jobs]
    estimates = [job.requested_time for job in jobs]
    if random.random() < 0.3:
        estimates = [random.choice((e, e, *REQUESTED_TIMES_S)) for e in estimates]
    requeue = [random.random() < 0.6 for _ in jobs] if random.random() < 0.3 else None
    outages = draw_outages(random, len(case.machine.nodes))
    return Lived(case._replace(jobs=jobs), None, estimates, requeue, outages)


@given(draws)
def test_every_attempt_on_drawn_machines_is_that_of_the_reference(random):
    check(draw_hit(random))


@given(draws)
def test_every_attempt_where_many_jobs_wait_is_that_of_the_reference(random):
    check(draw_hit(random, 4, 40))


def test_a_trial_that_a_node_ends_is_not_one_in_vain():
    """The narrow job may be tried once: at 0 on node 3, which is down at 5, and again at 6."""
    jobs = on_four((0, 30, 30, 3), (0, 40, 40, 2), (0, 9, 60, 1))
    outage = Outage(5, 6, announced=5, nodes=3)
    given = {"events": [outage], "backfill": "easy+trial:limit=10,kills=1"}
    schedule = hpcgym.simulate(jobs, **given)
    rows = [row[2:] for row in attempts_of(schedule) if row[0] == 2]
    assert rows == [(0, 5, "node down"), (6, 15, "completed")]


@pytest.mark.long
def test_drawn_cases_take_jobs_off_look_ahead_and_lose_jobs():
    """So that the tests above compare what they say."""
    reasons, lost, ahead = [], 0, 0
    for seed in range(30):
        hit = draw_hit(Random(seed), 4, 30)
        attempts = check(hit)
        reasons += [reason for *_, reason in attempts]
        lost += None in hit.by_reference()[0].starts
        unknown = [one._replace(announced=one.begin) for one in hit.outages]
        ahead += check(hit._replace(outages=tuple(unknown))) != attempts
    assert reasons.count("node down") > 10
    assert lost > 1
    assert ahead > 10


@given(draws)
def test_what_holds_of_every_schedule_with_outages(random):
    hit = draw_hit(random)
    workload = hit.workload
    schedule = hpcgym.simulate(workload, **hit.given)
    frame, vain = schedule.attempts_frame(), schedule.attempts
    down = {(one.begin, one.end, v) for one in hit.outages for v in one.nodes}
    # No useful run is on a node while that is down, and an outage ends attempts where it begins.
    for j in np.flatnonzero(schedule.start_time >= 0).tolist():
        begin, end = int(schedule.start_time[j]), int(schedule.end_time[j])
        nodes = schedule.placement.of(j)
        assert not any(v in nodes and begin < to and at < end for at, to, v in down)
    assert set(vain.end.tolist()) <= {one.begin for one in hit.outages}
    assert not (frame["start_time"] < frame.groupby("job_id")["end_time"].shift()).any()
    # Utilisation is of what was there, second by second.
    metrics = schedule.metrics()
    if not metrics["n_jobs"]:
        return
    kept = schedule.start_time >= 0
    first, last = workload.submit_time[kept].min(), schedule.end_time.max()
    cpus = workload.machine.node_cpus
    seconds = {(at, v) for begin, end, v in down for at in range(max(begin, first), min(end, last))}
    there = workload.machine_processors * (last - first) - sum(int(cpus[v]) for _, v in seconds)
    work = int((schedule.run_time * workload.processors)[kept].sum())
    assert metrics["utilisation"] == (work / there if there else 0.0)
    gpus = workload.machine.node_gpus
    lacking = sum(int(gpus[v]) for _, v in seconds)
    by_resource = schedule.metrics(by="resource").loc["gpus"]
    if by_resource["capacity"] and by_resource["mean_held"]:
        held = by_resource["mean_held"] * (last - first)
        share = held / (by_resource["capacity"] * (last - first) - lacking)
        assert by_resource["utilisation"] == pytest.approx(share)
    settings = {key: value for key, value in hit.given.items() if key != "policy"}
    settings["estimates"] = [settings["estimates"]]
    many = hpcgym.simulate_many([workload], [hit.given["policy"]], **settings)
    for name in ("utilisation", "max_wait_time", "makespan"):
        assert many[name][0, 0] == metrics[name]


@given(draws)
def test_an_outage_that_takes_nothing_from_a_job_changes_no_start(random):
    hit = draw_hit(random)
    far = [Outage(10**6, 10**6 + 1, nodes=0)]
    plain, ahead = (hpcgym.simulate(hit.workload, **hit.given | {"events": e}) for e in ([], far))
    assert first_difference(result_of(plain), result_of(ahead)) == ""


@given(draws)
def test_outages_that_the_machine_states_are_those_of_the_settings(random):
    hit = draw_hit(random)
    given, jobs = hit.given, hit.workload
    stated = [Downtime(o.from_, o.to, o.nodes, o.announced) for o in given.pop("events")]
    machine = replace(jobs.machine, outages=tuple(stated))
    assert Machine.from_dict(machine.to_dict()) == machine
    one = hpcgym.simulate(replace(jobs, machine=machine), **given)
    other = hpcgym.simulate(jobs, **hit.given)
    assert first_difference(result_of(one), result_of(other)) == ""
    assert attempts_of(one) == attempts_of(other)


def on_four(*rows, **more):
    """Return jobs by submit time, run time, request and chunks, on four nodes of two cpus."""
    machine = Machine((NodeType(2, 2, group="left"), NodeType(2, 2, group="right")))
    submit, run, asked, chunks = map(list, zip(*rows, strict=True))
    return Workload.from_arrays(
        submit, run, asked, [2 * n for n in chunks], machine=machine, chunks=chunks, **more
    )


def simulated(jobs, *events, **given):
    """Return starts and nodes."""
    schedule = hpcgym.simulate(jobs, events=list(events), **given)
    return schedule.start_time.tolist(), [list(schedule.placement.of(j)) for j in range(len(jobs))]


def test_a_job_starts_on_nodes_that_stay_up_until_its_estimated_end():
    """Nodes 0 and 1 go down at 50: the long job takes node 2, the short one node 0."""
    jobs = on_four((0, 60, 60, 1), (0, 40, 40, 1))
    assert simulated(jobs, Outage(50, 100, nodes="left")) == ([0, 0], [[2], [0]])
    late = Outage(50, 100, announced=50, nodes="left")
    assert simulated(jobs, late) == ([50, 0], [[2], [1]])


def test_the_head_reserves_when_a_node_is_back():
    """The head wants all nodes, of which two are back at 100; what ends by then goes ahead."""
    jobs = on_four((0, 10, 10, 4), (0, 60, 60, 2), (0, 120, 120, 1))
    assert simulated(jobs, Outage(5, 100, nodes="0/1"))[0] == [100, 0, 110]


def test_an_outage_over_before_time_0_changes_nothing():
    jobs = on_four((0, 10, 10, 4), (0, 60, 60, 2), (0, 120, 120, 1), time_offset=1000)
    assert simulated(jobs, Outage(5, 100, nodes="0/1")) == simulated(jobs)


def test_a_job_is_lost_where_it_must_not_be_started_again():
    jobs = on_four((0, 60, 60, 1), (0, 60, 60, 1), requeue=[False, True])
    schedule = hpcgym.simulate(jobs, events=[Outage(50, 70, announced=50, nodes="left")])
    assert schedule.lost.tolist() == [True, False]
    assert schedule.start_time.tolist() == [-1, 50]
    assert schedule.metrics()["n_lost"] == 1


def test_a_node_that_two_outages_take_is_down_once():
    jobs = on_four((0, 10, 10, 4))
    outages = Outage(0, 50, nodes=0), Outage(20, 80, nodes="0-1")
    schedule = hpcgym.simulate(jobs, events=list(outages))
    assert schedule.start_time.tolist() == [0 + 80]
    there = 8 * 90 - 2 * 80 - 2 * 60
    assert schedule.metrics()["utilisation"] == 80 / there


def test_free_cpus_of_nodes_that_are_down_are_not_free():
    """The wide job waits until 50, while two nodes are down and two are free."""
    schedule = hpcgym.simulate(on_four((0, 10, 10, 3)), events=[Outage(0, 50, nodes="left")])
    usage = schedule.usage()
    assert usage["down_cpus"].tolist() == [4, 0, 0]
    assert usage["unusable_cpus"].tolist() == [0, 0, 0]
    assert schedule.fragmentation() == 0.0


def test_an_outage_of_nodes_is_text_that_reads_back():
    text = "outage:from=3600,to=7200,announced=60,nodes=0-3/7/s1"
    (event,) = SchedulerSettings(events=text).events
    assert event == Outage(3600, 7200, 0, 60, ["0-3", 7, "s1"])
    assert event == Outage(3600, 7200, 0, 60, "0-3,7,s1")
    assert str(event) == text


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ("outage:from=1,to=2,processors=1", "of nodes name those that are down"),
        ("outage:from=1,to=2,nodes=0-7", "allowed are 0-3"),
        ("outage:from=1,to=2,nodes=lift", "did you mean 'left'"),
        ("outage:from=1,to=2,nodes=1,processors=2", "not both"),
        ("outage:from=1,to=2", "as in nodes=0-3/7"),
        ("outage:from=1,to=2,node=1", "did you mean 'nodes'"),
    ],
)
def test_what_names_no_nodes_is_refused_with_the_reason(event, named):
    jobs = replace(on_four((0, 1, 1, 1)), name="tiny")
    with pytest.raises(PolicyError, match=named):
        hpcgym.simulate(jobs, events=event)


def test_nodes_of_a_machine_that_has_none_are_refused():
    jobs = Workload.from_arrays([0], [1], [1], [1], machine_processors=4)
    with pytest.raises(PolicyError, match="on counted processors say how many are down"):
        hpcgym.simulate(jobs, events=[Outage(1, 2, nodes=1)])


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"from": 5, "to": 9, "nodes": ["lift"]}, r"\[\[outage\]\] 1: .* did you mean 'left'"),
        ({"from": 5, "to": 4, "nodes": 0}, "to must be later than from"),
        ({"from": 5, "to": 9, "nodes": 0, "announced": 6}, "at most from"),
        ({"from": 5, "to": 9, "processors": 3}, "names nodes"),
        ({"from": 5, "to": 9, "nods": 3}, "did you mean 'nodes'"),
        ({"from": 5, "to": 9, "nodes": 1.5}, "ids, ranges or names of groups"),
        ({"from": 5, "to": 9, "nodes": []}, "nodes is empty"),
        ({"from": 5.5, "to": 9, "nodes": 0}, "from must be whole"),
        ({"to": 9, "nodes": 1}, "from is missing"),
    ],
)
def test_what_is_no_outage_of_a_machine_is_refused_by_table_and_key(table, named):
    nodes = [{"count": 3, "cpus": 4, "group": "left"}]
    with pytest.raises(MachineError, match=named):
        Machine.from_dict({"nodes": nodes, "outage": [table]})
