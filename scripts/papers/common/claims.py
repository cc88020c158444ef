"""Verdicts on what papers claim, all by the same measure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

HOLDS, IN_PART, FAILS = "holds", "in part", "no"
NOT_RUN = "not run"

BY_CASES = "A claim holds if all of its cases do, in part if at least half do."
BY_NUMBER = "A number holds if ours is within a tenth of it, in part if within a third."
"""What `counted` and `near` go by, for pages."""


class Claim(NamedTuple):
    """What a paper says, and whether it holds here.

    Attributes:
        text: The claim, with the published number.
        where: Where the paper makes it.
        verdict: One of `HOLDS`, `IN_PART`, `FAILS`, `NOT_RUN`.
        finding: What was measured, in words.
    """

    text: str
    where: str
    verdict: str
    finding: str


def counted(text: str, where: str, held: int, of: int, finding: str = "") -> Claim:
    """Return the verdict on a claim by the number of its cases that hold.

    Example:
        >>> counted("SAF is first", "Table 3", 3, 4).verdict
        'in part'
    """
    verdict = HOLDS if held == of else IN_PART if 2 * held >= of else FAILS
    count = f"{held} of {of}"
    return Claim(text, where, verdict, f"{count}; {finding}" if finding else count)


def near(text: str, where: str, published: float, measured: float, unit: str = "") -> Claim:
    """Return the verdict on a claimed number, which must not be 0, by how near ours is.

    The text has the published number.

    Example:
        >>> near("best gain: 83.4 %", "V-A", 83.4, 78.0, " %")[2:]
        ('holds', '78 %')
    """
    off = abs(measured / published - 1.0)
    verdict = HOLDS if off <= 0.1 else IN_PART if off <= 1 / 3 else FAILS
    digits = ".4g" if measured < 10_000 else ",.0f"
    return Claim(text, where, verdict, f"{measured:{digits}}{unit}")


def off_by(ratio: pd.DataFrame | pd.Series) -> float:
    """Return by which factor numbers are off, on the geometric mean, from ours over the printed.

    Twice too large and twice too small count the same.

    Example:
        >>> off_by(pd.Series([2.0, 0.5]))
        2.0
    """
    return float(np.exp(np.abs(np.log(ratio.to_numpy(dtype=np.float64))).mean()))
