"""The page of the lecture on batch scheduling: published numbers beside ours."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES, BY_NUMBER
from papers.common.page import claims_table, document, prose
from papers.lecture.claims import claims
from papers.lecture.run import (
    ANEW,
    DOUBLING,
    EASY,
    F_TABLE,
    KEPT,
    MODES,
    OPTIONS,
    PLAIN,
    READINGS,
    SEEDS,
    USER,
    Rerun,
    gang_uses,
    moldable_choices,
)

WHOSE = ("published", "here")


def page(rerun: Rerun, command: str, seconds: float) -> str:
    """Return the page in Markdown.

    Args:
        rerun: The results.
        command: The command that writes the page.
        seconds: Wall time of the whole command, s.
    """
    return document(
        (
            "# The lecture on batch scheduling, rerun",
            "## Findings",
            _view(rerun),
            "## Method",
            _what_was_run(rerun, command, seconds),
            "## Worked examples",
            _examples(),
            "## Claims",
            f"{BY_CASES} {BY_NUMBER}",
            claims_table({PLAIN.name: claims(rerun)}),
        )
    )


def beside(rerun: Rerun) -> dict[str, pd.DataFrame]:
    """Return the tables that the page links to, by name: factors, and doubling."""
    return {"lecture_factors": _f_table(rerun), "lecture_doubling": _doubling(rerun)}


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what was run."""
    n_jobs = rerun.runs["n_jobs"].sum() / 1e6
    return prose(
        f"""
        [The slides](../references.md) have two tables.

        Written by `{command}`, which took {seconds:.0f} s: {len(rerun.runs):,} simulations of
        {n_jobs:.1f} million jobs.

        Jobs are served first come first served, without a threshold. An estimate f times the run
        time p is drawn evenly from p to (f + 1) p. Numbers are means of {len(SEEDS)} draws. Jobs
        are killed at the request, also where the scheduler sees it doubled. Response is the time
        from submission to end. The lecture's conservative backfilling (CBF) is `"{KEPT}"`; the
        variant is `"{ANEW}"`.

        - [lecture_factors.csv](lecture_factors.csv): mean response (s) and mean bounded slowdown on
          KTH under EASY, by f.
        - [lecture_doubling.csv](lecture_doubling.csv): change (%) where estimates are doubled;
          below 0 is better.
        """
    )


def _f_table(rerun: Rerun) -> pd.DataFrame:
    """Lay out the table of factors."""
    kth = rerun.means().loc["KTH", EASY]
    rows = [
        [
            f"f = {kind}" if kind != USER else "users' estimates",
            *(f"{published[0]:,}", f"{kth['response'][kind]:,.0f}"),
            *(f"{published[1]:.1f}", f"{kth['slowdown'][kind]:.1f}"),
        ]
        for kind, published in F_TABLE.items()
    ]
    numbers = [f"{what}, {whose}" for what in ("response", "slowdown") for whose in WHOSE]
    return pd.DataFrame(rows, columns=["estimates", *numbers])


def _doubling(rerun: Rerun) -> pd.DataFrame:
    """Lay out the table of doubling."""
    rows = []
    for (column, log), published in DOUBLING.items():
        ours = [rerun.change(mode, log, column) for mode in MODES]
        numbers = published[0], ours[0], published[1], *ours[1:]
        rows.append([column, log, *(f"{number:+.1f}" for number in numbers)])
    easy, kept, anew = MODES.values()
    changes = [f"{mode}, {whose}" for mode in (easy, kept) for whose in WHOSE]
    return pd.DataFrame(rows, columns=["of", "log", *changes, f"{anew}, here"])


def _examples() -> str:
    """Lay out the worked examples."""
    uses = ", ".join(f"{use:g} % with {rows}" for rows, use in gang_uses().items())
    chosen = ", ".join(f"{q} processors by {name}" for name, q in moldable_choices().items())
    return prose(
        f"""
        Gang scheduling on 128 nodes, rows separated by |, uses {uses}. The lecture says 25 %, 75 %,
        and "pretty good". A moldable job of {len(OPTIONS)} shapes that need not wait gets {chosen}.
        Jobs: `tests/core/test_golden_cases.py`, `tests/schedule/test_gang.py`,
        `tests/schedule/test_moldable.py`.
        """
    )


def _view(rerun: Rerun) -> str:
    """Explain the differences."""
    kth = rerun.means().loc["KTH", EASY]
    uncleaned = rerun.means(READINGS[1]).loc["KTH", EASY]
    runs = rerun.runs[(rerun.runs["reading"] == PLAIN.name) & (rerun.runs["mode"] == EASY)]
    noisy = runs[(runs["log"] == "KTH") & (runs["estimates"] == 3)]["slowdown"]
    return prose(
        f"""
        **Levels.** Responses are within a few percent of the slides. Slowdowns are higher, by
        {100 * (kth["slowdown"][0] / F_TABLE[0][1] - 1):.0f} % with true run times and
        {100 * (kth["slowdown"][USER] / F_TABLE[USER][1] - 1):.0f} % with users' estimates. The
        uncleaned log does not explain it ({uncleaned["slowdown"][0]:.1f} and
        {uncleaned["slowdown"][USER]:.1f}), nor does handling events one by one.

        **Order.** Ten draws of f = 3 give slowdowns from {noisy.min():.1f} to {noisy.max():.1f} on
        KTH. A table of one draw, as on the slides, cannot rank neighbouring factors.

        **Doubling.** Doubled estimates open holes that close early. This helps a scheduler that
        plans for all jobs more than one that plans for the head.
        """
    )
