"""WFP3 and UNICEF: long waits first, relative to the estimate.

The papers take the highest value first, hence the minus signs.

Source: Tang, Lan, Desai and Buettner 2009 (Cluster).
"""

import math

from hpcgym.core import constants as s
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.policy import compiled_policy


def wfp3(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by -(wait / estimate)^3 processors."""
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
        sim.key[which, entry_of(sim, job)] = -((wait / e) * (wait / e) * (wait / e) * q)


def unicef(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by -wait / (log2(processors) estimate), at least 2 processors."""
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
        sim.key[which, entry_of(sim, job)] = -(wait / (math.log2(max(q, 2.0)) * e))


WFP3 = compiled_policy("WFP3", wfp3, source="Tang et al. 2009 (Cluster)")
UNICEF = compiled_policy("UNICEF", unicef, source=WFP3.source)
