"""How often intervals hold what they are of: weeks are drawn where the truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import hpcgym
from hpcgym.evaluation.statistics import (
    Estimate,
    FloatArray,
    mean_log_ratio,
    mean_of,
    mean_over_logs,
    ratio_of_sums,
    weekly_interval,
)
from hpcgym.trace.split import WEEK_S

LIKE_MOST, LIKE_HPC2N = (0.8, 0.4), (1.5, 0.5)
"""Spread of the logarithms of weeks, and of their ratios, about as KTH-SP2, CTC-SP2, SDSC-SP2 and
SDSC-Blue have them under SAF and other rules, and as HPC2N has."""

AGENTS = 5
"""How many agents the best is chosen of."""

RESAMPLES = 1_000
"""Of the percentile bootstrap, which is here to compare with."""

BOOTSTRAP = "percentile bootstrap"

WEEKS, PAIRS, ROWS = (2, 3, 4, 9, 40), (2, 3, 5, 10), (4, 8, 13, 26)
"""Numbers of weeks, of pairs of days, and of weeks in a row."""

LOGS = {"sdsc-sp2-weeks": ("FCFS", "SMITH", "URGENT-YOUNG"), "sdsc-blue-weeks": ("URGENT-YOUNG",)}
"""Logs whose weeks are drawn, and agents whose ratios are looked at."""
RULES = ("FCFS", "SMITH", "URGENT-YOUNG", "SPF", "SMITH-URGENT")
STRETCHES = ("KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln", "HPC2N-2002-2.2-cln")
"""Logs whose weeks in a row are looked at."""

Row = dict[str, str]
Ends = tuple[float, float]
Draw = Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray]]
"""Draws n weeks: what `AGENTS` agents have in each, shape (AGENTS, n), and the baseline, (n,)."""


@dataclass(frozen=True)
class Population:
    """Weeks that are drawn one by one, and the first agent's ratio of sums over all of them.

    Attributes:
        log_ratio: Its mean log ratio.
    """

    draw: Draw
    ratio: float
    log_ratio: float = math.nan


def generated(spread: float, noise: float) -> Population:
    """Return lognormal weeks whose agents are as good as the baseline, each with noise of its own.

    Args:
        spread: Standard deviation of the logarithm of weeks.
        noise: That of the logarithm of a week's ratio.
    """

    def draw(n: int, chance: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        weeks = np.exp(2 + spread * chance.normal(size=n))
        logs = noise * chance.normal(size=(AGENTS, n)) - noise**2 / 2
        return weeks * np.exp(logs), weeks

    return Population(draw, 1.0, -(noise**2) / 2)


def of_log(agents: Sequence[FloatArray], baseline: FloatArray, *, alike: bool) -> Population:
    """Return the weeks of a log, of which each may be drawn several times.

    Args:
        agents: Their metric by week, `AGENTS` of them.
        baseline: The baseline's.
        alike: Whether agents are made as good as the baseline, by a factor each.
    """
    own = np.array(agents)
    if alike:
        own = own / (own.sum(axis=1, keepdims=True) / baseline.sum())

    def draw(n: int, chance: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        weeks = chance.integers(0, len(baseline), n)
        return own[:, weeks], baseline[weeks]

    return Population(
        draw, float(own[0].sum() / baseline.sum()), float(np.log(own[0] / baseline).mean())
    )


def ratio(agent: FloatArray, baseline: FloatArray) -> Estimate:
    """Return the ratio of sums over weeks."""
    return ratio_of_sums(agent[:, None], baseline[:, None])


def bootstrap(
    sums: FloatArray, counts: FloatArray, chance: np.random.Generator, tail: float = 0.025
) -> Ends:
    """Return the percentile bootstrap's interval of a ratio of sums, as hpcgym had it."""
    drawn = chance.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES)
    low, high = np.quantile(drawn @ sums / (drawn @ counts), (tail, 1 - tail))
    return float(low), float(high)


def share(hits: Callable[[np.random.Generator], bool], draws: int) -> float:
    """Return how often something is so, of so many draws."""
    chance = np.random.default_rng(0)
    return sum(hits(chance) for _ in range(draws)) / draws


