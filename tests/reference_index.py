"""The reference of index policies, which learn from a user's last jobs, in plain Python.

It adds to `tests/reference.py`, and shares no code with `hpcgym`. At every pass it scores every
waiting job anew, by all that is known at that instant. D is the run time, at least 10 s. E is the
estimate at the submission, at least 10 s, whatever correction follows while the job runs.

Scores are sums of float64, so the order of operations is part of their definition. It is the same
here: terms in the order of their names, records from the youngest to the oldest, inputs of a unit
after its bias. E/D is E times 1/D, and a weighted record is (weight times E) times 1/D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import reference
from reference import BSLD_BOUND_S, RING_JOBS, Ranking, added

DECAY = 0.75
SHORT_S = 60
LARGEST_COUNT = 1000
HIDDEN, LAST = 32, 16
HOUR_S, DAY_S = 3600, 86_400
TRUST, STEP, DAMPING = 0.5, 0.05, 0.01


class Record(NamedTuple):
    """A job that has ended."""

    run_time: int
    requested_time: int
    processors: int


class User(NamedTuple):
    """What is known of a user: jobs ended in all, and the last of them, oldest first."""

    completed: int
    last: tuple[Record, ...]


NOBODY = User(0, ())


class Index(tuple[float, ...]):
    """Six weights, on the logarithms of q, E, share and speed, and of both by a network.

    `more` are three weights: on both by the regression, and on share by the user's last two jobs.
    """

    network: Sequence[float] = ()
    more: tuple[float, float, float] = (0, 0, 0)

    def with_more(self, *more: float) -> Index:
        """Return it with other weights after the six."""
        index = Index(self)
        index.network, index.more = self.network, more
        return index

    __hash__, __eq__ = object.__hash__, object.__eq__  # the same only if its network is


RULES = {
    "SPF-RECENT": Index((0, 1, 0, 0, 0, 0)).with_more(0, 0, 1),
    "SAF-RECENT": Index((1, 1, 0, 0, 0, 0)).with_more(0, 0, 1),
    "SMITH-RECENT": Index((1, 2, 0, 0, 0, 0)).with_more(0, 0, 2),
    "SPF-HISTORY": Index((0, 1, 1, 0, 0, 0)),
    "SAF-HISTORY": Index((1, 1, 1, 0, 0, 0)),
    "SMITH-HISTORY": Index((1, 2, 1, -1, 0, 0)),
    "SPF-REG": Index((0, 1, 0, 0, 0, 0)).with_more(1, 0, 0),
    "SAF-REG": Index((1, 1, 0, 0, 0, 0)).with_more(1, 0, 0),
    "SMITH-REG": Index((1, 2, 0, 0, 0, 0)).with_more(1, -1, 0),
}

KINDS: tuple[Callable[[Record, reference.Job], bool], ...] = (
    lambda record, job: True,
    lambda record, job: record.requested_time == job.requested_time,
    lambda record, job: record[1:] == (job.requested_time, job.processors),
    lambda record, job: record.processors == job.processors,
)
"""Which records resemble a job."""


def bounded(seconds: int) -> float:
    """Return a time as bounded slowdown counts it: at least 10 s."""
    return float(max(seconds, BSLD_BOUND_S))


def of_kind(kind: int, job: reference.Job, user: User) -> Iterator[tuple[float, Record]]:
    """Yield the user's records of a kind, the youngest first, with what each weighs."""
    alike = [record for record in reversed(user.last) if KINDS[kind](record, job)]
    return zip((DECAY**k for k in range(len(alike))), alike, strict=True)


def by_records(job: reference.Job, e: int, user: User) -> list[float]:
    """Return the logarithms of share and speed by hierarchical means."""
    E, share, speed = bounded(e), 1.0, 1.0
    for kind in range(3):
        total = 1.0  # the mean before counts as one record
        for weight, record in of_kind(kind, job, user):
            times = max(E * (1 / bounded(record.run_time)), 1.0)
            share += weight / times
            speed += weight * times
            total += weight
        share, speed = share / total, speed / total
    return [math.log(share), math.log(speed)]


