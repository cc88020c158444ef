"""Hypothesis strategies: small workloads rich in cases where two schedulers differ."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

import reference
import reference_index
from engines import workload_of
from hpcgym.core.backfill import Easy, as_backfill
from hpcgym.core.constants import MOST_CLASSES, N_NETWORK
from hpcgym.core.history import RING_JOBS, history_of
from hpcgym.core.index_policy import TERMS, index_policy, urgent_policy
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.workload import Workload
from reference_prediction import CORRECTIONS

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

SHORT_URGENCY = urgent_policy(3, after=30, within=60, widest=0.8, crowding=0.4, name="SHORT")
"""Urgency within waits as they are drawn."""


def network_of(seed: int) -> np.ndarray:
    """Return random parameters of a network."""
    return np.random.default_rng(seed).uniform(-0.5, 0.5, N_NETWORK)


@st.composite
def indexes(draw: st.DrawFn) -> Any:
    """Draw an index policy: by name, urgent, by weights, or by weights and a network."""
    if draw(st.booleans()):
        named = (*reference_index.RULES, "SMITH-URGENT", SHORT_URGENCY)
        return draw(st.sampled_from(named))
    weights = np.array(draw(st.tuples(*[st.sampled_from((-1.5, -1, 0, 0.3, 1, 2))] * len(TERMS))))
    weights[draw(st.sampled_from((4, 6, 9))) :] = 0
    if draw(st.booleans()):
        return index_policy(weights, network_of(draw(st.integers(0, 99))))
    weights[4:6] = 0
    return index_policy(weights)


as_it_runs = (0,) * len(REQUESTED_TIMES_S)  # requests of rather many jobs
times = st.sampled_from([*product(GAPS_S, RUN_TIMES_S, (*REQUESTED_TIMES_S, *as_it_runs))])
"""Draw the time since the last submission, the run time and the request, 0 = the run time."""


@cache
def users_and_sizes(processors: int) -> st.SearchStrategy[tuple[int, int]]:
    """Draw the user of a job and its processors, all of the machine's and one rather often."""
    sizes = (*range(1, processors + 1), *(1, processors) * processors)
    return st.sampled_from([*product((-1, 0, 0, 1), sizes)])


@cache
def estimates_of(n_jobs: int) -> st.SearchStrategy[Any]:
    """Draw what run times are taken to be, by name or for each job."""
    lists = st.lists(st.sampled_from(REQUESTED_TIMES_S), min_size=n_jobs, max_size=n_jobs)
    return st.sampled_from(("requested", "exact")) | lists


@st.composite
def jobs(draw: st.DrawFn, processors: int, max_jobs: int) -> list[reference.Job]:
    """Draw a job table, in order of submit time."""
    table = []
    submit_time = 0
    for _ in range(draw(st.integers(1, max_jobs))):
        gap, run_time, requested_time = draw(times)
        user, size = draw(users_and_sizes(processors))
        submit_time += gap
        request = requested_time or max(run_time, 1)
        table.append(reference.Job(submit_time, run_time, request, size, user))
    return table


LENGTH, TO_THE_END, AS_REQUESTED = -1, -2, -3
waiting = st.sampled_from(
    [
        *product(
            (0, 0, 0, 5, 6, LENGTH),
            (TO_THE_END, 5, 60),
            (AS_REQUESTED, AS_REQUESTED, 5, 0),
            (1, 1, 1, 2, 3),
        )
    ]
)
"""Draw how long after the others a job comes, its request, run time and processors."""


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
            after, request, run_time, size = draw(waiting)
            after = length if after == LENGTH else after
            request = max(length - after, 1) if request == TO_THE_END else request
            run_time = request if run_time == AS_REQUESTED else run_time
            size = min(size, processors)
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
    sizes, ends = range(1, processors + 1), range(0, -6, -1)
    rows = [*product((-1, 0, 1, 2), RUN_TIMES_S, REQUESTED_TIMES_S, sizes, ends)]
    return st.lists(st.sampled_from(rows), max_size=2 * RING_JOBS)


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
        "event_semantics": draw(one_of(("batch", "batch", "pyss", "one-by-one"))),
    }
    if as_backfill(drawn["backfill"]).TAKES_ORDER:
        drawn["backfill_order"] = draw(backfill_orders)
    mode = as_backfill(drawn["backfill"])
    if mode.expects or "instants" in mode.demands:
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


