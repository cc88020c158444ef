"""What a page lets look into: groups, heat maps, queues on dates, days of jobs, single changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hpcgym.schedule.allocation import allocate_processors
from hpcgym.site.comparison import RECORDED, TODAY, Comparison
from hpcgym.site.groups import LIMIT_NAMES, classes_of, cpu_class_names
from hpcgym.site.log import SiteLog
from hpcgym.site.outcome import HOUR_S, Outcome, busy_processors, queue_lengths

DAY_S = 86_400
MOST_STEPS = 9_000
MOST_GROUPS = 500
N_DAYS = 5
MOST_BOXES = 4_000
N_CHANGED = 20
QUARTER = 0.25


def shown_options(comparison: Comparison, named: str | None) -> list[str]:
    """Return the ids that details are about: recorded, today, what is named, the best of all."""
    best = (named, comparison.best(simulated_only=True))
    return list(dict.fromkeys([RECORDED, TODAY, *filter(None, best)]))


def group_tables(comparison: Comparison, shown: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return waits by partition, account, user, cpus and limit, h."""
    workload = comparison.log.workload
    core_hours = workload.processors * workload.run_time / HOUR_S
    tables: dict[str, list[dict[str, Any]]] = {}
    for grouping in comparison.groupings:
        hours = grouping.sums(core_hours)
        waits = {key: grouping.means(comparison.outcomes[key].wait_h) for key in shown}
        told = {key: comparison.told_of(key, grouping) for key in shown[2:]}
        kept = np.sort(np.argsort(-hours, kind="stable")[:MOST_GROUPS])  # those of most work
        tables[grouping.by] = [
            {
                "name": grouping.names[at],
                "n": int(grouping.n[at]),
                "core_hours": float(hours[at]),
                "recorded": float(waits[RECORDED][at]),
                "waits": {key: float(waits[key][at]) for key in shown[1:]},
                "told": {key: str(told[key][at]) for key in shown[2:]},
            }
            for at in kept
        ]
    return tables


def heat_map(comparison: Comparison, shown: Sequence[str]) -> dict[str, Any]:
    """Return mean waits by cpus and limit, h; None where there is no job."""
    judged = comparison.log.is_judged
    cpus, limits = classes_of(comparison.log)
    cells = cpus[judged] * len(LIMIT_NAMES) + limits[judged]
    rows = np.arange(cpus[judged].min(), cpus[judged].max() + 1)
    shape = (len(cpu_class_names()), len(LIMIT_NAMES))
    n = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)[rows]
    waits = {}
    for key in shown:
        hours = comparison.outcomes[key].wait_h[judged]
        sums = np.bincount(cells, hours, minlength=shape[0] * shape[1]).reshape(shape)[rows]
        pairs = zip(sums.tolist(), n.tolist(), strict=True)
        waits[key] = [
            [total / count if count else None for total, count in zip(*pair, strict=True)]
            for pair in pairs
        ]
    names = cpu_class_names()
    return {
        "cpus": [names[row] for row in rows],
        "limit": list(LIMIT_NAMES),
        "n": n.tolist(),
        "waits": waits,
    }


