"""The page of Lawson, Smirni, Puiu 2002: published numbers beside ours."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES
from papers.common.page import beside, claims_table, document, prose, table
from papers.lawson.claims import COLUMNS, OVERALL, batch_ratios, claims, ratios
from papers.lawson.run import (
    CLASSES,
    DELAYED,
    EXACT,
    MULTIPLE,
    PRINTED,
    SCHEDULERS,
    SHOWN,
    SINGLE,
    TABLE_1,
    USER,
    Reading,
    Rerun,
)

MULTIPLES = (MULTIPLE, DELAYED, PRINTED)
STATISTICS = ("mean", "median", "cv")


def page(rerun: Rerun, command: str, seconds: float) -> str:
    """Return the page in Markdown.

    Args:
        rerun: The results.
        command: The command that writes the page.
        seconds: Wall time of the whole command, s.
    """
    readings = {reading.name: claims(rerun, reading) for reading in SHOWN}
    return document(
        (
            "# Lawson, Smirni, Puiu 2002, rerun",
            _what_was_run(rerun, command, seconds),
            "## Our view of the differences",
            _view(rerun),
            "## Tables and figures",
            "### Table 1, the logs, *published* / here",
            _table_1(rerun),
            "### Fig. 2, share of jobs by class of run time (%), here",
            _shares(rerun),
            "### Figs. 5(a) and 7, R overall",
            _overall(rerun),
            "### Fig. 5, R by class",
            _by_class(rerun),
            "### Fig. 6, R by batches of 1000 submissions",
            _transient(rerun),
            "### The delay at the beginning of each day (s)",
            _delays(rerun),
            "### Mean slowdowns",
            _slowdowns(rerun),
            "## Claims",
            BY_CASES,
            claims_table(readings),
        )
    )


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what was run."""
    n_jobs = rerun.runs["n_jobs"].sum() / 1e6
    exact = rerun.runs[rerun.runs["reading"] == EXACT.name].drop_duplicates("log")
    return prose(
        f"""
        B. G. Lawson, E. Smirni, D. Puiu: "Self-adapting Backfilling Scheduling for Parallel
        Systems", ICPP 2002.

        Written by `{command}`, which took {seconds:.0f} s on one core. Of these,
        {rerun.seconds:.0f} s went into {len(rerun.runs)} simulations of {n_jobs:.1f} million jobs.
        The command also writes all numbers as CSV, and Figs. 5 to 7 and the delay as pictures.

        The slowdown is 1 + wait / run time; the {exact["n_without_run_time"].sum()} jobs without a
        run time have none. R = (s1 - sm) / min(s1, sm) compares a single queue with multiple
        queues. The single queue (s1) is EASY, first come first served. The multiple queues (sm) are
        `"{MULTIPLE}"`, and `"{DELAYED}"` with adaptive delay. Where R is above 0, multiple queues
        are better.

        Two readings are shown. *{EXACT.name}*, as in the paper: the scheduler knows run times, and
        jobs run as long as the log says. *{USER.name}*: the scheduler knows requests only, jobs end
        at them, and classes go by them. The Paragon's log has no requests and gets synthetic ones
        (Tsafrir, Etsion, Feitelson 2005). The paper's Figs. 5 to 7 are pictures without numbers, so
        claims are checked by sign and size alone.
        """
    )