def holds(ends: Ends | None, truth: float) -> bool:
    """Tell whether an interval holds a value."""
    return ends is not None and ends[0] <= truth <= ends[1]


def of_ratios(population: Population, n: int, draws: int, *, resampled: bool = False) -> float:
    """Return how often the interval of a ratio of sums holds it, from n weeks."""

    def hits(chance: np.random.Generator) -> bool:
        own, baseline = population.draw(n, chance)
        found = bootstrap(own[0], baseline, chance) if resampled else ratio(own[0], baseline).ends()
        return holds(found, population.ratio)

    return share(hits, draws)


def of_log_ratios(population: Population, n: int, draws: int) -> float:
    """Return how often the interval of a mean log ratio holds it."""

    def hits(chance: np.random.Generator) -> bool:
        own, baseline = population.draw(n, chance)
        found = mean_log_ratio(own[0][:, None], baseline[:, None])
        return holds(found.ends(), population.log_ratio)

    return share(hits, draws)


def of_means(populations: Sequence[Population], n: int, draws: int) -> float:
    """Return how often the interval of a geometric mean over logs holds it, n weeks of each."""
    truth = math.exp(np.mean([math.log(one.ratio) for one in populations]))

    def hits(chance: np.random.Generator) -> bool:
        drawn = [one.draw(n, chance) for one in populations]
        return holds(mean_over_logs([ratio(own[0], other) for own, other in drawn]).ends(), truth)

    return share(hits, draws)


def falsely_better(population: Population, n: int, draws: int, among: int | None) -> float:
    """Return how often one of five agents, all as good as the baseline, is below it for sure.

    `among` is how many intervals are to hold at once; None takes the percentile bootstrap.
    """

    def hits(chance: np.random.Generator) -> bool:
        every, baseline = population.draw(n, chance)
        own = every[np.argmin(every.sum(axis=1))]
        if among is None:
            return bootstrap(own, baseline, chance)[1] < 1
        ends = ratio(own, baseline).ends(among)
        return ends is not None and ends[1] < 1

    return share(hits, draws)


def of_pairs(skewed: bool, n: int, draws: int, *, resampled: bool = False) -> float:
    """Return how often the interval of a mean difference holds it, from n pairs of days.

    Differences are normal, or those of lognormal means of days.
    """

    def hits(chance: np.random.Generator) -> bool:
        with_changes, without = chance.normal(size=(2, n))
        pairs = np.exp(with_changes) - np.exp(without) if skewed else with_changes - without
        if resampled:
            return holds(bootstrap(pairs, np.ones(n), chance), 0.0)
        return holds(mean_of(pairs).ends(), 0.0)

    return share(hits, draws)


def of_rows(
    likeness: float, n: int, draws: int, *, skewed: bool = False, resampled: bool = False
) -> float:
    """Return how often the interval of a report's gain holds it, from n weeks in a row.

    `likeness` is the autocorrelation of weekly gains. These are normal or lognormal, of one job.
    """
    truth = math.exp(0.5) if skewed else 0.0

    def hits(chance: np.random.Generator) -> bool:
        weeks = chance.normal(size=n)
        for week in range(1, n):
            weeks[week] *= math.sqrt(1 - likeness**2)
            weeks[week] += likeness * weeks[week - 1]
        gains = np.exp(weeks) if skewed else weeks
        if resampled:
            return holds(bootstrap(gains, np.ones(n), chance), truth)
        return _of_report(gains, np.arange(n) * WEEK_S, truth)

    return share(hits, draws)


def of_stretches(gains: FloatArray, submit_time: NDArray[np.int64], n: int) -> float:
    """Return how often n weeks in a row of a log have an interval that holds the whole log's gain.

    Args:
        gains: How much less each job waits, h.
        submit_time: When each is submitted, ascending, s.
    """
    weeks = (submit_time - submit_time[0]) // WEEK_S
    hits = []
    for first in range(int(weeks[-1]) - n + 1):
        inside = (weeks >= first) & (weeks < first + n)
        hits.append(_of_report(gains[inside], submit_time[inside], float(gains.mean())))
    return float(np.mean(hits))


def _of_report(gains: FloatArray, submit_time: NDArray[np.int64], truth: float) -> bool:
    """Tell whether the interval that a report has of some jobs' gains holds their true mean."""
    found = weekly_interval(gains, submit_time)
    return found is not None and found[0] <= truth <= found[1]


