"""The page of the locality study: trends, spreads, and verdicts on the claims."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES
from papers.common.page import claims_table, document, prose
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
    ratio,
    ratio_of_layouts,
    ratio_of_spreads,
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
    Rerun,
)


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
            "## Findings",
            _view(rerun),
            "## Method",
            _what_was_run(rerun, command),
            f"![Makespans of every run by variant, with their linear trends]({picture})",
            "## Claims",
            _how_claims_are_judged(),
            claims_table({"here": claims(rerun)}),
        )
    )


def beside(rerun: Rerun) -> dict[str, pd.DataFrame]:
    """Return the table that the page links to: makespans and spreads over those of basic."""
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
    columns = ["over basic", *(f"makespan, {name}" for name in NAMES), *spreads]
    return {"locality_ratios": pd.DataFrame(rows, columns=columns)}


def _what_was_run(rerun: Rerun, command: str) -> str:
    """Say what was run, and how long it took."""
    runs = rerun.runs
    main = runs[runs["reading"] == DEFAULT.name]
    others = runs[runs["reading"] != DEFAULT.name]
    hosts = rerun.candidates.set_index("hosts")["jobs"]
    return prose(
        f"""
        [The study](../references.md) asks which processors backfilled jobs are to take.

        Written by `{command}`: {len(main):,} runs of the default reading in
        {main["cpu_s"].sum():.0f} s of processor time, {len(others):,} of others in
        {others["cpu_s"].sum():.0f} s.

        A run schedules {N_JOBS} jobs, all there from the beginning, by conservative backfilling.
        They are drawn from the {hosts.sum():,} of `{LOG}` that have at most 16 processors and ran 1
        to 4 hours. F_comm says how much each host sends to each other. Completion times equal
        SimGrid's to 1e-9: `tests/scripts/papers/test_locality.py`.
        [Rules of reruns](../appendices/reruns.md#contiguity-and-locality) has platforms, loads and
        the five variants.
        """
    )


def _view(rerun: Rerun) -> str:
    """Explain what the runs show."""
    runs = rerun.runs
    main = runs[(runs["reading"] == DEFAULT.name) & runs["layout"].isin([ONE_LAYOUT, *PRINTED])]
    flat = main[main["experiment"] == HOMOGENEOUS]
    inside = 100 * flat.groupby("variant")["inside"].mean() / N_JOBS
    silent = flat[flat["f_comm"] == 0].groupby("variant")["makespan"].mean()
    cost = 100 * (silent / silent[BASIC] - 1)
    levelled = [
        widening(rerun, name, CLUSTER, ("o1", *REORDERED), against=reading.name)
        for name, reading in LEVELLED.items()
    ]
    wider = [widening(rerun, name, CLUSTER).value for name in (HIGH, LOW)]
    reordered = [
        ratio_of_layouts(rerun, name, variant, layout)
        for name in (HIGH, LOW)
        for variant in VARIANTS
        for layout in REORDERED
    ]
    noticed = sum(not is_near(each, None) for each in reordered)
    return prose(
        f"""
        **Why constraints pay.** On the homogeneous platform, basic has {inside[BASIC]:.0f} % of the
        jobs inside one cluster, best-effort contiguous {inside[NEAR_BLOCK]:.0f} %, best-effort
        local {inside[NEAR_CLUSTER]:.0f} %, contiguous {inside[BLOCK]:.0f} %, local all.
        [locality_ratios.csv](locality_ratios.csv) has makespans and residuals.

        **What they cost.** Without communication, contiguous adds {cost[BLOCK]:.1f} % to basic's
        makespan, local {cost[CLUSTER]:+.1f} %.

        **The gap is larger on heterogeneous platforms, but not by heterogeneity.** Basic / local is
        {wider[0]:.2f} times (high) and {wider[1]:.2f} times (low) that on the homogeneous platform.
        Against equal clusters of the same hardware in all, the factors are {levelled[0]} and
        {levelled[1]}.

        **The order of clusters.** Of {len(reordered)} ratios of makespans to those in o1, {noticed}
        {"has" if noticed == 1 else "have"} an interval without 1; chance alone would give one or
        two. The printed o2 has other clusters, so it is not compared.
        """
    )


def _how_claims_are_judged() -> str:
    """Say what a verdict goes by."""
    return prose(
        f"""
        {BY_CASES} A case holds if its whole interval of 95 % does, by Student's t over draws of
        jobs. Makespans are sums over all factors above 0. Makespans are equal within
        {100 * SAME:.0f} %, and alike within {100 * ALIKE:.0f} %. Variants are compared on o1 to o4;
        the order is judged on o1, {", ".join(REORDERED)}.
        """
    )