def _view(rerun: Rerun) -> str:
    """Explain the differences."""
    exact, user = (ratios(rerun, reading, MULTIPLE)[OVERALL] for reading in SHOWN)
    delayed, printed = (ratios(rerun, EXACT, mode)[OVERALL] for mode in (DELAYED, PRINTED))
    worst = batch_ratios(rerun, EXACT, "PAR", MULTIPLE).min()
    facts = rerun.facts.drop_duplicates("log").set_index("log")
    days = rerun.delays[rerun.delays["reading"] == EXACT.name]
    mean_delay = days.groupby(["scheduler", "log"])["delay"].mean()
    more = [100 * (TABLE_1[log][0] / jobs - 1) for log, jobs in facts["jobs"].items()]
    return prose(
        f"""
        **With exact estimates the paper holds.** Multiple queues then have the smaller slowdown on
        every log ({_by_log(exact)}). By class and by batch the results are much as the paper says.
        Short jobs gain: their slowdowns, in the tens and hundreds, dominate the mean. Those of
        extra-long jobs are near 2 either way. In Fig. 6 losses outweigh gains on the Paragon alone,
        because of one batch (R {worst:.1f}).

        **With users' requests it does not.** Jobs join queues by their requests. Of the jobs that
        ran no longer than 100 s, many ask for more than 10,000 s:
        {_by_log(facts["short_asking_long"], ".0f", " %")}. They wait among the extra-long jobs, and
        lose with them. Overall R is then {_by_log(user)}; jobs that ask for little gain as before.
        The Paragon's requests are synthetic, so its gain says little.

        **The adaptive delay helps some jobs and harms others.** With exact estimates R stays above
        0 on every log, as the paper says ({_by_log(delayed)}). But it is not always above R without
        a delay, and extra-long jobs pay. The delay follows the difference of two noisy means, which
        is up as often as down. It can rise without bound, but fall to 0 only. So it wanders and
        does not settle: from 2500 s to means of {_by_log(mean_delay[DELAYED], ",.0f", " s")}. With
        users' requests it holds back short jobs as well, and makes things worse on every log. Where
        no job asks for 100 s or less it never changes.

        **The first change is probably a slip.** As printed, delta_1 = s_1 adds s_1 times 2500 s
        after the first batch, and the delay stays there
        ({_by_log(mean_delay[PRINTED], ",.0f", " s")}; R {_by_log(printed)}). We leave the first
        change out.

        **The logs are other versions.** The paper's logs have {min(more):.0f} to {max(more):.0f} %
        more jobs than ours, which are cleaned. KTH's uncleaned log meets the mean of Table 1 within
        a second. The paper calls CTC a machine of 512 nodes; the log covers a partition of 338.
        With the printed sizes, gains have the same sign.

        **One sentence is too strong.** The paper says: "Both policies ensure that once a job
        reaches the front of the queue, it cannot be delayed further". This is true of the oldest
        job. Another pivot is moved back in two cases. In the first, a job that came before it
        becomes the pivot of its class, which the paper's own definition allows. In the second, a
        job ends before its estimate, and an earlier pivot moves ahead into its way.
        `tests/core/test_multi_queue.py` has a small example of each.
        """
    )


def _table_1(rerun: Rerun) -> str:
    """Lay out table 1."""
    columns = [f"{what}_{of}" for of in ("run_time", "processors") for what in STATISTICS]
    rows = []
    for _, facts in rerun.facts.iterrows():
        published = TABLE_1[facts["log"]]
        ours = [facts["jobs"], facts["machine"], *(facts[column] for column in columns)]
        rows.append(
            [
                f"{facts['log']}, {facts['version']}",
                *(
                    beside(f"{p:,}", f"{o:,.2f}" if isinstance(p, float) else f"{o:,.0f}")
                    for p, o in zip(published, ours, strict=True)
                ),
            ]
        )
    titles = ("log", "jobs", "machine", "run time (s): mean", "median", "C.V.")
    return table((*titles, "processors: mean", "median", "C.V."), rows)


def _shares(rerun: Rerun) -> str:
    """Lay out the shares of the classes."""
    columns = (*(f"share_{one}" for one in CLASSES), "over_request", "short_asking_long")
    rows = [
        [str(log), *(float(facts[column]) for column in columns)]
        for log, facts in rerun.facts.drop_duplicates("log").set_index("log").iterrows()
    ]
    titles = ("log", "short", "medium", "long", "extra-long", "ran beyond their request")
    return table((*titles, "short ones that ask for more than 10,000 s"), rows)


