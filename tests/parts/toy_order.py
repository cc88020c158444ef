"""An order in one file: the widest first, and each hour of wait counts as so many processors.

It is what docs/extending.md shows: a function that scores the listed jobs, and a name for it.
"""

import hpcgym
from hpcgym.core import constants as s
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim


def wide_or_old(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by -(processors + hours of wait, weighted)."""
    for place in range(n):
        job = sim.scratch[place]
        hours = (sim.now - jobs.submit_time[job]) / 3600.0
        wide = jobs.feature[job, s.FEATURE_PROCESSORS]
        sim.key[which, entry_of(sim, job)] = -(wide + sim.weight[which, 0] * hours)


hpcgym.register_policy("WIDE-OR-OLD", score=wide_or_old, parameters=[4.0])
hpcgym.register_policy("WIDE", score=wide_or_old, is_static=True)
