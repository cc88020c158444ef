"""What else a site may set: depth and cycles of backfilling, rules for users, another machine.

What does not go with today's setting is a sentence that says so, in place of an option.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from hpcgym.core.backfill import as_mode
from hpcgym.core.events import as_events
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.site.fit import peaks
from hpcgym.site.log import SiteLog
from hpcgym.site.options import Option, conservative_on, option_of
from hpcgym.site.outcome import HOUR_S

CALLED = {"max_job_test": "bf_max_job_test", "k": "reservations", "interval": "bf_interval, s:"}
"""Parameters of modes that are tried, with what tables call them."""

BEYOND = 0.01  # share of jobs that may run longer than the largest limit that is tried
PARTS = {"cpus": 4, "jobs": 2}  # what part of the machine, or of the most jobs, a user may have
MOST_NAMED = 3  # users who are named, those with most jobs


def rules_beside(baseline: SchedulerSettings, log: SiteLog) -> Iterator[Option | str]:
    """Yield what else may be tried beside a setting, and why some of it cannot be."""
    yield from _backfilling(baseline)
    yield _largest_limit(baseline, log)
    yield from _of_users(baseline, log)
    if log.elsewhere is not None:
        yield _elsewhere(baseline, log.elsewhere)


def _backfilling(baseline: SchedulerSettings) -> Iterator[Option | str]:
    """Yield twice the depth and half the interval of today's backfilling."""
    mode: Any = as_mode(baseline.backfill)
    today = {key: getattr(mode, key, inf) for key in CALLED}
    tried = {key: value // 2 if key == "interval" else 2 * value for key, value in today.items()}
    stated = {key: int(value) for key, value in tried.items() if 0 < value < inf}
    for key, value in stated.items():
        name, what = f"{CALLED[key]} {value:,}", f"in place of {today[key]:,}, today's order"
        backfill = replace(mode, **{key: value})
        yield option_of(key, name, "mode", what, partial(replace, baseline, backfill=backfill))
    if not stated:
        yield f"depth and interval of backfilling: {mode} has neither"


def _largest_limit(baseline: SchedulerSettings, log: SiteLog) -> Option | str:
    """Return the least largest limit, in whole hours, that few jobs of the first half outran."""
    jobs, judged = log.workload, log.is_judged
    longest = int(np.quantile(jobs.run_time[~judged], 1 - BEYOND, method="higher"))
    most = HOUR_S * max(1, -(-longest // HOUR_S))
    stated = jobs.source.records["requested_time"].to_numpy()[jobs.source_row] > 0
    name, beyond = f"MaxTime {most // HOUR_S:,} h", judged & stated & (jobs.requested_time > most)
    if not beyond.any():
        return f"{name}: no job of the second half says that it asks for more"
    users, counts = np.unique(log.names["user"][beyond].astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_NAMED]
    whose = ", ".join(f"{users[at] or 'not stated'} {counts[at]:,}" for at in order)
    n, n_longer = (np.count_nonzero(each) for each in (beyond, judged & (jobs.run_time > most)))
    what = (
        f"{n:,} jobs of the second half ask for more, and get this limit; by user, of "
        f"{len(users):,}: {whose}. Longer than it run, as recorded: {n_longer:,}"
    )
    return Option("max-time", name, "limits", what, baseline, partial(cut_requests, most=most))


def cut_requests(workload: Workload, most: int) -> Workload:
    """Return the jobs with no limit beyond `most`, s."""
    return replace(workload, requested_time=np.minimum(workload.requested_time, most))


def _of_users(baseline: SchedulerSettings, log: SiteLog) -> Iterator[Option | str]:
    """Yield limits of what one user runs at once, where the log goes beyond them."""
    jobs, early = log.workload, ~log.is_judged
    for key, part in PARTS.items():
        held = jobs.processors if key == "cpus" else np.ones_like(jobs.processors)
        most = max(peaks(jobs, jobs.user, held, early).values())
        whole = jobs.machine_processors if key == "cpus" else most
        allowed = max(-(-whole // part), int(held.max()))
        name = f"{allowed:,} {key} a user"
        if most <= allowed or len(np.unique(jobs.user)) < 2:
            yield f"{name}: no user, of several, had more at once in the first half"
            continue
        of = "the machine" if key == "cpus" else f"the {most:,} that one had in the first half"
        what = f"running at once, at most: {allowed / whole:.0%} of {of}"
        events = (*as_events(baseline.events), *as_events(f"limit:per=user,{key}={allowed}"))
        settings = partial(replace, baseline, events=events)
        yield option_of(f"user-{key}", name, "limits", what, settings)


def _elsewhere(baseline: SchedulerSettings, there: Workload) -> Option | str:
    """Return the other machine, unless outages are of today's."""
    name = "the other machine"
    if any(hasattr(event, "announced") for event in as_events(baseline.events)):
        return f"{name}: outages, or the weeks of today's setting, are of today's machine"

    def moved(today: Workload) -> Workload:
        return replace(there, eligible=today.eligible)

    if str(baseline.backfill) == "conservative":
        baseline = replace(baseline, backfill=conservative_on(there))
    return Option("machine2", name, "machine", f"{there.machine}, today's order", baseline, moved)