def _overall(rerun: Rerun) -> str:
    """Lay out R overall under every reading."""
    rows = []
    for reading in _readings(rerun):
        frames = [ratios(rerun, reading, mode)[OVERALL] for mode in MULTIPLES]
        rows += [
            [reading.name, log, *(float(frame[log]) for frame in frames)] for log in frames[0].index
        ]
    return table(("reading", "log", *(SCHEDULERS[mode] for mode in MULTIPLES)), rows)


def _by_class(rerun: Rerun) -> str:
    """Lay out R by class."""
    rows = []
    for reading in SHOWN:
        for mode in (MULTIPLE, DELAYED):
            frame = ratios(rerun, reading, mode)[list(COLUMNS)]
            rows += [
                [reading.name, SCHEDULERS[mode], log, *map(_cell, frame.loc[log])]
                for log in frame.index
            ]
    return table(("reading", "scheduler", "log", *COLUMNS.values()), rows)


def _transient(rerun: Rerun) -> str:
    """Lay out figure 6."""
    rows = []
    for reading in SHOWN:
        for mode in (MULTIPLE, DELAYED):
            for log, _ in reading.logs:
                ratio = batch_ratios(rerun, reading, log, mode)
                rows.append(
                    [
                        reading.name,
                        SCHEDULERS[mode],
                        log,
                        len(ratio),
                        f"{100 * (ratio > 0).mean():.0f}",
                        f"{100 * (ratio < 0).mean():.0f}",
                        float(ratio[ratio > 0].mean()),
                        float(ratio[ratio < 0].mean()),
                        float(ratio.median()),
                    ]
                )
    titles = ("reading", "scheduler", "log", "batches", "% gain", "% lose")
    return table((*titles, "mean gain", "mean loss", "median R"), rows)


def _delays(rerun: Rerun) -> str:
    """Lay out the adaptive delay."""
    delay = rerun.delays.set_index(["reading", "scheduler", "log"])["delay"].sort_index()
    rows = []
    for reading in SHOWN:
        for mode in (DELAYED, PRINTED):
            for log, _ in reading.logs:
                days = delay.loc[(reading.name, mode, log)]
                figures = (days.mean(), days.median(), days.max())
                cells = [f"{figure:,.0f}" for figure in figures]
                zero = f"{100 * (days == 0).mean():.0f}"
                rows.append([reading.name, SCHEDULERS[mode], log, *cells, zero])
    titles = ("reading", "scheduler", "log", "mean", "median", "largest", "% of days 0")
    return table(titles, rows)


def _slowdowns(rerun: Rerun) -> str:
    """Lay out the slowdowns themselves, with the numbers of jobs."""
    rows = []
    runs = rerun.runs.set_index(["reading", "log", "scheduler"])
    for reading in SHOWN:
        for log, _ in reading.logs:
            jobs = runs.loc[(reading.name, log, SINGLE)]
            counts = (str(int(jobs[f"n_jobs_{one}"])) for one in CLASSES)
            rows.append([reading.name, log, "jobs", str(int(jobs["n_jobs"])), *counts])
            for mode in SCHEDULERS:
                one = runs.loc[(reading.name, log, mode)]
                cells = (_cell(one[column]) for column in COLUMNS)
                rows.append([reading.name, log, SCHEDULERS[mode], *cells])
    return table(("reading", "log", "scheduler", *COLUMNS.values()), rows)


def _readings(rerun: Rerun) -> list[Reading]:
    """Return the readings that were run, with the logs they were run on."""
    return [
        Reading(str(name), logs=tuple((log, log) for log in runs["log"].unique()))
        for name, runs in rerun.runs.groupby("reading", sort=False)
    ]


def _cell(value: float) -> str:
    """Show a number, or that there is none."""
    return "-" if pd.isna(value) else f"{value:,.2f}"


def _by_log(values: pd.Series[float], digits: str = ".2f", unit: str = "") -> str:
    """Write one number per log into a sentence."""
    return ", ".join(f"{log} {value:{digits}}{unit}" for log, value in values.items())
