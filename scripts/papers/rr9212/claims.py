"""RR-9212: the report's tables from our runs, and verdicts on its claims."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from papers.common.claims import FAILS, HOLDS, NOT_RUN, Claim, counted, near, off_by
from papers.rr9212.published import SUMS, TABLE_1, TABLE_2, TESTING, TRAINING
from papers.rr9212.run import DEFAULT_THRESHOLD_S, LOGS, POLICIES, THRESHOLDS_S, Tables
from papers.rr9212.search import MONTHS, Search, cover

FloatArray = NDArray[np.float64]

MAP_WEEKS = (70, 71, 72, 73)
TRAINING_MONTHS = 10
TRIVIAL_BSLD = 2.0
"""A week is trivial if FCFS is this near to w*."""


def sums(tables: Tables, reading: str, threshold: int | None = DEFAULT_THRESHOLD_S) -> pd.DataFrame:
    """Add up the weeks: a row per policy, a column per log, for a reading by name.

    Source: RR-9212, tables 3-6.
    """
    rows = _rows(tables, reading, threshold)
    added = rows.groupby(["policy", "log"])["bsld"].sum().unstack()
    return added.loc[list(POLICIES), [log for log in LOGS if log in added.columns]]


def ratios(
    tables: Tables, reading: str, threshold: int | None = DEFAULT_THRESHOLD_S
) -> pd.DataFrame:
    """Divide our sums by the printed ones: a row per policy, a column per log.

    Source: RR-9212, tables 3-6.
    """
    ours = sums(tables, reading, threshold)
    column = THRESHOLDS_S.index(threshold)
    printed = pd.DataFrame({log: {p: SUMS[log][p][column] for p in POLICIES} for log in ours})
    return ours / printed


def weekly(tables: Tables, reading: str, log: str) -> pd.DataFrame:
    """Return the mean slowdown of each week (from 1) under each policy, for one log.

    Source: RR-9212, figures 1-3.
    """
    rows = _rows(tables, reading, DEFAULT_THRESHOLD_S)
    wide = rows[rows["log"] == log].pivot(index="week", columns="policy", values="bsld")
    return wide.sort_index()


def learned(values: FloatArray, train: slice, test: slice) -> dict[str, tuple[float, float]]:
    """Add up slowdowns under weights chosen with hindsight, on training weeks, and a week before.

    Args:
        values: Mean slowdown of each period under each direction, shape (n_periods, n_directions).
        train: The training periods.
        test: The testing periods.

    Returns:
        Sums over training and over testing periods of w*, w*train and wgreedy. The first period
        has none before it; wgreedy takes its own best there.

    Source: RR-9212, equation 5, sections 7.1 and 7.2.

    Example:
        >>> learned(np.array([[1.0, 3.0], [5.0, 2.0], [4.0, 1.0]]), slice(0, 2), slice(2, 3))
        {'w*': (3.0, 1.0), 'w*train': (5.0, 1.0), 'wgreedy': (6.0, 1.0)}
    """
    best = values.argmin(axis=1)
    periods = np.arange(len(values))
    of_all = int(values[train].sum(axis=0).argmin())
    series = {
        "w*": values[periods, best],
        "w*train": values[:, of_all],
        "wgreedy": values[periods, best[np.maximum(periods - 1, 0)]],
    }
    return {name: (float(v[train].sum()), float(v[test].sum())) for name, v in series.items()}


def split_weeks() -> tuple[slice, slice]:
    """Return the training and the testing weeks of SDSC-SP2: 28-64 and 65-100, counted from 0.

    Source: RR-9212, table 2.
    """
    return slice(TRAINING[0] - 1, TRAINING[1]), slice(TESTING[0] - 1, TESTING[1])


def table_2(tables: Tables, search: Search, reading: str) -> pd.DataFrame:
    """Make table 2: a row per policy in the report's order, columns `train` and `test`.

    Source: RR-9212, table 2.
    """
    train, test = split_weeks()
    found = learned(search.covers[reading, "SDSC-SP2"], train, test)
    pure = weekly(tables, reading, "SDSC-SP2").to_numpy()
    names = weekly(tables, reading, "SDSC-SP2").columns
    found |= {
        str(name): (float(pure[train, i].sum()), float(pure[test, i].sum()))
        for i, name in enumerate(names)
    }
    return pd.DataFrame.from_dict(found, orient="index", columns=["train", "test"]).loc[
        list(TABLE_2)
    ]


def claims(tables: Tables, search: Search, reading: str) -> list[Claim]:
    """Return verdicts on the report's claims under a reading, "plain" or "simulator".

    Source: RR-9212, sections 6-11.
    """
    return [
        *_table_1(tables, reading),
        *_pure(tables, reading),
        *_weights(tables, search, reading),
        *_space(tables, search, reading),
        *_xnes(search, reading),
        *_others(tables, search, reading),
        *_thresholds(tables, reading),
        *_months(search, reading),
    ]


def _table_1(tables: Tables, reading: str) -> list[Claim]:
    """Check the numbers of jobs."""
    label = "simulator" if reading == "simulator" else "all"
    jobs = tables.facts.set_index("log")[f"jobs_{label}"]
    off = [abs(jobs[log] / TABLE_1[log][0] - 1) for log in jobs.index]
    held = sum(one <= 0.005 for one in off)
    finding = f"at worst {100 * max(off):.2g} %"
    return [counted("numbers of jobs, within 0.5 %", "Table 1", held, len(off), finding)]


def _pure(tables: Tables, reading: str) -> list[Claim]:
    """Check what section 6 says of the pure policies, and their sums."""
    rank = sums(tables, reading).rank()
    every = pd.concat([ratios(tables, reading, threshold) for threshold in THRESHOLDS_S])
    near_enough = int((np.abs(np.log(every)) <= np.log(1.1)).to_numpy().sum())
    following = rank.loc[["SPF", "LEXP"]].to_numpy()
    return [
        counted(
            "SAF is first on every log", "6.1", int((rank.loc["SAF"] == 1).sum()), rank.shape[1]
        ),
        counted(
            "SPF and LEXP follow (among the first four)",
            "6.1",
            int((following <= 4).sum()),
            following.size,
        ),
        counted(
            "FCFS is in the worse half", "6.1", int((rank.loc["FCFS"] >= 7).sum()), rank.shape[1]
        ),
        counted(
            "the sums, within a tenth",
            "Tables 3-6",
            near_enough,
            every.size,
            f"off by {off_by(every):.2f}",
        ),
    ]


def _weights(tables: Tables, search: Search, reading: str) -> list[Claim]:
    """Check table 2 and what section 7 says of w*."""
    ours = table_2(tables, search, reading)
    printed = pd.DataFrame.from_dict(TABLE_2, orient="index", columns=ours.columns)
    close = int((np.abs(np.log(ours / printed)) <= np.log(1.1)).to_numpy().sum())

    def over_saf(frame: pd.DataFrame, name: str, half: str) -> float:
        return float(frame.loc[name, half] / frame.loc["SAF", half])

    values = search.covers[reading, "SDSC-SP2"]
    pure = weekly(tables, reading, "SDSC-SP2")
    best = values.min(axis=1)
    gain = {name: pure[name].to_numpy() / best for name in ("SAF", "FCFS")}
    apart = pure["FCFS"].to_numpy() - best
    trivial, also = (100 * float((apart <= edge).mean()) for edge in (TRIVIAL_BSLD, 10))
    return [
        counted(
            "the sums, within a tenth",
            "Table 2",
            close,
            ours.size,
            f"off by {off_by(ours / printed):.2f}",
        ),
        *(
            near(
                f"{name} over SAF, {half} weeks: {over_saf(printed, name, half):.4g}",
                *("Table 2", over_saf(printed, name, half), over_saf(ours, name, half)),
            )
            for name in ("w*", "w*train", "wgreedy")
            for half in ("train", "test")
        ),
        *(
            near(
                f"week 73: w* is {times} times better than {name}",
                "7.1",
                times,
                float(gain[name][72]),
            )._replace(
                finding=f"{gain[name][72]:.2f}; {gain[name].max():.2f} in week "
                f"{gain[name].argmax() + 1}"
            )
            for name, times in (("SAF", 2.5), ("FCFS", 3.0))
        ),
        near(
            f"FCFS is within {TRIVIAL_BSLD:g} of w* in half of the weeks",
            "7.1",
            50.0,
            trivial,
            " %",
        )._replace(finding=f"{trivial:.0f} %; {also:.0f} % within 10"),
    ]


def _space(tables: Tables, search: Search, reading: str) -> list[Claim]:
    """Check what section 7.3 says of the space of weights."""
    values = search.covers[reading, "SDSC-SP2"]
    q = _directions(values)[:, 0]
    better = values[:, q > 0].mean(axis=1) < values[:, q < 0].mean(axis=1)
    at_72 = float(values[72, values[71].argmin()])
    saf = float(weekly(tables, reading, "SDSC-SP2")["SAF"].iloc[72])
    return [
        counted(
            "the half q >= 0 is better, weeks 70 to 73",
            "7.3, Fig. 4",
            int(better[[week - 1 for week in MAP_WEEKS]].sum()),
            len(MAP_WEEKS),
            f"{better.sum()} of all {len(better)}",
        ),
        Claim(
            "the best weights of week 72 do poorly in week 73",
            "7.3",
            HOLDS if at_72 > saf else FAILS,
            f"{at_72:.1f}; SAF {saf:.1f}, best {values[72].min():.1f}",
        ),
    ]


def _xnes(search: Search, reading: str) -> list[Claim]:
    """Check what section 8 says of XNES."""
    texts = ("XNES with 3 features is about as good as covering", "with 6 it is slightly better")
    if reading != "plain":
        return [Claim(text, "8.1.2, Fig. 5", NOT_RUN, "") for text in texts]
    rows = search.xnes[search.xnes["log"] == "SDSC-SP2"]
    best = float(search.covers[reading, "SDSC-SP2"].min(axis=1).sum())
    three, six = float(rows["xnes3"].sum()), float(rows["xnes6"].sum())
    worse = int((rows["xnes6"] > rows["xnes3"] * 1.001).sum())
    return [
        near(texts[0], "8.1.2, Fig. 5", best, three)._replace(
            finding=f"sum {three:.1f}; covering {best:.1f}"
        ),
        Claim(
            texts[1],
            "8.1.2, Fig. 5",
            HOLDS if six < three else FAILS,
            f"sum {six:.1f}; worse in {worse} of {len(rows)} weeks",
        ),
    ]


def halves(n_periods: int) -> tuple[slice, slice]:
    """Split periods into a training and a testing half.

    Source: RR-9212, section 9: half of the weeks used.
    """
    return slice(0, n_periods // 2), slice(n_periods // 2, n_periods)


def _others(tables: Tables, search: Search, reading: str) -> list[Claim]:
    """Check what section 9 says of the other logs."""
    text = "other logs: w*train is first or second on the testing half"
    if reading != "plain":
        return [Claim(text, "9", NOT_RUN, "")]
    places, gains = [], []
    for log in LOGS:
        if log == "SDSC-SP2" or (reading, log) not in search.covers:
            continue
        values = search.covers[reading, log]
        train, test = halves(len(values))
        found = learned(values, train, test)
        pure = weekly(tables, reading, log).iloc[test].sum()
        places.append(int((pure < found["w*train"][1]).sum()) + 1)
        gains.append(found["w*"][1] / pure["SAF"])
    held = sum(place <= 2 for place in places)
    finding = f"w* over SAF {', '.join(f'{gain:.2f}' for gain in gains)}"
    return [counted(text, "9", held, len(places), finding)]


def _thresholds(tables: Tables, reading: str) -> list[Claim]:
    """Check what section 10 says of the threshold."""
    none, default, hours = (sums(tables, reading, threshold) for threshold in THRESHOLDS_S)

    def spread(frame: pd.DataFrame) -> pd.Series:
        return frame.max() / frame.min()

    def squeeze(frame: pd.DataFrame) -> pd.Series:
        return np.abs(np.log(frame / frame.loc["FCFS"])).mean()

    wider = spread(none) > spread(default)
    nearer = squeeze(hours) < squeeze(default)
    return [
        counted("without threshold policies lie farther apart", "10", int(wider.sum()), len(wider)),
        counted("20 h squeezes them towards FCFS", "10", int(nearer.sum()), len(nearer)),
    ]


def _months(search: Search, reading: str) -> list[Claim]:
    """Check what section 11 says of months."""
    texts = ("by months, w* stays far below SAF", "by months, w*train and SAF are comparable")
    if reading != "plain":
        return [Claim(text, "11, Fig. 15", NOT_RUN, "") for text in texts]
    values = search.covers[reading, MONTHS]
    found = learned(values, slice(0, TRAINING_MONTHS), slice(TRAINING_MONTHS, None))
    saf = float(search.months["SAF"].iloc[TRAINING_MONTHS:].sum())
    below = found["w*"][1] / saf
    return [
        Claim(texts[0], "11, Fig. 15", HOLDS if below < 0.8 else FAILS, f"{below:.2f} of SAF's"),
        near(texts[1], "11, Fig. 15", 1.0, found["w*train"][1] / saf)._replace(
            finding=f"{found['w*train'][1] / saf:.2f} of SAF's"
        ),
    ]


def _directions(values: FloatArray) -> FloatArray:
    """Return the directions of the columns of a cover."""
    return cover(round(float(np.sqrt((values.shape[1] - 2) / 4))))


def _rows(tables: Tables, reading: str, threshold: int | None) -> pd.DataFrame:
    """Return the weeks of one reading and threshold."""
    frame = tables.weekly
    return frame[(frame["reading"] == reading) & (frame["threshold"] == (threshold or 0))]
