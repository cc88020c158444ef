"""Weeks, months, windows and stretches: which jobs, which clock, which past."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import TraceError
from hpcgym.core.history import RING_JOBS
from hpcgym.core.workload import Workload
from hpcgym.trace import between, load_workload, months, weeks, window, windows
from hpcgym.trace.split import MONTH_S, WEEK_S, Past, logged_end_time


def workload_of(submit, *, run=10, wait=0, user=1, request=20, unix_start=None):
    """Return a log of one-processor jobs; a single number holds for all jobs."""
    n = len(submit)
    columns = [np.broadcast_to(np.asarray(v), n) for v in (run, request, wait, user)]
    return Workload.from_arrays(
        submit,
        columns[0],
        columns[1],
        np.ones(n, dtype=int),
        machine_processors=4,
        wait_time=columns[2],
        user=columns[3],
        name="log",
        unix_start=unix_start,
    )


def test_week_holds_what_was_submitted_in_it_on_its_own_clock():
    """Weeks 0 1 2 and a part of week 3: week 0 and the part are left out."""
    submit = [0, 5, WEEK_S, WEEK_S + 7, 2 * WEEK_S - 1, 2 * WEEK_S, 3 * WEEK_S + 100]
    parts = weeks(workload_of(submit, unix_start=1000))
    assert [part.name for part in parts] == ["log week 1", "log week 2"]
    assert [part.job_id.tolist() for part in parts] == [[3, 4, 5], [6]]
    assert parts[0].submit_time.tolist() == [0, 7, WEEK_S - 1]
    assert (parts[1].time_offset, parts[1].unix_start) == (2 * WEEK_S, 1000 + 2 * WEEK_S)


def test_week_without_jobs_is_left_out_and_the_others_keep_their_numbers():
    parts = weeks(workload_of([0, WEEK_S, 3 * WEEK_S, 4 * WEEK_S]))
    assert [part.name for part in parts] == ["log week 1", "log week 3"]


def test_published_rule_takes_only_jobs_that_ended_in_their_week():
    submit = [0, WEEK_S, WEEK_S + 1, WEEK_S + 2, WEEK_S + 3, 2 * WEEK_S]
    waits = [0, 0, WEEK_S, WEEK_S - 12, WEEK_S - 14, 0]
    log = workload_of(submit, wait=waits)
    assert weeks(log)[0].job_id.tolist() == [2, 3, 4, 5]
    assert weeks(log, rule="rr9212")[0].job_id.tolist() == [2, 5]


def test_offset_moves_the_grid():
    log = workload_of([0, 99, WEEK_S, WEEK_S + 100, 2 * WEEK_S + 99, 3 * WEEK_S])
    assert [part.job_id.tolist() for part in weeks(log, offset=100)] == [[4, 5]]
    assert weeks(log, offset=100)[0].submit_time.tolist() == [0, WEEK_S - 1]


def test_months_have_thirty_days_and_follow_the_same_rules():
    log = workload_of([0, MONTH_S, 2 * MONTH_S - 1, 2 * MONTH_S])
    (part,) = months(log)
    assert (part.name, part.job_id.tolist()) == ("log month 1", [2, 3])
    assert [m.job_id.tolist() for m in months(log, rule="rr9212")] == [[2]]


@pytest.mark.parametrize("cut", [weeks, months])
def test_log_too_short_or_wrong_rule_is_refused(cut):
    log = workload_of([0, WEEK_S])
    with pytest.raises(TraceError, match=r"log: no whole (week|month) remains after the first"):
        cut(log)
    with pytest.raises(TraceError, match="unknown rule 'rr9213'; did you mean 'rr9212'"):
        cut(log, rule="rr9213")
    with pytest.raises(TraceError, match="offset must be at least 0 s, got -1"):
        cut(log, offset=-1)


def past_of(part, user):
    """Return the remembered run times, requests and number of a user's jobs, oldest first."""
    row = part.user_index[np.flatnonzero(part.user == user)[0]]
    n = int(part.history.completed[row])
    columns = [k % RING_JOBS for k in range(max(0, n - RING_JOBS), n)]
    history = part.history
    return history.run_time[row, columns].tolist(), history.requested_time[row, columns].tolist(), n


def test_week_knows_the_jobs_that_had_ended_by_its_start():
    """User 1's jobs end at 30, WEEK_S exactly and WEEK_S + 1; only the first two are known."""
    log = workload_of(
        [0, 10, 20, WEEK_S, WEEK_S + 1, 2 * WEEK_S],
        run=[10, 15, 9, 5, 5, 5],
        wait=[20, WEEK_S - 25, WEEK_S - 28, 0, 0, 0],
        request=[20, 12, 20, 20, 20, 20],
        user=[1, 1, 1, 1, 2, 2],
    )
    (part,) = weeks(log)
    assert past_of(part, 1) == ([10, 12], [20, 12], 2)  # executed: cut at the request
    assert past_of(part, 2) == ([], [], 0)
    row = part.user_index[0]
    assert part.history.last_end_time[row] == 0


