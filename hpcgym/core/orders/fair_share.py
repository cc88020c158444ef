"""Fair share alone: the users who have used least of their shares first, as OpenPBS has it.

Source: Specification, section 16, "Fair share alone".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import is_whole
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.part_text import text_of_part
from hpcgym.core.parts.fair_share import (
    EVERY_PASS,
    FAIR_TREE,
    FairShare,
    FairShareSim,
    line_of,
    refresh,
)
from hpcgym.core.policy import Policy, compiled_policy
from hpcgym.machine.accounts import Accounts


def fair_share(jobs: Jobs, sim: FairShareSim, which: int, n: int) -> None:
    """Score jobs by their users' ranks."""
    refresh(jobs, sim)
    for position in range(n):
        job = sim.scratch[position]
        sim.key[which, entry_of(sim, job)] = -sim.factor[line_of(jobs, sim, job)]


@dataclass(frozen=True)
class Shares:
    """Policies by usage alone, lowest usage over shares first, compared from the root down."""

    NAME: ClassVar[str] = "fair-share"

    interval: int = 86_400  # usage is multiplied by `factor` after each interval of so many s
    factor: float = 0.5  # from 0 to 1, without both
    first: int | None = None  # when the first interval ends, s, 1 to `interval`; None = `interval`
    period: int = EVERY_PASS  # after how many s the order is made anew, 1 = at each pass
    accounts: Accounts | None = None  # the tree; None = all users are equal

    def __post_init__(self) -> None:
        for key in ("interval", "period"):
            if not is_whole(getattr(self, key), 1):
                raise PolicyError(
                    f"policy {self.NAME!r}: {key} must be whole seconds >= 1, got "
                    f"{getattr(self, key)!r}"
                )
        if self.first is not None and not (is_whole(self.first, 1) and self.first <= self.interval):
            raise PolicyError(
                f"policy {self.NAME!r}: first must be whole seconds from 1 to interval, "
                f"{self.interval}, got {self.first!r}"
            )
        if not (isinstance(self.factor, (int, float)) and 0 < self.factor < 1):
            raise PolicyError(
                f"policy {self.NAME!r}: factor must be above 0 and below 1, got {self.factor!r}"
            )

    @property
    def policy(self) -> Policy:
        """Return the policy."""
        half_life = -self.interval / math.log2(self.factor)
        passed = 0 if self.first is None else self.interval - self.first
        pace = half_life, self.interval, self.period
        kept = FairShare(FAIR_TREE, *pace, 1, passed, self.accounts)
        return compiled_policy(
            text_of_part(self), fair_share, source="OpenPBS, fair share", keeps=kept
        )
