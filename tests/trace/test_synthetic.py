"""The generated log: busy, with users whose past is informative."""

import numpy as np
import pytest

from hpcgym.base.errors import TraceError
from hpcgym.trace import load_workload, synthetic_workload


def test_load_is_what_was_asked_for():
    for load in (0.5, 0.9):
        log = synthetic_workload(3000, np.random.default_rng(1), load=load)
        work = int(log.run_time @ log.processors)
        assert abs(work / (256 * int(log.submit_time[-1])) / load - 1) < 0.01


def test_jobs_and_requests_stay_those_of_the_models_whoever_sends_them():
    few, many = (synthetic_workload(2000, np.random.default_rng(2), n_users=n) for n in (1, 50))
    assert np.array_equal(few.requested_time, many.requested_time)
    assert np.array_equal(few.run_time, many.run_time)
    assert set(few.user.tolist()) == {1}
    assert (many.run_time <= many.requested_time).all()


def test_few_users_send_most_jobs():
    log = load_workload("synthetic-256")
    counts = np.sort(np.bincount(log.user))[::-1]
    assert len(set(log.user.tolist())) > 50
    assert 0.4 < counts[:8].sum() / len(log) < 0.8


def test_users_have_habits():
    """The mean log run time varies far more between users than by chance."""
    log = load_workload("synthetic-256")
    log_run = np.log(log.run_time)

    def between(user):
        means = np.bincount(user, log_run) / np.maximum(np.bincount(user), 1)
        return means[user].var() / log_run.var()

    shuffled = np.random.default_rng(0).permutation(log.user)
    assert between(log.user) > 0.2 > 0.02 > between(shuffled)


def test_same_seed_draws_the_same_log():
    frames = [synthetic_workload(300, np.random.default_rng(k)).to_frame() for k in (1, 1, 2)]
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])


def test_run_times_and_requests_are_cut_to_the_longest_request():
    free, cut = (
        synthetic_workload(2000, np.random.default_rng(3), longest_request=longest)
        for longest in (48 * 3600, 7200)
    )
    assert cut.largest_request == 7200 < free.run_time.max()
    assert sorted(cut.run_time) == sorted(np.minimum(free.run_time, 7200))
    assert (cut.run_time <= cut.requested_time).all()


def test_numbers_out_of_range_are_refused():
    generator = np.random.default_rng(0)
    with pytest.raises(TraceError, match="n_users must be at least 1, got 0"):
        synthetic_workload(10, generator, n_users=0)
    for load in (0, -1, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="load must be a positive number"):
            synthetic_workload(10, generator, load=load)
