"""The page of the locality study: trends, spreads, and verdicts on the claims."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES
from papers.common.page import claims_table, document, prose, table
from papers.locality.claims import (
    ALIKE,
    BASIC,
    NAMES,
    REORDERED,
    SAME,
    claims,
    layouts_of,
    makespans,
    ratio,
    ratio_of_layouts,
    ratio_of_spreads,
    trend,
)
from papers.locality.engine import VARIANTS
from papers.locality.run import DEFAULT, HIGH, LOG, LOW, N_JOBS, OTHERS, Rerun

SHOWN_FACTORS = (0.0, 2e7, 6e7, 1e8, 2e8, 3.8e8)
"""Factors of the table of makespans, which all experiments have."""

LARGE = 1e6
"""Unit of makespans, s."""


def page(rerun: Rerun, command: str, seconds: float, picture: str) -> str:
    """Return the page in Markdown.

    Args:
        rerun: The results.
        command: The command that writes the page.
        seconds: Wall time of the whole command, s.
        picture: File of the makespans, beside the page.
    """
    return document(
        (
            "# Contiguity and locality in backfilling, rerun",
            _what_was_run(rerun, command, seconds),
            f"![Makespans of every run by variant, with their linear trends]({picture})",
            "## Our view of the differences",
            _view(rerun),
            "## Trend and spread",
            _how_trends_are_made(),
            _trends(rerun),
            "## Makespans (10⁶ s) by communication factor (byte/s)",
            _by_factor(rerun),
            "## Variants against basic",
            _ratios(rerun),
            "## Order of the clusters",
            _order(rerun),
            "## Other readings",
            _readings(rerun),
            "## Claims",
            _how_claims_are_judged(),
            claims_table({"here": claims(rerun)}),
        )
    )


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what was run, and how long it took."""
    runs = rerun.runs
    main = runs[runs["reading"] == DEFAULT.name]
    others = runs[runs["reading"] != DEFAULT.name]
    hosts = rerun.candidates.set_index("hosts")["jobs"]
    one, four, sixteen = (100 * hosts.get(n, 0) / hosts.sum() for n in (1, 4, 16))
    return prose(
        f"""
        P.-F. Dutot, M. Poquet, D. Trystram: contiguity and locality in backfilling.

        Written by `{command}`, which took {seconds:.0f} s of wall time in {rerun.processes}
        processes on a shared machine of two cores. The {len(main):,} runs of the default reading
        took {rerun.seconds / rerun.processes:.0f} s ({main["cpu_s"].sum():.0f} s of processor
        time), the {len(others):,} runs of other readings
        {rerun.seconds_of_others / rerun.processes:.0f} s ({others["cpu_s"].sum():.0f} s). The
        command also writes every run as CSV, and two pictures.

        A platform has 8 clusters of 16 hosts. A run schedules {N_JOBS} jobs, all there from the
        beginning, by conservative backfilling whose reservations are made anew at each event. Jobs
        are drawn from the {hosts.sum():,} of `{LOG}` that have at most 16 processors and ran 1 to 4
        hours: {one:.0f} % of these have one processor, {four:.0f} % four, {sixteen:.0f} % sixteen.
        Each job computes and sends in proportion to its run time; the factor F_comm says how much
        each of its hosts sends to each other. Jobs that run at the same time share switches and
        backbone by SimGrid's fair bottleneck. {_killed(main)}

        The five variants differ in the hosts they take. *basic* takes the lowest. *contiguous* and
        *local* refuse holes without consecutive hosts, or without room in one cluster. Their
        *best-effort* counterparts take such hosts where the first hole has them, else as basic.

        The homogeneous experiment has 20 draws and 40 factors. The heterogeneous ones have 10 draws
        and 20 factors on the paper's four orders of clusters, and on o2fix, which is o2 with as
        many clusters of each kind as the others. The paper's table of clusters is not at hand: high
        has speeds 1, 2, 3 and bandwidths 1, 2, 4, low 1, 1.3, 1.7 and 1, 1.5, 2. Links of the
        homogeneous platform carry 1.25e8 byte/s. The 1.25e6 of the paper is among the other
        readings.

        Completion times equal SimGrid's to 1e-9, on recorded cases and, where it is installed, on
        20 whole runs: `tests/scripts/papers/test_locality.py`.
        """
    )


def _killed(runs: pd.DataFrame) -> str:
    """Say how many jobs reached their limit."""
    killed = int(runs["killed"].sum())
    return f"{killed:,} jobs ran into their limit." if killed else "No job ran into its limit."


