"""Smith's ratio, work over the cost of waiting, by what users' completed jobs tell of a job.

`hpcgym.core.kernels.scoring.user_estimates` says how run times are expected, and
`hpcgym.core.index_policy` makes indexes and urgencies of one's own.

Source: Smith 1956; Specification, section 10, "Index policies" and "Urgency".
"""

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.index_policy import index_policy
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.scoring.score import parameters_of
from hpcgym.core.kernels.scoring.user_estimates import (
    expect_now,
    urgent_score,
    weigh_terms,
    weight_of_width,
)
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.policy import Policy, compiled_policy


def smith(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by the requested work over E[1/D] as of the submission."""
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        sim.key[which, entry_of(sim, job)] = e * q / sim.inverse[entry_of(sim, job)]


def index(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by the weighted sum of their terms; writes what `expect_now` writes."""
    weight = parameters_of(sim, which)
    listed, term, key = sim.scratch, sim.expected, sim.key[which]
    for position in range(n):
        entry = expect_now(jobs, sim, listed[position])
        key[entry] = weigh_terms(weight, term[entry])


def urgent(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by the ratio with urgency; writes what `expect_now` writes."""
    weight = parameters_of(sim, which)
    width = weight_of_width(sim, weight)
    for position in range(n):
        job = sim.scratch[position]
        wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
        score = urgent_score(jobs, sim, weight, job, wait, width)
        sim.key[which, entry_of(sim, job)] = score


def _indexes(source: str, cites: str, ratio: int, speed: int | None = None) -> list[Policy]:
    """Return SPF, SAF and Smith's rule by terms of run-time ratios and speeds, else 1 / ratio."""
    made = []
    for name, processors, power in (("SPF", 0, 0), ("SAF", 1, 0), ("SMITH", 1, 1)):
        weight = np.zeros(s.N_WEIGHTS)
        weight[[s.TERM_PROCESSORS, s.TERM_REQUEST, ratio]] = processors, 1 + power, 1
        weight[ratio if speed is None else speed] += power if speed is None else -power
        made.append(index_policy(weight, name=f"{name}-{source}", source=cites))
    return made


_REGRESSION = "Smith 1956; Gaussier, Glesser, Reis and Trystram 2015 (SC)"
_SECTION = "hpcgym specification, section 10"
SMITH = compiled_policy(
    "SMITH", smith, (), f"Smith 1956; {_SECTION}", is_static=True, needs_history=True
)
SPF_RECENT, SAF_RECENT, SMITH_RECENT = _indexes(
    "RECENT", "Smith 1956; Tsafrir, Etsion and Feitelson 2007 (TPDS)", s.TERM_RECENT_RUN_TIME_RATIO
)
SPF_HISTORY, SAF_HISTORY, SMITH_HISTORY = _indexes(
    "HISTORY",
    f"Smith 1956; means over user, request and size: {_SECTION}",
    s.TERM_RUN_TIME_RATIO,
    s.TERM_SPEED,
)
SPF_REG, SAF_REG, SMITH_REG = _indexes(
    "REG", _REGRESSION, s.TERM_REGRESSED_RUN_TIME_RATIO, s.TERM_REGRESSED_SPEED
)
SMITH_URGENT = compiled_policy(
    "SMITH-URGENT",
    urgent,
    s.USUAL_URGENCY,
    f"{_REGRESSION}; {_SECTION}",
    expects=s.EXPECT_BY_REGRESSION,
)
