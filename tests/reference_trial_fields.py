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


class Running(NamedTuple):
    """A job that runs, off trial: times in s."""

    number: int
    age: int
    processors: int
    estimate: int
    requested_time: int
    gave_way: int
    may_be_killed: bool


def rows(jobs: Sequence[Running], machine: int) -> list[list[float]]:
    """Return the rows of running jobs, those that have run least first, zeros behind them."""

    def log_time(seconds: int) -> float:
        return min(math.log1p(seconds / 60) / math.log1p(MONTH_MINUTES), 1)

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
