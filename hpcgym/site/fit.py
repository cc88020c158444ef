"""The setting nearest to a site's scheduler: what is tried, and on how much of the log.

Where the log is long all candidates are simulated on its first jobs, and those nearest to what was
recorded on the whole log. What counts is what the jobs of the first half waited. Where no setting
comes near, jobs are held as the log shows it. A search ends when its time is over.

Source: Jamieson, Talwalkar 2016, successive halving.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, zip_longest
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import steps
from hpcgym.core.constants import NEVER
from hpcgym.core.events import as_events
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.evaluation.store import Store
from hpcgym.site.log import SiteLog
from hpcgym.site.options import GUARD_S, allowed, conservative_on, is_dear, plainly, setting_text
from hpcgym.site.outcome import (
    HOUR_S,
    BoolArray,
    FloatArray,
    IntArray,
    Outcome,
    Try,
    compile_ahead,
    log_ratios,
    outcomes,
    share_apart,
)
from hpcgym.site.told import Told
from hpcgym.trace.split import WEEK_S

FEW, MOST = 2_500, 10_000  # jobs of the first stretches, the first on nodes only
FIT_S, JOBS = 20.0, 50_000  # how long a search may take, s, at up to so many jobs; longer with more
# By which shares of it few jobs, more, all jobs, and the same with holds are to end.
SHARES = (0.3, 0.5, 0.75, 0.8, 0.9, 1.0)
KEPT = 16  # candidates that stay after each
# Orders and modes tried together after the first jobs: at most how many, whether of the nearest.
CROSSED = ((4, False), (4, False), (16, True))
APART = attrgetter("is_chance", "apart")
NEARER = 0.9  # of the others' mean difference by job: what those tried together need at most
LEAST_RATIO = 0.01  # of a wait to the recorded one, where less would be expected
ENOUGH = 0.1  # a setting that is no further apart needs no holds
WEIGHTS = (100, 300, 1_000, 3_000, 10_000)  # of size, beside 1,000 of age
PLAIN = re.compile("FCFS, backfill easy, no threshold(, jobs held as recorded)?")
MOST_PARTITIONS = 16  # more have no limits of their own


@dataclass(frozen=True)
class Candidate:
    """A setting to try; `what` says of its events what the settings' text does not."""

    settings: SchedulerSettings
    what: str = ""
    is_told: bool = False  # whether the site says that this is what it has
    is_held: bool = False  # whether jobs are held as the log shows it, `held_until`
    is_crossed: bool = False  # whether it is of `crossed`

    def __str__(self) -> str:
        held = "jobs held as recorded" if self.is_held else ""
        return ", ".join(filter(None, [setting_text(self.settings), self.what, held]))


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate, what it made of the first jobs of a log, and how far that is apart."""

    candidate: Candidate
    ratios: FloatArray  # `log_ratios` of simulated to recorded waits
    by_job_h: float  # mean difference of each job's simulated and recorded wait
    outcome: Outcome
    is_chance: bool = False  # whether only its summary is near, see `ranked`

    @property
    def apart(self) -> float:
        """By what share waits differ from the recorded ones."""
        return share_apart(self.ratios)


@dataclass(eq=False)
class Fit:
    """The search on one log.

    It may take `fit_s`, once kernels are compiled. Then simulations end, but for what is told, and
    one on all jobs.

    Raises:
        HpcgymError: No candidate can be simulated; the message has the first reason.
        OutputError: The store cannot be written, as on a full disk.
    """

    log: SiteLog
    basis: SchedulerSettings
    told: Told
    store: Store | None
    fit_s: float | None = None  # default `FIT_S`, longer with more jobs than `JOBS`
    tried: list[Trial] = field(default_factory=list)  # nearest first
    left_out: list[str] = field(default_factory=list)  # what this machine refuses, and why
    n_untried: int = 0  # settings that did not end in time
    is_cut: bool = False  # whether there was no time for one, on all jobs or at all
    begin: float = field(init=False)  # when it began, s of `time.monotonic`

    def __post_init__(self) -> None:
        every = list(candidates(self.log, self.basis, self.told))
        n_jobs = len(self.log.workload)
        if self.fit_s is None:
            self.fit_s = time_for(n_jobs)
        compile_ahead([each.settings for each in every], self.log.workload)
        self.begin = time.monotonic()
        ends = [self.begin + share * self.fit_s for share in SHARES]
        with steps(
            2 * len(every), "looking for the site's setting", "simulations"
        ) as self._progress:
            self._search(every, ends[:3])
            self.without_holds = self.nearest
            if self.nearest.apart > ENOUGH:
                self._search([replace(each, is_held=True) for each in every], ends[3:])

    @property
    def nearest(self) -> Trial:
        """The candidate that is nearest to what was recorded, and what it makes of all jobs."""
        n_jobs = len(self.log.workload)
        of_all = (trial for trial in self.tried if len(trial.outcome.workload) == n_jobs)
        if (nearest := next(of_all, None)) is None:
            raise HpcgymError(
                f"{self.log.workload.name}: none of {len(self.left_out)} settings can be "
                f"simulated; the first: {self.left_out[0]}"
            )
        return nearest

    def _held(self, end: int) -> Workload:
        """Return the jobs, held as the log shows it before an instant."""
        jobs = self.log.workload
        until = held_until(jobs, self.log.names["partition"].astype(str), end)
        return replace(
            jobs, eligible=until if jobs.eligible is None else np.maximum(until, jobs.eligible)
        )

    @property
    def cut(self) -> list[str]:
        """What there is to say of a search that ended before its end."""
        n, n_jobs = len(self.tried), len(self.log.workload)
        n_whole = sum(len(trial.outcome.workload) == n_jobs for trial in self.tried)
        of_all = f"{n} of {n + self.n_untried}" if self.n_untried else f"all {n}"
        said = (
            f"the search for today's setting ended after {self.fit_s:g} s: it tried {of_all} "
            f"settings, and {n_whole} of them on the whole log"
        )
        return [said] * self.is_cut

    @property
    def of_told(self) -> list[str]:
        """What there is to say of the setting that the site told."""
        said = [
            f"told was {trial.candidate}: {trial.apart:.0%} apart, place {at} of {len(self.tried)}"
            for at, trial in enumerate(self.tried, start=1)
            if trial.candidate.is_told
        ]
        return said[:1]

    def _search(self, staying: Sequence[Candidate], ends: Sequence[float]) -> None:
        """Try candidates on the first jobs of a long log, and those that stay on more, then all."""
        jobs, is_held, kept = self.log.workload, staying[0].is_held, list[Trial]()
        n_early = np.count_nonzero(~self.log.is_judged)
        stages = [
            (n, int(jobs.submit_time[n]), until)
            for n, until in zip((FEW, MOST), ends, strict=False)
            if n < n_early and (n == MOST or jobs.machine is not None)
        ]
        for n, end, until in [*stages, (len(jobs), NEVER, ends[-1])]:
            first = (self._held(end) if is_held else jobs).select(np.arange(n))
            made = self._trials(staying, first, end, until, *kept, is_needed=not is_held)
            for most, is_last in () if kept else CROSSED:
                more = crossed(made, most, is_last=is_last)
                self._progress.total += len(more)
                together = self._trials(more, first, end, until, is_needed=False)
                made = ranked([*made, *together])
            if n == len(jobs):
                self.tried += made
                break
            stay = [at < KEPT or trial.candidate.is_told for at, trial in enumerate(made)]
            kept = list(compress(made, stay))
            self.tried += [trial for trial, stays in zip(made, stay, strict=True) if not stays]
            self._progress.total -= len(staying) - len(kept)
            staying = [trial.candidate for trial in kept]
        self.tried.sort(key=APART)

    def _trials(
        self,
        candidates: Sequence[Candidate],
        jobs: Workload,
        end: int,
        until: float,
        *before: Trial,
        is_needed: bool = True,
    ) -> list[Trial]:
        """Simulate jobs until an instant, and return candidates by early waits, nearest first.

        Waits count until `end`, at which a further job is submitted that might change them. A
        candidate that does not end in time stays with its trial of before, if it has one. Where one
        is needed, it is that which took least before. What takes longer than the jobs' share of the
        search cannot be simulated on all jobs.
        """
        assert self.fit_s is not None  # it is set
        early = jobs.submit_time < self.log.split
        longest = (end - jobs.submit_time[early]) / HOUR_S
        recorded = np.minimum(jobs.wait_time[early] / HOUR_S, longest)
        each_s = self.fit_s * len(jobs) / len(self.log.workload)
        tries = [
            Try(f"trying {each}", jobs, each.settings, each.is_told and not each.is_held)
            for each in candidates
        ]
        outcome_of = outcomes(tries, self.store, self._progress, until, each_s)
        took = [trial.outcome.took_s for trial in before] or [0.0] * len(tries)
        for at in sorted(range(len(tries) * is_needed), key=lambda at: took[at]):
            if any(isinstance(each, Outcome) for each in outcome_of):
                break
            if outcome_of[at] is None:
                needed = [tries[at]._replace(is_needed=True)]
                (outcome_of[at],) = outcomes(needed, self.store, self._progress)
        made: list[Trial] = []
        for candidate, outcome, trial in zip_longest(candidates, outcome_of, before):
            if isinstance(outcome, Outcome):
                waits = np.minimum(outcome.wait_h[early], longest)
                by_job = float(np.abs(waits - recorded).mean())
                made.append(Trial(candidate, log_ratios(waits, recorded), by_job, outcome))
            elif outcome is not None:
                self.left_out.append(f"{candidate}: {plainly(outcome)}")
            else:
                self.is_cut, self.n_untried = True, self.n_untried + (trial is None)
                made += [trial] if trial else []
        return ranked(made)


def ranked(made: Sequence[Trial]) -> list[Trial]:
    """Return trials, nearest first, but those of orders and modes together that are so by chance.

    These are not nearer than the others' nearest job by job.
    """
    plain = [trial for trial in made if not trial.candidate.is_crossed]
    most = NEARER * min(plain, key=lambda trial: trial.apart).by_job_h if plain else np.inf
    far = [trial.candidate.is_crossed and trial.by_job_h > most for trial in made]
    marked = (replace(trial, is_chance=each) for trial, each in zip(made, far, strict=True))
    return sorted(marked, key=APART)


def crossed(made: Sequence[Trial], most: int, *, is_last: bool) -> list[Candidate]:
    """Return those of orders and modes not yet tried together that are likely to be nearest.

    A mode is taken to change waits in an order by as much, or as many times, as it changes them in
    that of submission. The last are of the policies nearest so far, job by job and not.
    """
    by_order: dict[str, dict[str, Trial]] = {}
    for trial in made:
        under_easy = replace(trial.candidate.settings, backfill="easy")
        modes = by_order.setdefault(str(replace(trial.candidate, settings=under_easy)), {})
        modes[str(trial.candidate.settings.backfill)] = trial
    plain = next((by_order[order] for order in by_order if PLAIN.fullmatch(order)), {})
    by_job = min(made, key=lambda trial: trial.by_job_h, default=None)
    nearest_policies = {trial.candidate.settings.policy for trial in (*made[:1], by_job) if trial}
    distinct: dict[bytes, tuple[float, Candidate]] = {}
    for modes in by_order.values():
        order = replace(next(iter(modes.values())).candidate, is_told=False, is_crossed=True)
        if is_last and order.settings.policy not in nearest_policies:
            continue
        known = [mode for mode in plain if mode in modes]
        for mode in (mode for mode in plain if known and mode not in modes):
            there = plain[mode].ratios
            like = min(known, key=lambda each: share_apart(there - plain[each].ratios))
            ratios = [each.ratios for each in (modes[like], plain[mode], plain[like])]
            often, more = (each[0] + each[1] - each[2] for each in (ratios, np.exp(ratios)))
            apart = min(map(share_apart, (often, np.log(np.maximum(more, LEAST_RATIO)))))
            backfill = plain[mode].candidate.settings.backfill
            for settings in allowed(order.settings, {"backfill": backfill}):
                distinct.setdefault(
                    often.round(6).tobytes(), (apart, replace(order, settings=settings))
                )
    nearest = sorted(distinct.values(), key=lambda each: each[0])[:most]
    return sorted((each for _, each in nearest), key=lambda each: is_dear(each.settings))


def time_for(n_jobs: int) -> float:
    """Return how long the search may take, s."""
    return FIT_S * max(1.0, n_jobs / JOBS)


def candidates(log: SiteLog, basis: SchedulerSettings, told: Told) -> Iterator[Candidate]:
    """Yield what is tried: as told, plain settings, weights, limits, weeks; dear ones last."""
    jobs = log.workload
    last_end = int((jobs.submit_time + jobs.wait_time + jobs.run_time).max())
    stated = told.on_clock(log.begin, jobs.time_offset, last_end)
    basis = replace(basis, events=stated)
    said = list(allowed(basis, *_told(told, jobs)))
    every = [*said, *allowed(basis, *_plain(jobs))]
    kept = {(setting_text(each), each.events): each for each in reversed(every)}
    plain = sorted(kept.values(), key=every.index)
    dear = [each for each in plain if is_dear(each) and each not in said]
    for settings in plain:
        if settings not in dear:
            yield Candidate(settings, is_told=settings in said)
    orders = ["FCFS", "WFP3", "SAF", *(["fair-share"] if _has_users(jobs) else [])]
    for what, events in _as_recorded(log):
        together = [*stated, *as_events(events)]
        tried = [*_told(told, jobs), *({"policy": order} for order in orders)]
        changes = ({**order, "events": together} for order in tried)
        limited = {setting_text(each): each for each in allowed(basis, *changes)}
        yield from (Candidate(each, what) for each in limited.values())
    yield from map(Candidate, dear)


def _told(told: Told, jobs: Workload) -> Iterator[dict[str, Any]]:
    """Yield what the site says; where it states one of order and backfilling, with usual others."""
    if told.policy or told.backfill:
        modes = [told.backfill] if told.backfill else ["easy", "none", "slurm"]
        modes += [] if told.backfill else [conservative_on(jobs)]
        for mode in modes:
            yield {"policy": told.policy or "FCFS", "backfill": mode}


def _plain(jobs: Workload) -> Iterator[dict[str, Any]]:
    modes = ["easy", "none", "depth:k=3", "depth:k=10", "depth:k=30", conservative_on(jobs)]
    modes += ["slurm", "slurm:interval=600", "slurm:max_job_test=20", "slurm:max_job_test=100"]
    yield from ({"backfill": mode} for mode in modes)
    for order in ("SQF", "LQF", "SPF", "SAF", "WFP3", "MULTIFACTOR"):
        yield from ({"policy": order, "threshold": threshold} for threshold in (None, GUARD_S))
    if _has_users(jobs):
        yield from ({"policy": "fair-share", "backfill": mode} for mode in ("easy", "none"))
    for weight in WEIGHTS:
        for small in (0, 1):
            yield {"policy": f"multifactor:age=1000,jobsize={weight},favor_small={small}"}


def _has_users(jobs: Workload) -> bool:
    return len(np.unique(jobs.user)) > 1


def _as_recorded(log: SiteLog) -> Iterator[tuple[str, str]]:
    """Yield running limits of each user and partition, and the capacity of each week."""
    jobs, early = log.workload, ~log.is_judged
    if _has_users(jobs):
        for key, held in (("jobs", np.ones_like(jobs.processors)), ("cpus", jobs.processors)):
            most = max(peaks(jobs, jobs.user, held, early).values())
            most = max(most, int(held.max()))
            if key == "jobs" or most < jobs.machine_processors:  # else it limits nothing
                yield f"at most {most:,} {key} of a user", f"limit:per=user,{key}={most}"
    partition = jobs.named("partition").astype(str)
    names, codes = np.unique(partition, return_inverse=True)
    if 1 < len(names) <= MOST_PARTITIONS:
        most_of = peaks(jobs, codes, jobs.processors, early)
        limits = [
            f"limit:per=partition,name={name},cpus={max(most_of[code], int(wide))}"
            for code, name in enumerate(names)
            if name and (wide := jobs.processors[codes == code].max()) and code in most_of
        ]
        yield "cpus of each partition as recorded", ";".join(limits)
    if jobs.machine is None and (weeks := capacity_by_week(jobs)):
        yield "processors of each week as recorded", ";".join(weeks)


def peaks(jobs: Workload, group: IntArray, held: IntArray, among: BoolArray) -> dict[int, int]:
    """Return the most that jobs of each group hold at once as recorded, of some jobs."""
    rows = np.flatnonzero(among)
    start = (jobs.submit_time + jobs.wait_time)[rows]
    times = np.concatenate([start, start + jobs.run_time[rows]])
    change = np.concatenate([held[rows], -held[rows]])
    groups = np.concatenate([group[rows], group[rows]])
    order = np.lexsort((change, times, groups))  # ends of an instant stand before starts
    distinct, first = np.unique(groups[order], return_index=True)
    most = np.maximum.reduceat(np.cumsum(change[order]), first)
    return dict(zip(distinct.tolist(), most.tolist(), strict=True))


def capacity_by_week(jobs: Workload) -> list[str]:
    """Return outages of the processors that were never held in a week, of weeks with some."""
    start = jobs.submit_time + jobs.wait_time
    times = np.concatenate([start, start + jobs.run_time])
    change = np.concatenate([jobs.processors, -jobs.processors])
    order = np.lexsort((change, times))
    busy, weeks = np.cumsum(change[order]), times[order] // WEEK_S
    named, first = np.unique(weeks, return_index=True)
    before = np.concatenate([[0], busy])[first]  # what was held as the week began
    most = np.maximum(np.maximum.reduceat(busy, first), before)
    lacking = jobs.machine_processors - most
    begin = named * WEEK_S + jobs.time_offset
    return [
        f"outage:from={at},to={at + WEEK_S},processors={lacks}"
        for at, lacks in zip(begin.tolist(), lacking.tolist(), strict=True)
        if 0 < lacks < jobs.machine_processors
    ]


def held_until(jobs: Workload, partition: NDArray[np.str_], end: int) -> IntArray:
    """Return until when each job is held, s, by what the log shows before an instant.

    That is the last start, before its own, of a job of its partition that was submitted later, and
    asked for as many processors and as much time at the least. Orders of age, and those that take
    small or short jobs first, never do that. Those that take wide or long jobs first may.
    """
    start = jobs.submit_time + jobs.wait_time
    order = np.argsort(start, kind="stable")
    codes = np.unique(partition, return_inverse=True)[1]
    begun, submitted, width, limit, kind = (
        column[order]
        for column in (start, jobs.submit_time, jobs.processors, jobs.requested_time, codes)
    )
    first = np.searchsorted(begun, jobs.submit_time, side="right")
    last = np.searchsorted(begun, np.minimum(start, end), side="left")
    until = jobs.submit_time.copy()
    for job in np.flatnonzero(last > first).tolist():
        between = slice(first[job], last[job])
        passed = np.flatnonzero(
            (submitted[between] > jobs.submit_time[job])
            & (width[between] >= jobs.processors[job])
            & (limit[between] >= jobs.requested_time[job])
            & (kind[between] == codes[job])
        )
        if len(passed):
            until[job] = begun[first[job] + passed[-1]]
    return until
