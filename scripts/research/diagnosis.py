"""Diagnose where a rule loses, by branches of its decisions: what knowing and learning could gain.

Three questions, on weeks of a scenario, under the agent as the base:

- `ladder`: what would a planner reach that tries options by branches, by what it knows?
- `share_of_decisions`: how many decisions matter, and how much?
- `controls`: does a learner from such labels reach anything, and would it be seen if it could?

All sums are of bounded slowdowns, as ratios to the agent's on the same weeks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.agent.rule import RuleAgent
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.policy import as_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.schedule.counterfactual import Branches, Decision, Future, Option, first, last
from hpcgym.schedule.simulate import simulate
from research.trees import Trees, fit

FloatArray = NDArray[np.float64]

DURATION_S = 3_600
"""For how long an option holds, s."""

PAUSE_S = 1_800
"""Time between two decisions at which options are tried, s; contested passes come in bursts."""

MOST_OPTIONS = 6
"""Jobs that may go first; those that fit now are tried before others."""

RUN_TIMES: dict[str, str | float] = {"exact": "exact", "within 10 %": 0.1, "by records": "records"}
ARRIVALS = {"exact": 0, "off by 30 min": 1_800, "off by 6 h": 21_600}

SHARES = (0.003, 0.03, 0.15)
"""Shares of the options in training that a learner may choose to flip."""

N_FOLDS = 3


class Week(NamedTuple):
    """Jobs of a week, the base's settings, and the base's sum of bounded slowdowns."""

    workload: Workload
    settings: SchedulerSettings
    base: float


class Labels(NamedTuple):
    """A row for each option tried: features, true log run times, change of the sum, week.

    `at` numbers the decisions.
    """

    features: FloatArray
    truth: FloatArray
    change: FloatArray
    week: NDArray[np.int64]
    at: NDArray[np.int64]


def total_of(workload: Workload, start_time: NDArray[np.int64]) -> float:
    """Return the sum of bounded slowdowns of a schedule."""
    run_time = np.minimum(workload.run_time, workload.requested_time)
    turnaround = start_time - workload.submit_time + run_time
    return float(np.maximum(turnaround / np.maximum(run_time, BSLD_BOUND_S), 1.0).sum())


def weeks_of(
    workloads: Sequence[Workload], agent: RuleAgent, scenario: SchedulerSettings
) -> list[Week]:
    """Simulate weeks under an agent."""
    settings = agent.settings(scenario)
    return [
        Week(one, settings, total_of(one, simulate(one, **vars(settings)).start_time))
        for one in workloads
    ]


def branches_of(week: Week) -> tuple[Simulator, Branches]:
    """Return a week at its beginning, with users' records kept, and its branches."""
    asked = [as_policy("SMITH-HISTORY")]
    simulator = Simulator(week.workload, week.settings, decide="contested", extra_policies=asked)
    return simulator, Branches(simulator)


def options_at(simulator: Simulator, decision: Decision) -> list[int]:
    """Return places in order of the jobs that may go first, those that fit now before others."""
    behind = decision.jobs[1:]
    fits = simulator.workload.processors[behind] <= simulator.free_processors
    return [int(place) + 1 for place in np.argsort(~fits, kind="stable")[:MOST_OPTIONS]]


def planned(week: Week, futures: Sequence[Future]) -> float:
    """Return the sum that a planner reaches which takes the best option by its futures.

    An option is taken if its mean change over the futures is below 0 by a standard error. It holds
    until its job starts or `DURATION_S` have passed; at later decisions a better one may replace
    it, or none.
    """
    simulator, branches = branches_of(week)
    held: Option | None = None
    end = due = 0

    def changes(options: Sequence[Option], duration: int) -> FloatArray:
        found = [branches.branch(options, duration, future=one).total for one in futures]
        spread = np.std(found, axis=0) / max(len(found) - 1, 1) ** 0.5
        return np.asarray(np.mean(found, axis=0) + spread, float)

    while simulator.run():
        if held is not None and (simulator.now >= end or held.job not in simulator.waiting):
            held = None
        if simulator.now < due:
            if held is not None:
                branches.take(held)
            continue
        due = simulator.now + PAUSE_S
        decision = branches.decisions()
        tried = [first(decision.jobs[place]) for place in options_at(simulator, decision)]
        tried.append(last(decision.jobs[0]))
        change = changes(tried, DURATION_S)
        kept = 0.0
        if held is not None:
            kept = float(changes([held], end - simulator.now)[0])
            held = held if kept < 0 else None
        best = int(change.argmin())
        if change[best] < min(kept, 0.0):
            held, end = tried[best], simulator.now + DURATION_S
        if held is not None:
            branches.take(held)
    return total_of(week.workload, simulator.start_time)


def ladder(weeks: Sequence[Week], samples: int, seed: int = 0) -> pd.DataFrame:
    """Return the planner's ratio by what it knows of run times (rows) and submissions (columns)."""
    base = sum(week.base for week in weeks)
    rows = []
    for known, run_times in RUN_TIMES.items():
        row: dict[str, object] = {"run times": known}
        for named, jitter in ARRIVALS.items():
            n = 1 if run_times == "exact" and not jitter else samples
            futures = [Future(run_times, jitter, seed + sample) for sample in range(n)]
            reached = sum(planned(week, futures) for week in weeks)
            row[f"submissions {named}"] = round(reached / base, 3)
        rows.append(row)
    return pd.DataFrame(rows)


