"""Processors of jobs: as many as asked for, none held twice at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from hpcgym.machine import Machine, NodeType
from hpcgym.schedule.allocation import FreeProcessors, allocate_processors


def held_at(schedule, allocation, instant):
    """Return every processor held at an instant, with repeats."""
    runs = (schedule.start_time <= instant) & (instant < schedule.end_time)
    jobs = [allocation.of(job) for job in np.flatnonzero(runs)]
    return [p for intervals in jobs for low, high in intervals for p in range(low, high)]


def check(schedule):
    """Check sizes, and that no processor is held twice; return the allocation."""
    allocation, size = schedule.allocation(), schedule.workload.machine_processors
    sizes = [sum(high - low for low, high in allocation.of(job)) for job in range(len(schedule))]
    if schedule.placement is None:
        lasting = schedule.run_time > 0
        assert sizes == np.where(lasting, schedule.workload.processors, 0).tolist()
    for instant in np.unique(schedule.start_time).tolist():
        held = held_at(schedule, allocation, instant)
        assert len(held) == len(set(held)) and set(held) <= set(range(size))
    return allocation


jobs = st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 6))


@given(st.lists(jobs, min_size=1, max_size=20))
def test_no_processor_is_held_by_two_jobs_at_once(rows):
    submit, run, processors = np.array(sorted(rows)).T
    workload = hpcgym.Workload.from_arrays(
        submit, run, np.maximum(run, 1), processors, machine_processors=6
    )
    check(hpcgym.simulate(workload))


def test_jobs_share_a_node_without_sharing_its_cpus():
    machine = Machine((NodeType(2, cpus=4),))
    workload = hpcgym.Workload.from_arrays(
        [0, 0, 0, 1, 9],
        [5, 5, 9, 5, 3],
        [5, 5, 9, 5, 3],
        [2, 2, 2, 4, 1],
        machine_processors=8,
        machine=machine,
        exclusive=[False, False, False, False, True],
    )
    allocation = check(hpcgym.simulate(workload))
    assert allocation.texts() == ["0-1", "2-3", "4-5", "0-3", "4-7"]


def test_a_job_takes_the_smallest_hole_that_holds_it_whole():
    columns = np.array([0, 0, 0, 0, 5]), np.array([5, 9, 5, 9, 9]), np.array([3, 1, 2, 2, 2])
    assert allocate_processors(*columns, machine_processors=8).texts() == [
        *("0-2", "3", "4-5", "6-7", "4-5")
    ]


def test_a_job_that_has_not_started_or_lasts_no_second_holds_nothing():
    columns = np.array([0, -1, 3]), np.array([5, -1, 3]), np.array([1, 1, 1])
    assert allocate_processors(*columns, machine_processors=1).texts() == ["0", "", ""]


def test_jobs_that_take_turns_have_no_processors_to_themselves():
    schedule = hpcgym.simulate(hpcgym.load_workload("tiny"), backfill="gang")
    with pytest.raises(hpcgym.HpcgymError, match="took turns"):
        schedule.allocation()


def test_free_processors_join_with_both_neighbours():
    free = FreeProcessors(6)
    taken = [free.take(2) for _ in range(3)]
    for own in (taken[0], taken[2], taken[1]):
        free.give_back(own)
    assert free.intervals == [(0, 6)]
