"""Carastan-Santos 2019: the paper's tables from our runs, and verdicts on its claims."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from papers.carastan_santos.run import METRICS, POLICIES, PREMATURE, SHARES, Reading, Rerun
from papers.common.claims import FAILS, HOLDS, Claim, counted, near, off_by

TITLES = {"bsld": "slowdown", "wait_time": "wait (s)", "pp_bsld": "pp-slowdown"}
BEST_GAIN = {"bsld": 83.4, "wait_time": 61.4, "pp_bsld": 85.1}
"""Section V-A: best gain over FCFS, %."""

TABLE_4 = {
    "FCFS": (17.84, 3.59, 3.94, 5.58, 8.69),
    "SPF": (17.29, 7.17, 4.36, 5.04, 12.09),
    "SQF": (14.02, 2.96, 2.04, 1.67, 9.31),
    "SAF": (17.88, 7.41, 3.79, 2.61, 11.41),
}
"""Table IV: mean slowdown of premature jobs over that of the others, by policy, logs in order."""

BACKFILLED = {"SAF": -78.0, "SPF": -56.0}
"""Section V-D: change of the number of backfilled jobs against FCFS, %."""


def inner(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of all samples but the best and the worst, ascending.

    With fewer than three samples, return all.

    Source: Carastan-Santos et al. 2019, section V-A.

    Example:
        >>> inner(np.array([4.0, 1.0, 9.0, 2.0]))
        array([2., 4.])
    """
    ordered = np.sort(values)
    return ordered[1:-1] if len(ordered) > 2 else ordered


def means(rerun: Rerun, reading: Reading, metric: str) -> pd.DataFrame:
    """Average a metric of `METRICS` over the inner samples: a row per log, a column per policy.

    Source: Carastan-Santos et al. 2019, figure 1, at the last week.
    """
    values = runs_of(rerun, reading).groupby(["log", "policy"])[f"mean_{metric}"]
    averaged = values.agg(lambda column: inner(column.to_numpy()).mean()).unstack()
    return averaged.loc[[name for name, _ in reading.logs], list(POLICIES)]


def premature_ratios(rerun: Rerun, reading: Reading) -> pd.DataFrame:
    """Divide the mean slowdown of premature jobs by that of the others.

    The ratios are averages over the samples: a row per policy, a column per log.

    Source: Carastan-Santos et al. 2019, table IV.
    """
    runs = runs_of(rerun, reading)
    ratio = (runs["bsld_premature"] / runs["bsld_standard"]).groupby([runs["policy"], runs["log"]])
    return ratio.mean().unstack().loc[list(POLICIES), [name for name, _ in reading.logs]]


def shares(rerun: Rerun, reading: Reading) -> pd.DataFrame:
    """Return the share of jobs in each class of `SHARES`, averaged over samples, by (log, policy).

    Source: Carastan-Santos et al. 2019, figure 3.
    """
    columns = [f"share_{name}" for name in SHARES]
    averaged = runs_of(rerun, reading).groupby(["log", "policy"])[columns].mean()
    averaged.columns = pd.Index(SHARES)
    return averaged.loc[[(name, policy) for name, _ in reading.logs for policy in POLICIES]]


def backfilled(rerun: Rerun, reading: Reading) -> pd.DataFrame:
    """Return the number of backfilled jobs, averaged over samples: a row per log.

    Source: Carastan-Santos et al. 2019, figure 4.
    """
    counts = runs_of(rerun, reading).groupby(["log", "policy"])["n_backfilled"].mean().unstack()
    return counts.loc[[name for name, _ in reading.logs], list(POLICIES)]


def claims(rerun: Rerun, reading: Reading) -> list[Claim]:
    """Return verdicts on the paper's claims under one reading of `SHOWN`, in the paper's order.

    Source: Carastan-Santos et al. 2019, sections V and VI; specification, section 3.
    """
    by_metric = {metric: means(rerun, reading, metric) for metric in METRICS}
    return [
        *_performance(by_metric),
        *_worst_jobs(rerun, reading),
        *_premature(rerun, reading),
        *_classes(shares(rerun, reading)),
        *_backfilling(rerun, reading),
    ]


