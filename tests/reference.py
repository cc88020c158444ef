"""The reference: EASY backfilling in plain Python, from the specification's text.

It shares no code with `hpcgym`, and it is slow and simple: every pass looks at the whole queue. It
reads from top to bottom as the definition does: how jobs are ordered, one pass, one instant. The
compiled kernels must start every job at the same second and for the same reason.

A job is a row of a table sorted by submit time. `j` is that row everywhere, so "ties by (submit,
position)" is "ties by j". Short names follow the papers: r submit time, p executed run time,
e the estimate the scheduler plans with, q processors, M processors of the machine, t now.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

BSLD_BOUND_S = 10
RING_JOBS = 20
MULTIFACTOR_AGE_S = 43_200


class Job(NamedTuple):
    """One line of a log: times in seconds, user -1 where unknown."""

    submit_time: int
    run_time: int
    requested_time: int
    processors: int
    user: int = -1


class Start(NamedTuple):
    """When a job started, whether out of order, and whether it had waited beyond the threshold."""

    start_time: int
    backfilled: bool
    thresholded: bool


Policy = str | Sequence[float]  # A name, or the six weights of the mixed rule

Completed = tuple[int, int]  # the executed run time and the request of a job that has ended


# --- How jobs are ordered: lowest score first, ties by j ------------------------------------------

STILL_RULES: dict[str, Callable[[int, int, int], float]] = {  # fixed at submission, by r, e, q
    "FCFS": lambda r, e, q: r,
    "LCFS": lambda r, e, q: -r,
    "SPF": lambda r, e, q: e,
    "LPF": lambda r, e, q: -e,
    "SQF": lambda r, e, q: q,
    "LQF": lambda r, e, q: -q,
    "SAF": lambda r, e, q: e * q,
    "LAF": lambda r, e, q: -e * q,
    "SRF": lambda r, e, q: e / q,
    "LRF": lambda r, e, q: -(e / q),
    "submit-as-wait:rule=WFP3": lambda r, e, q: ((r + 1) / e) * ((r + 1) / e) * ((r + 1) / e) * q,
    "submit-as-wait:rule=UNICEF": lambda r, e, q: (r + 1) / (math.log2(q + 1e-15) * e),
    "F1": lambda r, e, q: math.log10(e) * q + 870 * math.log10(max(r, 1)),
    "F2": lambda r, e, q: math.sqrt(e) * q + 25_600 * math.log10(max(r, 1)),
    "F3": lambda r, e, q: e * q + 6_860_000 * math.log10(max(r, 1)),
    "F4": lambda r, e, q: e * math.sqrt(q) + 530_000 * math.log10(max(r, 1)),
}

MOVING_RULES: dict[str, Callable[[int, int, int, int], float]] = {  # evaluated at each pass
    "SEXP": lambda wait, e, q, M: (wait + e) / e,
    "LEXP": lambda wait, e, q, M: -((wait + e) / e),
    "WFP3": lambda wait, e, q, M: -((wait / e) * (wait / e) * (wait / e) * q),
    "UNICEF": lambda wait, e, q, M: -(wait / (math.log2(max(q, 2)) * e)),
    "MULTIFACTOR": lambda wait, e, q, M: (
        -(1000 * min(wait / MULTIFACTOR_AGE_S, 1) + 1000 * (1 - q / M))
    ),
}

POLICIES = (*STILL_RULES, *MOVING_RULES, "SMITH")

PURE_WEIGHTS = {  # on the features q, e, wait, e/q, (wait+e)/e, e*q
    "FCFS": (0, 0, -1, 0, 0, 0),
    "LCFS": (0, 0, 1, 0, 0, 0),
    "SPF": (0, 1, 0, 0, 0, 0),
    "LPF": (0, -1, 0, 0, 0, 0),
    "SQF": (1, 0, 0, 0, 0, 0),
    "LQF": (-1, 0, 0, 0, 0, 0),
    "SAF": (0, 0, 0, 0, 0, 1),
    "LAF": (0, 0, 0, 0, 0, -1),
    "SRF": (0, 0, 0, 1, 0, 0),
    "LRF": (0, 0, 0, -1, 0, 0),
    "SEXP": (0, 0, 0, 0, 1, 0),
    "LEXP": (0, 0, 0, 0, -1, 0),
}


def added(numbers: Iterable[Any]) -> Any:
    """Add from left to right; since Python 3.12 `sum` compensates how floats are rounded."""
    return reduce(operator.add, numbers, 0)


def mixed_rule(weights: Sequence[float]) -> Callable[[int, int, int, int], float]:
    """Return the score w·x of RR-9212 over six raw features, with weights of L1 norm one."""
    norm = added(abs(w) for w in weights) or 1
    w_q, w_e, w_wait, w_rho, w_exp, w_area = (w / norm for w in weights)

    def score(wait: int, e: int, q: int, M: int) -> float:
        x = w_q * q + w_e * e + w_wait * wait
        return x + w_rho * (e / q) + w_exp * ((wait + e) / e) + w_area * (e * q)

    return score


def smith_score(e: int, q: int, completed: Iterable[Completed]) -> float:
    """Return the area over E[1/D], from the user's ended jobs, oldest first."""
    total = n = 0
    for p, _ in completed:
        total += 1 / max(min(p, e), BSLD_BOUND_S)
        n += 1
    total += 1 / max(e, BSLD_BOUND_S)  # the request counts as one more observation
    return (e * q) / (total / (n + 1))


