"""What would change for a site's users: each option beside the simulation of today's scheduler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.progress import steps
from hpcgym.evaluation.statistics import weekly_interval
from hpcgym.evaluation.store import Store
from hpcgym.site.fidelity import COPIES, Fidelity, verdict
from hpcgym.site.groups import Grouping, groupings_of
from hpcgym.site.log import SiteLog
from hpcgym.site.options import Group, Option, is_dear, options_beside, plainly, setting_text
from hpcgym.site.outcome import BoolArray, FloatArray, Outcome, Try, compile_ahead, outcomes
from hpcgym.site.rules import rules_beside

TOLD_H = 1 / 6  # a job whose wait changes by less than this neither wins nor loses, h
DEAR = 3  # an option that takes so many times its share of the time is tried last
FEWEST_OF_GROUP = 30  # smaller groups of jobs are not named as those that lose most

UNTOLD = "not distinguishable"
"""What is said of a change that is smaller than what the simulation misses."""

RECORDED, TODAY = "recorded", "today"
"""Ids of what the log says, and of the simulation that is nearest to it."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A log's outcomes by id, and the options behind them; `RECORDED` and `TODAY` have none."""

    log: SiteLog
    fidelity: Fidelity
    outcomes: dict[str, Outcome]
    options: dict[str, Option]
    left_out: tuple[str, ...]  # options that cannot be simulated, and why
    untried: tuple[str, ...] = ()  # options that did not end in time

    def gain_h(self, option: str, jobs: BoolArray) -> float:
        """Return how much less some jobs wait than today, in the mean, h."""
        return float((self.outcomes[TODAY].wait_h - self.outcomes[option].wait_h)[jobs].mean())

    @property
    def cut(self) -> list[str]:
        """What there is to say of noise and options that did not end in time."""
        n, n_noise = len(self.options), len(self.fidelity.noise_h)
        said = (
            f"noise and options ended {self.fidelity.together_s:g} s after the search began: of "
            f"{COPIES} copies for the noise {n_noise} were simulated, and of "
            f"{n + len(self.untried)} options {n}; left out: {'; '.join(self.untried) or 'none'}"
        )
        return [said] * (bool(self.untried) or n_noise < COPIES)

    @cached_property
    def is_far(self) -> bool:
        """Tell whether the simulation is so far from what was recorded that it tells nothing."""
        judged = self.log.is_judged
        mean = float(self.fidelity.recorded.wait_h[judged].mean())
        return verdict(self.fidelity.misfit_h(judged), mean) == "far"

    def told(self, option: str, jobs: BoolArray) -> str:
        """Say whether the mean wait of some jobs gets "better", "worse", or cannot be told."""
        together = Grouping.of("", [""], np.zeros(len(jobs), dtype=np.int64), jobs)
        return str(self.told_of(option, together)[0])

    @cached_property
    def groupings(self) -> list[Grouping]:
        """The kinds of groups of judged jobs that the log tells apart."""
        return groupings_of(self.log)

    def gains(self, option: str, grouping: Grouping) -> FloatArray:
        """Return how much less the jobs of each group wait than today, in the mean, h."""
        return grouping.means(self.outcomes[TODAY].wait_h - self.outcomes[option].wait_h)

    def told_of(self, option: str, grouping: Grouping) -> NDArray[np.str_]:
        """Say of each group what `told` says of jobs."""
        fidelity, gains = self.fidelity, self.gains(option, grouping)
        waits = fidelity.recorded.wait_h
        misfits = [grouping.distances(each.wait_h, waits) for each in fidelity.simulations]
        moved = [np.abs(grouping.means(copy)) for copy in fidelity.noise_h]
        least = np.max([*misfits, *moved], axis=0)
        words = np.where(gains > 0, "better", "worse")
        return np.where((np.abs(gains) <= least) | self.is_far, UNTOLD, words)

    def best(self, *, simulated_only: bool) -> str | None:
        """Return the order with the least mean wait on the first half, or the best of all."""
        kinds = ("order", "simulated only") if simulated_only else ("order",)
        early = ~self.log.is_judged
        gains = {
            key: self.gain_h(key, early)
            for key, option in self.options.items()
            if option.group in kinds
        }
        return max(gains, key=lambda key: gains[key], default=None)


