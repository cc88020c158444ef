"""Hypothesis strategies: small workloads rich in cases where two schedulers differ.

Times come from a few values, so that submissions, completions, estimated ends and scores often
tie. Many jobs take the whole machine, no time at all, or longer than they requested.

Strategies are made once, and not for each draw: making one takes longer than drawing from it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import reference
from engines import workload_of
from hpcgym.core.backfill import as_backfill
from hpcgym.core.history import RING_JOBS, history_of
from hpcgym.core.workload import Workload

GAPS_S = (0, 0, 0, 1, 1, 2, 3, 5, 10, 40)
RUN_TIMES_S = (0, 0, 1, 1, 2, 3, 5, 5, 10, 11, 20, 60)
REQUESTED_TIMES_S = (1, 2, 3, 5, 5, 10, 11, 20, 60, 120)
THRESHOLDS_S = (None, None, 0, 1, 2, 5, 10, 30)
WEIGHTS = (-1.0, -0.5, -0.1, 0.0, 0.0, 0.0, 0.1, 0.3, 1.0)

weights = st.tuples(*[st.sampled_from(WEIGHTS)] * 6)
policies = st.sampled_from(reference.POLICIES) | weights
backfill_orders = st.none() | policies

one_of = cache(st.sampled_from)
"""Like `sampled_from`, for a tuple of whole numbers, None or texts; True would be taken for 1."""


@cache
def sizes_up_to(processors: int) -> st.SearchStrategy[int]:
    """Draw processors of a job, all of the machine's and one rather often."""
    return st.integers(1, processors) | st.just(processors) | st.just(1)


@cache
def requests_for(run_time: int) -> st.SearchStrategy[int]:
    """Draw a requested time, rather often what the job will run."""
    return one_of(REQUESTED_TIMES_S) | st.just(max(run_time, 1))


@cache
def estimates_of(n_jobs: int) -> st.SearchStrategy[Any]:
    """Draw what run times are taken to be, by name or for each job."""
    lists = st.lists(st.sampled_from(REQUESTED_TIMES_S), min_size=n_jobs, max_size=n_jobs)
    return st.sampled_from(("requested", "exact")) | lists


@st.composite
def jobs(draw: st.DrawFn, processors: int, max_jobs: int) -> list[reference.Job]:
    """Draw a job table, in order of submit time."""
    sizes = sizes_up_to(processors)
    table = []
    submit_time = 0
    for _ in range(draw(st.integers(1, max_jobs))):
        submit_time += draw(one_of(GAPS_S))
        run_time = draw(one_of(RUN_TIMES_S))
        requested_time = draw(requests_for(run_time))
        user = draw(one_of((-1, 0, 0, 1)))
        table.append(reference.Job(submit_time, run_time, requested_time, draw(sizes), user))
    return table


@st.composite
def crowds(draw: st.DrawFn, processors: int, max_jobs: int) -> list[reference.Job]:
    """Draw jobs that meet: one holds a part of the machine, one needs more than is left, more wait.

    The others may end at the instant at which the second can start, come then, or outlast it.
    """
    table: list[reference.Job] = []
    begin = 0
    while len(table) < max_jobs and (not table or draw(st.integers(0, 3))):
        length = draw(one_of((10, 20)))
        held = draw(st.integers(1, processors - 1))
        wanted = max(processors - held + 1, processors - draw(one_of((0, 1, 1, 2))))
        for size, run_time in ((held, length - draw(one_of((0, 0, 5)))), (wanted, 5)):
            table.append(reference.Job(begin, run_time, max(run_time, length), size, 0))
        for _ in range(draw(st.integers(2, 8))):
            after = draw(one_of((0, 0, 0, 5, 6, length)))
            request = draw(one_of((max(length - after, 1), 5, 60)))
            run_time = draw(one_of((request, request, 5, 0)))
            size = min(draw(one_of((1, 1, 1, 2, 3))), processors)
            table.append(reference.Job(begin + after, run_time, request, size, after % 2))
        begin += draw(one_of((0, 5, length, 2 * length)))
    return sorted(table[:max_jobs], key=lambda job: job.submit_time)


