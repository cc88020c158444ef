"""The page of the lecture on batch scheduling: published and measured side by side."""

from __future__ import annotations

from papers.common.page import Claim, claims_table, counted, near, prose, table
from papers.lecture.run import (
    ANEW,
    DOUBLING,
    EASY,
    F_TABLE,
    FACTORS,
    KEPT,
    MODES,
    OPTIONS,
    PLAIN,
    READINGS,
    SEEDS,
    USER,
    Reading,
    Rerun,
    gang_uses,
    moldable_choices,
)

COLUMNS = ("response", "slowdown")


def page(rerun: Rerun, command: str, seconds: float) -> str:
    """Write the page.

    Args:
        rerun: The figures.
        command: The command that printed them.
        seconds: Wall time of the whole command, s.

    Returns:
        The page in Markdown.

    Source:
        House rule: every figure in a page is printed by a command named beside it.
    """
    sections = [
        "# The lecture on batch scheduling, rerun",
        _what_was_run(rerun, command, seconds),
        "## Estimates f times the run time",
        "Mean response (s) and mean bounded slowdown, KTH under EASY, *published* / here:",
        _f_table(rerun),
        "Mean bounded slowdown, all logs and modes:",
        _slowdowns(rerun),
        "## Users' estimates doubled",
        "Change (%), below 0 is better, *published* / here:",
        _doubling(rerun),
        "## Other readings",
        _readings(rerun),
        "## Worked examples",
        _examples(),
        "## Our view of the differences",
        _view(rerun),
        "## What became of the claims",
        "A claim holds if all of its cases do, in part if at least half do; a figure holds within "
        "a tenth, in part within a third.",
        claims_table({PLAIN.name: claims(rerun)}),
    ]
    return "\n\n".join(sections) + "\n"


