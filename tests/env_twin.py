"""The environment's twin: slow, plain Python, from section 10 of the specification.

What it shows follows the data sheet of `hpcgym.env.scheduling`. It stands on `tests/reference.py`
and `tests/reference_profile.py` as the environment stands on the kernels, and shares no code with
the package. Whatever it does not decide is on purpose left to an order that is unlikely to be the
package's, so that a pass skipped by mistake shows.

Short names as in `reference.py`: r submit time, p executed run time, e estimate, q processors,
M processors of the machine, E largest request of the scenario, t now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import reference
import reference_index
from reference import (
    BSLD_BOUND_S,
    MOVING_RULES,
    RING_JOBS,
    STILL_RULES,
    Completed,
    Job,
    Policy,
    Start,
    added,
    mixed_rule,
    prepare,
    smith_score,
)
from reference_profile import Planner

HOUR_S = 3_600
DAY_S = 86_400
WEEK_S = 604_800
HORIZONS_S = (300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class Rules:
    """What an environment is made of, under the names of its keywords and its scenario's."""

    processors: int
    largest_request: int
    policy: Policy = "SAF"
    backfill: str = "easy"
    backfill_order: Policy | None = None
    threshold: int | None = None
    kill_at_limit: bool = True
    estimates: str = "requested"
    event_semantics: str = "batch"
    action: str = "weights"
    decide: str | int = "contested"
    reward: str = "bsld"
    baseline: Policy | None = None
    policies: tuple[str, ...] = ()
    n_slots: int = 128
    expectations: str | None = None
    placement: str = "lowest"

    @property
    def scheduler(self) -> dict[str, Any]:
        """What the agent's scheduler and the baseline's share."""
        keys = ("backfill", "backfill_order", "threshold", "kill_at_limit", "estimates")
        return {key: getattr(self, key) for key in (*keys, "event_semantics")}


class User(NamedTuple):
    """What is known of a user when a job is submitted."""

    ended: tuple[Completed, ...]  # the last 20, oldest first
    n_ended: int
    last_end: int | None


class Cost(NamedTuple):
    """b_j(t) = at_submission + max(0, min(s, t) - r - m) / D."""

    at_submission: int
    m: list[int]
    D: list[int]


def cost_of(reward: str, jobs: Sequence[Job], executed: Sequence[int]) -> Cost:
    """Return what waiting costs, by the specification's reward identity."""
    if reward == "wait":
        return Cost(0, [0] * len(jobs), [1] * len(jobs))
    D = [max(p, BSLD_BOUND_S) for p in executed]
    if reward == "pp_bsld":
        D = [d * job.processors for d, job in zip(D, jobs, strict=True)]
    return Cost(1, [max(0, d - p) for d, p in zip(D, executed, strict=True)], D)


