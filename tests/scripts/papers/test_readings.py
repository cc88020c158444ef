"""What papers leave open, read in more than one way."""

import numpy as np
import pytest
from hypothesis import given

from hpcgym import Workload, simulate
from hpcgym.base.errors import EvaluationError
from papers.common.readings import (
    OVER_LIMIT,
    PURE,
    bsld_bounded_by,
    newest_first,
    newest_first_of,
    with_over_limit,
)
from strategies import workloads


def over_and_under() -> Workload:
    """Three jobs: one beyond its request, one within it, one of no run time."""
    return Workload.from_arrays(
        [0, 0, 0], [90, 40, 0], [60, 60, 60], [1, 1, 1], machine_processors=4
    )


@pytest.mark.parametrize(
    ("reading", "requests"),
    [
        ("kill", [60, 60, 60]),
        ("keep", [60, 60, 60]),
        ("raise", [90, 60, 60]),
        ("double", [180, 80, 60]),
        ("drop", [60]),
    ],
)
def test_each_reading_of_over_limit_jobs_leaves_these_requests(reading, requests) -> None:
    assert with_over_limit(over_and_under(), reading).requested_time.tolist() == requests


def test_raised_requests_let_every_job_run_to_its_end() -> None:
    for reading in ("raise", "double"):
        jobs = with_over_limit(over_and_under(), reading)
        assert simulate(jobs).run_time.tolist() == [90, 40, 0]


def test_unknown_reading_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(EvaluationError, match=r"'dropp'.*drop"):
        with_over_limit(over_and_under(), "dropp")
    assert set(OVER_LIMIT) >= {"kill", "drop"}


@given(workloads())
def test_slowdown_with_the_usual_bound_is_that_of_the_schedule(workload: Workload) -> None:
    schedule = simulate(workload, "SAF")
    assert np.array_equal(bsld_bounded_by(schedule, 10), schedule.bsld())
    assert (bsld_bounded_by(schedule, 60) <= schedule.bsld()).all()


def test_ties_go_to_the_latest_job_in_the_order_and_then_in_the_backfill() -> None:
    """Four equal jobs of 2 processors on 2: whoever came last starts next."""
    jobs = Workload.from_arrays([0, 1, 2, 3], [10] * 4, [10] * 4, [2] * 4, machine_processors=2)
    primary, backfill = newest_first("SPF")
    schedule = simulate(jobs, primary, backfill_order=backfill)
    assert schedule.start_time.tolist() == [0, 30, 20, 10]
    oldest = simulate(jobs, newest_first("FCFS")[0], backfill_order=newest_first("FCFS")[1])
    assert oldest.start_time.tolist() == [0, 10, 20, 30]


def test_backfill_ties_follow_the_primary_order() -> None:
    """A and E run, B is head, C and D ask for equal times: the order by FCFS takes C first."""
    jobs = Workload.from_arrays(
        [0, 0, 1, 2, 3], [20, 5, 5, 7, 7], [20, 5, 5, 7, 7], [3, 1, 4, 1, 1], machine_processors=4
    )
    for name, starts in (("FCFS", [0, 0, 20, 5, 12]), ("LCFS", [0, 0, 20, 12, 5])):
        schedule = simulate(jobs, "FCFS", backfill_order=newest_first(name)[1])
        assert schedule.start_time.tolist() == starts


@given(workloads())
def test_newest_first_differs_from_the_policy_by_ties_only(workload: Workload) -> None:
    apart = np.arange(len(workload)) * 7
    distinct = Workload.from_arrays(
        apart,
        workload.run_time,
        1 + np.argsort(np.argsort(workload.requested_time, kind="stable")),
        workload.processors,
        machine_processors=workload.machine_processors,
    )
    for name in ("FCFS", "LCFS", "SPF", "LPF"):
        primary, backfill = newest_first(name)
        ours = simulate(distinct, primary, backfill_order=backfill).start_time
        assert np.array_equal(ours, simulate(distinct, name, backfill_order="SPF").start_time), name


@given(workloads())
def test_weights_and_names_give_the_same_newest_first_order(workload: Workload) -> None:
    for name, vertex in (("SQF", [1, 0, 0, 0, 0, 0]), ("LCFS", [0, 0, 1, 0, 0, 0])):
        (one, fill), (other, other_fill) = newest_first(name), newest_first_of(np.array(vertex))
        first = simulate(workload, one, backfill_order=fill).start_time
        assert np.array_equal(
            first, simulate(workload, other, backfill_order=other_fill).start_time
        )


def test_every_pure_policy_has_a_newest_first_order() -> None:
    assert len(PURE) == 12
    for name in PURE:
        simulate(over_and_under(), newest_first(name)[0], backfill_order=newest_first(name)[1])
    with pytest.raises(EvaluationError, match="pure policy 'WFP3'"):
        newest_first("WFP3")