def claims(rerun: Rerun, reading: Reading = PLAIN) -> list[Claim]:
    """Judge what the lecture says.

    Args:
        rerun: The figures.
        reading: Which reading.

    Returns:
        The claims, each with its verdict.

    Source:
        Lecture on batch scheduling; specification, section 4, "Testable".
    """
    kth = rerun.means(reading).loc["KTH", EASY]
    worst = sum(kth[column].loc[list(FACTORS)].max() < kth[column][USER] for column in COLUMNS)
    best = kth["response"].loc[list(FACTORS)].idxmin()
    late = [f for f in FACTORS if f >= 3]
    lower = sum(kth["slowdown"][f] < kth["slowdown"][0] for f in late)
    change = {
        (mode, column, log): rerun.change(mode, log, column, reading)
        for mode in (EASY, KEPT)
        for column, log in DOUBLING
    }
    more = sum(change[KEPT, *key] < change[EASY, *key] for key in DOUBLING)
    gains = sum(change[KEPT, *key] < 0 for key in DOUBLING)
    signs = sum((change[EASY, *key] < 0) == (DOUBLING[key][0] < 0) for key in DOUBLING)
    of_f, of_two, n = "table of f", "Another Result", len(DOUBLING)
    claimed = [
        counted("users' estimates are worst, in response and slowdown", of_f, worst, 2),
        counted(
            "the response is best for an f of 1 to 3", of_f, int(best in (1, 3)), 1, f"f = {best}"
        ),
        counted("from f = 3 on the slowdown is below that of f = 0", of_f, lower, len(late)),
    ]
    for kind, name in ((0, "true run times"), (USER, "users' estimates")):
        response, slowdown = F_TABLE[kind]
        claimed += [
            near(f"response with {name}", of_f, response, kth["response"][kind], " s"),
            near(f"slowdown with {name}", of_f, slowdown, kth["slowdown"][kind]),
        ]
    return [
        *claimed,
        counted("doubling gives CBF more than EASY", of_two, more, n),
        counted("doubling improves CBF on every log", of_two, gains, n),
        counted("doubling changes EASY as printed, for better or worse", of_two, signs, n),
    ]


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what the page is about."""
    n_jobs = rerun.runs["n_jobs"].sum() / 1e6
    return prose(
        f"""
        "Batch Scheduling", lecture slides; its tables go back to D. G. Feitelson and A. W.
        Mu'alem. Written by `{command}`, which took {seconds:.0f} s in all, {rerun.seconds:.0f} s of
        it for {len(rerun.runs):,} simulations of {n_jobs:.1f} million jobs. It also writes every
        run as CSV, and two pictures.

        First come first served, no threshold. An estimate f times the run time p is drawn evenly
        from p to (f + 1) p, which covers f = 0 (true run times); figures are means of {len(SEEDS)}
        draws. Doubled, the scheduler sees twice the request, and jobs are still killed at the
        request. Response is submission to end; slowdown is bounded at 10 s. The lecture's CBF
        keeps reservations and moves them up when jobs end early (`"{KEPT}"`); made anew at each
        pass (`"{ANEW}"`) is shown beside it.
        """
    )


def _f_table(rerun: Rerun) -> str:
    """Lay out the table of factors."""
    kth = rerun.means().loc["KTH", EASY]
    rows = [
        [
            f"f = {kind}" if kind != USER else "users' estimates",
            f"*{published[0]:,}* / {kth['response'][kind]:,.0f}",
            f"*{published[1]:.1f}* / {kth['slowdown'][kind]:.1f}",
        ]
        for kind, published in F_TABLE.items()
    ]
    return table(("estimates", "response", "slowdown"), rows)


def _slowdowns(rerun: Rerun) -> str:
    """Lay out the slowdown by log, mode and estimates."""
    means = rerun.means()["slowdown"]
    rows = [
        [log, name, *(f"{means[log, mode, kind]:.1f}" for kind in (*FACTORS, USER, "doubled"))]
        for log, _ in PLAIN.logs
        for mode, name in MODES.items()
    ]
    return table(("log", "mode", *(f"f = {f}" for f in FACTORS), "users'", "doubled"), rows)


def _doubling(rerun: Rerun) -> str:
    """Lay out the table of doubling."""
    rows = []
    for (column, log), published in DOUBLING.items():
        easy, kept, anew = (rerun.change(mode, log, column) for mode in MODES)
        shown = [
            f"*{p:+.1f}* / {ours:+.1f}" for p, ours in zip(published, (easy, kept), strict=True)
        ]
        rows.append([column, log, *shown, f"{anew:+.1f}"])
    return table(("", "log", *MODES.values()), rows)


def _readings(rerun: Rerun) -> str:
    """Lay out the table of factors under every reading."""
    rows = []
    for kind, published in F_TABLE.items():
        cells = []
        for reading in READINGS:
            kth = rerun.means(reading).loc["KTH", EASY]
            cells.append(f"{kth['response'][kind]:,.0f} / {kth['slowdown'][kind]:.1f}")
        name = f"f = {kind}" if kind != USER else "users' estimates"
        rows.append([name, f"*{published[0]:,} / {published[1]:.1f}*", *cells])
    titles = ("KTH, EASY: response / slowdown", "*published*")
    return table((*titles, *(reading.name for reading in READINGS)), rows)


def _examples() -> str:
    """Lay out the worked examples."""
    uses = ", ".join(f"{use:g} % with {rows} in it" for rows, use in gang_uses().items())
    costs = ", ".join(f"{q} x {t} = {q * t}" for q, t in OPTIONS)
    chosen = ", ".join(f"{q} processors by {name}" for name, q in moldable_choices().items())
    return prose(
        f"""
        Gang scheduling, 128 nodes (rows parted by |): the machine is used to {uses}. The lecture
        says 25 %, 75 %, and "pretty good".

        A moldable job, processors times minutes: {costs}. Where nothing has to wait, it gets
        {chosen}.

        EASY and conservative backfilling on the jobs of the slides, and gangs and moldable jobs on
        drawn ones, are compared with judges in plain Python by `tests/core/test_golden_cases.py`,
        `tests/core/test_reservations.py`, `tests/test_gang.py` and `tests/test_moldable.py`.
        """
    )


def _view(rerun: Rerun) -> str:
    """Say what we make of it."""
    kth = rerun.means().loc["KTH", EASY]
    uncleaned = rerun.means(READINGS[1]).loc["KTH", EASY]
    runs = rerun.runs[(rerun.runs["reading"] == PLAIN.name) & (rerun.runs["mode"] == EASY)]
    noisy = runs[(runs["log"] == "KTH") & (runs["estimates"] == 3)]["slowdown"]
    easy, kept, anew = (
        ", ".join(f"{log} {rerun.change(mode, log, 'slowdown'):+.1f} %" for log, _ in PLAIN.logs)
        for mode in MODES
    )
    return prose(
        f"""
        **Levels.** Responses come within a few percent of the slides; slowdowns lie above, by
        {100 * (kth["slowdown"][0] / F_TABLE[0][1] - 1):.0f} % with true run times and
        {100 * (kth["slowdown"][USER] / F_TABLE[USER][1] - 1):.0f} % with users' estimates. The
        uncleaned log does not explain it ({uncleaned["slowdown"][0]:.1f} and
        {uncleaned["slowdown"][USER]:.1f}), nor does handling events one by one. The slides do not
        say how a slowdown is bounded, nor which part of the log was replayed.

        **Order.** Ten draws of f = 3 give slowdowns from {noisy.min():.1f} to {noisy.max():.1f} on
        KTH, so a table of one draw, as the slides have it, cannot rank neighbouring factors.

        **Doubling.** Slowdowns change by {easy} under EASY, by {kept} where reservations are kept,
        and by {anew} where they are made anew at each pass. Doubled estimates open holes that close
        early, which helps a scheduler that plans for all jobs more than one that plans for the head
        alone.
        """
    )
