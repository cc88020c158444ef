"""RLScheduler's table: whether its figures come out, and what becomes of its ranking."""

from __future__ import annotations

from papers.common.claims import Claim, counted
from papers.rlscheduler.run import (
    ANEW,
    AS_THERE,
    COLUMNS,
    EASY,
    LOGS,
    MORE,
    PUBLISHED,
    QUEUE,
    SCORED,
    THERE,
    WAITS,
    WAITS_FILLED,
    Rerun,
    Rules,
)

RULES = tuple(AS_THERE)


def is_published(rerun: Rerun, log: str, policy: str, backfill: bool, rules: Rules | str) -> bool:
    """Tell whether a mean is the printed one, to its last digit."""
    printed = PUBLISHED[backfill, log][COLUMNS.index(policy)]
    return round(rerun.mean(log, rules, policy), 2) == printed


def best(rerun: Rerun, log: str, rules: Rules) -> tuple[float, str]:
    """Return the least mean under some rules, and the policy that it is of."""
    return min((rerun.mean(log, rules, policy), policy) for policy in (*RULES, *MORE))


def claims(rerun: Rerun) -> dict[str, list[Claim]]:
    """Return verdicts on the table without and with backfilling.

    Source: Zhang et al. 2020; the README of DIR-LAB/deep-batch-scheduler.
    """
    return {"without backfilling": _claims(rerun, False), "with backfilling": _claims(rerun, True)}


def _claims(rerun: Rerun, backfill: bool) -> list[Claim]:
    """Return verdicts on half of the table."""
    found = []
    ways: dict[str, Rules | str] = {
        "by the plain queue": QUEUE[backfill],
        "by `simulate` with its scores": SCORED[backfill],
        "by `simulate` with our orders": THERE[backfill],
    }
    for way, rules in ways.items():
        cells = [(log, policy) for log in LOGS for policy in RULES]
        equal = [is_published(rerun, *cell, backfill, rules) for cell in cells]
        off = ", ".join(
            f"{policy} on {log} is {rerun.mean(log, rules, policy):.2f}"
            for (log, policy), same in zip(cells, equal, strict=True)
            if not same
        )
        found.append(counted(f"figures to the last digit, {way}", "rules", sum(equal), 15, off))
    learned = {log: PUBLISHED[backfill, log][-1] for log in LOGS}
    printed = sum(learned[log] < min(PUBLISHED[backfill, log][:-1]) for log in LOGS)
    said = ", ".join(f"{log} {mean:.2f}" for log, mean in learned.items())
    found.append(counted("RL is best, as printed", "RL", printed, len(LOGS), said))
    for text, right in (
        ("and beside right rules that wait for the chosen job too", (WAITS, WAITS_FILLED)),
        ("and beside right rules chosen anew, or under EASY", (ANEW, EASY)),
    ):
        least = {log: best(rerun, log, right[backfill]) for log in LOGS}
        held = sum(learned[log] < least[log][0] for log in LOGS)
        said = ", ".join(f"{name} {mean:.2f}" for mean, name in least.values())
        found.append(counted(text, "RL", held, len(LOGS), said))
    return found
