"""F1 to F4: scores by processors q, estimate e, s, and submit time r, s, fitted to simulations.

They depend on the time origin.

Source: Carastan-Santos and de Camargo 2017 (SC), table of policies F1 to F4.
"""

import math

from hpcgym.core import constants as s
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.policy import compiled_policy


def learned(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by the formula with the number of the only parameter."""
    formula = int(sim.weight[which, 0])
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        log_r = math.log10(max(jobs.feature[job, s.FEATURE_SUBMIT], 1.0))
        if formula == 1:
            score = math.log10(e) * q + 870.0 * log_r
        elif formula == 2:
            score = math.sqrt(e) * q + 25_600.0 * log_r
        elif formula == 3:
            score = e * q + 6_860_000.0 * log_r
        else:
            score = e * math.sqrt(q) + 530_000.0 * log_r
        sim.key[which, entry_of(sim, job)] = score


_SC17 = "Carastan-Santos and de Camargo 2017 (SC)"
F1, F2, F3, F4 = (
    compiled_policy(f"F{formula}", learned, [formula], _SC17, is_static=True)
    for formula in range(1, 5)
)
