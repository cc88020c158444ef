"""The reference of the planner: each contested pass tries orders on a copy and takes the best.

Plain Python from the specification's text, sections 8 and 10, on the machine of
`tests/reference.py`. The generator of a decision is seeded by the planner's seed and the number of
the decision; it draws the same numbers in the same order as the specification says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify
from typing import Any, NamedTuple

import numpy as np

from reference import BSLD_BOUND_S, RING_JOBS, STILL_RULES, Job, Machine, Ranking, Start, prepare
from reference_prediction import PredictingMachine, recent

DECAY = 0.75
DAY_S = 86_400
MOST_COMING = 256
INDEX_WEIGHTS = {  # on log q, log E, expected log share, expected log speed
    "SPF-HISTORY": (0.0, 1.0, 1.0, 0.0),
    "SAF-HISTORY": (1.0, 1.0, 1.0, 0.0),
    "SMITH-HISTORY": (1.0, 2.0, 1.0, -1.0),
}
CANDIDATES = (*reversed(INDEX_WEIGHTS), "SAF", "SPF", "FCFS")


def expected(
    bound: float, request: int, processors: int, ended: Sequence[tuple[int, int, int]]
) -> tuple[float, float]:
    """Return the logs of the expected share D/E and speed E/D of a job.

    The user's ended jobs are (run time, request, processors), oldest first. Their weights fall by a
    quarter from each to the one before. There are three means: of all jobs, of those of the same
    request, of those of the same request and processors. Each is drawn towards the mean before it
    by the weight of one record.
    """
    share = speed = 1.0
    for kind in range(3):
        weight = total = 1.0
        for p, asked, q in reversed(ended):
            if (kind >= 1 and asked != request) or (kind == 2 and q != processors):
                continue
            times = max(bound * (1.0 / max(float(p), BSLD_BOUND_S)), 1.0)
            share += weight / times
            speed += weight * times
            total += weight
            weight *= DECAY
        share /= total
        speed /= total
    return math.log(share), math.log(speed)


class Outlook(NamedTuple):
    """The forecast at a decision: the table with the jobs to come, and what is expected of each."""

    jobs: list[Job]
    estimate: list[int]
    run_time: list[int]
    rate: dict[int, float]
    keys: list[dict[int, float]]


class Copy(Machine):
    """A copy of a machine that continues under other keys."""

    keys: dict[int, float]

    def first_score(self, ranking: Ranking, j: int) -> float:
        """Return the given key of job j in the primary order."""
        return self.keys[j] if ranking is self.primary else super().first_score(ranking, j)


class PlanMachine(PredictingMachine):
    """A machine whose queue follows the order of the least costly plan."""

    def __init__(
        self,
        *arguments: Any,
        candidates: Sequence[str],
        rollouts: int,
        samples: int,
        horizon: int,
        seed: int,
    ) -> None:
        history = arguments[-1]
        completed = {user: [job[:2] for job in jobs] for user, jobs in history.items()}
        super().__init__(*arguments[:-1], completed)
        self.candidates = candidates
        self.rollouts = rollouts
        self.samples = samples
        self.horizon = horizon
        self.seed = seed
        self.ended = {user: list(jobs) for user, jobs in history.items()}
        self.turn: dict[int, int] = {}  # in which each job started
        self.decisions = 0
        self.moves = 0

    def start(self, j: int, t: int, *, backfilled: bool) -> None:
        """Start job j at t, and note its turn."""
        super().start(j, t, backfilled=backfilled)
        self.turn[j] = len(self.turn)

    def complete(self) -> None:
        """End a job, and record it for its user."""
        j = self.ends[0][2]
        job = self.jobs[j]
        super().complete()
        self.ended.setdefault(job.user, []).append(
            (self.executed[j], job.requested_time, job.processors)
        )

    def forecast(self, j: int) -> tuple[float, float, int]:
        """Return the log share and log speed of job j, and how long it is expected to run."""
        _, _, request, q, user = self.jobs[j]
        bound = max(float(self.predicted[j]), BSLD_BOUND_S)
        share, speed = expected(bound, request, q, self.ended.get(user, [])[-RING_JOBS:])
        run_time = max(min(int(bound * math.exp(share) + 0.5), self.predicted[j]), 1)
        return share, speed, run_time

    def key(self, candidate: str, r: int, j: int, share: float, speed: float) -> float:
        """Return the key under a candidate of a job like job j, submitted at r."""
        q, e = self.jobs[j].processors, self.predicted[j]
        if candidate in STILL_RULES:
            return float(STILL_RULES[candidate](r, e, q))
        w_q, w_e, w_share, w_speed = INDEX_WEIGHTS[candidate]
        total = w_q * math.log(q)
        total += w_e * math.log(max(e, BSLD_BOUND_S))
        total += w_share * share
        total += w_speed * speed
        return total

    def coming(self, turn: float, t: int) -> list[tuple[int, int]]:
        """Return (submit time, j) of jobs to come: those of the last day, rotated in time."""
        day = min(DAY_S, t)
        shift = int(turn * day)
        delays = []
        for j, job in enumerate(self.jobs[: self.arrived]):
            since = job.submit_time - (t - day)
            if since > 0:
                delays.append(((since + shift - 1) % day + 1, j))
        delays.sort()
        return [(t + delay, j) for delay, j in delays[:MOST_COMING] if delay <= self.horizon]

    def drawn(self, j: int, elapsed: int, u: float) -> int:
        """Draw how long job j runs from its user's records that outlast what it has run."""
        _, _, request, q, user = self.jobs[j]
        most = self.estimate[j] if elapsed >= 0 else self.predicted[j]
        ended = [job for job in self.ended.get(user, [])[-RING_JOBS:] if job[0] > elapsed]
        ended.reverse()
        like = [[p for p, _, _ in ended]]
        like.append([p for p, asked, _ in ended if asked == request])
        like.append([p for p, asked, size in ended if (asked, size) == (request, q)])
        for run_times in reversed(like):
            total = 1.0
            for k in range(len(run_times)):
                total += DECAY**k
            u *= total
            for k, p in enumerate(run_times):
                if u < DECAY**k:
                    return max(min(p, most), 1)
                u -= DECAY**k
        return most

    def look_ahead(
        self, waiting: list[int], coming: list[tuple[int, int]], t: int, chance: list[float]
    ) -> Outlook:
        """Forecast the running jobs, the waiting ones and those to come."""
        table = self.jobs[: self.arrived] + [
            self.jobs[j]._replace(submit_time=r) for r, j in coming
        ]
        estimate = self.estimate[: self.arrived] + [self.predicted[j] for _, j in coming]
        seen = Outlook(table, estimate, [0] * len(table), {}, [{} for _ in self.candidates])
        chances = iter(chance)
        for _, j in sorted(self.releases, key=lambda end: (-end[0], self.turn[end[1]])):
            began = self.starts[j].start_time
            if chance:
                drawn = self.drawn(j, t - began, next(chances))
                seen.run_time[j] = max(drawn, t - began)
                continue
            seen.run_time[j] = self.forecast(j)[2]
            if seen.run_time[j] <= t - began:
                seen.run_time[j] = max(min(2 * (t - began), self.estimate[j]), t - began)
        likes = [(j, j) for j in waiting]
        likes += [(self.arrived + k, j) for k, (_, j) in enumerate(coming)]
        for place, j in likes:
            share, speed, seen.run_time[place] = self.forecast(j)
            seen.rate[place] = 1.0 / max(float(seen.run_time[place]), BSLD_BOUND_S)
            if chance:
                seen.run_time[place] = self.drawn(j, -1, next(chances))
            for keys, candidate in zip(seen.keys, self.candidates, strict=True):
                keys[place] = self.key(candidate, table[place].submit_time, j, share, speed)
        return seen

    def cost(self, t: int, seen: Outlook, keys: dict[int, float]) -> float:
        """Return the total cost of waiting if the queue goes on in the order of keys."""
        copy = Copy(
            seen.jobs,
            self.processors,
            "FCFS",
            self.backfill,
            None if self.secondary is self.primary else self.secondary.policy,
            self.threshold,
            seen.run_time,
            seen.estimate,
            {},
        )
        copy.keys = keys
        copy.arrived = self.arrived
        copy.free = self.free
        copy.releases = list(self.releases)
        for _, j in self.releases:
            copy.ends.append((self.starts[j].start_time + seen.run_time[j], j, j))
        heapify(copy.ends)
        for j in self.primary.score:
            for ranking in copy.rankings:
                ranking.add(j, copy.first_score(ranking, j))
        copy.schedule(t)
        copy.run_batch()
        total = 0.0
        for j, rate in seen.rate.items():
            total += (copy.starts[j].start_time - seen.jobs[j].submit_time) * rate
        return total

    def is_contested(self, waiting: list[int], t: int) -> bool:
        """Say whether the order of the waiting jobs can matter."""
        wanted = [self.jobs[j].processors for j in waiting]
        within = [j for j in waiting if not self.is_thresholded(j, t)]
        return len(within) >= 2 and sum(wanted) > self.free and min(wanted) <= self.free

    def chosen_keys(self, waiting: list[int], t: int) -> dict[int, float]:
        """Return the keys of the best order found with so many rollouts."""
        generator = np.random.default_rng([self.seed, self.decisions])
        n_chances = 1 + len(self.releases) + len(waiting) + MOST_COMING
        chances = generator.random((self.samples, n_chances)).tolist()
        self.decisions += 1
        sights = [self.look_ahead(waiting, self.coming(u[0], t), t, u[1:]) for u in chances]
        if not sights:
            sights = [self.look_ahead(waiting, [], t, [])]

        def mean_cost(orders: list[dict[int, float]]) -> float:
            total = 0.0
            for seen, keys in zip(sights, orders, strict=True):
                total += self.cost(t, seen, keys)
            return total / len(sights)

        tried = [[seen.keys[k] for seen in sights] for k in range(len(self.candidates))]
        costs = [mean_cost(orders) for orders in tried]
        least = min(costs)
        best = tried[costs.index(least)]
        left = self.rollouts // len(sights) - len(costs)
        while left > 0:
            key = best[0]
            within = [j for j in waiting if not self.is_thresholded(j, t)]
            behind = sorted(within, key=lambda j: (key[j], j))[1:]
            behind.sort(key=lambda j: self.jobs[j].processors > self.free)
            front = min(key[j] for j in waiting) - 1.0
            for j in behind[:left]:
                left -= 1
                moved = [keys | {j: front} for keys in best]
                cost = mean_cost(moved)
                if cost < least:
                    best, least = moved, cost
                    self.moves += 1
                    break
            else:
                break
        return best[0]

    def schedule(self, t: int) -> None:
        """Choose the order of this pass, then make the pass."""
        waiting = list(self.primary.score)
        keys = dict.fromkeys(waiting, 0.0)
        if self.is_contested(waiting, t):
            keys = self.chosen_keys(waiting, t)
        shared = self.secondary is self.primary
        self.primary = Ranking("FCFS")
        for j in waiting:
            self.primary.add(j, keys[j])
        if shared:
            self.secondary = self.primary
        self.rankings = [self.primary] if shared else [self.primary, self.secondary]
        super().schedule(t)


