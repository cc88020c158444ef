"""What holds for every schedule, whatever the jobs: of the package and of the reference alike."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from engines import ENGINES, jobs_of, workload_of
from strategies import policies, settings_for, workloads

pytestmark = pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))

ESTIMATES = st.sampled_from(("requested", "exact"))
STILL_POLICIES = st.sampled_from(tuple(reference.STILL_RULES))
PURE_POLICIES = tuple(reference.PURE_WEIGHTS)


class Instant(NamedTuple):
    """The state after the last pass of one instant."""

    t: int
    free: int
    waiting: list[int]
    releases: list[tuple[int, int]]  # (estimated end, processors) of running jobs, ascending


def replay(workload, starts, estimates="requested", kill_at_limit=True):
    """Return the state after each instant at which a job was submitted or ended."""
    jobs = jobs_of(workload)
    runs = [min(j.run_time, j.requested_time) if kill_at_limit else j.run_time for j in jobs]
    ends = [s.start_time + p for s, p in zip(starts, runs, strict=True)]
    plans = [max(p, 1) for p in runs] if estimates == "exact" else [j.requested_time for j in jobs]
    states = []
    for t in sorted({job.submit_time for job in jobs} | set(ends)):
        running = [j for j, s in enumerate(starts) if s.start_time <= t < ends[j]]
        waiting = [j for j, s in enumerate(starts) if jobs[j].submit_time <= t and s.start_time > t]
        free = workload.machine_processors - sum(jobs[j].processors for j in running)
        releases = sorted((starts[j].start_time + plans[j], jobs[j].processors) for j in running)
        states.append(Instant(t, free, waiting, releases))
    return states, plans


def in_order(jobs, plans, waiting, t, policy, threshold):
    """Sort waiting jobs as the queue stands at t: the old ones by arrival, the others by score."""

    def key(j):
        job = jobs[j]
        if threshold is not None and t - job.submit_time > threshold:
            return (0, 0, j)
        score = reference.STILL_RULES[policy](job.submit_time, plans[j], job.processors)
        return (1, score, j)

    return sorted(waiting, key=key)


def promise(state, processors):
    """Return the shadow time of a head that needs so many processors, and the extra ones."""
    free = state.free
    for end in sorted({end for end, _ in state.releases}):
        free += sum(q for at, q in state.releases if at == end)
        if free >= processors:
            return end, free - processors
    raise AssertionError("the head never fits")


@given(data=st.data())
def test_capacity_is_never_exceeded_and_every_job_starts_once_after_its_submission(engine, data):
    workload = data.draw(workloads())
    settings = data.draw(settings_for(workload))
    starts = engine(workload, policy=data.draw(policies), **settings)
    assert len(starts) == len(workload)
    assert all(s.start_time >= r for s, r in zip(starts, workload.submit_time, strict=True))
    states, _ = replay(workload, starts, kill_at_limit=settings.get("kill_at_limit", True))
    assert all(state.free >= 0 for state in states)
    assert states[-1].free == workload.machine_processors


@given(workload=workloads(), policy=STILL_POLICIES, estimates=ESTIMATES, data=st.data())
def test_no_waiting_job_could_have_started_after_a_pass(engine, workload, policy, estimates, data):
    threshold = data.draw(st.sampled_from((None, 2, 10)))
    backfill = data.draw(st.sampled_from(("none", "easy")))
    order = data.draw(st.none() | STILL_POLICIES) if backfill == "easy" else None
    starts = engine(
        workload,
        policy=policy,
        backfill=backfill,
        backfill_order=order,
        threshold=threshold,
        estimates=estimates,
    )
    jobs = jobs_of(workload)
    states, plans = replay(workload, starts, estimates)
    for state in states:
        if not state.waiting:
            continue
        head, *others = in_order(jobs, plans, state.waiting, state.t, policy, threshold)
        assert jobs[head].processors > state.free
        if backfill == "easy":
            shadow, extra = promise(state, jobs[head].processors)
            for j in others:
                in_time = state.t + plans[j] <= shadow
                assert jobs[j].processors > state.free or not (
                    in_time or jobs[j].processors <= extra
                )


@given(workload=workloads(), policy=STILL_POLICIES, estimates=ESTIMATES, data=st.data())
def test_promise_to_the_head_never_moves_later_while_it_stays_head(
    engine, workload, policy, estimates, data
):
    threshold = data.draw(st.sampled_from((None, 5)))
    starts = engine(
        workload,
        policy=policy,
        backfill_order=data.draw(st.none() | policies),
        threshold=threshold,
        estimates=estimates,
    )
    jobs = jobs_of(workload)
    states, plans = replay(workload, starts, estimates)
    another_went_first = {s.start_time for s in starts if not s.backfilled}
    promised = {}
    for state in states:
        if state.t in another_went_first:
            promised = {}
        heads = in_order(jobs, plans, state.waiting, state.t, policy, threshold)[:1]
        shadows = {head: promise(state, jobs[head].processors)[0] for head in heads}
        for head, shadow in shadows.items():
            assert shadow <= promised.get(head, shadow)
        promised = shadows


@given(workload=workloads(), estimates=ESTIMATES, order=st.none() | policies, data=st.data())
def test_smallest_first_never_backfills_without_a_threshold(
    engine, workload, estimates, order, data
):
    semantics = data.draw(st.sampled_from(("batch", "pyss")))
    starts = engine(
        workload, policy="SQF", backfill_order=order, estimates=estimates, event_semantics=semantics
    )
    assert not any(start.backfilled for start in starts)


def test_smallest_first_may_backfill_with_a_threshold(engine):
    """At 10 the wide W is old and becomes the head; the small S, beside it, is backfilled.

    ::

        RRRRRRRRRRRRRRRRRRRRWWWWW     R 2p x 20 at 0; W 3p x 5 at 1; S 1p x 5 at 10
        RRRRRRRRRRRRRRRRRRRRWWWWW
        ..........SSSSS.....WWWWW     threshold 5: W has waited 9 at 10
    """
    jobs = [(0, 20, 20, 2), (1, 5, 5, 3), (10, 5, 5, 1)]
    starts = engine(workload_of(jobs, 3), policy="SQF", threshold=5)
    assert [s.start_time for s in starts] == [0, 20, 10]
    assert [s.backfilled for s in starts] == [False, False, True]


@pytest.mark.parametrize("policy", PURE_POLICIES)
@given(data=st.data())
def test_pure_policy_equals_its_vertex_of_the_mixed_scheduler(engine, policy, data):
    workload = data.draw(workloads())
    settings = data.draw(settings_for(workload))
    length = data.draw(st.sampled_from((1.0, 3.0, 0.007)))
    vertex = tuple(length * w for w in reference.PURE_WEIGHTS[policy])
    assert engine(workload, policy=vertex, **settings) == engine(
        workload, policy=policy, **settings
    )


@given(policy=policies, order=st.none() | policies, estimates=ESTIMATES, data=st.data())
def test_pyss_and_batch_agree_where_no_events_tie(engine, policy, order, estimates, data):
    times = st.integers(1, 10**6)
    n = data.draw(st.integers(1, 16))
    submits = sorted(data.draw(st.lists(times, min_size=n, max_size=n, unique=True)))
    jobs = [
        (submit, data.draw(times), data.draw(times), data.draw(st.integers(1, 4)))
        for submit in submits
    ]
    workload = workload_of(jobs, 4)
    settings = {"policy": policy, "backfill_order": order, "estimates": estimates}
    batch = engine(workload, **settings)
    ends = [s.start_time + min(j[1], j[2]) for s, j in zip(batch, jobs, strict=True)]
    assume(len({*submits, *ends}) == 2 * n)
    assert engine(workload, event_semantics="pyss", **settings) == batch


def test_schedules_repeat_and_leave_the_workload_untouched(engine):
    jobs = [(0, 5, 5, 2), (0, 9, 9, 1), (1, 1, 3, 2), (1, 0, 3, 1)]
    workload = workload_of(jobs, 2)
    before = workload.to_frame()
    first = engine(workload, policy="SMITH")
    assert engine(workload, policy="SMITH") == first
    assert before.equals(workload.to_frame())
    assert not np.any(workload.history.completed)