def network_inputs(job: reference.Job, e: int, user: User) -> list[float]:
    """Return the 27 inputs of a network for a job."""
    E = bounded(e)
    seen = [
        math.log(E) / 12,
        math.log(job.processors) / 6,
        math.log(1 + min(user.completed, LARGEST_COUNT)) / 7,
    ]
    for kind in range(4):
        records = list(of_kind(kind, job, user))
        seen.append(math.log(1 + len(records)) / 3)
        if not records:
            seen += [0.0] * 5
            continue
        logs = [math.log(bounded(record.run_time)) - math.log(E) for _, record in records]
        total = added(weight for weight, _ in records)
        mean = short = inverse = plain = 0.0
        for (weight, record), log_share in zip(records, logs, strict=True):
            mean += weight * log_share
            short += weight * (record.run_time < SHORT_S)
            inverse += weight * E * (1 / bounded(record.run_time))
            plain += log_share
        seen += [mean / total / 5, short / total, logs[0] / 5, plain / len(records) / 5]
        seen.append(-math.log(inverse / total) / 5)
    return seen


def by_network(network: Sequence[float], seen: Sequence[float]) -> list[float]:
    """Return the logarithms of share and speed that a network of three layers predicts."""
    activations, parameters = list(seen), iter(network)
    for units in (HIDDEN, LAST, 2):
        rows = [[next(parameters) for _ in activations] for _ in range(units)]
        out = []
        for row in rows:
            total = next(parameters)
            for weight, number in zip(row, activations, strict=True):
                total += weight * number
            out.append(total)
        activations = out if units == 2 else [x / (1 + abs(x)) for x in out]
    assert next(parameters, None) is None
    return activations


class Lessons:
    """The regression: two linear models, of log share and of log speed, as learnt so far."""

    def __init__(self) -> None:
        """Begin halfway between the request and the records."""
        self.models = [[0.0] * 8, [0.0] * 8]
        self.models[0][3] = self.models[1][4] = 5 * TRUST
        self.squares = [[0.0] * 8, [0.0] * 8]

    def say(self, e: int, seen: Sequence[float]) -> list[float]:
        """Return the logarithms of share and speed; a run time is from 10 s to E."""
        said = []
        for model in self.models:
            total = 0.0
            for coefficient, number in zip(model, seen, strict=True):
                total += coefficient * number
            said.append(total)
        most = math.log(bounded(e)) - math.log(BSLD_BOUND_S)
        return [min(max(said[0], -most), 0.0), min(max(said[1], 0.0), most)]

    def learn(self, run_time: int, e: int, seen: Sequence[float]) -> None:
        """Take a step of AdaGrad down the Poisson losses of D/E and 10 s / D."""
        share, speed = self.say(e, seen)
        most = math.log(bounded(e)) - math.log(BSLD_BOUND_S)
        times = max(bounded(e) / bounded(run_time), 1.0)
        errors = (
            math.exp(share) - 1 / times,
            math.exp(speed - most) - times * BSLD_BOUND_S / bounded(e),
        )
        for model, squares, error in zip(self.models, self.squares, errors, strict=True):
            for k, number in enumerate(seen):
                gradient = error * number
                squares[k] += gradient * gradient
                model[k] -= STEP * gradient / math.sqrt(squares[k] + DAMPING)


def regressors(job: reference.Job, e: int, user: User, day_start: int) -> list[float]:
    """Return the eight inputs of the regression for a job."""
    angle = 2 * math.pi * ((day_start + job.submit_time) % DAY_S) / DAY_S
    share, speed = by_records(job, e, user)
    return [
        *(1.0, (math.log(bounded(e)) - math.log(HOUR_S)) / 5, math.log(job.processors) / 5),
        *(share / 5, speed / 5, math.sin(angle), math.cos(angle)),
        math.log(1 + min(user.completed, LARGEST_COUNT)) / 7,
    ]


