"""WFP3 and UNICEF with -1 - submit time in place of the wait, as RLScheduler computes them.

Its jobs know their start only once they have started; until then it is -1, and the wait of every
waiting job comes out as -1 minus its submit time. So these orders never change, and depend on the
time origin. The first prefers early, narrow jobs that ask for long; the second wide ones that do,
and puts serial jobs last.

Source: Zhang, Dai, He, Bao and Xie 2020 (RLScheduler), its code.
"""

import math

from hpcgym.core import constants as s
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.policy import compiled_policy

WIDTH_MORE = 1e-15
"""What is added to the processors, whose logarithm would be 0 of serial jobs."""


def wfp3_by_submit(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by ((submit time + 1) / estimate)^3 processors."""
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        ratio = (jobs.feature[job, s.FEATURE_SUBMIT] + 1.0) / e
        sim.key[which, entry_of(sim, job)] = ratio * ratio * ratio * q


def unicef_by_submit(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by (submit time + 1) / (log2(processors) estimate)."""
    for position in range(n):
        job = sim.scratch[position]
        q, e = jobs.feature[job, s.FEATURE_PROCESSORS], jobs.feature[job, s.FEATURE_ESTIMATE]
        wide = math.log2(q + WIDTH_MORE)
        sim.key[which, entry_of(sim, job)] = (jobs.feature[job, s.FEATURE_SUBMIT] + 1.0) / (wide * e)


WFP3_BY_SUBMIT = compiled_policy(
    "WFP3-BY-SUBMIT",
    wfp3_by_submit,
    source="RLScheduler (Zhang et al. 2020), its code",
    is_static=True,
)
UNICEF_BY_SUBMIT = compiled_policy(
    "UNICEF-BY-SUBMIT", unicef_by_submit, source=WFP3_BY_SUBMIT.source, is_static=True
)
