"""The lecture on batch scheduling: verdicts on its claims."""

from __future__ import annotations

from papers.common.claims import Claim, counted, near
from papers.lecture.run import DOUBLING, EASY, F_TABLE, FACTORS, KEPT, PLAIN, USER, Reading, Rerun

COLUMNS = ("response", "slowdown")


def claims(rerun: Rerun, reading: Reading = PLAIN) -> list[Claim]:
    """Return verdicts on what the lecture says, under one reading.

    Source: Lecture on batch scheduling.
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
    as_printed = sum((change[EASY, *key] < 0) == (DOUBLING[key][0] < 0) for key in DOUBLING)
    of_f, of_two, n = "table of f", "Another Result", len(DOUBLING)
    found = [
        counted("users' estimates are worst, in response and slowdown", of_f, worst, 2),
        counted(
            "the response is best for an f of 1 to 3", of_f, int(best in (1, 3)), 1, f"f = {best}"
        ),
        counted("from f = 3 on the slowdown is below that of f = 0", of_f, lower, len(late)),
    ]
    for kind, name in ((0, "true run times"), (USER, "users' estimates")):
        response, slowdown = F_TABLE[kind]
        found += [
            near(
                f"response with {name}: {response:,} s",
                *(of_f, response, kth["response"][kind], " s"),
            ),
            near(f"slowdown with {name}: {slowdown}", of_f, slowdown, kth["slowdown"][kind]),
        ]
    return [
        *found,
        counted("doubling gives CBF more than EASY", of_two, more, n),
        counted("doubling improves CBF on every log", of_two, gains, n),
        counted("doubling changes EASY as printed, for better or worse", of_two, as_printed, n),
    ]
