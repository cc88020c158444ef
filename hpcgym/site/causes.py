"""What held jobs back that no order changes, by cause, and how much of it is not simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.site.log import SiteLog
from hpcgym.site.markup import hours, share
from hpcgym.site.outcome import HOUR_S, FloatArray, IntArray
from hpcgym.trace.accounting.rows import CAUSES, UNSAID, UNTIL_ELIGIBLE

NONE = "no cause in the log"
APART, LEAST = 0.25, 0.6  # the aim: shares that waits may be apart, and the least correlation
HEADS = ("waiting by cause", "jobs", "of the waiting", "longer than simulated", "less")
MOST = 10  # more times all recorded waiting is said to be more


def waiting_by_cause(log: SiteLog, simulated_h: FloatArray) -> list[dict[str, Any]]:
    """Return a row for each cause of waiting: the judged jobs that it held back, and shares.

    `share` is of all waiting since submissions: that before jobs were eligible, or all of theirs.
    `missing` is what they waited longer as recorded than as simulated, and `too_much` what others
    of them waited less, as shares of all recorded waits. Each adds up to the whole. All are None
    where the log cannot show the cause.
    """
    judged = log.is_judged
    recorded_h = log.workload.wait_time[judged] / HOUR_S
    before_h = np.maximum(log.ineligible[judged], 0) / HOUR_S
    since_h = recorded_h if log.is_from_submit else recorded_h + before_h
    cause, longer_h = np.maximum(log.cause[judged], 0), recorded_h - simulated_h[judged]
    is_unsaid = (cause == 0) & (before_h > 0)
    members = {name: cause == number for number, name in enumerate(CAUSES) if number}
    members |= {UNSAID: is_unsaid, NONE: (cause == 0) & ~is_unsaid}
    rows: list[dict[str, Any]] = []
    for name, jobs in members.items():
        row = dict.fromkeys(("n", "share", "missing", "too_much"))
        if name in (*log.causes, NONE):
            waiting = before_h if name in (*UNTIL_ELIGIBLE, UNSAID) else since_h
            row = {"n": int(jobs.sum()), "share": _of(waiting[jobs].sum(), since_h)}
            for key, sign in (("missing", 1), ("too_much", -1)):
                row[key] = _of(np.maximum(sign * longer_h[jobs], 0).sum(), recorded_h)
        rows.append({"cause": name, **row})
    rows[-1]["share"] = 1.0 - sum(row["share"] or 0.0 for row in rows[:-1])
    return rows


def _of(part: float, whole: FloatArray | IntArray) -> float:
    return float(part / whole.sum()) if whole.any() else 0.0


def ineligible_share(log: SiteLog) -> float | None:
    """Return the share of the judged waiting before jobs were eligible; None = not stated."""
    judged = log.is_judged
    before = np.maximum(log.ineligible[judged], 0)
    since = log.workload.wait_time[judged] + (0 if log.is_from_submit else before)
    return _of(before.sum(), since) if UNSAID in log.causes else None


def missed(
    recorded: Mapping[str, float], simulated: Mapping[str, float], correlation: float | None
) -> list[str]:
    """Return what is beyond the aim: waits of 10 s at the least a quarter apart, a low correlation.

    Example:
        >>> missed({"mean": 4, "median": 1, "p90": 9}, {"mean": 5, "median": 2, "p90": 9}, 0.6)
        ['median', 'correlation']
    """
    keys, least = ("mean", "median", "p90"), BSLD_BOUND_S / HOUR_S
    both = [(key, max(recorded[key], least), max(simulated[key], least)) for key in keys]
    far = [key for key, was, made in both if abs(made - was) > APART * was]
    return far + ["correlation"] * (correlation is None or correlation <= LEAST)


def misfit_text(trust: Mapping[str, Any]) -> str:
    """Say what the simulation misses, and whether that is without holds."""
    return hours(trust.get("misfit_h")) + " without holds" * bool(trust.get("misfit_is_plain"))


def beyond(trust: Mapping[str, Any]) -> str:
    """Say what is beyond the aim; "" where all is within it."""
    far = trust.get("missed")
    aim = f"{APART:.0%}, or a correlation of {LEAST}"
    return f"Without holds beyond {aim}: {', '.join(far)}. " if far else ""


def in_words(trust: Mapping[str, Any]) -> str:
    """Say what is beyond the aim, and then what held jobs back."""
    known = [row for row in trust.get("causes") or () if row["cause"] != NONE]
    said = [f"{row['cause']} {share(row['share'])}" for row in known if row["share"] is not None]
    unknown = [row["cause"] for row in known if row["share"] is None]
    texts = {"Waiting by cause": said, "Not in the log": unknown}
    text = beyond(trust)
    return text and text + "".join(f"{k}: {', '.join(v)}. " for k, v in texts.items() if v)


def cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the texts of a table with `HEADS`."""
    return [
        [row["cause"], *(["not in the log", "", "", ""] if row["n"] is None else _shown(row))]
        for row in rows
    ]


def _shown(row: Mapping[str, Any]) -> list[str]:
    parts = (row["missing"], row["too_much"])
    apart = [f"{each:.0%}" if each <= MOST else f"over {MOST:.0%}" for each in parts]
    return [f"{row['n']:,}", share(row["share"]), *apart]