OVERDUE = -4
busy = st.sampled_from(
    [
        *product(
            (0, 0, 0, 0, 0, 5, 10, 20),
            (10, 20, 60, 60, 120, 300, 600),
            (0, 5, 10, 20, 60, AS_REQUESTED, AS_REQUESTED, OVERDUE),
            (-1, 0, 0, 1),
        )
    ]
)
"""Draw the time since the last submission, the request, the run time and the user of a job."""


@st.composite
def busy_workloads(draw):
    """Draw jobs that keep a machine busy: times tie, ends meet starts, requests are not met."""
    processors = draw(one_of((4, 7, 10, 20)))
    submit, table = 0, []
    for _ in range(draw(st.integers(8, 40))):
        gap, request, run, user = draw(busy)
        submit += gap
        run = {AS_REQUESTED: request, OVERDUE: 2 * request}.get(run, run)
        table.append((submit, run, request, draw(busy_sizes_up_to(processors)), user))
    workload = workload_of(table, processors)
    past = [(*row, -1) for row in draw(busy_pasts)]
    columns = np.array(past, dtype=np.int64).reshape(-1, 5).T
    return replace(workload, history=history_of(np.unique(workload.user), *columns))


# --- Modes and predictions ------------------------------------------------------------------------


@st.composite
def multi_queues(draw: st.DrawFn) -> str:
    """Draw a mode with several queues, among the times of drawn jobs."""
    bounds = sorted(draw(st.sets(st.sampled_from((1, 2, 3, 5, 10, 11, 20, 60)), min_size=1)))
    text = f"multi-queue:bounds={'/'.join(map(str, bounds[: MOST_CLASSES - 1]))}"
    delay = draw(st.sampled_from((0, 1, 2, 7, 30)))
    if delay == 0:
        return text
    batch, tolerance = draw(st.integers(1, 6)), draw(st.sampled_from((0, 0.25, 0.6)))
    delta1 = draw(st.sampled_from(("none", "printed")))
    return f"{text},delay={delay},batch={batch},tolerance={tolerance},delta1={delta1}"


slurms = st.builds(
    "slurm:max_job_test={},max_job_user={},window={},resolution={},interval={}".format,
    one_of((1, 2, 3, 5, 500)),
    one_of((1, 1, 2, 500)),
    one_of((1, 1, 2, 1440)),
    one_of((1, 2, 7, 10, 60, 1000)),
    one_of((1, 2, 5, 30, 500)),
)


@st.composite
def capped(draw: st.DrawFn) -> str:
    """Draw a mode with a cap, costs and benefits, or both."""
    cap = draw(st.sampled_from((0, 0.2, 0.5, 0.7, 0.97, math.inf)))
    long = draw(st.sampled_from((0, 8, 30, 60, 120.5))) if cap < math.inf else 7200
    about: dict[str, Any] = {"overdue": draw(st.sampled_from(("guarded", "open")))}
    if cap < math.inf:
        about["by"] = draw(st.sampled_from(("expectation", "request")))
        about["widest"] = draw(st.sampled_from((math.inf, math.inf, 0.5)))
        about["pressed"] = draw(st.sampled_from((0, 0, 0.5)))
        if draw(st.booleans()):
            return str(Easy(cap, long, **about))
    kappa = draw(st.sampled_from((0, 0.05, 0.25, 1, 4)))
    return str(CostBenefit(cap, long, **about, kappa=kappa))


def longest(requested_time: int, processors: int, completed: Any) -> int:
    """Predict the user's longest known run time, or a quarter of the request if none is known."""
    return int(max([p for p, _ in completed], default=requested_time // 4)) + 1


PREDICTORS = ("requested", "exact", "doubled", "recent", "f-model:f=2,seed=7", longest)


@st.composite
def predicted(draw: st.DrawFn, settings: dict[str, Any]) -> dict[str, Any]:
    """Draw how run times are predicted and corrected, beside settings that allow it."""
    estimates = draw(st.just(settings["estimates"]) | st.sampled_from(PREDICTORS))
    correction, events = draw(st.sampled_from(CORRECTIONS)), settings["event_semantics"]
    may_fall_short = estimates in ("recent", longest)
    if correction == "none" and may_fall_short and events == "pyss":
        events = "one-by-one"
    changed = {"estimates": estimates, "correction": correction, "event_semantics": events}
    return settings | changed