def _performance(by_metric: dict[str, pd.DataFrame]) -> list[Claim]:
    """Check what section V-A says of figure 1."""
    found = []
    for metric, frame in by_metric.items():
        text = f"SPF and SAF are better than FCFS and SQF, {TITLES[metric]}"
        found.append(counted(text, "V-A, Fig. 1", _wins(frame), 4 * len(frame)))
    for metric, frame in by_metric.items():
        gain = 100 * (1 - frame.div(frame["FCFS"], axis=0))
        log, policy = gain.stack().idxmax()
        text = f"best gain over FCFS, {TITLES[metric]}: {BEST_GAIN[metric]} %"
        best = near(text, "V-A", BEST_GAIN[metric], float(gain.to_numpy().max()), " %")
        found.append(best._replace(finding=f"{best.finding} ({policy}, {log})"))
    pp = by_metric["pp_bsld"]
    is_best = int((pp.idxmin(axis=1) == "SAF").sum())
    found.append(counted("SAF is best in pp-slowdown", "V-B, Fig. 1", is_best, len(pp)))
    others = [by_metric["bsld"], by_metric["wait_time"]]
    excess = np.concatenate([(f["SAF"] / f.min(axis=1)).to_numpy() for f in others])
    return [
        *found,
        counted(
            "SAF is within a tenth of the best in slowdown and wait",
            "V-B, Fig. 1",
            int((excess <= 1.1).sum()),
            len(excess),
            f"{100 * (excess.max() - 1):.0f} % at worst",
        ),
    ]


def _worst_jobs(rerun: Rerun, reading: Reading) -> list[Claim]:
    """Check what the paper says of figure 2 and of the threshold."""
    worst = rerun.worst[rerun.worst["reading"] == reading.name]
    median = worst.groupby(["log", "policy"])["worst"].median().unstack()
    runs = runs_of(rerun, reading)
    large = (
        runs.groupby("policy")[["n_thresholded_large", "n_thresholded"]].sum().loc[["SPF", "SAF"]]
    )
    share = 100 * large["n_thresholded_large"].sum() / max(large["n_thresholded"].sum(), 1)
    return [
        counted(
            "SPF delays narrower jobs than SAF (median of the 100 worst)",
            "V-B, Fig. 2",
            int((median["SPF"] < median["SAF"]).sum()),
            len(median),
        ),
        Claim(
            "most jobs that reach the threshold have an area above the median",
            "III-C",
            HOLDS if share > 50 else FAILS,
            f"{share:.0f} %",
        ),
    ]


def _premature(rerun: Rerun, reading: Reading) -> list[Claim]:
    """Check tables III and IV."""
    facts = rerun.facts.set_index("log")["premature"]
    close = sum(abs(facts[log] / PREMATURE[log] - 1) <= 0.1 for log in facts.index)
    ratio = premature_ratios(rerun, reading)
    over_printed = _over_table_4(ratio)
    off = np.abs(np.log(over_printed)).to_numpy()
    amplified = int((ratio.loc[["SPF", "SAF"]] > ratio.loc["FCFS"]).to_numpy().sum())
    return [
        counted("share of premature jobs, within a tenth", "Table III", int(close), len(facts)),
        counted(
            "premature jobs have the larger slowdown under every policy",
            "Table IV",
            int((ratio > 1).to_numpy().sum()),
            ratio.size,
        ),
        counted(
            "the ratios of Table IV, within a third",
            "Table IV",
            int((off <= np.log(4 / 3)).sum()),
            off.size,
            f"off by {off_by(over_printed):.2f}",
        ),
        counted("SPF and SAF widen that gap", "V-C", amplified, 10),
    ]


