"""Resampling, jitter and load: what they change and what they keep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import TraceError
from hpcgym.core.workload import Workload
from hpcgym.trace import (
    jitter,
    join_weeks,
    load_workload,
    resample,
    resample_week,
    scale_load,
    weeks,
)
from hpcgym.trace.split import WEEK_S


@st.composite
def logs(draw):
    """Draw a log of a few weeks and users, some of them unknown."""
    n = draw(st.integers(1, 30))
    column = lambda values: draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    return Workload.from_arrays(
        column(st.integers(0, 4 * WEEK_S)),
        column(st.integers(0, 50)),
        column(st.integers(1, 50)),
        column(st.integers(1, 4)),
        machine_processors=4,
        user=column(st.integers(-1, 3)),
    )


def content(workload):
    """Return what a job keeps when its week changes, as a sorted list."""
    rows = zip(
        workload.user.tolist(),
        workload.run_time.tolist(),
        workload.requested_time.tolist(),
        workload.processors.tolist(),
        (workload.submit_time % WEEK_S).tolist(),
        strict=True,
    )
    return sorted(rows)


def n_weeks(workload):
    """Return how many weeks a log touches."""
    return int(workload.submit_time[-1]) // WEEK_S + 1


@given(logs(), st.integers(0, 9))
def test_permuting_weeks_keeps_every_job_and_its_time_of_week(log, seed):
    sample = resample(log, np.random.default_rng(seed))
    assert content(sample) == content(log)
    area = sample.requested_time @ sample.processors
    assert area == log.requested_time @ log.processors
    assert n_weeks(sample) <= n_weeks(log)


@given(logs(), st.integers(0, 9))
def test_a_users_week_moves_as_a_whole(log, seed):
    """Jobs of one user in one week are in one week of the sample, other weeks in others."""
    numbered = Workload.from_arrays(
        log.submit_time,
        np.arange(len(log)),
        log.requested_time,
        log.processors,
        machine_processors=4,
        user=log.user,
    )
    sample = resample(numbered, np.random.default_rng(seed))
    old = (log.submit_time // WEEK_S)[sample.run_time]
    new = sample.submit_time // WEEK_S
    moves = set(zip(sample.user.tolist(), old.tolist(), new.tolist(), strict=True))
    assert len({(user, a) for user, a, _ in moves}) == len(moves)
    assert len({(user, b) for user, _, b in moves}) == len(moves)


@given(logs(), st.integers(0, 9))
def test_sample_is_numbered_by_new_submission_then_old_position(log, seed):
    sample = resample(log, np.random.default_rng(seed))
    assert sample.job_id.tolist() == list(range(1, len(log) + 1))
    assert (np.diff(sample.submit_time) >= 0).all()
    assert (sample.wait_time == -1).all()
    assert not sample.history.completed.any()


def test_equal_submissions_keep_their_old_order():
    log = Workload.from_arrays(
        [3, 3, WEEK_S + 3, WEEK_S + 3], [1, 2, 3, 4], [9] * 4, [1] * 4, machine_processors=4
    )
    sample = resample(log, np.random.default_rng(0))
    assert sample.run_time.tolist() in ([1, 2, 3, 4], [3, 4, 1, 2])


@pytest.mark.parametrize("mode", ["permute", "draw"])
def test_same_seed_gives_the_same_sample(mode):
    log = load_workload("synthetic-256")
    samples = [resample(log, np.random.default_rng(seed), mode) for seed in (1, 1, 2)]
    assert samples[0].to_frame().equals(samples[1].to_frame())
    assert not samples[0].to_frame().equals(samples[2].to_frame())


@given(logs(), st.integers(0, 9))
def test_drawing_takes_whole_weeks_of_a_user_with_replacement(log, seed):
    try:
        sample = resample(log, np.random.default_rng(seed), "draw")
    except ValueError as error:
        assert "no jobs" in str(error)
        return
    allowed = {}
    for user, week in zip(log.user.tolist(), (log.submit_time // WEEK_S).tolist(), strict=True):
        mine = (log.user == user) & (log.submit_time // WEEK_S == week)
        jobs = zip(log.submit_time[mine] % WEEK_S, log.run_time[mine], strict=True)
        allowed.setdefault(user, set()).add(tuple(sorted((int(t), int(p)) for t, p in jobs)))
    for user in set(sample.user.tolist()):
        for week in range(n_weeks(log)):
            mine = (sample.user == user) & (sample.submit_time // WEEK_S == week)
            jobs = zip(sample.submit_time[mine] % WEEK_S, sample.run_time[mine], strict=True)
            found = tuple(sorted((int(t), int(p)) for t, p in jobs))
            assert not found or found in allowed[user]


def test_drawing_keeps_the_work_on_average():
    log = load_workload("synthetic-256")
    sizes = [len(resample(log, np.random.default_rng(k), "draw")) for k in range(40)]
    assert abs(np.mean(sizes) / len(log) - 1) < 0.03
    assert len(set(sizes)) > 1


def test_joined_weeks_follow_one_another_whatever_lay_between():
    parts = weeks(load_workload("synthetic-256"))
    chosen = [parts[7], parts[2], parts[4]]
    joined = join_weeks(chosen)
    assert joined.job_id.tolist() == np.concatenate([part.job_id for part in chosen]).tolist()
    for number, part in enumerate(chosen):
        mine = joined.submit_time // WEEK_S == number
        assert np.array_equal(joined.submit_time[mine] - number * WEEK_S, part.submit_time)
        assert np.array_equal(joined.user[mine], part.user)
    assert not joined.history.completed.any()
    assert joined.time_offset == parts[7].time_offset
    with pytest.raises(TraceError, match="synthetic-256 is no week: its jobs come until"):
        join_weeks([load_workload("synthetic-256")])


@given(logs(), st.integers(0, 9))
def test_one_resampled_week_takes_one_week_of_each_user(log, seed):
    part = resample_week(log, np.random.default_rng(seed))
    place = np.argsort(log.job_id)[part.job_id - 1]
    assert len(set(place.tolist())) == len(part)
    week, time_of_week = np.divmod(log.submit_time, WEEK_S)
    assert part.submit_time.tolist() == time_of_week[place].tolist()
    assert (np.diff(part.submit_time * len(log) + place) > 0).all()  # ties in their old order
    for user in set(part.user.tolist()):
        (taken,) = set(week[place[part.user == user]].tolist())
        every = (log.user == user) & (week == taken)
        assert sorted(place[part.user == user]) == np.flatnonzero(every).tolist()
    assert (part.wait_time == -1).all()
    assert not part.history.completed.any()


def test_one_resampled_week_is_in_the_mean_a_week_of_a_sample():
    log = join_weeks(weeks(load_workload("synthetic-256")))
    generator = np.random.default_rng(0)
    sizes = [len(resample_week(log, generator)) for _ in range(300)]
    assert abs(np.mean(sizes) * n_weeks(log) / len(log) - 1) < 0.03


def test_unknown_mode_is_refused():
    with pytest.raises(TraceError, match="unknown mode 'permutation'"):
        resample(load_workload("tiny"), np.random.default_rng(0), "permutation")


def test_jitter_moves_submissions_within_its_bounds_and_sorts_again():
    week = weeks(load_workload("synthetic-256"))[0]
    shaken = jitter(week, np.random.default_rng(3), 600)
    assert (np.diff(shaken.submit_time) >= 0).all()
    assert shaken.submit_time[0] >= 0
    old = dict(zip(week.job_id.tolist(), week.submit_time.tolist(), strict=True))
    moves = [t - old[j] for j, t in zip(shaken.job_id.tolist(), shaken.submit_time, strict=True)]
    assert min(moves) >= -600
    assert max(moves) <= 600
    assert len(set(moves)) > 300
    assert shaken.history is week.history
    assert jitter(week, np.random.default_rng(3), 0).to_frame().equals(week.to_frame())


def test_jitter_clips_at_the_start():
    early = Workload.from_arrays([0] * 500, [1] * 500, [1] * 500, [1] * 500, machine_processors=1)
    shaken = jitter(early, np.random.default_rng(0), 10)
    assert shaken.submit_time.min() == 0
    assert 0.4 < np.mean(shaken.submit_time == 0) < 0.65
    with pytest.raises(TraceError, match="at least 0 s, got -1"):
        jitter(early, np.random.default_rng(0), -1)


def test_load_scaling_divides_the_gaps():
    log = load_workload("synthetic-256")
    doubled = scale_load(log, 2)
    assert abs(int(doubled.submit_time[-1]) - int(log.submit_time[-1]) / 2) <= 1
    assert doubled.name == "synthetic-256 at 2 times the load"
    assert np.array_equal(scale_load(log, 1).submit_time, log.submit_time)
    few = Workload.from_arrays([0, 1, 2, 3, 5], [1] * 5, [1] * 5, [1] * 5, machine_processors=1)
    assert scale_load(few, 2).submit_time.tolist() == [0, 1, 1, 2, 3]  # halves are rounded up
    assert scale_load(few, 4).submit_time.tolist() == [0, 0, 1, 1, 1]
    for factor in (0, -1, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="a load factor must be a positive number"):
            scale_load(log, factor)