class Simulation(Planner):
    """A machine that asks for decisions."""

    def __init__(
        self,
        jobs: Sequence[Job],
        rules: Rules,
        ended: Mapping[int, Sequence[Completed]],
        n_ended: Mapping[int, int],
        last_end: Mapping[int, int],
        records: Mapping[int, reference_index.User],
        day_start: int,
    ) -> None:
        table, executed, estimate = prepare(
            jobs, rules.processors, kill_at_limit=rules.kill_at_limit, estimates=rules.estimates
        )
        super().__init__(
            table,
            rules.processors,
            "FCFS",
            rules.backfill,
            rules.backfill_order,
            rules.threshold,
            executed,
            estimate,
            ended,
        )
        self.rules = rules
        self.one_by_one = rules.event_semantics != "batch"
        self.frees_by_estimate = rules.event_semantics == "pyss"
        self.n_ended = dict(n_ended)
        self.last_end = dict(last_end)
        self.records = dict(records)
        self.day_start = day_start
        self.lessons = reference_index.Lessons()
        self.user: dict[int, User] = {}  # as known at each job's submission
        self.now = 0
        self.next_decision = 0 if isinstance(rules.decide, int) else math.inf
        self.rank: Callable[[int], float] | None = None  # of this pass, where it was decided
        self.pick: int | None = None

    # --- What is known of users -------------------------------------------------------------------

    def submit(self) -> None:
        """Let the next job join the queue, and freeze what is known of its user."""
        user = self.jobs[self.arrived].user
        self.user[self.arrived] = User(
            tuple(self.completed.get(user, ())), self.n_ended.get(user, 0), self.last_end.get(user)
        )
        super().submit()

    def complete(self) -> None:
        """Let the first job to end leave the machine."""
        end, _, j = self.ends[0]
        self.lessons.learn(self.executed[j], self.estimate[j], self.look(j))
        super().complete()
        user = self.jobs[j].user
        self.n_ended[user] = self.n_ended.get(user, 0) + 1
        self.last_end[user] = end
        record = reference_index.Record(self.executed[j], *self.jobs[j][2:4])
        n, last = self.records.get(user, reference_index.NOBODY)
        self.records[user] = reference_index.User(n + 1, (*last, record)[-RING_JOBS:])

    def look(self, j: int) -> list[float]:
        """Return what the regression sees of a job."""
        user = self.records.get(self.jobs[j].user, reference_index.NOBODY)
        return reference_index.regressors(self.jobs[j], self.estimate[j], user, self.day_start)

    # --- Decision epochs --------------------------------------------------------------------------

    def waiting(self) -> list[int]:
        """Return the waiting jobs in the order of their submission."""
        return list(self.primary.score)

    def is_seen(self, j: int) -> bool:
        """Say whether a waiting job is shown, and counts as waiting."""
        return True

    def is_contested(self) -> bool:
        """Say whether the order can matter: two jobs to order, not room for all, room for one.

        Where reservations are kept, room for one does not count if any may be made or moved.
        """
        waiting = self.waiting()
        sizes = [self.jobs[j].processors for j in waiting]
        within = [j for j in waiting if not self.is_thresholded(j, self.now)]
        has_use = min(sizes, default=0) <= self.free or self.must_plan(self.now)
        return len(within) >= 2 and sum(sizes) > self.free and has_use

    def is_due(self) -> bool:
        """Say whether a pass is a decision."""
        if self.rules.decide == "contested":
            return self.is_contested()
        return self.rules.decide == "event" and any(map(self.is_seen, self.waiting()))

    def handle_events(self, t: int) -> bool:
        """Handle what happens at t before a pass; say whether anything does."""
        before = (self.arrived, len(self.ends))
        if self.one_by_one:
            if self.next_submission() == t:
                self.submit()
            elif self.next_end() == t:
                self.complete()
            if (self.arrived, len(self.ends)) == before:
                return False
            self.free_by_estimate(t)
            return True
        while self.next_end() == t:
            self.complete()
        while self.next_submission() == t:
            self.submit()
        return (self.arrived, len(self.ends)) != before

    def next_pass(self) -> float:
        """Return the next instant that has a pass."""
        return min(self.next_submission(), self.next_end())

    def decisions(self) -> Iterator[None]:
        """Simulate until every job has started; yield wherever a decision is due."""
        while self.started < len(self.jobs):
            t = min(self.next_pass(), self.next_decision)
            self.now = int(t)
            is_pass = self.handle_events(self.now)
            is_due = is_pass and self.is_due()
            if t == self.next_decision:
                self.next_decision += self.rules.decide
                is_due = True
            while True:
                if is_due:
                    yield
                if not is_pass or not self.schedule_until_pick(self.now):
                    break
                is_due = self.is_due()

    # --- A pass -----------------------------------------------------------------------------------

    def score(self, policy: Policy, j: int) -> float:
        """Return the score of a waiting job at this instant."""
        r, _, _, q, _ = self.jobs[j]
        e, wait = self.estimate[j], self.now - r
        if not isinstance(policy, str):
            return mixed_rule(policy)(wait, e, q, self.processors)
        if policy == "SMITH":
            return smith_score(e, q, self.user[j].ended)
        if policy in MOVING_RULES:
            return MOVING_RULES[policy](wait, e, q, self.processors)
        return STILL_RULES[policy](r, e, q)

    def by_rank(self, rank: Callable[[int], float]) -> list[int]:
        """Return the waiting jobs: those beyond the threshold by arrival, the others by rank."""
        waiting = self.waiting()
        old = [j for j in waiting if self.is_thresholded(j, self.now)]
        young = [j for j in waiting if not self.is_thresholded(j, self.now)]
        return old + sorted(young, key=lambda j: (rank(j), j))

    def in_order(self, ranking: Any, t: int) -> Iterator[int]:
        """Yield the waiting jobs in the order that was decided; any order where none was."""
        if ranking is not self.primary:
            yield from super().in_order(ranking, t)
        elif self.rank is not None:
            yield from self.by_rank(self.rank)
        else:
            yield from self.by_rank(lambda j: (j * 7919 + t * 104_729) % 1009)

    def schedule_until_pick(self, t: int) -> bool:
        """Make a pass; say whether the job picked to go first started and so ended it."""
        stopped = False
        if self.pick is not None:
            order = self.by_rank(self.rank)
            ahead = order[: order.index(self.pick) + 1]
            stopped = sum(self.jobs[j].processors for j in ahead) <= self.free
            if stopped:
                for j in ahead:
                    self.start(j, t, backfilled=False)
                self.leave(ahead)
        if not stopped:
            self.schedule(t)
        if not isinstance(self.rules.decide, int):
            self.rank = None  # an order is decided for one pass
        self.pick = None
        return stopped


