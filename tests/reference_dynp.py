"""The reference of dynP: each pass plans the queue under each candidate and takes the best plan.

Plain Python from the specification's text, section 8, "dynP", on the machine of
`tests/reference.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify
from typing import Any

from reference import BSLD_BOUND_S, Machine, Ranking, Start, prepare


class DynMachine(Machine):
    """A machine whose queue follows the candidate with the best plan."""

    def __init__(self, *arguments: Any, candidates: Sequence[str]) -> None:
        super().__init__(*arguments)
        self.candidates = candidates
        self.current = candidates[0]
        self.switches = 0

    def planned(self, candidate: str, t: int) -> float:
        """Return the mean bounded slowdown of the waiting jobs if run times equalled estimates."""
        waiting = list(self.primary.score)
        plan = Machine(
            self.jobs[: self.arrived],
            self.processors,
            candidate,
            self.backfill,
            None if self.secondary is self.primary else self.secondary.policy,
            self.threshold,
            self.estimate,
            self.estimate,
            {},
        )
        plan.arrived = self.arrived
        plan.free = self.free
        plan.releases = sorted((max(end, t), j) for end, j in self.releases)
        plan.ends = [(end, j, j) for end, j in plan.releases]
        heapify(plan.ends)
        for j in waiting:
            for ranking in plan.rankings:
                ranking.add(j, plan.first_score(ranking, j))
        plan.schedule(t)
        plan.run_batch()
        total = 0.0
        for j in waiting:
            start = plan.starts[j]
            assert start is not None
            e = self.estimate[j]
            flow = start.start_time - self.jobs[j].submit_time + e
            total += max(flow / max(e, BSLD_BOUND_S), 1.0)
        return total / len(waiting)

    def schedule(self, t: int) -> None:
        """Choose the candidate of this pass, then make the pass."""
        waiting = list(self.primary.score)
        if len(waiting) > 1:
            planned = [self.planned(candidate, t) for candidate in self.candidates]
            if min(planned) < planned[self.candidates.index(self.current)]:
                self.current = self.candidates[planned.index(min(planned))]
                self.switches += 1
        shared = self.secondary is self.primary
        self.primary = Ranking(self.current)
        for j in waiting:
            self.primary.add(j, self.first_score(self.primary, j))
        if shared:
            self.secondary = self.primary
        self.rankings = [self.primary] if shared else [self.primary, self.secondary]
        super().schedule(t)


def simulate(
    jobs: Sequence[Sequence[int]],
    processors: int,
    *,
    candidates: Sequence[str] = ("FCFS", "SPF", "LPF"),
    backfill: str = "easy",
    backfill_order: str | None = None,
    threshold: float | None = None,
    kill_at_limit: bool = True,
) -> tuple[list[Start], int]:
    """Schedule every job by dynP; also return how often the candidate changed."""
    table, executed, estimate = prepare(
        jobs, processors, kill_at_limit=kill_at_limit, estimates="requested"
    )
    machine = DynMachine(
        table,
        processors,
        candidates[0],
        backfill,
        backfill_order,
        threshold,
        executed,
        estimate,
        {},
        candidates=candidates,
    )
    return machine.run("batch"), machine.switches