def likeness_of(gains: FloatArray, submit_time: NDArray[np.int64]) -> float:
    """Return the autocorrelation of a log's weekly mean gains."""
    weeks = np.unique((submit_time - submit_time[0]) // WEEK_S, return_inverse=True)[1]
    means = np.bincount(weeks, gains) / np.bincount(weeks)
    off = means - means.mean()
    return float(off[1:] @ off[:-1] / (off @ off))


def populations(*, with_logs: bool) -> tuple[dict[str, Population], dict[str, Population]]:
    """Return populations of weeks, and those whose agents are all as good as the baseline."""
    found = {"generated": generated(*LIKE_MOST), "heavy": generated(*LIKE_HPC2N)}
    as_good = dict(found)
    for log, agents in LOGS.items() if with_logs else ():
        evaluation = hpcgym.evaluate(RULES, log)
        values = {agent: evaluation.values(agent)[:, 0] for agent in RULES}
        saf = evaluation.values("SAF")[:, 0]
        for agent in agents:
            own = [values[agent], *(values[name] for name in RULES if name != agent)]
            found[f"{log}, {agent}"] = of_log(own, saf, alike=False)
        as_good[f"{log}, five agents"] = of_log(list(values.values()), saf, alike=True)
    return found, as_good


def ratio_rows(weeks: Mapping[str, Population], draws: int) -> Iterator[Row]:
    """Yield the shares of ratios, of mean log ratios and of geometric means over logs."""
    for name, one in weeks.items():
        for kind, old in ((BOOTSTRAP, True), ("ratio", False)):
            yield row(name, kind, {n: of_ratios(one, n, draws, resampled=old) for n in WEEKS})
        yield row(name, "mean log ratio", {n: of_log_ratios(one, n, draws) for n in WEEKS})
    logs = [*[generated(*LIKE_MOST)] * 4, generated(*LIKE_HPC2N)]
    shares = {n: of_means(logs, n, draws) for n in WEEKS}
    yield row("five generated logs", "geometric mean of ratios", shares)


def choice_rows(weeks: Mapping[str, Population], draws: int) -> Iterator[Row]:
    """Yield how often the best of agents that are all as good as SAF is called better."""
    for name, one in weeks.items():
        for kind, among in ((BOOTSTRAP, None), ("its own", 1), ("among five", AGENTS)):
            yield row(name, kind, {n: falsely_better(one, n, draws, among) for n in WEEKS})


def pair_rows(draws: int) -> Iterator[Row]:
    """Yield the shares of mean differences of pairs of days."""
    for name, skewed in (("normal", False), ("of lognormal days", True)):
        for kind, old in ((BOOTSTRAP, True), ("t", False)):
            yield row(name, kind, {n: of_pairs(skewed, n, draws, resampled=old) for n in PAIRS})


def rows_in_a_row(draws: int, logs: Sequence[str]) -> Iterator[Row]:
    """Yield the shares of gains from weeks in a row."""
    for skewed, like in ((False, 0.0), (False, 0.3), (False, 0.5), (True, 0.3), (True, 0.5)):
        name = f"{'lognormal' if skewed else 'normal'} weeks, autocorrelation {like}"
        for kind, old in ((BOOTSTRAP, True), ("report", False)):
            shares = {n: of_rows(like, n, draws, skewed=skewed, resampled=old) for n in ROWS}
            yield row(name, kind, shares)
    for log in logs:
        jobs = hpcgym.load_workload(log)
        fcfs, saf = (hpcgym.simulate(jobs, order).wait_time for order in ("FCFS", "SAF"))
        gains, times = (fcfs - saf) / 3600, np.asarray(jobs.submit_time)
        name = f"stretches of {log}, autocorrelation {likeness_of(gains, times):.2f}"
        yield row(name, "report", {n: of_stretches(gains, times, n) for n in ROWS})


def row(name: str, kind: str, shares: Mapping[int, float]) -> Row:
    """Return a row of shares in percent, by the number of weeks or pairs."""
    cells = {str(n): f"{100 * one:.1f}" for n, one in shares.items()}
    return {"population": name, "interval": kind, **cells}