class Ranking:
    """The waiting jobs, in the order of one policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.moving = MOVING_RULES.get(policy) if isinstance(policy, str) else mixed_rule(policy)
        self.score: dict[int, float] = {}  # of every waiting job, in order of submission
        self.ranked: list[tuple[float, int]] = []  # (score, j) ascending; unused if scores move

    def add(self, j: int, score: float) -> None:
        """Add job j to the queue."""
        self.score[j] = score
        if not self.moving:
            insort(self.ranked, (score, j))

    def remove(self, j: int) -> None:
        """Remove job j from the queue."""
        score = self.score.pop(j)
        if not self.moving:
            del self.ranked[bisect_left(self.ranked, (score, j))]


# --- The machine ---------------------------------------------------------------------------------


class Machine:
    """Processors, running jobs and queue of one simulation."""

    MODES: tuple[str, ...] = ("none", "easy")

    def __init__(
        self,
        jobs: Sequence[Job],
        processors: int,
        policy: Policy,
        backfill: str,
        backfill_order: Policy | None,
        threshold: float | None,
        executed: Sequence[int],
        estimate: Sequence[int],
        history: Mapping[int, Sequence[Completed]],
    ) -> None:
        self.jobs = jobs
        self.processors = processors
        self.executed = executed
        self.estimate = estimate
        self.backfill = backfill
        self.threshold = math.inf if threshold is None else threshold
        self.primary = Ranking(policy)
        self.secondary = self.primary if backfill_order is None else Ranking(backfill_order)
        self.rankings = [self.primary, *([self.secondary] if backfill_order is not None else [])]
        self.free = processors
        self.releases: list[tuple[int, int]] = []  # (estimated end, j) of running jobs, ascending
        self.ends: list[tuple[int, int, int]] = []  # (true end, turn, j), a heap only we can see
        self.one_by_one = False  # whether tied events have a turn each
        self.frees_by_estimate = False  # whether jobs count as free at their estimated ends
        self.completed = {u: deque(ended, RING_JOBS) for u, ended in history.items()}
        self.arrived = 0  # jobs 0 .. arrived-1 have been submitted
        self.started = 0
        self.starts: list[Start | None] = [None] * len(jobs)

    def first_score(self, ranking: Ranking, j: int) -> float:
        """Return the score that job j keeps while it waits, by what is known at its submission."""
        r, _, _, q, user = self.jobs[j]
        e = self.estimate[j]
        if ranking.moving:
            return 0.0
        if ranking.policy == "SMITH":
            return smith_score(e, q, self.completed.get(user, ()))
        return STILL_RULES[ranking.policy](r, e, q)

    def submit(self) -> None:
        """Add the next job of the table to the queue."""
        j = self.arrived
        for ranking in self.rankings:
            ranking.add(j, self.first_score(ranking, j))
        self.arrived += 1

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Give job j its processors at t."""
        self.free -= self.jobs[j].processors
        insort(self.releases, (t + self.estimate[j], j))
        turn = self.started if self.one_by_one else j
        heappush(self.ends, (t + self.executed[j], turn, j))
        self.started += 1
        self.starts[j] = Start(t, backfilled, self.is_thresholded(j, t))

    def complete(self) -> None:
        """End the first job to end: free its processors, and record it in its user's history."""
        end, _, j = heappop(self.ends)
        release = (end - self.executed[j] + self.estimate[j], j)
        at = bisect_left(self.releases, release)
        if self.releases[at : at + 1] == [release]:  # not yet counted as free
            del self.releases[at]
            self.free += self.jobs[j].processors
        ended = self.completed.setdefault(self.jobs[j].user, deque(maxlen=RING_JOBS))
        ended.append((self.executed[j], self.jobs[j].requested_time))

    def is_thresholded(self, j: int, t: int) -> bool:
        """Say whether job j has waited strictly longer than the threshold."""
        return t - self.jobs[j].submit_time > self.threshold

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the waiting jobs: the thresholded ones by arrival, then the others by score."""
        for j in ranking.score:
            if not self.is_thresholded(j, t):
                break
            yield j
        ranked = ranking.ranked
        if ranking.moving:
            score, jobs, M = ranking.moving, self.jobs, self.processors
            ranked = sorted(
                (score(t - jobs[j].submit_time, self.estimate[j], jobs[j].processors, M), j)
                for j in ranking.score
            )
        for _, j in ranked:
            if not self.is_thresholded(j, t):
                yield j

    def reservation(self, head: int, t: int) -> tuple[int, int]:
        """Return the shadow time of the head, by estimates, and the extra processors at it.

        A job past its estimate is assumed to end now. Releases tied at the shadow time all count.
        """
        needed = self.jobs[head].processors
        free, shadow = self.free, t
        for estimated_end, j in self.releases:
            end = max(estimated_end, t)
            if free >= needed and end > shadow:
                break
            free += self.jobs[j].processors
            shadow = end
        return shadow, free - needed

    def schedule(self, t: int) -> None:
        """Make one pass: start jobs in order, then backfill."""
        started = []
        head = None
        for j in self.in_order(self.primary, t):  # step 1
            if self.jobs[j].processors > self.free:
                head = j  # step 2
                break
            self.start(j, t, backfilled=False)
            started.append(j)
        self.leave(started)
        if head is not None and self.backfill == "easy" and self.free > 0:
            shadow, extra = self.reservation(head, t)
            backfilled = []
            for j in self.in_order(self.secondary, t):  # step 3
                q = self.jobs[j].processors
                if q > self.free or j == head:
                    continue
                if t + self.estimate[j] > shadow:
                    if q > extra:
                        continue
                    extra -= q
                self.start(j, t, backfilled=True)
                backfilled.append(j)
                if self.free == 0:
                    break
            self.leave(backfilled)

    def leave(self, started: Iterable[int]) -> None:
        """Take the jobs just started out of the queue."""
        for j in started:
            for ranking in self.rankings:
                ranking.remove(j)

    # --- What one instant is ---------------------------------------------------------------------

    def run(self, event_semantics: str) -> list[Start]:
        """Start every job, by one of three semantics, and return the starts."""
        assert event_semantics in ("batch", "pyss", "one-by-one")
        self.one_by_one = event_semantics != "batch"
        self.frees_by_estimate = event_semantics == "pyss"
        if self.one_by_one:
            self.run_one_by_one()
        else:
            self.run_batch()
        assert self.started == len(self.jobs)
        return self.starts

    def next_submission(self) -> float:
        """Return when the next job of the table is submitted."""
        return self.jobs[self.arrived].submit_time if self.arrived < len(self.jobs) else math.inf

    def next_end(self) -> float:
        """Return when the next running job ends."""
        return self.ends[0][0] if self.ends else math.inf

    def come_to(self, t: int) -> None:
        """Do what comes before the events of t and makes no pass."""

    def run_batch(self) -> None:
        """Handle all completions of an instant, all submissions, then make one pass.

        Completions come in the order of the table. A zero-second job ends at the instant it starts,
        so the instant is handled again.
        """
        while (t := min(self.next_submission(), self.next_end())) < math.inf:
            self.handle(int(t))

    def handle(self, t: int) -> None:
        """Handle the events of an instant, then make a pass."""
        self.come_to(t)
        while self.next_end() == t:
            self.complete()
        while self.next_submission() == t:
            self.submit()
        self.schedule(t)

    def free_by_estimate(self, t: int) -> None:
        """With `pyss` semantics count every job as free whose estimated end has come.

        Its termination need not have been handled yet.
        """
        while self.frees_by_estimate and self.releases and self.releases[0][0] <= t:
            _, j = self.releases.pop(0)
            self.free += self.jobs[j].processors

    def run_one_by_one(self) -> None:
        """Handle the events of an instant one by one, submissions first, with a pass after each.

        Terminations come in the order of the starts.
        """
        while (t := min(self.next_submission(), self.next_end())) < math.inf:
            self.come_to(t)
            if self.next_submission() == t:
                self.submit()
            else:
                self.complete()
            self.free_by_estimate(t)
            self.schedule(t)


def prepare(
    jobs: Iterable[Sequence[int]],
    processors: int,
    *,
    kill_at_limit: bool,
    estimates: str | Sequence[int],
) -> tuple[list[Job], list[int], list[int]]:
    """Return the table, how long each job will run, and what the scheduler plans with.

    Args:
        jobs: Rows of `Job`, in order of submit time.
        processors: Processors of the machine; no job needs more.
        kill_at_limit: Whether a job is ended at its request.
        estimates: "requested", "exact", or one number per job.

    Returns:
        The table, executed run times, and estimates of a second at least.
    """
    table = [Job(*row) for row in jobs]
    assert all(a.submit_time <= b.submit_time for a, b in pairwise(table))
    assert all(1 <= job.processors <= processors for job in table)
    executed = [
        min(job.run_time, job.requested_time) if kill_at_limit else job.run_time for job in table
    ]
    if isinstance(estimates, str):
        assert estimates in ("requested", "exact")
        asked = [job.requested_time for job in table]
        estimate = asked if estimates == "requested" else [max(p, 1) for p in executed]
    else:
        estimate = [int(e) for e in estimates]
    assert len(estimate) == len(table) and min(estimate, default=1) >= 1
    return table, executed, estimate


def simulate(
    jobs: Iterable[Sequence[int]],
    processors: int,
    policy: Policy = "FCFS",
    *,
    backfill: str = "easy",
    backfill_order: Policy | None = None,
    threshold: float | None = None,
    kill_at_limit: bool = True,
    estimates: str | Sequence[int] = "requested",
    event_semantics: str = "batch",
    history: Mapping[int, Sequence[Completed]] | None = None,
    kind: type[Machine] = Machine,
) -> list[Start]:
    """Schedule every job of a table, and say when and why each one started.

    Args:
        jobs: Rows of `Job`, in order of submit time.
        processors: Processors of the machine; no job needs more.
        policy: Order of the queue: a name of `POLICIES`, or six weights.
        backfill: "none" or "easy".
        backfill_order: Order of the candidates for backfilling; None = that of the queue.
        threshold: Wait, s, beyond which a job goes first in either order; None = never.
        kill_at_limit: Whether a job is ended at its request.
        estimates: What the scheduler plans with: "requested", "exact", or one number per job.
        event_semantics: "batch", "pyss" or "one-by-one".
        history: Ended jobs per user before time 0, oldest first.
        kind: The machine; other kinds have other backfilling modes.

    Returns:
        One `Start` per job.
    """
    assert backfill.partition(":")[0] in kind.MODES
    table, executed, estimate = prepare(
        jobs, processors, kill_at_limit=kill_at_limit, estimates=estimates
    )
    if event_semantics == "pyss":  # counts jobs as free by estimate, so they must not outlive it
        assert all(p <= e for p, e in zip(executed, estimate, strict=True))
    machine = kind(
        table,
        processors,
        policy,
        backfill,
        backfill_order,
        threshold,
        executed,
        estimate,
        history or {},
    )
    return machine.run(event_semantics)