class EnvTwin:
    """The environment: `reset`, `step`, `info`, and `end_info` for an episode that is over."""

    WIDTH = 18  # fields of a visible job

    SIMULATION: type[Simulation] = Simulation
    PLANNER: type[reference.Machine] = Planner
    """The machines of the agent, and of the rules that it is compared with."""

    def __init__(
        self,
        jobs: Sequence[Job],
        rules: Rules,
        *,
        ended: Mapping[int, Sequence[Completed]],
        n_ended: Mapping[int, int],
        last_end: Mapping[int, int],
        records: Mapping[int, reference_index.User],
        week_start: int,
    ) -> None:
        self.rules = rules
        self.week_start = week_start
        self.sim = self.SIMULATION(jobs, rules, ended, n_ended, last_end, records, week_start)
        self.cost = cost_of(rules.reward, jobs, self.sim.executed)

        def by(policy: Policy) -> list[Start]:
            return reference.simulate(
                jobs, rules.processors, policy, history=ended, kind=self.PLANNER, **rules.scheduler
            )

        self.compare(by)

    def compare(self, by: Callable[[Policy], list[Start]]) -> None:
        """Schedule the baseline, and SAF, whose mean bsld infos and rewards are compared with."""
        baseline = self.rules.baseline
        self.baseline = None if baseline is None else by(baseline)
        self.saf = self.means([s.start_time for s in by("SAF")], math.inf)
        self.unit = 1.0  # of costs
        if self.rules.reward in ("ratio", "user_ratio"):
            self.unit = self.saf
            if self.baseline is not None:
                self.unit = self.means([s.start_time for s in self.baseline], math.inf)
        self.invalid_actions = 0

    def reset(self) -> dict[str, list[Any]]:
        """Run to the first decision."""
        self._paid_until = 0
        self._paid_total = 0.0
        self._paid_arrivals = [0, 0]
        self._paid_starts: list[set[int]] = [set(), set()]
        self.terms: dict[str, float] = {}
        if self.rules.reward in ("log_ratio", "relative"):
            self.terms = {"compared_term": 0.0}
        elif self.baseline is not None:
            self.terms = {"agent_term": 0.0, "baseline_term": 0.0}
        self._decisions = self.sim.decisions()
        self.terminated = next(self._decisions, "over") == "over"
        return self.observe()

    def step(self, action: Any) -> tuple[dict[str, list[Any]], float, bool]:
        """Take an action, run to the next decision, pay."""
        self.take(action)
        self.terminated = next(self._decisions, "over") == "over"
        return self.observe(), self.pay(), self.terminated

    # --- Actions ----------------------------------------------------------------------------------

    def take(self, action: Any) -> None:
        """Turn an action into the order of this pass."""
        sim, kind = self.sim, self.rules.action
        if kind == "job" and self.slots[action] is None:
            self.invalid_actions += 1
        if self.terminated:  # an episode without any decision
            return
        if kind == "weights":
            weights = [float(w) for w in np.asarray(action, dtype=np.float32)]
            sim.rank = self.weighted(weights)
        elif kind == "policy":
            name = self.rules.policies[action]
            sim.rank = lambda j: sim.score(name, j)
        else:
            place = {j: k for k, j in enumerate(self.by_policy(self.rules.policy))}
            if kind == "order":
                shown = {j: float(np.float32(x)) for j, x in zip(self.slots, action, strict=True)}
                sim.rank = lambda j: shown.get(j, 2.0 + place[j])
            else:
                chosen = self.slots[action]
                first = min(filter(sim.is_seen, place), key=place.__getitem__, default=None)
                sim.pick = first if chosen is None else chosen
                sim.rank = lambda j: -1 if j == sim.pick else place[j]

    def weighted(self, weights: Sequence[float]) -> Callable[[int], float]:
        """Return the score of the mixed rule; no weights mean FCFS."""
        rules, sim = self.rules, self.sim
        M, E = rules.processors, rules.largest_request
        T = 3 * E if rules.threshold is None else max(rules.threshold, 1)
        unit = (M, E, T, E, 1 + T / 3600, M * E)
        norm = added(abs(w) for w in weights)

        def score(j: int) -> float:
            r, _, _, q, _ = sim.jobs[j]
            if norm == 0:
                return r
            e, wait = sim.estimate[j], sim.now - r
            features = (q, e, wait, e / q, (wait + e) / e, e * q)
            total = 0.0
            for w, x, u in zip(weights, features, unit, strict=True):
                total += (w / norm / u) * x
            return total

        return score

    def by_policy(self, policy: Policy) -> list[int]:
        """Return the waiting jobs in the order of a policy, thresholded ones first."""
        return self.sim.by_rank(lambda j: self.sim.score(policy, j))

    # --- Rewards ----------------------------------------------------------------------------------

    def b(self, j: int, start: float, t: float) -> float:
        """Return what job j has cost by t, if it started at `start`."""
        r, m, D = self.sim.jobs[j].submit_time, self.cost.m[j], self.cost.D[j]
        return self.cost.at_submission + max(0, min(start, t) - r - m) / D

    def starts(self) -> list[float]:
        """Return when each job started, infinity for those that have not."""
        return [math.inf if s is None else s.start_time for s in self.sim.starts]

    def accrued(self, side: int, starts: Sequence[float], now: float) -> float:
        """Return what the interval since the last payment costs: the formula of R_k, times -N."""
        arrived = [j for j, job in enumerate(self.sim.jobs) if job.submit_time <= now]
        if side == 0:
            arrived = arrived[: self.sim.arrived]  # one by one, not all of now have had a turn
        n_k = len(arrived) - self._paid_arrivals[side]
        self._paid_arrivals[side] = len(arrived)
        total = float(n_k * self.cost.at_submission)
        for j in arrived:
            onset = self.sim.jobs[j].submit_time + self.cost.m[j]
            total += max(0, min(starts[j], now) - max(onset, self._paid_until)) / self.cost.D[j]
        return total

    def started(self, side: int, starts: Sequence[float], now: float) -> float:
        """Return what the jobs cost that started since the last payment, -b_j / N each."""
        paid = self._paid_starts[side]
        before = math.inf if side == 0 else now
        new = [j for j, s in enumerate(starts) if s < before and j not in paid]
        paid.update(new)
        return added(self.b(j, starts[j], now) for j in new)

    def means(self, starts: Sequence[float], now: float) -> float:
        """Return the mean bsld of the jobs submitted by now, as if those waiting started then."""
        total, n = 0.0, 0
        for job, p, s in zip(self.sim.jobs, self.sim.executed, starts, strict=True):
            if job.submit_time <= now:
                w = min(s, now) - job.submit_time
                total += max((w + p) / max(p, BSLD_BOUND_S), 1)
                n += 1
        return total / n if n else 1.0

    def unfairness(self, starts: Sequence[float], now: float) -> float:
        """Return F(now) over SAF's mean bsld; a job that has not come counts 1."""
        of_user: dict[int, list[float]] = {}
        for job, p, s in zip(self.sim.jobs, self.sim.executed, starts, strict=True):
            w = max(min(s, now) - job.submit_time, 0)
            slowdown = max((w + p) / max(p, BSLD_BOUND_S), 1)
            of_user.setdefault(job.user, []).append(slowdown)
        means = [added(each) / len(each) for each in of_user.values()]
        return math.sqrt(added(mean**2 for mean in means) / len(means)) / self.unit

    def pay(self) -> float:
        """Return the reward of the step that ends now; note the terms of it that infos show."""
        now: float = self.sim.now
        sides = [(self.starts(), now)]
        if self.baseline is not None:
            rest = math.inf if self.terminated else now
            sides.append(([s.start_time for s in self.baseline], rest))
        kind = self.rules.reward
        if kind in ("log_ratio", "relative"):
            agent, baseline = (self.means(*side) for side in sides)
            paid = 0.0
            if self.terminated and kind == "log_ratio":
                paid = -math.log(agent / baseline)
            elif self.terminated:
                paid = (baseline - agent) / max(agent, baseline, 1)
            self.terms = {"compared_term": paid}
            return paid
        if kind == "user_ratio":
            total = self.unfairness(*sides[0])
            paid, self._paid_total = self._paid_total - total, total
            return paid
        cost = []
        for side, (starts, until) in enumerate(sides):
            if kind == "bsld_start":
                cost.append(self.started(side, starts, until))
            elif kind == "bsld_end":
                cost.append(self.started(side, starts, until) if self.terminated else 0.0)
            else:
                cost.append(self.accrued(side, starts, until))
        self._paid_until = self.sim.now
        scale = len(self.sim.jobs) * self.unit
        terms = [-cost[0] / scale, *(c / scale for c in cost[1:])]
        self.terms = dict(zip(self.terms, terms, strict=False))
        return added(terms)

    # --- Infos ------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """Return what a step that does not end the episode tells."""
        masks = {}
        if self.rules.action == "job":
            held = [int(j is not None) for j in self.slots]
            masks["action_mask"] = held if any(held) else [1, *held[1:]]
        return self.terms | masks

    def end_info(self) -> dict[str, Any]:
        """Return what follows when the episode is over, or is cut short now."""
        now, sim = self.sim.now, self.sim
        table = list(zip(sim.jobs, sim.executed, self.starts(), strict=True))
        counted = [(job, p, min(s, now)) for job, p, s in table if job.submit_time <= now]
        begun = [(job, p, s) for job, p, s in table if s < math.inf]
        waits = [s - job.submit_time for job, _, s in counted]
        bound = [max(p, BSLD_BOUND_S) for _, p, _ in counted]
        turnaround = [w + p for w, (_, p, _) in zip(waits, counted, strict=True)]
        bsld = [max(T / D, 1) for T, D in zip(turnaround, bound, strict=True)]
        width = [job.processors for job, _, _ in counted]
        pp = [max(T / (q * D), 1) for T, q, D in zip(turnaround, width, bound, strict=True)]
        first = min((job.submit_time for job, _, _ in begun), default=0)
        span = max((s + p for _, p, s in begun), default=0) - first
        work = sum(p * job.processors for job, p, _ in begun)
        marks = [s for s in sim.starts if s is not None]
        found: dict[str, Any] = {
            "complete": float(len(begun) == len(table)),
            "n_jobs": len(counted),
            "n_backfilled": sum(s.backfilled for s in marks),
            "n_thresholded": sum(s.thresholded for s in marks),
            "makespan": span,
            "utilisation": work / (self.rules.processors * span) if span else 0.0,
            "ratio": added(bsld) / len(bsld) / self.saf if bsld else math.nan,
        }
        for name, column in (("wait_time", waits), ("bsld", bsld), ("pp_bsld", pp)):
            found[f"mean_{name}"] = added(column) / len(column) if column else math.nan
            found[f"max_{name}"] = max(column, default=math.nan)
        if self.rules.action == "job":
            found["invalid_actions"] = self.invalid_actions
        return found

    # --- Observation ------------------------------------------------------------------------------

    def observe(self) -> dict[str, list[Any]]:
        """Return what the data sheet shows, in Python's floats."""
        n_slots = self.rules.n_slots
        base = list(filter(self.sim.is_seen, self.by_policy("SAF")))
        n_oldest = n_slots // 4
        first, rest = base[: n_slots - n_oldest], base[n_slots - n_oldest :]
        oldest = sorted(rest)[:n_oldest]
        hidden = sorted(rest)[n_oldest:]
        shown = first + oldest
        self.slots: list[int | None] = shown + [None] * (n_slots - len(shown))
        shadow_of = self.shadows(base)
        rows = [self.show_job(j, shadow_of(j)) for j in shown]
        rows += [[0.0] * self.WIDTH] * (n_slots - len(shown))
        return {
            "jobs": rows,
            "cluster": self.show_cluster(hidden),
            "action_mask": [1.0] * len(shown) + [0.0] * (n_slots - len(shown)),
        }

    def fits(self, j: int) -> bool:
        """Say whether a waiting job could start now."""
        return self.sim.jobs[j].processors <= self.sim.free

    def shadows(self, base: Sequence[int]) -> Callable[[int], float]:
        """Return what gives each job its shadow time: that of the first that does not fit."""
        head = next((j for j in base if not self.fits(j)), None)
        shadow = math.inf if head is None else self.sim.reservation(head, self.sim.now)[0]
        return lambda j: shadow

    def show_job(self, j: int, shadow: float) -> list[float]:
        """Return the 18 fields of a visible job."""
        sim, M, E = self.sim, self.rules.processors, max(self.rules.largest_request, 2)
        r, _, _, q, _ = sim.jobs[j]
        e, wait, user = sim.estimate[j], sim.now - r, sim.user[j]
        log_e = min(math.log(e) / math.log(E), 1.0)
        ratio = -1.0
        if wait > 0:
            ratio = min(max(math.log(wait / e) / math.log(10**4), -1.0), 1.0)
        runs = [p for p, _ in user.ended]
        last = [min(math.log(max(p, 1)) / math.log(E), 1.0) for p in reversed(runs[-2:])] + [
            -1.0,
            -1.0,
        ]
        share = -1.0
        if runs:
            share = min(added(p / asked for p, asked in user.ended) / len(runs), 1.0)
        bounds = [max(min(p, e), BSLD_BOUND_S) for p in runs] + [max(e, BSLD_BOUND_S)]
        expected = added(1 / d for d in bounds) / len(bounds)
        return [
            log_e,
            log_e,
            q / M,
            min(math.log(e * q) / math.log(E * M), 1.0),
            month_share(wait),
            ratio,
            float(self.fits(j)),
            float(sim.now + e <= shadow),
            float(sim.is_thresholded(j, sim.now)),
            min(math.log(1 + user.n_ended) / math.log(1001), 1.0),
            last[0],
            last[1],
            share,
            min(-math.log(expected) / math.log(E), 1.0),
            -1.0 if user.last_end is None else month_share(r - user.last_end),
            *self.show_expected(j, e),
        ]

    def show_expected(self, j: int, e: int) -> list[float]:
        """Return the 3 of them that say what is expected of the job now."""
        if not self.rules.expectations:
            return [0.0] * 3
        M, E, job = self.rules.processors, max(self.rules.largest_request, 2), self.sim.jobs[j]
        user = self.sim.records.get(job.user, reference_index.NOBODY)
        share, speed = reference_index.by_records(job, e, user)
        if self.rules.expectations != "records":
            share, speed = self.sim.lessons.say(e, self.sim.look(j))
        index = math.log(job.processors) + 2 * math.log(max(e, 10)) + share - speed
        if self.rules.expectations == "urgency":
            index = max(index - self.urgency(j), 0.0)
        return [
            max(share / math.log(E), -1.0),
            min(speed / math.log(E), 1.0),
            min(index / math.log(E**2 * M), 1.0),
        ]

    def urgency(self, j: int) -> float:
        """Return what urgency takes off the score of a waiting job, and crowding of its width."""
        sim, M, q = self.sim, self.rules.processors, self.sim.jobs[j].processors
        W = sum(sim.jobs[k].processors for k in sim.waiting())
        taken = 0.1 * min(math.log(1 + W / M), 3) * math.log(q)
        beyond = sim.now - sim.jobs[j].submit_time - 50_000
        return taken + (4 * beyond / 150_000 if beyond > 0 and 0.1 * M <= q <= 0.6 * M else 0.0)

    def show_cluster(self, hidden: Sequence[int]) -> list[float]:
        """Return the 19 numbers of the cluster."""
        sim, M, E = self.sim, self.rules.processors, max(self.rules.largest_request, 2)
        ahead = [
            sim.free
            + sum(sim.jobs[j].processors for end, j in sim.releases if end <= sim.now + horizon)
            for horizon in (-math.inf, *HORIZONS_S)
        ]
        seen = filter(sim.is_seen, sim.waiting())
        areas = {j: sim.estimate[j] * sim.jobs[j].processors for j in seen}
        submitted = [job.submit_time for job in sim.jobs[: sim.arrived]]
        angle = 2 * math.pi * ((self.week_start + sim.now) % WEEK_S) / WEEK_S
        least = min((areas[j] for j in hidden), default=1)
        most = max((areas[j] for j in hidden), default=1)
        return [
            *(free / M for free in ahead),
            squash(sum(sim.jobs[j].processors for j in areas), M),
            squash(sum(areas.values()), HOUR_S * M),
            squash(sum(sim.now - r < HOUR_S for r in submitted), 10),
            squash(sum(sim.now - r < DAY_S for r in submitted), 100),
            math.sin(angle),
            math.cos(angle),
            squash(len(hidden), self.rules.n_slots),
            squash(sum(areas[j] for j in hidden), HOUR_S * M),
            min(math.log(least) / math.log(E * M), 1.0),
            min(math.log(most) / math.log(E * M), 1.0),
        ]

    def show_small(self) -> list[float]:
        """Return the 24 numbers of a small observation."""
        sim, M = self.sim, self.rules.processors
        seen = list(filter(sim.is_seen, sim.waiting()))
        releases = [(end - sim.now, sim.jobs[j].processors) for end, j in sim.releases]
        classes: list[list[int]] = [[] for _ in range(5)]
        for j in seen:
            classes[sum(sim.estimate[j] > 3600 * h for h in (1 / 4, 1, 4, 12))].append(j)
        waits = [sim.now - sim.jobs[j].submit_time for j in seen]
        since = [sim.now - job.submit_time for job in sim.jobs[: sim.arrived]]
        turns = [2 * math.pi * (self.week_start + sim.now) / span for span in (DAY_S, WEEK_S)]
        areas = [sum(sim.estimate[j] * sim.jobs[j].processors for j in each) for each in classes]
        return [
            1 - sim.free / M,
            *((sim.free + sum(q for d, q in releases if d <= 3600 * h)) / M for h in (1, 4, 12)),
            squash(sum(sim.jobs[j].processors for j in seen), M),
            *(squash(len(each), 10) for each in classes),
            *(squash(area, HOUR_S * M) for area in areas),
            max((sim.jobs[j].processors for j in seen), default=0) / M,
            month_share(max(waits, default=0)),
            month_share(sum(waits) / max(len(waits), 1)),
            squash(sum(d < HOUR_S for d in since), 10),
            squash(sum(d < DAY_S for d in since), 100),
            *(f(math.remainder(turn, 2 * math.pi)) for turn in turns for f in (math.sin, math.cos)),
        ]


def squash(x: float, half: float) -> float:
    """Map what is not bounded into [0, 1)."""
    return x / (x + half)


def month_share(seconds: float) -> float:
    """Return the logarithm of a time over that of 30 days, in minutes, at most 1."""
    return min(math.log(1 + seconds / 60) / math.log(1 + 43_200), 1.0)
