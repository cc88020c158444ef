"""What a clairvoyant one reaches whose choices are those of action `index`.

Every four hours it tries 25 constants. In branches each holds until the next decision, then the
best constant goes on to the end of the week. It takes the best, and is judged on the week as it is,
so that an agent of `index` could reach the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import ScenarioError
from hpcgym.core import constants as s
from hpcgym.core.actions.index import AT_ZEROS, SAF, Index
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels import entry_points
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.env.scale import scale_of, week_digest
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.gap import gap_closed
from hpcgym.evaluation.statistics import ratio_of_sums
from hpcgym.schedule.counterfactual import Branches, Future
from research.diagnosis import total_of
from research.scales import Kept, first_of

Constant = tuple[float, ...]

TRIED: tuple[Constant, ...] = Index.KNOWN
"""Actions that a decision chooses among, besides the best constant."""

COPIES, JITTER_S = 3, 1_800
"""Futures on which a decision is chosen, and how far their jobs are moved, s."""

KAPPA_COLUMN = 3
"""Of kappa among the parameters of its backfilling mode."""


class IndexWeek:
    """A week that is at a decision of action `index`, or over."""

    def __init__(self, jobs: Workload, scenario: SchedulerSettings) -> None:
        self._learned, self._saf = policies = Index(Index.USUAL_SLOTS).policies
        settings = replace(scenario, backfill=Index.usual_mode(scenario.backfill))
        decide = int(Index.USUAL_DECIDE)
        self.simulator = Simulator(jobs, settings, decide=decide, extra_policies=policies)
        self._branches = Branches(self.simulator)

    def set(self, simulator: Simulator, action: Constant) -> None:
        """Let an action hold from now on, as the kernel of `index` does."""
        processors, request, ratio, speed, root = np.add(AT_ZEROS, np.array(action, np.float32))
        policy = self._saf if action[:4] == SAF[:4] else self._learned
        weight = np.array(policy.parameters)
        if policy is self._learned:
            weight[s.TERM_PROCESSORS], weight[s.TERM_REQUEST] = processors, request
            weight[s.TERM_REGRESSED_RUN_TIME_RATIO] = ratio
            weight[s.TERM_REGRESSED_SPEED] = -speed
        state = simulator.state
        state.order_rule[0], state.weight[0, s.PASS_ORDER] = policy.rule, weight
        state.backfill_parameter[0, KAPPA_COLUMN] = root**2

    def sums(
        self, actions: Sequence[Constant], then: Constant, future: Future
    ) -> NDArray[np.float64]:
        """Return the week's sum of bounded slowdowns under each action until the next decision.

        Behind it another one holds. Jobs come as a future says.
        """
        first, *twins = self._branches._ready(1 + len(actions))
        plan = self._branches._plan(first, future)
        table = self.simulator._table if plan is None else plan.table
        jobs, sums = Struct(table), np.empty(len(actions))
        for row, (action, twin) in enumerate(zip(actions, twins, strict=True)):
            twin.restore(first)
            self.set(twin, action)
            if entry_points.run(jobs.address, twin._sim.address) == s.STATUS_DECISION:
                self.set(twin, then)
                twin.state.next_decision[0] = s.NEVER
                entry_points.run(jobs.address, twin._sim.address)
            turnaround = twin.start_time - table.submit_time + table.run_time
            sums[row] = np.maximum(turnaround / np.maximum(table.run_time, BSLD_BOUND_S), 1.0).sum()
        return sums

    def plan(self, base: Constant, futures: Sequence[Future]) -> tuple[float, list[Constant]]:
        """Play the week; return its sum of bounded slowdowns, and the actions that were taken.

        An action is taken if its mean change over the futures is the least, and below 0 by a
        standard error; else the base is.
        """
        tried, taken = [base, *(action for action in TRIED if action != base)], []
        while self.simulator.run():
            sums = np.array([self.sums(tried, base, future) for future in futures])
            change = sums - sums[:, :1]
            error = change.std(axis=0) / max(len(futures) - 1, 1) ** 0.5
            taken.append(tried[int((change.mean(axis=0) + error).argmin())])
            self.set(self.simulator, taken[-1])
        return total_of(self.simulator.workload, self.simulator.start_time), taken


def futures_of(number: int, knows: bool) -> list[Future]:
    """Return the futures on which decisions of a week are chosen: the week itself, or copies."""
    if knows:
        return [Future()]
    return [Future("exact", JITTER_S, COPIES * number + copy) for copy in range(COPIES)]


def rows(scenario: str, n_weeks: int, kept: Kept) -> Iterator[dict[str, str]]:
    """Yield what is reached on the first test weeks, of all if 0, and the gap closed by it.

    Raises:
        ScenarioError: Nobody has found the scale of the problem.
    """
    scale, episodes = (
        scale_of(scenario, "index"),
        first_of(Episodes(scenario).select("test"), n_weeks),
    )
    if scale is None:
        raise ScenarioError(f"{scenario} index: no scale is known; find it first")
    numbers = [number for number in episodes.numbers if number in scale.weeks]
    ends = [scale.weeks[number] for number in numbers]
    _, saf, static, clairvoyant = map(np.array, zip(*ends, strict=True))
    bsld = {"the best constant": static * saf}
    for name, knows in {"copies of the week": False, "the week itself": True}.items():
        bsld[name] = np.empty(len(numbers))
        for row, number in enumerate(numbers):
            jobs = episodes.workload(episodes.position(number))

            def find(jobs: Workload = jobs, number: int = number, knows: bool = knows) -> float:
                week = IndexWeek(jobs, episodes.settings)
                return week.plan(scale.constant, futures_of(number, knows))[0] / len(jobs)

            key = ["index, by AT_ZEROS", list(scale.constant), knows, week_digest(jobs)]
            bsld[name][row] = kept.value(key, find)
    bsld["any job, as the table has it"] = clairvoyant * saf
    for name, values in bsld.items():
        closed = gap_closed(static, values / saf, clairvoyant, saf)
        ratio = ratio_of_sums(values[:, np.newaxis], saf[:, np.newaxis])
        yield {"chosen on": name, "ratio": str(ratio), "gap closed": str(closed)}
