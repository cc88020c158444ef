"""The page of the locality study: trends, spreads, and verdicts on the claims."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES
from papers.common.page import claims_table, document, prose, table
from papers.locality.claims import (
    ALIKE,
    BASIC,
    BLOCK,
    CLUSTER,
    NAMES,
    NEAR_BLOCK,
    NEAR_CLUSTER,
    PRINTED,
    REORDERED,
    SAME,
    claims,
    is_near,
    layouts_of,
    makespans,
    ratio,
    ratio_of_layouts,
    ratio_of_spreads,
    trend,
    widening,
)
from papers.locality.engine import VARIANTS
from papers.locality.run import (
    DEFAULT,
    HIGH,
    HOMOGENEOUS,
    LEVELLED,
    LOG,
    LOW,
    N_JOBS,
    ONE_LAYOUT,
    OTHERS,
    Rerun,
)

SHOWN_FACTORS = (0.0, 2e7, 6e7, 1e8, 2e8, 3.8e8)
"""Factors of the table of makespans, which all experiments have."""

SHARED_DRAWS = min(reading.seeds for reading in OTHERS)
"""Draws that all readings have, from 0 on."""

LARGE = 1e6
"""Unit of makespans, s."""


def page(rerun: Rerun, command: str, picture: str) -> str:
    """Return the page in Markdown.

    Args:
        rerun: The results.
        command: The command that writes the page.
        picture: File of the makespans, beside the page.
    """
    return document(
        (
            "# Contiguity and locality in backfilling, rerun",
            _what_was_run(rerun, command),
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


def _what_was_run(rerun: Rerun, command: str) -> str:
    """Say what was run, and how long it took."""
    runs = rerun.runs
    main = runs[runs["reading"] == DEFAULT.name]
    others = runs[runs["reading"] != DEFAULT.name]
    hosts = rerun.candidates.set_index("hosts")["jobs"]
    one, four, sixteen = (100 * hosts.get(n, 0) / hosts.sum() for n in (1, 4, 16))
    return prose(
        f"""
        P.-F. Dutot, M. Poquet, D. Trystram: contiguity and locality in backfilling.

        Written by `{command}`, on a machine of two cores that others used as well. The
        {len(main):,} runs of the default reading took {rerun.seconds:.0f} s, added up over the
        workers, and {main["cpu_s"].sum():.0f} s of processor time. The {len(others):,} runs of
        other readings took {rerun.seconds_of_others:.0f} s and {others["cpu_s"].sum():.0f} s. The
        command also writes every run as CSV, and three pictures.

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
    main = runs[(runs["reading"] == DEFAULT.name) & runs["layout"].isin([ONE_LAYOUT, *PRINTED])]
    flat = main[main["experiment"] == HOMOGENEOUS]
    inside = 100 * flat.groupby("variant")["inside"].mean() / N_JOBS
    mean = main.groupby(["experiment", "variant"])["makespan"].mean() / LARGE
    silent = flat[flat["f_comm"] == 0].groupby("variant")["makespan"].mean()
    cost = 100 * (silent / silent[BASIC] - 1)
    worse = _pairs_worse_than_basic(flat)
    levelled = [
        widening(rerun, name, CLUSTER, ("o1", *REORDERED), against=reading.name)
        for name, reading in LEVELLED.items()
    ]
    wider = [widening(rerun, name, CLUSTER).value for name in (HIGH, LOW)]
    reordered = {
        (name, variant): [ratio_of_layouts(rerun, name, variant, one) for one in REORDERED]
        for name in (HIGH, LOW)
        for variant in VARIANTS
    }
    local = [one.value for name in (HIGH, LOW) for one in reordered[name, CLUSTER]]
    noticed = sum(not is_near(one, None) for found in reordered.values() for one in found)
    return prose(
        f"""
        **Why constraints pay.** On the homogeneous platform, basic has {inside[BASIC]:.0f} % of the
        jobs inside one cluster, best-effort contiguous {inside[NEAR_BLOCK]:.0f} %, best-effort
        local {inside[NEAR_CLUSTER]:.0f} %, contiguous {inside[BLOCK]:.0f} %, local all. All other
        jobs share the one backbone. We believe, and have not tested, that jobs spread over many
        clusters also leave the hosts scattered on which the next jobs start, so that best-effort
        variants fall back more and more. Best-effort contiguous is worse than basic in
        {worse:.0f} % of the pairs with communication, though better on average.

        **What constraints cost.** Without communication, contiguous adds {cost[BLOCK]:.1f} % to
        basic's makespan on the homogeneous platform. Local changes it by {cost[CLUSTER]:+.1f} %,
        best-effort local by {cost[NEAR_CLUSTER]:+.1f} %. From 1e7 byte/s on, both strict variants
        are better than basic in every pair.

        **The gap is larger on heterogeneous platforms, but not by heterogeneity.** Basic has about
        the same mean makespan in all experiments ({mean[HOMOGENEOUS, BASIC]:.1f},
        {mean[HIGH, BASIC]:.1f} and {mean[LOW, BASIC]:.1f} 10⁶ s), as all have the same backbone.
        Local jobs do not use it; they gain from hosts and switches that are faster on average. The
        gap basic / local is {wider[0]:.2f} times (high) and {wider[1]:.2f} times (low) that on the
        homogeneous platform. Against equal clusters of the same hardware in all, the factors are
        {levelled[0]} and {levelled[1]} (layouts of the same clusters). How much hardware the
        paper's platforms have, we do not know.

        **The order of clusters.** Of {3 * len(reordered)} ratios of makespans to those in o1,
        {noticed} {"has" if noticed == 1 else "have"} an interval without 1, where chance alone
        would give one or two. All of local's are between {min(local):.3f} and {max(local):.3f}.
        The other variants vary too much between draws for ten of these to exclude effects of a
        tenth. We believe that fast clusters in front help, since the lowest hosts go first.
        The printed o2 has three fast clusters where the others have two, so it is not compared
        with them.

        **High and low.** Variants rank alike, and basic's makespans differ by little. Local's are
        as different as the clusters. This verdict goes by our multipliers, as the paper's are not
        at hand.
        """
    )


def _pairs_worse_than_basic(runs: pd.DataFrame) -> float:
    """Return the share of runs with communication in which best-effort contiguous loses, %."""
    wide = runs[runs["f_comm"] > 0].pivot(
        index=["seed", "f_comm"], columns="variant", values="makespan"
    )
    return 100 * float((wide[NEAR_BLOCK] > wide[BASIC]).mean())


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
    rows = []
    for (reading, name), runs in rerun.runs.groupby(["reading", "experiment"], sort=False):
        runs = runs[(runs["seed"] < SHARED_DRAWS) & runs["layout"].isin(layouts_of(str(name)))]
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
        platforms, and deviations around the trend over all factors. Intervals are of 95 %, by
        Student's t over draws of jobs, and a case holds if its whole interval does. An effect of
        the order is noticed if the interval of two layouts' ratio does not hold 1. There is none
        above
        {100 * SAME:.0f} % if the whole interval is that near to 1. High and low heterogeneity look
        alike if it is within {100 * ALIKE:.0f} %. Variants are compared on o1 to o4; the order is
        judged on o1, {", ".join(REORDERED)}.
        """
    )
