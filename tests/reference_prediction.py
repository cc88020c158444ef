"""The reference of predictions: EASY with estimates made at submission and corrected later.

It adds predictions to `tests/reference.py`, in plain Python from the specification's text. A job's
run time is predicted at its submission, from the jobs that have ended by then. When a job outlives
its estimate, the estimate is corrected to a longer one. A correction is an event of its own here,
at the instant at which the estimate runs out, and makes no pass. The kernels correct before a pass
instead.

An estimate is what the scheduler plans with; a job is killed at its request whatever the estimate.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reference import Completed, Machine, Policy, Ranking, Start, prepare

STEPS_S = [60 * m for m in (1, 5, 15, 30)] + [3600 * h for h in (1, 2, 5, 10, 20, 50, 100)]

CORRECTIONS = ("none", "reqtime", "tsafrir", "doubling")

Ask = Callable[[int, int, Sequence[Completed]], int]
"""A predictor of a job's request, its processors and its user's ended jobs, oldest first."""


# --- What an estimate is --------------------------------------------------------------------------


def luck(job_id: int, seed: int) -> float:
    """Return a job's luck in [0, 1), by the mixing function of SplitMix64."""
    mask, gamma = 2**64 - 1, 0x9E3779B97F4A7C15

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    return (mix((mix((seed + gamma) & mask) + (job_id + 1) * gamma) & mask) >> 11) / 2**53


def f_model(executed: Sequence[int], job_ids: Sequence[int], f: float, seed: int) -> list[int]:
    """Return estimates drawn evenly from p to (f + 1) p."""
    return [
        max(p + math.floor(luck(job_id, seed) * (math.floor(f * p) + 1)), 1)
        for p, job_id in zip(executed, job_ids, strict=True)
    ]


def recent(requested_time: int, processors: int, completed: Sequence[Completed]) -> int:
    """Return the mean run time of the user's last two ended jobs, within 1 s and the request."""
    if len(completed) < 2:
        return requested_time
    (p1, _), (p2, _) = completed[-2:]
    return max(1, min((p1 + p2) // 2, requested_time))


def corrected(kind: str, predicted: int, estimate: int, requested_time: int) -> int:
    """Return the next estimate of a job that has outlived its estimate."""
    if kind == "reqtime":
        return requested_time
    if kind == "doubling":
        return 2 * estimate
    longer = [predicted + step for step in STEPS_S if predicted + step > estimate]
    return min([requested_time, *longer[:1]])


# --- The machine ----------------------------------------------------------------------------------


class PredictingMachine(Machine):
    """A machine whose estimates are predicted when jobs are submitted, and corrected."""

    def begin(self, ask: Ask | None, correction: str) -> None:
        """Set how estimates are made and corrected."""
        self.ask = ask
        self.correction = correction
        self.predicted: dict[int, int] = {}  # the estimate of each job at its submission

    def first_score(self, ranking: Ranking, j: int) -> float:
        """Predict the job before it is ranked."""
        if j not in self.predicted:
            job = self.jobs[j]
            if self.ask is not None:
                completed = list(self.completed.get(job.user, ()))
                self.estimate[j] = self.ask(job.requested_time, job.processors, completed)
            self.predicted[j] = self.estimate[j]
        return super().first_score(ranking, j)

    def outlived(self) -> Iterator[tuple[int, int, int]]:
        """Yield (instant, job, next estimate) where an estimate runs out before its job ends."""
        ends = {j: end for end, _, j in self.ends}
        for out, j in self.releases:
            if ends[j] > out:
                limit = self.jobs[j].requested_time
                following = corrected(self.correction, self.predicted[j], self.estimate[j], limit)
                if following > self.estimate[j]:
                    yield out, j, following

    def next_correction(self) -> float:
        """Return when the next estimate that can be corrected runs out."""
        if self.correction == "none":
            return math.inf
        return min((out for out, _, _ in self.outlived()), default=math.inf)

    def correct(self, t: int) -> None:
        """Correct the estimate of every job whose estimate runs out at t."""
        for out, j, following in list(self.outlived()):
            if out == t:
                self.releases.remove((out, j))
                insort(self.releases, (out - self.estimate[j] + following, j))
                self.estimate[j] = following

    def come_to(self, t: int) -> None:
        """Correct each estimate that runs out by t, one after the other."""
        while (out := self.next_correction()) <= t:
            self.correct(out)


def simulate(
    jobs: Iterable[Sequence[int]],
    processors: int,
    policy: Policy = "FCFS",
    *,
    backfill: str = "easy",
    backfill_order: Policy | None = None,
    threshold: float | None = None,
    kill_at_limit: bool = True,
    estimates: str | Ask | Sequence[int] = "requested",
    correction: str = "none",
    event_semantics: str = "batch",
    history: Mapping[int, Sequence[Completed]] | None = None,
    kind: type[Machine] | None = None,
) -> list[Start]:
    """Schedule every job of a table; what is not named here is as in `reference.simulate`.

    Args:
        jobs: Rows of `Job`, in order of submit time.
        processors: Processors of the machine.
        policy: Order of the queue.
        backfill: "none", "easy", or a mode of `kind`.
        backfill_order: Order of the candidates for backfilling.
        threshold: Wait, s, beyond which a job goes first in either order.
        kill_at_limit: Whether a job is ended at its request.
        estimates: "requested", "exact", "doubled" or "recent"; one number per job; or a function.
        correction: How the estimate of a job that outlives it is corrected, one of `CORRECTIONS`.
        event_semantics: "batch", "pyss" or "one-by-one".
        history: Ended jobs per user before time 0, oldest first.
        kind: A machine with other backfilling modes.

    Returns:
        One `Start` per job.
    """
    ask = recent if estimates == "recent" else estimates if callable(estimates) else None
    asked = "requested" if ask is not None or estimates == "doubled" else estimates
    table, executed, estimate = prepare(
        jobs, processors, kill_at_limit=kill_at_limit, estimates=asked
    )
    if estimates == "doubled":
        estimate = [2 * e for e in estimate]
    order = (policy, backfill, backfill_order, threshold)
    kinds = (PredictingMachine,) if kind is None else (kind, PredictingMachine)
    made = type("Reference", kinds, {})
    machine = made(table, processors, *order, executed, estimate, history or {})
    machine.begin(ask, correction)
    return machine.run(event_semantics)