def compare(log: SiteLog, fidelity: Fidelity, store: Store | None = None) -> Comparison:
    """Simulate every option."""
    is_known, held = not log.machine_is_guess, fidelity.simulated.workload
    every: list[Option | str] = [
        *rules_beside(fidelity.settings, log),
        *options_beside(fidelity.settings, held, is_machine_known=is_known),
    ]
    tried = sorted((each for each in every if isinstance(each, Option)), key=_usefulness)
    left_out = [said for said in every if isinstance(said, str)]
    known = {RECORDED: fidelity.recorded, TODAY: fidelity.simulated}
    options, untried = {}, []
    tries = [
        Try(f"trying {each.name}", each.change(held) if each.change else held, each.settings)
        for each in tried
    ]
    begin = time.monotonic()
    compile_ahead([each.settings for each in tried], held)
    until = fidelity.until + time.monotonic() - begin
    with steps(len(tried), "trying what might be", "options") as progress:
        # What takes long keeps no other from its turn: it gets what is left.
        left_s = until - time.monotonic()
        made = outcomes(tries, store, progress, until, DEAR * left_s / max(len(tries), 1))
        again = [at for at, outcome in enumerate(made) if outcome is None]
        progress.total += len(again)
        late = outcomes([tries[at] for at in again], store, progress, until)
        for at, outcome in zip(again, late, strict=True):
            made[at] = outcome
    for option, outcome in zip(tried, made, strict=True):
        if isinstance(outcome, Outcome):
            known[option.id], options[option.id] = outcome, option
        elif outcome is None:
            untried.append(option.name)
        else:
            left_out.append(f"{option.name}: {plainly(outcome)}")
    return Comparison(log, fidelity, known, options, tuple(left_out), tuple(untried))


def _usefulness(option: Option) -> tuple[bool, bool, int]:
    """Return by what options are sorted: as asked for, of the site, by kind; dear ones last."""
    kind = get_args(Group).index(option.group)
    return option.id != "machine2", is_dear(option.settings), kind


def option_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the rows of the table of options: recorded, today, then what may be tried."""
    judged, fidelity = comparison.log.is_judged, comparison.fidelity
    today = str(fidelity.fit.nearest.candidate)
    heads = {
        RECORDED: ("recorded", "today", "what the log says", "the site's"),
        TODAY: ("simulated today", "today", "the setting nearest to the site's", today),
    }
    heads |= {
        key: (option.name, option.group, option.what, setting_text(option.settings))
        for key, option in comparison.options.items()
    }
    best = {comparison.best(simulated_only=False), comparison.best(simulated_only=True)}
    rows = []
    for key, (name, group, what, settings) in heads.items():
        first = group in ("today", "order") or key in best or key == "machine2"
        row = {"id": key, "name": name, "group": group, "first": first, "what": what}
        row |= {"settings": settings, **comparison.outcomes[key].summary(judged)}
        rows.append(row | (_change(comparison, key) if group != "today" else _NO_CHANGE))
    if helps := most_helpful(rows):
        helps["first"] = True
    return rows


def most_helpful(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the row of what a site can set that is told to help most; None: none is."""
    better = [row for row in rows if row["told"] == "better" and row["group"] != "simulated only"]
    return max(better, key=lambda row: float(row["gain_h"]), default=None)


_NO_CHANGE = dict.fromkeys(("gain_h", "interval_h", "told", "losers", "winners", "worst_group"))


def _change(comparison: Comparison, option: str) -> dict[str, Any]:
    log, judged = comparison.log, comparison.log.is_judged
    gains = (comparison.outcomes[TODAY].wait_h - comparison.outcomes[option].wait_h)[judged]
    interval = weekly_interval(gains, log.workload.submit_time[judged])
    told = comparison.told(option, judged)
    if interval is None or interval[0] <= 0 <= interval[1]:
        told = UNTOLD
    return {
        "gain_h": float(gains.mean()),
        "interval_h": interval,
        "told": told,
        "losers": float((gains < -TOLD_H).mean()),
        "winners": float((gains > TOLD_H).mean()),
        "worst_group": worst_group(comparison, option),
    }


def worst_group(comparison: Comparison, option: str) -> dict[str, Any] | None:
    """Return the partition, account, user or kind of job whose mean wait grows most, by enough."""
    worst: dict[str, Any] | None = None
    for grouping in comparison.groupings:
        changes, told = -comparison.gains(option, grouping), comparison.told_of(option, grouping)
        named = (grouping.n >= FEWEST_OF_GROUP) & (told == "worse")
        for at in np.flatnonzero(named & (changes == changes[named].max(initial=-np.inf))):
            if worst is None or changes[at] > worst["change_h"]:
                worst = {"by": grouping.by, "name": grouping.names[at], "n": int(grouping.n[at])}
                worst["change_h"] = float(changes[at])
    return worst
