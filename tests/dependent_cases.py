"""Drawn jobs that wait for others, or are held."""

from functools import cache

import numpy as np
from hypothesis import strategies as st

import hpcgym
import reference_dependencies as reference
from strategies import REQUESTED_TIMES_S, one_of

sizes = st.integers(1, 4) | st.just(4) | st.just(1)


@cache
def requests_for(run_time):
    """Draw a requested time, rather often what the job will run."""
    return one_of(REQUESTED_TIMES_S) | st.just(max(run_time, 1))


@st.composite
def tables(draw, max_jobs=14):
    """Draw jobs in chains and fans, some of which are after later ones, held, or both."""
    n = draw(st.integers(1, max_jobs))
    turn = draw(st.permutations(range(n)))  # a job is after jobs of an earlier turn only
    place = {job: at for at, job in enumerate(turn)}
    submit_time, rows = 0, []
    for job in range(n):
        submit_time += draw(one_of((0, 0, 0, 1, 2, 5, 10)))
        run_time = draw(one_of((0, 0, 1, 2, 5, 5, 10, 60)))
        before = turn[: place[job]]
        after = draw(st.sampled_from(before)) if before and draw(st.booleans()) else -1
        held = draw(one_of((-1, -1, -1, 0, 1, 5, 20, 60)))
        rows.append(
            reference.Job(
                submit_time,
                run_time,
                draw(requests_for(run_time)),
                draw(sizes),
                after,
                draw(one_of((0, 0, 1, 5, 40))),
                submit_time + held if held >= 0 else -1,
            )
        )
    return rows


@st.composite
def conditional_tables(draw):
    """Draw jobs of which some wait for a success or a failure, and some fail."""
    return [
        job._replace(condition=draw(st.integers(0, 2)), fails=draw(one_of((False, False, True))))
        for job in draw(tables())
    ]


def workload_of(rows, **others):
    """Return rows as the package holds them, by one user each two jobs."""
    columns = dict(zip(reference.Job._fields, zip(*rows, strict=True), strict=True))
    for key in ("condition", "fails"):  # optional ones
        columns = {name: column for name, column in columns.items() if name != key or any(column)}
    given = {"user": np.arange(len(rows)) // 2, "machine_processors": 4} | others
    return hpcgym.Workload.from_arrays(**columns, **given)


def ending_later(rows):
    """Return jobs of which those before others run a second: none comes in a later round."""
    before = {job.after for job in rows}
    return [
        job._replace(run_time=max(job.run_time, 1)) if row in before else job
        for row, job in enumerate(rows)
    ]


def lives_of(schedule):
    """Return a schedule as the reference does."""
    jobs = schedule.jobs.submit_time.tolist()
    return [
        reference.Life(*one)
        for one in zip(
            jobs, schedule.start_time.tolist(), schedule.thresholded.tolist(), strict=True
        )
    ]