def _view(rerun: Rerun) -> str:
    """Explain what the runs show."""
    runs = rerun.runs
    main = runs[runs["reading"] == DEFAULT.name]
    inside = 100 * main.groupby("variant")["inside"].mean() / N_JOBS
    return prose(
        f"""
        Jobs inside one cluster: {inside[BASIC]:.0f} %.
        """
    )


def _how_trends_are_made() -> str:
    """Say what the columns of the table of trends are."""
    return prose(
        """
        The trend is a least-squares line through all runs of a variant, those of o1 to o4 where
        clusters differ. Slope: 10⁶ s of makespan for each 10⁸ byte/s of F_comm. Residuals: standard
        deviation around the trend. Draws: standard deviation between draws of jobs on the same
        platform with the same factor. Relative: residuals over the mean makespan. All but the
        slope and the last column are in 10⁶ s.
        """
    )


def _trends(rerun: Rerun) -> str:
    """Lay out trend and spread."""
    rows = []
    for name in NAMES:
        for variant in VARIANTS:
            found = trend(rerun, name, variant)
            mean = float(makespans(rerun, name, variant).to_numpy().mean())
            large = (found.slope * 1e8, found.intercept, found.residual, found.between)
            cells = [f"{value / LARGE:.3f}" for value in large]
            rows.append([name, variant, *cells, f"{100 * found.residual / mean:.0f} %"])
    columns = ("experiment", "variant", "slope", "intercept", "residuals", "draws", "relative")
    return table(columns, rows)


def _by_factor(rerun: Rerun) -> str:
    """Lay out mean makespans."""
    rows = []
    for name in NAMES:
        for variant in VARIANTS:
            mean = makespans(rerun, name, variant).mean().groupby("f_comm").mean() / LARGE
            rows.append([name, variant, *(f"{mean[factor]:.3f}" for factor in SHOWN_FACTORS)])
    return table(("experiment", "variant", *(f"{factor:g}" for factor in SHOWN_FACTORS)), rows)


def _ratios(rerun: Rerun) -> str:
    """Lay out makespans and spreads over those of basic, with intervals."""
    rows = [
        [
            variant,
            *(f"{ratio(rerun, name, variant, BASIC)}" for name in NAMES),
            *(f"{ratio_of_spreads(rerun, name, variant, BASIC).value:.3f}" for name in NAMES),
        ]
        for variant in VARIANTS
        if variant != BASIC
    ]
    spreads = [f"residuals, {name}" for name in NAMES]
    return table(("over basic", *(f"makespan, {name}" for name in NAMES), *spreads), rows)


def _order(rerun: Rerun) -> str:
    """Lay out makespans in each layout over those in o1."""
    rows = [
        [
            name,
            variant,
            *(f"{ratio_of_layouts(rerun, name, variant, layout)}" for layout in (*REORDERED, "o2")),
        ]
        for name in (HIGH, LOW)
        for variant in VARIANTS
    ]
    columns = (*(f"{layout} over o1" for layout in REORDERED), "o2, other clusters, over o1")
    return table(("experiment", "variant", *columns), rows)


def _readings(rerun: Rerun) -> str:
    """Lay out mean makespans of all readings over the draws that they share."""
    draws = range(min(one.seeds for one in OTHERS))
    rows = []
    for (reading, name), runs in rerun.runs.groupby(["reading", "experiment"], sort=False):
        runs = runs[runs["seed"].isin(draws) & runs["layout"].isin(layouts_of(str(name)))]
        mean = runs.groupby("variant")["makespan"].mean()
        over = (f"{mean[one] / mean[BASIC]:.2f}" for one in VARIANTS if one != BASIC)
        rows.append([reading, name, f"{mean[BASIC] / LARGE:.2f}", *over, int(runs["killed"].sum())])
    columns = (f"{one} / {BASIC}" for one in VARIANTS if one != BASIC)
    return table(("reading", "experiment", f"{BASIC}, 10⁶ s", *columns, "killed"), rows)


def _how_claims_are_judged() -> str:
    """Say what a verdict goes by."""
    return prose(
        f"""
        {BY_CASES} Makespans are compared as sums over all factors above 0, on the same jobs and
        platforms, and deviations around the trend over all factors. Intervals are of 95 %, from a
        bootstrap over draws of jobs, and a case holds if its whole interval does. Layouts differ by
        no more than chance if the interval of their ratio is within {SAME:.0%} of 1, platforms look
        alike within {ALIKE:.0%}. Variants are compared on o1 to o4; the order is judged on o1,
        {", ".join(REORDERED)}.
        """
    )