def label(weeks: Sequence[Week]) -> Labels:
    """Try options at contested passes of the base's own schedules, with the exact future."""
    found: list[tuple[FloatArray, FloatArray, FloatArray, int, int]] = []
    for number, week in enumerate(weeks):
        simulator, branches = branches_of(week)
        due = 0
        while simulator.run():
            if simulator.now < due:
                continue
            due = simulator.now + PAUSE_S
            decision = branches.decisions()
            places = options_at(simulator, decision)
            tried = [first(decision.jobs[place]) for place in places]
            change = branches.branch(tried, DURATION_S).total
            truth = true_features(week, decision)
            found.append((decision.features[places], truth[places], change, number, len(found)))
    sizes = [len(one[2]) for one in found]
    week_of, at = (np.repeat([one[place] for one in found], sizes) for place in (3, 4))
    joined = (np.concatenate([one[place] for one in found]) for place in range(3))
    features, truth, change = joined
    return Labels(features, truth, change, week_of, at)


def true_features(week: Week, decision: Decision) -> FloatArray:
    """Return what no scheduler knows: log run times of each job and the first, shape (n, 2)."""
    log = np.log1p(week.workload.run_time[decision.jobs])
    return np.stack([log, np.full(len(log), log[0])], axis=1)


def share_of_decisions(labels: Labels, base: float) -> dict[str, float]:
    """Return how many decisions matter, and how the changes are spread."""
    n = int(labels.at.max()) + 1
    best, most = np.zeros(n), np.zeros(n)
    np.minimum.at(best, labels.at, labels.change)
    np.maximum.at(most, labels.at, abs(labels.change))
    size = np.sort(abs(labels.change))[::-1]
    return {
        "decisions": n,
        "options tried": len(size),
        "decisions where an option changes a start, %": 100 * float((most > 0).mean()),
        "decisions where an option is better, %": 100 * float((best < 0).mean()),
        "median size of a change, % of the sum": 100 * float(np.median(size[size > 0])) / base,
        "largest gain of one option, % of the sum": -100 * float(best.min()) / base,
        "share of the largest 1 % of changes, %": 100
        * float(size[: len(size) // 100].sum() / size.sum()),
    }


def play(week: Week, trees: Trees, bound: float, knows: bool) -> float:
    """Return the sum under a learner, which lets the job of the lowest prediction go first.

    It does so for `DURATION_S` if the prediction is below `bound`.
    """
    simulator, branches = branches_of(week)
    held: Option | None = None
    end = due = 0
    while simulator.run():
        if held is not None and (simulator.now >= end or held.job not in simulator.waiting):
            held = None
        if held is None and simulator.now >= due:
            due = simulator.now + PAUSE_S
            decision = branches.decisions()
            places = options_at(simulator, decision)
            features = decision.features[places]
            if knows:
                features = np.hstack([features, true_features(week, decision)[places]])
            predicted = trees.predict(features)
            best = int(predicted.argmin())
            if predicted[best] < bound:
                held, end = first(decision.jobs[places[best]]), simulator.now + DURATION_S
        if held is not None:
            branches.take(held)
    return total_of(week.workload, simulator.start_time)


def learned(weeks: Sequence[Week], labels: Labels, knows: bool) -> float:
    """Return a learner's ratio to its base, out of fold.

    Folds are by week. Labels are clipped at their 1 % and 99 % quantiles. How many options it may
    flip is chosen on the other folds' weeks, each played by trees that were not fitted on it.
    """
    fold = np.arange(len(weeks)) % N_FOLDS
    features = np.hstack([labels.features, labels.truth]) if knows else labels.features
    change = np.clip(labels.change, *np.quantile(labels.change, [0.01, 0.99]))
    sums = np.empty((len(weeks), len(SHARES) + 1))
    sums[:, -1] = [week.base for week in weeks]  # no flip at all
    for out in range(N_FOLDS):
        seen = fold[labels.week] != out
        trees = fit(features[seen], change[seen])
        bounds = np.minimum(np.quantile(trees.predict(features[seen]), SHARES), 0.0)
        for place in np.flatnonzero(fold == out):
            sums[place, :-1] = [play(weeks[int(place)], trees, bound, knows) for bound in bounds]
    chosen = [int(sums[fold != out].sum(axis=0).argmin()) for out in range(N_FOLDS)]
    reached = sum(sums[place, chosen[fold[place]]] for place in range(len(weeks)))
    return float(reached / sums[:, -1].sum())


def controls(
    workloads: Sequence[Workload],
    scenario: SchedulerSettings,
    agent: RuleAgent,
    known_rule: tuple[RuleAgent, RuleAgent],
    tell: Callable[[str], None],
) -> pd.DataFrame:
    """Return what learners reach from an agent, and from the first of two rules.

    The second rule is known to be better than the first, by what it does. A learner that does not
    find that either could not have found something like it from the agent.
    """
    rows = []
    begin, better = known_rule
    for base in [agent] if agent.name == begin.name else [agent, begin]:
        weeks = weeks_of(workloads, base, scenario)
        began = time.perf_counter()
        labels = label(weeks)
        n, seconds = len(labels.change), time.perf_counter() - began
        tell(f"{base.name}: {n:,} labels, {n / seconds:,.0f} a second")
        if base is agent:
            for name, value in share_of_decisions(labels, sum(week.base for week in weeks)).items():
                tell(f"  {name}: {value:,.4g}")
        for knows in (False, True):
            what = "and true run times" if knows else "what a scheduler knows"
            rows.append(
                {"from": base.name, "learns from": what, "ratio": learned(weeks, labels, knows)}
            )
    weeks = weeks_of(workloads, begin, scenario)
    other = weeks_of(workloads, better, scenario)
    ratio = sum(week.base for week in other) / sum(week.base for week in weeks)
    rows.append(
        {"from": begin.name, "learns from": f"nothing: {better.name} itself", "ratio": ratio}
    )
    table = pd.DataFrame(rows)
    table["ratio"] = table["ratio"].round(3)
    return table
