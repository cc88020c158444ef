"""The reference of what observations show of chances to end and of running jobs, in plain Python.

From section 10 of the specification, "Trials as actions"; it shares no code with `hpcgym`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

ROWS = 16
MONTH_MINUTES = 43_200


def rounded_down(seconds: int) -> int:
    """Keep the first three binary digits of a time of at least 1 s, at most 2^17 s."""
    seconds = max(seconds, 1)
    digits = max(seconds.bit_length() - 3, 0)
    return min(seconds >> digits << digits, 2**17)


def chance(own: Sequence[int], every: Sequence[int], ran: int, limit: int) -> float:
    """Return P(run time <= limit | run time > ran), by run times of the user and of all jobs."""
    if limit <= ran:
        return 0.0
    bound, least = rounded_down(limit), rounded_down(ran) if ran > 0 else 0
    longer = [one for one in map(rounded_down, every) if one > least]
    share = (sum(one <= bound for one in longer) + 1) / (len(longer) + 2)
    past = [max(one, 1) for one in own[-20:] if max(one, 1) > ran]
    return (sum(one <= limit for one in past) + 4 * share) / (len(past) + 4)


class Waiting(NamedTuple):
    """A waiting job; `ran` is the longest run of its attempts that have ended, s."""

    processors: int
    on_trial: bool
    tried: int
    ran: int
    killed_now: bool
    may_be_killed: bool


def may_be_lent(job: Waiting, limit: int, kills: int, idle: int, given_up: int) -> bool:
    """Tell whether a job may go on trial: on what idles, or on what young jobs give up for it."""
    if job.on_trial or job.killed_now or not job.may_be_killed:
        return False
    was_never_tried = job.tried == 0 and job.ran == 0
    return (job.processors <= idle and job.tried < kills and job.ran < limit) or (
        job.processors <= given_up and was_never_tried
    )


def given_up(
    running: Sequence[Running], trial: Trial, idle: int, guaranteed: int, machine: int
) -> int:
    """Return the processors on which guaranteed trials may begin, where no job is overdue."""
    if trial.young <= 0:
        return 0
    young = sum(
        job.processors
        for job in running
        if 0 <= job.age < trial.young
        and job.requested_time > trial.request
        and job.gave_way < trial.times
        and job.processors <= trial.victim * machine
        and job.may_be_killed
        and not job.overdue
    )
    return min(idle + young, int(trial.share * machine) - guaranteed)


class Trial(NamedTuple):
    """The numbers of trials now, as the mode or an action sets them; times in s."""

    young: float
    request: float
    times: float
    share: float
    victim: float


class Running(NamedTuple):
    """A job that runs, off trial: times in s."""

    number: int
    age: int
    processors: int
    estimate: int
    requested_time: int
    gave_way: int
    may_be_killed: bool
    overdue: bool


def log_time(seconds: int) -> float:
    """Return a time as it is shown."""
    return min(math.log1p(seconds / 60) / math.log1p(MONTH_MINUTES), 1)


def rows(jobs: Sequence[Running], machine: int) -> list[list[float]]:
    """Return the rows of running jobs, those that have run least first, zeros behind them."""
    shown = [job for job in jobs if job.may_be_killed and job.age >= 0]
    shown.sort(key=lambda job: (job.age * job.processors, job.number))
    found = [
        [
            log_time(job.age),
            job.processors / machine,
            log_time(max(job.estimate - job.age, 0)),
            log_time(job.requested_time),
            job.gave_way / 9,
        ]
        for job in shown[:ROWS]
    ]
    return found + [[0.0] * 5] * (ROWS - len(found))