def test_log_without_waits_ends_its_jobs_a_run_time_after_submission():
    log = workload_of([0, 5, 7], run=[10, 20, 30], wait=[-1, 0, 6])
    assert logged_end_time(log).tolist() == [10, 25, 43]


def test_held_out_jobs_are_left_out_of_histories_only():
    log = workload_of([0, 1, 2, WEEK_S, 2 * WEEK_S, 3 * WEEK_S], run=[3, 4, 5, 6, 7, 8])
    held_out = np.array([False, True, False, True, False, False])
    first, second = weeks(log, held_out=held_out)
    assert past_of(first, 1)[0] == [3, 5]
    assert past_of(second, 1)[0] == [3, 5]
    assert first.job_id.tolist() == [4]
    for wrong in (held_out[:3], held_out.astype(int)):
        with pytest.raises(TraceError, match=r"held_out must be a boolean array of shape \(6,\)"):
            weeks(log, held_out=wrong)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(1, 2)), min_size=3, max_size=60
    ),
    st.data(),
)
def test_part_of_a_part_knows_what_the_part_knew_and_what_ended_in_it(rows, data):
    """Jobs under way when the first part began are in neither, so they are held out here."""
    submit, run, user = np.array(sorted(rows)).T
    log = workload_of(submit, run=run, user=user)
    outer = data.draw(st.integers(0, len(log) - 2))
    inner = data.draw(st.integers(1, len(log) - outer - 1))
    part = window(log, outer, len(log) - outer)
    under_way = np.arange(len(log)) < outer
    under_way &= logged_end_time(log) > log.submit_time[outer]
    found = window(part, inner, len(part) - inner)
    wanted = window(log, outer + inner, len(part) - inner, past=Past(log, under_way))
    assert found.to_frame().equals(wanted.to_frame())
    assert found.time_offset == wanted.time_offset
    assert all(map(np.array_equal, found.history, wanted.history))


@given(
    st.lists(st.integers(0, 3 * WEEK_S), min_size=1, max_size=12),
    st.lists(st.integers(-1, 2 * WEEK_S), min_size=12, max_size=12),
    st.integers(0, 4 * WEEK_S),
)
def test_past_holds_exactly_the_jobs_ended_by_an_instant(submit, waits, instant):
    log = workload_of(submit, wait=waits[: len(submit)])
    past = Past(log).until(instant)
    ended = logged_end_time(log) <= instant
    assert len(past["user"]) == ended.sum()
    assert (past["end_time"] <= instant).all()
    assert (np.diff(past["end_time"]) >= 0).all()


def test_weeks_of_a_log_cover_each_job_once():
    log = load_workload("synthetic-256")
    parts = weeks(log)
    n_whole = int(log.submit_time[-1]) // WEEK_S
    inside = (log.submit_time >= WEEK_S) & (log.submit_time < n_whole * WEEK_S)
    assert len(parts) == n_whole - 1
    assert np.concatenate([p.job_id for p in parts]).tolist() == log.job_id[inside].tolist()
    for part in parts:
        back = part.submit_time + part.time_offset - log.time_offset
        assert np.array_equal(back, log.submit_time[np.searchsorted(log.job_id, part.job_id)])


def test_windows_begin_with_their_first_job_and_drop_the_rest():
    log = workload_of([0, 5, 50, 60, 70], run=[10, 20, 30, 40, 50])
    first, second = windows(log, 2)
    assert (first.name, second.name) == ("log jobs 1-2", "log jobs 3-4")
    assert second.submit_time.tolist() == [0, 10]
    assert second.time_offset == 50
    assert past_of(second, 1)[0] == [10, 20]
    assert past_of(window(log, 1, 3), 1)[2] == 0
    assert window(log, 1, 3).job_id.tolist() == [2, 3, 4]


def test_window_beyond_the_log_is_refused():
    log = workload_of([0, 5])
    for n_jobs in (0, 3):
        with pytest.raises(TraceError, match=f"may hold 1 to 2 jobs, not {n_jobs}"):
            windows(log, n_jobs)
    with pytest.raises(TraceError, match="may begin at job 0 to 1, not at 2"):
        window(log, 2, 1)


def test_stretch_holds_the_jobs_from_its_start_to_before_its_end():
    log = workload_of([0, 10, 20, 30], run=[5, 5, 5, 5])
    part = between(log, 10, 30)
    assert part.job_id.tolist() == [2, 3]
    assert part.submit_time.tolist() == [0, 10]
    assert part.name == "log from 10 to 30 s"
    assert past_of(part, 1)[2] == 1
    for start, end in ((31, 40), (20, 20), (20, 10), (-5, 10)):
        with pytest.raises(TraceError, match="no job is submitted from"):
            between(log, start, end)
