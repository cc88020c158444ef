"""The log of sessions is like real logs where it matters; statistics of logs are as defined."""

import numpy as np
import pytest

from hpcgym import Workload, simulate
from hpcgym.base.errors import TraceError
from hpcgym.trace import load_workload, session_workload, weekly_loads, workload_statistics

WEEK_S = 7 * 86_400

REAL = {
    "load": (0.59, 0.84),
    "median_week": (0.57, 0.85),
    "p90_week": (0.79, 1.02),
    "heavy_weeks": (0.04, 0.32),
    "serial": (0, 0.43),
    "powers_of_two": (0.61, 0.93),
    "wide": (0.001, 0.06),
    "work_of_wide": (0.004, 0.36),
    "short": (0.09, 0.3),
    "median_run_time": (200, 2900),
    "mean_run_time": (4200, 17_000),
    "median_request": (3600, 14_400),
    "median_use": (0.13, 0.48),
    "killed": (0.01, 0.11),
    "in_session": (0.54, 0.84),
    "same_shape": (0.47, 0.79),
}
"""Ranges over KTH-SP2, CTC-SP2, SDSC-SP2, SDSC-Blue and HPC2N, rounded outwards: docs/logs.md."""


def test_statistics_of_busy_weeks_are_in_the_range_of_real_logs():
    found = workload_statistics(load_workload("synthetic-busy-weeks"))
    for key, (low, high) in REAL.items():
        assert low <= found[key] <= high, key
    assert found["factor_to_last"] < 1.5 < 6 < found["factor_to_any"]


def test_synthetic_256_is_told_apart_by_what_its_users_lack():
    found = workload_statistics(load_workload("synthetic-256"))
    assert found["same_shape"] < 0.1
    assert found["factor_to_last"] > 3


def test_orders_differ_on_busy_weeks_as_on_real_logs():
    log = load_workload("synthetic-busy-weeks")
    saf = simulate(log, "SAF", threshold=200_000).bsld().mean()
    ratio = {p: simulate(log, p, threshold=200_000).bsld().mean() / saf for p in ("FCFS", "SPF")}
    assert 1.5 < ratio["FCFS"] < 3.5
    assert 0.9 < ratio["SPF"] < ratio["FCFS"]


def test_statistics_are_what_they_say():
    # user 1: a session of two alike, then a wide job a day later; user 2: one job that is killed
    log = Workload.from_arrays(
        [0, 600, 90_000, 90_060, WEEK_S],
        [30, 60, 3600, 500, 10],
        [600, 600, 7200, 400, 600],
        [1, 1, 8, 3, 2],
        machine_processors=16,
        user=[1, 1, 1, 2, 2],
    )
    found = workload_statistics(log)
    assert weekly_loads(log).tolist() == pytest.approx([30_090 / 16 / WEEK_S])
    assert (found["jobs"], found["processors"], found["weeks"], found["users"]) == (5, 16, 1, 2)
    assert found["load"] == pytest.approx(30_110 / 16 / WEEK_S)
    assert (found["serial"], found["powers_of_two"]) == (0.4, pytest.approx(2 / 3))
    assert (found["wide"], found["work_of_wide"]) == (0.2, pytest.approx(28_800 / 30_110))
    assert (found["short"], found["killed"]) == (0.4, 0.2)
    assert (found["median_run_time"], found["mean_run_time"]) == (60, 820)
    assert (found["median_request"], found["median_use"]) == (600, pytest.approx(0.1))
    assert (found["in_session"], found["same_shape"]) == (pytest.approx(1 / 3),) * 2
    assert found["factor_to_last"] == pytest.approx(40)  # of 2, 60 and 40


def test_a_log_without_users_has_no_habits():
    log = Workload.from_arrays([0, 1], [5, 5], [9, 9], [1, 1], machine_processors=2)
    found = workload_statistics(log)
    assert np.isnan(found["in_session"])
    assert np.isnan(found["factor_to_last"])


def test_same_seed_draws_the_same_sessions():
    frames = [session_workload(1, np.random.default_rng(k)).to_frame() for k in (1, 1, 2)]
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])


@pytest.mark.long
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_weeks_have_about_the_load_that_was_asked_for(load):
    loads = weekly_loads(session_workload(30, np.random.default_rng(4), load=load))
    assert loads.mean() == pytest.approx(load, rel=0.2)
    assert 0.1 < np.log(loads).std() < 0.3


def test_requests_are_round_and_no_job_outlives_them():
    log = session_workload(2, np.random.default_rng(5), machine_processors=64)
    assert (log.run_time <= log.requested_time).all()
    assert (log.requested_time % 300 == 0).all()
    assert log.requested_time.max() <= 18 * 3600
    assert 1 <= log.processors.min() <= 32 < log.processors.max() <= 64


def test_numbers_out_of_range_are_refused():
    generator = np.random.default_rng(0)
    for keywords, message in (
        ({"n_weeks": 0}, "n_weeks must be at least 1, got 0"),
        ({"n_users": 0}, "n_users must be at least 1, got 0"),
        ({"machine_processors": 16}, "machine_processors must be at least 32, got 16"),
        ({"load": float("nan")}, "load must be a positive number, got nan"),
    ):
        with pytest.raises(TraceError, match=message):
            session_workload(**{"n_weeks": 1, "generator": generator} | keywords)