def queues(comparison: Comparison, ids: Sequence[str]) -> dict[str, Any]:
    """Return waiting jobs and busy processors over time, of the whole log."""
    log = comparison.log
    last = max(int(made.end_time.max()) for made in comparison.outcomes.values())
    last = min(last, 2 * int(log.workload.submit_time[-1]) + DAY_S)
    step = HOUR_S * max(1, -(-last // (HOUR_S * MOST_STEPS)))
    instants = np.arange(0, last + 1, step)
    shown = {key: comparison.outcomes[key] for key in ids}
    return {
        "step_s": step,
        "begin": log.begin,
        "series": {key: queue_lengths(made, instants).tolist() for key, made in shown.items()},
        "cpus": {key: busy_processors(made, instants).tolist() for key, made in shown.items()},
        "capacity": log.workload.machine_processors,
        "capacities": {key: made.workload.machine_processors for key, made in shown.items()},
    }


def days(comparison: Comparison, shown: Sequence[str]) -> list[dict[str, Any]]:
    """Return the judged days on which the jobs there waited longest today, with their charts."""
    log, today = comparison.log, comparison.outcomes[TODAY]
    judged = log.is_judged
    day = (log.begin + log.workload.submit_time) // DAY_S
    waited = np.bincount((day - day[0])[judged], today.wait_h[judged])
    worst = np.sort(np.argsort(-waited, kind="stable")[:N_DAYS])
    return [_day(comparison, int(day[0] + at), shown) for at in worst if waited[at] > 0]


def _day(comparison: Comparison, day: int, ids: Sequence[str]) -> dict[str, Any]:
    """Return what ran on one day, by option: boxes of processors and time, and the jobs' facts."""
    log = comparison.log
    begin = day * DAY_S - log.begin
    charts: dict[str, list[list[int]]] = {}
    rows: dict[int, int] = {}
    shown = {key: comparison.outcomes[key] for key in ids}
    for key, made in shown.items():
        boxes = _boxes(made, begin)
        if boxes is None or len(boxes) > MOST_BOXES:
            continue
        charts[key] = [[*box[:4], rows.setdefault(box[4], len(rows))] for box in boxes]
    instant = datetime.fromtimestamp(day * DAY_S, UTC)
    return {
        "begin": day * DAY_S,
        "label": instant.strftime("%Y-%m-%d") if log.has_dates else f"day {day + 1}",
        "schedules": charts,
        "jobs": [_facts(log, shown, job) for job in rows],
    }


def _boxes(outcome: Outcome, begin: int) -> list[list[int]] | None:
    """Return low processor, count, start, end and job of what runs on a day; None: it overflows."""
    jobs = np.flatnonzero((outcome.start_time < begin + DAY_S) & (outcome.end_time > begin))
    held, capacity = outcome.workload.processors[jobs], outcome.workload.machine_processors
    start, end = outcome.start_time[jobs], outcome.end_time[jobs]
    times, changes = np.concatenate([end, start]), np.concatenate([-held, held])
    if np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0) > capacity:
        return None
    allocation = allocate_processors(start, end, held, capacity)
    clipped = (np.clip(start - begin, 0, DAY_S), np.clip(end - begin, 0, DAY_S))
    return [
        [low, high - low, int(clipped[0][at]), int(clipped[1][at]), int(job)]
        for at, job in enumerate(jobs)
        for low, high in allocation.of(at)
    ]


def _facts(log: SiteLog, shown: dict[str, Outcome], job: int) -> dict[str, Any]:
    waits = {key: round(float(made.wait_h[job]), 4) for key, made in shown.items()}
    return job_facts(log, job) | {"waits": waits}


def job_facts(log: SiteLog, job: int) -> dict[str, Any]:
    """Return id, user, cpus and limit of a job."""
    jobs = log.workload
    return {
        "id": str(jobs.job_id[job]),
        "user": str(log.names["user"][job]),
        "cpus": int(jobs.processors[job]),
        "limit_h": round(float(jobs.requested_time[job]) / HOUR_S, 4),
    }


def changed_jobs(comparison: Comparison, option: str) -> list[dict[str, Any]]:
    """Return the judged jobs whose wait an option changes most, and why."""
    log, judged = comparison.log, comparison.log.is_judged
    today, then = comparison.outcomes[TODAY], comparison.outcomes[option]
    change = np.where(judged, then.wait_h - today.wait_h, 0.0)
    jobs = log.workload
    area = jobs.processors * jobs.requested_time
    rank = np.searchsorted(np.sort(area[judged]), area) / np.count_nonzero(judged)
    rows = []
    for job in np.argsort(-np.abs(change), kind="stable")[:N_CHANGED]:
        facts = job_facts(log, int(job))
        rows.append(
            {
                "job": facts.pop("id"),
                **facts,
                "run_h": float(jobs.run_time[job] / HOUR_S),
                "before_h": float(today.wait_h[job]),
                "after_h": float(then.wait_h[job]),
                "change_h": float(change[job]),
                "why": _why(int(job), float(rank[job]), today, then),
            }
        )
    return rows


def _why(job: int, rank: float, today: Outcome, then: Outcome) -> str:
    """Say what moved a job: who overtook it, or whom it overtook."""
    ahead_today = _overtaken_by(today, job)
    ahead_then = _overtaken_by(then, job)
    size = f"asks for more cpu-hours than {rank:.0%} of jobs"
    passed = f"{ahead_then:,} later jobs start before it, {ahead_today:,} today"
    how = "; starts as backfill" if then.backfilled[job] and not today.backfilled[job] else ""
    return f"{size}: {passed}{how}"


def _overtaken_by(outcome: Outcome, job: int) -> int:
    """Return how many jobs came after a job and start before it."""
    return int(np.count_nonzero(outcome.start_time[job + 1 :] < outcome.start_time[job]))


def request_use(log: SiteLog) -> dict[str, Any]:
    """Return how much of the time and of the memory that they ask for jobs use."""
    jobs = log.workload
    used = np.minimum(jobs.run_time, jobs.requested_time) / jobs.requested_time
    edges = np.linspace(0, 1, 11)
    counts = np.histogram(used, edges)[0]
    weights = jobs.processors * jobs.requested_time
    return {
        "used_share": float((used * weights).sum() / weights.sum()),
        "median_used": float(np.median(used)),
        "histogram": {"edges": edges.tolist(), "shares": (counts / len(jobs)).tolist()},
        "memory": memory_use(log),
    }


def memory_use(log: SiteLog) -> dict[str, Any] | None:
    """Return how much of the memory that they ask for jobs use; None where none states both."""
    known = log.memory_use[~np.isnan(log.memory_use)]
    if not len(known):
        return None
    return {
        "n_jobs": len(known),
        "mean_used": float(known.mean()),
        "median_used": float(np.median(known)),
        "below_quarter": float((known < QUARTER).mean()),
    }


def size_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the mean wait on machines of other sizes, today's among them, h."""
    judged = comparison.log.is_judged
    sized = [key for key, option in comparison.options.items() if option.group == "machine"]
    rows = []
    for key in [TODAY, *sized]:
        made = comparison.outcomes[key]
        wait = float(made.wait_h[judged].mean())
        rows.append({"id": key, "processors": made.workload.machine_processors, "wait_mean": wait})
    return sorted(rows, key=lambda row: row["processors"]) if len(rows) > 1 else []
