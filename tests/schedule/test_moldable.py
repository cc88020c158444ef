"""Moldable jobs: the lecture's four options, and a plain-Python reference for the choice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from hpcgym.base.errors import HpcgymError
from hpcgym.core.workload import Workload
from hpcgym.schedule.moldable import Shape, choose_shape, simulate_moldable
from strategies import workloads

MINUTE_S = 60
OPTIONS = [(1, 60), (2, 40), (8, 25), (16, 20)]  # processors and minutes, as on the slide

PROCESSORS = [q for q, _ in OPTIONS]
DURATIONS = [minutes * MINUTE_S for _, minutes in OPTIONS]


def chosen(waits=(0, 0, 0, 0), alpha=0.0):
    """Return the processors that the rule chooses, waits in minutes."""
    wait = [minutes * MINUTE_S for minutes in waits]
    return PROCESSORS[choose_shape(PROCESSORS, DURATIONS, wait, alpha)]


def test_equal_waits_choose_the_widest_without_a_cost_and_two_processors_with_it():
    assert chosen() == 16 and chosen(alpha=1.0) == 2
    costs = [q * minutes for q, minutes in OPTIONS]
    assert costs == [60, 80, 200, 320]
    assert [c * t for c, (_, t) in zip(costs, OPTIONS, strict=True)] == [3600, 3200, 5000, 6400]


def test_no_option_dominates_another():
    for q, minutes in OPTIONS:
        for p, t in OPTIONS:
            is_cheaper, is_faster = p * t < q * minutes, t < minutes
            assert not (is_cheaper and is_faster)


@pytest.mark.parametrize(("more", "widest"), [(39, True), (41, False)])
def test_sixteen_processors_beat_one_while_they_wait_less_than_forty_minutes_more(more, widest):
    far = 10_000  # the two others are out of the question
    assert chosen(waits=(5, far, far, 5 + more)) == (16 if widest else 1)


def test_a_busy_machine_makes_jobs_narrower():
    """16 processors, of which 14 are busy for two hours: two are free now."""
    jobs = Workload.from_arrays([0, 1], [1, 1], [1, 1], [1, 1], machine_processors=16)
    slide = [(q, t, t) for q, t in zip(PROCESSORS, DURATIONS, strict=True)]
    made = simulate_moldable(jobs, [[(14, 7200, 7200)], slide])
    assert made.chosen.tolist() == [0, 1] and made.schedule.start_time.tolist() == [0, 1]
    assert made.schedule.workload.processors.tolist() == [14, 2]
    alone = simulate_moldable(jobs.select([1], start=1), [slide])
    assert alone.chosen.tolist() == [3] and alone.predicted_wait.tolist() == [0]


def planned_wait(running, queue, now, machine, q, duration):
    """Return the wait of a newcomer behind a queue in which every job has its place."""
    taken = [(now, end, p) for end, p in running if end > now]

    def earliest(p, length):
        for start in sorted({now, *(end for _, end, _ in taken)}):
            moments = [start, *(t for t, _, _ in taken if start < t < start + length)]
            if all(sum(w for s, e, w in taken if s <= t < e) + p <= machine for t in moments):
                return start
        raise AssertionError

    for p, length in queue:
        start = earliest(p, length)
        taken.append((start, start + length, p))
    return earliest(q, duration) - now


@given(data=st.data())
def test_each_choice_is_what_a_plan_in_plain_python_says(data):
    workload = data.draw(workloads(max_jobs=8))
    machine = workload.machine_processors
    shape = st.tuples(
        st.integers(1, machine), st.sampled_from((1, 5, 10, 30)), st.sampled_from((0, 1, 5, 20))
    )
    shapes = data.draw(
        st.lists(
            st.lists(shape, min_size=1, max_size=4), min_size=len(workload), max_size=len(workload)
        )
    )
    alpha = data.draw(st.sampled_from((0.0, 0.5, 1.0)))
    made = simulate_moldable(workload, shapes, alpha=alpha)
    jobs, start = made.schedule.workload, made.schedule.start_time
    for job in range(len(workload)):
        now = int(workload.submit_time[job])
        before = [k for k in range(len(workload)) if workload.submit_time[k] < now]
        end = start + made.schedule.run_time
        running = [
            (int(start[k] + jobs.requested_time[k]), int(jobs.processors[k]))
            for k in before
            if start[k] < now < end[k]
        ]
        waiting = [k for k in before if start[k] >= now]
        queue = [(int(jobs.processors[k]), int(jobs.requested_time[k])) for k in waiting]
        waits = [planned_wait(running, queue, now, machine, q, e) for q, e, _ in shapes[job]]
        q, e, _ = zip(*shapes[job], strict=True)
        best = choose_shape(q, e, waits, alpha)
        assert made.chosen[job] == best and made.predicted_wait[job] == waits[best]


@given(data=st.data())
def test_the_jobs_chosen_are_scheduled_as_rigid_ones(data):
    workload = data.draw(workloads(max_jobs=12))
    shapes = [
        [Shape(int(q), int(e), int(p)), Shape(1, int(e) * 3, int(p) * 2)]
        for q, e, p in zip(
            workload.processors, workload.requested_time, workload.run_time, strict=True
        )
    ]
    policy = data.draw(st.sampled_from(("FCFS", "SAF", "LQF")))
    settings = hpcgym.SchedulerSettings(policy, threshold=data.draw(st.sampled_from((None, 5))))
    made = simulate_moldable(workload, shapes, alpha=0.3, settings=settings)
    rigid = hpcgym.simulate(made.schedule.workload, policy, threshold=settings.threshold)
    np.testing.assert_array_equal(made.schedule.start_time, rigid.start_time)
    np.testing.assert_array_equal(made.schedule.run_time, rigid.run_time)


@pytest.mark.long
def test_a_whole_log_can_be_molded():
    log = hpcgym.load_workload("synthetic-256")
    shapes = [
        [Shape(max(int(q) // 2, 1), 2 * int(e), 2 * int(p)), Shape(int(q), int(e), int(p))]
        for q, e, p in zip(log.processors, log.requested_time, log.run_time, strict=True)
    ]
    made = simulate_moldable(log, shapes)
    assert made.schedule.complete and {0, 1} == set(made.chosen.tolist())
    only = simulate_moldable(log, [options[1:] for options in shapes])
    np.testing.assert_array_equal(only.schedule.start_time, hpcgym.simulate(log).start_time)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], "each of 1 jobs"),
        ([[]], "no shape"),
        ([[(5, 10, 10)]], "processors must be 1 to 4"),
        ([[(1, 0, 0)]], "request 1 to 1125899906842624 s"),
        ([[(4, 2**50, 2**50 + 1)]], "run time 0 to 1125899906842624 s"),
        ([[(1, 10**30, 1)]], "request 1 to 1125899906842624 s"),
    ],
)
def test_shapes_that_cannot_be_run_are_refused(shapes, message):
    jobs = Workload.from_arrays([0], [1], [1], [1], machine_processors=4)
    with pytest.raises(HpcgymError, match=message):
        simulate_moldable(jobs, shapes)