def simulate(
    jobs: Sequence[Sequence[int]],
    processors: int,
    *,
    candidates: Sequence[str] = CANDIDATES,
    rollouts: int = 6,
    samples: int = 0,
    horizon: int = 21_600,
    seed: int = 0,
    backfill: str = "easy",
    backfill_order: str | None = None,
    threshold: float | None = None,
    kill_at_limit: bool = True,
    estimates: str = "requested",
    correction: str = "none",
    history: dict[int, Sequence[tuple[int, int, int]]] | None = None,
) -> tuple[list[Start], int]:
    """Schedule every job by the planner; also return how many moves it kept.

    `estimates` is "requested" or "recent"; `correction` is one of `CORRECTIONS` of
    `reference_prediction`. `history` has the run time, request and processors of each user's jobs
    that ended before time 0, oldest first.
    """
    table, executed, estimate = prepare(
        jobs, processors, kill_at_limit=kill_at_limit, estimates="requested"
    )
    machine = PlanMachine(
        table,
        processors,
        "FCFS",
        backfill,
        backfill_order,
        threshold,
        executed,
        estimate,
        history or {},
        candidates=candidates,
        rollouts=rollouts,
        samples=samples,
        horizon=horizon,
        seed=seed,
    )
    machine.begin(recent if estimates == "recent" else None, correction)
    return machine.run("batch"), machine.moves
