"""Figures of schedules small enough to work out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.core import metrics
from hpcgym.core.workload import Workload


def whole(*values: int) -> metrics.IntArray:
    return np.array(values, dtype=np.int64)


@pytest.fixture
def schedule() -> dict[str, object]:
    """Five jobs on four processors, started so that every case occurs (no policy starts them so).

    ===  ======  ===  =======  ===  =====  =====  ====  =====  ====  ======  ====
    job  submit  run  request   q   start   end   wait   w+p   1+w/p  bsld    pp
    ===  ======  ===  =======  ===  =====  =====  ====  =====  ====  ======  ====
      1      0    50      100   2      0     50     0     50    1     1       1
      2     10   100     2000   3     50    150    40    140    1.4   1.4     1
      3     10     4       20   1     10     14     0      4    1     1       1
      4     20     0      500   1    150    150   130    130    -    13      13
      5     20     2    20000   1    150    152   130    132   66    13.2    13.2
    ===  ======  ===  =======  ===  =====  =====  ====  =====  ====  ======  ====

    Job 3 is backfilled, job 5 has crossed a threshold when it starts.
    Work: 100 + 300 + 4 + 0 + 2 = 406 processor-s in 152 s on 4 processors.
    """
    jobs = Workload.from_arrays(
        submit_time=[0, 10, 10, 20, 20],
        run_time=[50, 100, 4, 0, 2],
        requested_time=[100, 2000, 20, 500, 20000],
        processors=[2, 3, 1, 1, 1],
        user=[7, 3, 7, -1, 3],
        machine_processors=4,
    )
    return {
        "workload": jobs,
        "start_time": whole(0, 50, 10, 150, 150),
        "run_time": jobs.run_time,
        "backfilled": np.array([False, False, True, False, False]),
        "thresholded": np.array([False, False, False, False, True]),
    }


def test_every_figure_of_every_job_is_the_one_worked_by_hand(schedule: dict[str, object]) -> None:
    values = metrics.per_job(schedule["workload"], schedule["start_time"], schedule["run_time"])
    assert tuple(values) == metrics.JOB_METRICS
    np.testing.assert_array_equal(values["wait_time"], [0, 40, 0, 130, 130])
    np.testing.assert_array_equal(values["turnaround_time"], [50, 140, 4, 130, 132])
    np.testing.assert_array_equal(values["slowdown"], [1, 1.4, 1, np.nan, 66])
    np.testing.assert_array_equal(values["bsld"], [1, 1.4, 1, 13, 13.2])
    np.testing.assert_array_equal(values["pp_bsld"], [1, 1, 1, 13, 13.2])


def test_summary_is_the_one_worked_by_hand(schedule: dict[str, object]) -> None:
    figures = metrics.summary(**schedule)
    assert figures == {
        "n_jobs": 5,
        "complete": True,
        "mean_wait_time": 60.0,
        "median_wait_time": 40.0,
        "p90_wait_time": 130.0,
        "p99_wait_time": 130.0,
        "max_wait_time": 130.0,
        "mean_turnaround_time": pytest.approx(456 / 5),
        "median_turnaround_time": 130.0,
        "p90_turnaround_time": pytest.approx(132 + 0.6 * 8),
        "p99_turnaround_time": pytest.approx(132 + 0.96 * 8),
        "max_turnaround_time": 140.0,
        "mean_slowdown": pytest.approx((1 + 1.4 + 1 + 66) / 4),
        "median_slowdown": pytest.approx(1.2),
        "p90_slowdown": pytest.approx(1.4 + 0.7 * 64.6),
        "p99_slowdown": pytest.approx(1.4 + 0.97 * 64.6),
        "max_slowdown": 66.0,
        "mean_bsld": pytest.approx(29.6 / 5),
        "median_bsld": 1.4,
        "p90_bsld": pytest.approx(13 + 0.6 * 0.2),
        "p99_bsld": pytest.approx(13 + 0.96 * 0.2),
        "max_bsld": 13.2,
        "mean_pp_bsld": pytest.approx(29.2 / 5),
        "median_pp_bsld": 1.0,
        "p90_pp_bsld": pytest.approx(13 + 0.6 * 0.2),
        "p99_pp_bsld": pytest.approx(13 + 0.96 * 0.2),
        "max_pp_bsld": 13.2,
        "user_rms_bsld": pytest.approx(((1 + 7.3**2 + 13**2) / 3) ** 0.5),
        "n_zero_run_time": 1,
        "share_bsld_1": 0.4,
        "share_bsld_1_10": 0.2,
        "share_bsld_10_100": 0.4,
        "share_bsld_100": 0.0,
        "n_backfilled": 1,
        "n_thresholded": 1,
        "makespan": 152,
        "utilisation": pytest.approx(406 / (4 * 152)),
    }


def test_figures_are_plain_python_numbers(schedule: dict[str, object]) -> None:
    assert {type(value) for value in metrics.summary(**schedule).values()} == {int, float, bool}


def test_users_are_summed_up_one_by_one_in_ascending_order(schedule: dict[str, object]) -> None:
    groups = metrics.summary_by(schedule["workload"].user, **schedule)
    assert list(groups) == [-1, 3, 7]
    assert [group["n_jobs"] for group in groups.values()] == [1, 2, 2]
    assert [group["mean_wait_time"] for group in groups.values()] == [130, 85, 0]
    assert [group["n_backfilled"] for group in groups.values()] == [0, 0, 1]
    assert [group["n_thresholded"] for group in groups.values()] == [0, 1, 0]
    assert [group["share_of_work"] for group in groups.values()] == [0, 302 / 406, 104 / 406]
    assert groups[-1]["n_zero_run_time"] == 1
    assert np.isnan(groups[-1]["mean_slowdown"])


def test_classes_follow_the_request_with_bounds_belonging_to_the_shorter_class() -> None:
    requests = whole(1, 100, 101, 1000, 1001, 10_000, 10_001)
    assert metrics.requested_time_class(requests).tolist() == [1, 1, 2, 2, 3, 3, 4]


def test_zero_run_time_has_no_slowdown_but_a_bounded_one() -> None:
    assert np.isnan(metrics.slowdown(whole(0), whole(0))).all()
    assert metrics.bsld(whole(0), whole(0)).tolist() == [1.0]
    assert metrics.bsld(whole(25), whole(0)).tolist() == [2.5]


@pytest.mark.parametrize(
    ("wait", "run", "expected"),
    [
        (0, 10, 1.0),
        (6, 4, 1.0),  # (6 + 4) / 10: still bounded by 1
        (7, 4, 1.1),
        (90, 10, 10.0),
        (990, 10, 100.0),
    ],
)
def test_bounded_slowdown_at_its_corners(wait: int, run: int, expected: float) -> None:
    assert metrics.bsld(whole(wait), whole(run)).tolist() == [expected]


def test_share_classes_hold_their_lower_edge_only() -> None:
    """Bounded slowdowns 1, 1.1, 9.9, 10, 99.9, 100 and 1000."""
    run = whole(*[10] * 7)
    waits = whole(0, 1, 89, 90, 989, 990, 9990)
    jobs = Workload.from_arrays([0] * 7, run, run, [1] * 7, machine_processors=1)
    never = np.zeros(7, dtype=bool)
    figures = metrics.summary(jobs, waits, run, never, never)
    shares = [figures[f"share_bsld_{key}"] * 7 for key in ("1", "1_10", "10_100", "100")]
    assert np.round(shares, 9).tolist() == [1, 2, 2, 2]


def test_utilisation_of_jobs_that_take_no_time_is_zero() -> None:
    assert metrics.utilisation(whole(5), whole(5), whole(0), whole(4), 4) == 0.0


def test_unfinished_schedule_counts_the_waiting_as_started_now(schedule: dict[str, object]) -> None:
    """At 19, jobs 1 and 3 have started, job 2 waits since 10, jobs 4 and 5 are to come."""
    schedule["start_time"] = whole(0, -1, 10, -1, -1)
    figures = metrics.summary(**schedule, now=19)
    assert figures["complete"] is False
    assert figures["n_jobs"] == 3
    assert figures["max_wait_time"] == 9
    assert figures["mean_bsld"] == pytest.approx((1 + 1.09 + 1) / 3)
    assert figures["makespan"] == 50
    assert figures["utilisation"] == 104 / 200


def test_job_submitted_at_the_instant_of_a_summary_counts(schedule: dict[str, object]) -> None:
    schedule["start_time"] = whole(0, -1, 10, -1, -1)
    assert metrics.summary(**schedule, now=20)["n_jobs"] == 5


def test_unfinished_schedule_without_an_instant_counts_what_has_started(
    schedule: dict[str, object],
) -> None:
    schedule["start_time"] = whole(0, -1, 10, -1, -1)
    figures = metrics.summary(**schedule)
    assert figures["complete"] is False
    assert figures["n_jobs"] == 2
    assert figures["mean_bsld"] == 1.0


def test_nothing_started_gives_no_figures_and_no_warning(schedule: dict[str, object]) -> None:
    schedule["start_time"] = whole(-1, -1, -1, -1, -1)
    figures = metrics.summary(**schedule)
    assert figures["n_jobs"] == 0
    assert figures["makespan"] == 0
    assert figures["utilisation"] == 0.0
    assert np.isnan(figures["mean_bsld"])
    assert np.isnan(figures["share_bsld_1"])


def test_weeks_average_the_jobs_that_fall_in_them_and_all_before() -> None:
    week = metrics.WEEK_S
    series = metrics.weekly(
        np.array([2.0, 4.0, np.nan, 9.0]), whole(week, 2 * week - 1, 2 * week, 3 * week)
    )
    np.testing.assert_array_equal(series["week"], [0, 1, 2, 3])
    np.testing.assert_array_equal(series["n_jobs"], [0, 2, 0, 1])
    np.testing.assert_array_equal(series["mean"], [np.nan, 3, np.nan, 9])
    np.testing.assert_array_equal(series["cumulative_mean"], [np.nan, 3, 3, 5])


job_rows = st.lists(
    st.tuples(
        st.integers(0, 3 * metrics.WEEK_S),  # submit
        st.integers(0, 100_000),  # wait
        st.integers(0, 100_000),  # run
        st.integers(1, 64),  # processors
        st.integers(-1, 3),  # user
    ),
    min_size=1,
    max_size=30,
)


@given(job_rows)
def test_groups_and_weeks_add_up_to_the_whole(rows: list[tuple[int, ...]]) -> None:
    submit, wait, run, processors, user = np.array(sorted(rows), dtype=np.int64).T
    jobs = Workload.from_arrays(
        submit, run, np.maximum(run, 1), processors, user=user, machine_processors=64
    )
    start = submit + wait
    flags = wait % 2 == 0, wait % 3 == 0
    figures = metrics.summary(jobs, start, run, *flags)
    groups = metrics.summary_by(jobs.user, jobs, start, run, *flags).values()
    for key in ("n_jobs", "n_backfilled", "n_thresholded", "n_zero_run_time"):
        assert sum(group[key] for group in groups) == figures[key]
    weighted = sum(group["n_jobs"] * group["mean_bsld"] for group in groups)
    assert weighted / len(jobs) == pytest.approx(figures["mean_bsld"])
    values = metrics.per_job(jobs, start, run)
    assert (values["bsld"] >= values["pp_bsld"]).all()
    assert (values["pp_bsld"] >= 1).all()
    series = metrics.weekly(values["bsld"], start + run)
    assert series["n_jobs"].sum() == len(jobs)
    assert series["cumulative_mean"][-1] == pytest.approx(figures["mean_bsld"])
    shares = [figures[key] for key in figures if key.startswith("share_bsld")]
    assert sum(shares) == pytest.approx(1)
