"""Lawson, Smirni, Puiu 2002: R from our runs, and verdicts on the paper's claims."""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.common.claims import Claim, counted
from papers.lawson.run import CLASSES, DELAYED, MULTIPLE, SINGLE, Reading, Rerun, slowdown_ratio

OVERALL = "slowdown"
COLUMNS = {OVERALL: "overall", **{f"slowdown_{one}": f"class {one}" for one in CLASSES}}
"""What slowdowns are averaged over, and what tables call it."""


def ratios(rerun: Rerun, reading: Reading, scheduler: str) -> pd.DataFrame:
    """Compare a scheduler with a single queue.

    Returns:
        R, one row per log, one column per entry of `COLUMNS` and `bsld`; NaN for classes without
        jobs.

    Source: Lawson, Smirni, Puiu 2002, figures 5 and 7.
    """
    runs = rerun.runs[rerun.runs["reading"] == reading.name].set_index(["scheduler", "log"])
    logs = [name for name, _ in reading.logs]
    columns = [*COLUMNS, "bsld"]
    single, multiple = runs.loc[SINGLE].loc[logs], runs.loc[scheduler].loc[logs]
    values = [
        [slowdown_ratio(single.loc[log, one], multiple.loc[log, one]) for one in columns]
        for log in logs
    ]
    return pd.DataFrame(values, index=logs, columns=columns)


def batch_ratios(rerun: Rerun, reading: Reading, log: str, scheduler: str) -> pd.Series[float]:
    """Return R of a scheduler by number of the batch of 1000 submissions, for one log.

    Source: Lawson, Smirni, Puiu 2002, figure 6.
    """
    batches = rerun.batches
    batches = batches[(batches["reading"] == reading.name) & (batches["log"] == log)]
    wide = batches.pivot(index="batch", columns="scheduler", values="slowdown")
    smaller = np.minimum(wide[SINGLE], wide[scheduler])
    return (wide[SINGLE] - wide[scheduler]) / smaller


def claims(rerun: Rerun, reading: Reading) -> list[Claim]:
    """Return verdicts on the paper's claims under one reading of `SHOWN`, in the paper's order.

    Source: Lawson, Smirni, Puiu 2002, section 4.
    """
    plain, delayed = (ratios(rerun, reading, mode) for mode in (MULTIPLE, DELAYED))
    return [
        *_aggregate(plain),
        *_transient(rerun, reading),
        _above(
            "multiple queues are better with variable delay, too", "4.2, Fig. 7", delayed[[OVERALL]]
        ),
        counted(
            "a delay on extra-long jobs helps the others (R larger than without)",
            "4.2, the aim",
            int((delayed[OVERALL] > plain[OVERALL]).sum()),
            len(plain),
        ),
    ]


def _aggregate(plain: pd.DataFrame) -> list[Claim]:
    """Check what the paper says of figure 5."""
    shorter = plain[[f"slowdown_{one}" for one in CLASSES[:3]]]
    longest = plain[f"slowdown_{CLASSES[-1]}"]
    smaller = shorter.gt(longest.abs(), axis=0) & shorter.notna()
    return [
        _above("multiple queues are better overall", "4.1, Fig. 5(a)", plain[[OVERALL]]),
        _above("also for short, medium and long jobs", "4.1, Fig. 5(b)-(d)", shorter),
        counted(
            "extra-long jobs lose",
            "4.1, Fig. 5(e)",
            int((longest < 0).sum()),
            len(longest),
            f"R {longest.min():.2f} to {longest.max():.2f}",
        ),
        counted(
            "they lose less than each other class gains",
            "4.1, Fig. 5",
            int(smaller.to_numpy().sum()),
            int(shorter.notna().to_numpy().sum()),
        ),
        _above(
            "multiple queues are better by the bounded slowdown, too",
            "4, footnote 6",
            plain[["bsld"]],
        ),
    ]


def _transient(rerun: Rerun, reading: Reading) -> list[Claim]:
    """Check what the paper says of figure 6."""
    logs = [name for name, _ in reading.logs]
    by_log = [batch_ratios(rerun, reading, log, MULTIPLE) for log in logs]
    shares = [100 * float((ratio > 0).mean()) for ratio in by_log]
    larger = [ratio[ratio > 0].mean() > -ratio[ratio < 0].mean() for ratio in by_log]
    return [
        counted(
            "among batches of 1000 jobs gains are more frequent than losses",
            "4.1, Fig. 6",
            sum(int((ratio > 0).sum() > (ratio < 0).sum()) for ratio in by_log),
            len(logs),
            f"{min(shares):.0f} to {max(shares):.0f} % gain",
        ),
        counted("and larger, on average", "4.1, Fig. 6", sum(map(int, larger)), len(logs)),
    ]


def _above(text: str, where: str, frame: pd.DataFrame) -> Claim:
    """Check a claim that every R of a frame is above 0."""
    values = frame.to_numpy().ravel()
    values = values[~np.isnan(values)]
    span = f"R {values.min():.2f} to {values.max():.2f}"
    return counted(text, where, int((values > 0).sum()), len(values), span)