def by_recent(job: reference.Job, e: int, user: User) -> float:
    """Return the logarithm of the share by the mean of the user's last two run times."""
    seconds = job.requested_time
    if user.completed > 1:
        seconds = min((user.last[-1].run_time + user.last[-2].run_time) // 2, seconds)
    return min(math.log(bounded(seconds)) - math.log(bounded(e)), 0.0)


def index(
    rule: Index, job: reference.Job, e: int, user: User, said: Sequence[float] = (0.0, 0.0)
) -> float:
    """Return the score of a waiting job; `said` is what the regression predicts."""
    nothing = [0.0, 0.0]
    terms = [math.log(job.processors), math.log(bounded(e))]
    terms += by_records(job, e, user) if any(rule[2:4]) else nothing
    terms += by_network(rule.network, network_inputs(job, e, user)) if rule.network else nothing
    terms += [*said, by_recent(job, e, user)]
    total = 0.0
    for weight, term in zip((*rule, *rule.more), terms, strict=True):
        total += weight * term
    return total


class Reader(reference.Machine):
    """A machine that keeps records of its users' last jobs."""

    past: Mapping[int, User] = {}
    day_start = 0

    def __init__(self, *settings: Any) -> None:
        """Recall what ended before time 0."""
        super().__init__(*settings)
        self.known = dict(self.past)
        self.scored: dict[tuple[Index, int], tuple[User, int, float]] = {}
        self.lessons = Lessons()
        self.seen: dict[int, tuple[User, int, list[float]]] = {}

    def complete(self) -> None:
        """End the first job to end; the regression and its user's records learn from it."""
        j = self.ends[0][2]
        self.lessons.learn(self.executed[j], self.first_estimate(j), self.look(j))
        super().complete()
        completed, last = self.user(j)
        record = Record(self.executed[j], self.jobs[j].requested_time, self.jobs[j].processors)
        self.known[self.jobs[j].user] = User(completed + 1, (*last, record)[-RING_JOBS:])

    def user(self, j: int) -> User:
        """Return what is known now of the user of job j."""
        return self.known.get(self.jobs[j].user, NOBODY)

    def first_estimate(self, j: int) -> int:
        """Return the estimate of job j at its submission, before corrections."""
        return int(vars(self).get("predicted", self.estimate)[j])

    def look(self, j: int) -> list[float]:
        """Return the regression's inputs for job j, computed only where they have changed."""
        user, e = self.user(j), self.first_estimate(j)
        kept = self.seen.get(j)
        if kept is None or kept[0] is not user or kept[1] != e:
            seen = regressors(self.jobs[j], e, user, self.day_start)
            kept = self.seen[j] = user, e, seen
        return kept[2]

    def score(self, rule: Index, j: int) -> float:
        """Return the score of job j, computed only where its terms have changed."""
        user, e = self.user(j), self.first_estimate(j)
        if any(rule.more[:2]):
            return index(rule, self.jobs[j], e, user, self.lessons.say(e, self.look(j)))
        kept = self.scored.get((rule, j))
        if kept is None or kept[0] is not user or kept[1] != e:
            kept = self.scored[rule, j] = user, e, index(rule, self.jobs[j], e, user)
        return kept[2]

    def in_order(self, ranking: Ranking, t: int) -> Iterator[int]:
        """Yield the waiting jobs: the thresholded ones by arrival, then the others by score."""
        rule = ranking.policy
        if not isinstance(rule, Index):
            yield from super().in_order(ranking, t)
            return
        late = [j for j in ranking.score if self.is_thresholded(j, t)]
        others = [j for j in ranking.score if not self.is_thresholded(j, t)]
        yield from late
        yield from sorted(others, key=lambda j: (self.score(rule, j), j))


def reader(
    past: Mapping[int, User],
    day_start: int,
    kind: type[reference.Machine],
    base: type[Reader] = Reader,
) -> type[reference.Machine]:
    """Return a machine of a kind that knows users' past jobs and the time of day at time 0."""
    return type("Reader", (base, kind), {"past": past, "day_start": day_start})