@cache
def tables_of(processors: int, max_jobs: int) -> st.SearchStrategy[list[reference.Job]]:
    """Draw a job table of either kind."""
    tables = jobs(processors, max_jobs)
    return tables | crowds(processors, max_jobs) if processors > 2 else tables


@cache
def pasts_of(processors: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Draw jobs that ended before time 0: user, run and requested time, processors, end."""
    return st.lists(
        st.tuples(
            st.sampled_from((-1, 0, 1, 2)),
            st.sampled_from(RUN_TIMES_S),
            st.sampled_from(REQUESTED_TIMES_S),
            st.integers(1, processors),
            st.integers(-5, 0),
        ),
        max_size=2 * RING_JOBS,
    )


@st.composite
def workloads(draw: st.DrawFn, max_jobs: int = 16) -> Workload:
    """Draw a small workload, whose users may be known from jobs that ended before time 0."""
    processors = draw(one_of((1, 2, 3, 4, 5, 8, 8)))
    workload = workload_of(draw(tables_of(processors, max_jobs)), processors)
    columns = np.array(draw(pasts_of(processors)), dtype=np.int64).reshape(-1, 5).T
    return replace(workload, history=history_of(np.unique(workload.user), *columns))


@st.composite
def long_workloads(draw: st.DrawFn) -> Workload:
    """Draw a workload whose times may be any number of seconds, on a machine of any size."""
    processors = draw(st.sampled_from((4, 1024, 93_312)))
    times = st.integers(0, 10**10)
    submits = sorted(draw(st.lists(times, min_size=1, max_size=16)))
    table = [
        (submit, draw(times), 1 + draw(times), draw(st.integers(1, processors)))
        for submit in submits
    ]
    return workload_of(table, processors)


@st.composite
def settings_for(
    draw: st.DrawFn, workload: Workload, backfill: str | None = None
) -> dict[str, Any]:
    """Draw settings that the workload and the mode allow, all but the policy.

    Where no mode is given, EASY or none is drawn.
    """
    drawn: dict[str, Any] = {
        "backfill": backfill or draw(one_of(("none", "easy", "easy", "easy"))),
        "backfill_order": None,
        "threshold": draw(one_of(THRESHOLDS_S)),
        "event_semantics": draw(one_of(("batch", "batch", "pyss"))),
    }
    if as_backfill(drawn["backfill"]).TAKES_ORDER:
        drawn["backfill_order"] = draw(backfill_orders)
    mode = as_backfill(drawn["backfill"])
    if mode.expects or mode.BATCH_ONLY:
        drawn["event_semantics"] = "batch"
    if drawn["event_semantics"] == "pyss":
        drawn["estimates"] = draw(one_of(("requested", "exact")))
        return drawn
    drawn["kill_at_limit"] = draw(st.booleans())
    drawn["estimates"] = draw(estimates_of(len(workload)))
    return drawn


busy_pasts = st.lists(
    st.sampled_from(((0, 5, 60, 2), (0, 60, 60, 1), (1, 300, 600, 4), (1, 10, 300, 1))),
    max_size=RING_JOBS,
)


@cache
def busy_sizes_up_to(processors: int) -> st.SearchStrategy[int]:
    """Draw processors of a job, often some share of the machine."""
    return st.integers(1, processors) | st.sampled_from(
        (1, 1, 2, 3, processors // 3, processors // 2, processors - 1, processors)
    )


@st.composite
def busy_workloads(draw):
    """Draw jobs that keep a machine busy: times tie, ends meet starts, requests are not met."""
    processors = draw(one_of((4, 7, 10, 20)))
    submit, table = 0, []
    for _ in range(draw(st.integers(8, 40))):
        submit += draw(one_of((0, 0, 0, 0, 0, 5, 10, 20)))
        request = draw(one_of((10, 20, 60, 60, 120, 300, 600)))
        run = draw(one_of((0, 5, 10, 20, 60, request, request, 2 * request)))
        size, user = draw(busy_sizes_up_to(processors)), draw(one_of((-1, 0, 0, 1)))
        table.append((submit, run, request, size, user))
    workload = workload_of(table, processors)
    past = [(*row, -1) for row in draw(busy_pasts)]
    columns = np.array(past, dtype=np.int64).reshape(-1, 5).T
    return replace(workload, history=history_of(np.unique(workload.user), *columns))
