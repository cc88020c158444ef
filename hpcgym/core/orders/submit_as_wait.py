"""WFP3 and UNICEF with -1 - submit time in place of the wait, as RLScheduler computes them.

Its jobs have a start of -1 until they start, and the wait of a waiting job comes out as that minus
its submit time. So these orders never change, and depend on where the clock starts. Of jobs of one
size, those come first that came early or ask for long. Under UNICEF serial jobs come last.

Source: Zhang, Dai, He, Bao and Xie 2020 (RLScheduler), its code; Specification, section 8.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.part_text import text_of_part
from hpcgym.core.policy import Policy, compiled_policy

RULES = ("WFP3", "UNICEF")
MORE = 1e-15  # added to the processors under UNICEF, so that the logarithm of 1 is not 0


def submit_as_wait(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by the rule with the number of the only parameter."""
    is_wfp3 = sim.weight[which, 0] == 0.0
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        since = jobs.feature[job, s.FEATURE_SUBMIT] + 1.0
        if is_wfp3:
            score = (since / e) * (since / e) * (since / e) * q
        else:
            score = since / (math.log2(q + MORE) * e)
        sim.key[which, entry_of(sim, job)] = score


@dataclass(frozen=True)
class SubmitAsWait:
    """A rule by waits, with -1 - submit time in place of each.

    Example:
        >>> SubmitAsWait("WFP3").policy
        Policy('submit-as-wait:rule=WFP3')
    """

    NAME: ClassVar[str] = "submit-as-wait"

    rule: str  # "WFP3" or "UNICEF"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            text = unknown_name("rule", self.rule, RULES)
            raise PolicyError(f"policy {self.NAME!r}: {text}")

    @property
    def policy(self) -> Policy:
        """Return the policy."""
        return compiled_policy(
            text_of_part(self),
            submit_as_wait,
            [RULES.index(self.rule)],
            "RLScheduler (Zhang et al. 2020), its code",
            is_static=True,
        )