def _classes(frame: pd.DataFrame) -> list[Claim]:
    """Check what the paper says of figure 3."""
    wide = frame.unstack("log")
    held, of = 0, 0
    exceptions = 0
    for share in SHARES[1:]:
        for policy in ("SPF", "SQF", "SAF"):
            shrunk = int((wide[share].loc[policy] < wide[share].loc["FCFS"]).sum())
            if policy == "SPF" and share == "1-10":
                exceptions = 5 - shrunk
            else:
                held, of = held + shrunk, of + 5
    at_once, poor = wide["1"], wide["100+"]
    more = 100 * (at_once.loc["SAF"] / at_once.loc["FCFS"] - 1)
    fewer = poor.loc["FCFS"] / poor.loc["SAF"]
    return [
        counted(
            "classes of jobs that waited shrink against FCFS (but SPF's 1-10)",
            "V-C, Fig. 3",
            held,
            of,
        ),
        counted("SPF's 1-10 grows", "V-C, Fig. 3", exceptions, 5),
        near("SAF starts up to 9 % more jobs at once", "VI", 9.0, float(more.max()), " %")._replace(
            finding=f"+{more.min():.0f} to +{more.max():.0f} %"
        ),
        near(
            "SAF has up to 2.8 times fewer jobs of slowdown 100 and more",
            "V-C, VI",
            2.8,
            float(fewer.max()),
            " times",
        ),
    ]


def _backfilling(rerun: Rerun, reading: Reading) -> list[Claim]:
    """Check what the paper says of figure 4."""
    counts = backfilled(rerun, reading)
    change = 100 * (counts.div(counts["FCFS"], axis=0) - 1).mean()
    runs = rerun.runs
    free = runs[(runs["reading"] == "no threshold") & (runs["policy"] == "SQF")]["n_backfilled"]
    return [
        near(
            f"{policy} backfills {-printed:.0f} % fewer jobs than FCFS, on average",
            "V-D",
            -printed,
            float(-change[policy]),
            " %",
        )
        for policy, printed in BACKFILLED.items()
    ] + [
        counted(
            "SQF backfills no job without a threshold (Proposition 1)",
            "V-D",
            int((free == 0).sum()),
            len(free),
        ),
        counted(
            "SQF backfills no job with the threshold either",
            "V-D, Fig. 4",
            int((counts["SQF"] == 0).sum()),
            len(counts),
            f"{100 * (counts['SQF'] / counts['FCFS']).min():.0f} to "
            f"{100 * (counts['SQF'] / counts['FCFS']).max():.0f} %",
        ),
    ]


def wins(rerun: Rerun, reading: Reading) -> int:
    """Count the cases in which SPF or SAF beats FCFS or SQF, of 12 per log.

    Source: Carastan-Santos et al. 2019, figure 1.
    """
    return sum(_wins(means(rerun, reading, metric)) for metric in METRICS)


def _wins(frame: pd.DataFrame) -> int:
    """Count these cases for one metric, of 4 per log."""
    return sum(
        int((frame[aware] < frame[oblivious]).sum())
        for aware in ("SPF", "SAF")
        for oblivious in ("FCFS", "SQF")
    )


def off_table_4(rerun: Rerun, reading: Reading) -> float:
    """Return by which factor the ratios differ from table IV, on the geometric mean.

    Source: Carastan-Santos et al. 2019, table IV.
    """
    return off_by(_over_table_4(premature_ratios(rerun, reading)))


def _over_table_4(ratio: pd.DataFrame) -> pd.DataFrame:
    """Divide ratios by those that table IV prints, for the logs that were run."""
    return ratio / pd.DataFrame(TABLE_4, index=list(PREMATURE)).T[ratio.columns]


def runs_of(rerun: Rerun, reading: Reading) -> pd.DataFrame:
    """Return the runs of one reading: a row per log, sample and policy."""
    return rerun.runs[rerun.runs["reading"] == reading.name]
