"""MULTIFACTOR: the sum of an age factor and a size factor, as Slurm weighs them; highest first."""

from hpcgym.core import constants as s
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.policy import compiled_policy

MAX_AGE, AGE_WEIGHT, SIZE_WEIGHT = 0, 1, 2
"""Parameters: the wait at which the age factor is full, s, and the weights of both factors."""


def multifactor(jobs: Jobs, sim: Sim, which: int, n: int) -> None:
    """Score jobs by their wait and their share of the machine."""
    machine = float(sim.machine_processors)
    for position in range(n):
        job = sim.scratch[position]
        wait = sim.now - jobs.feature[job, s.FEATURE_SUBMIT]
        age = min(wait / sim.weight[which, MAX_AGE], 1.0)
        size = 1.0 - jobs.feature[job, s.FEATURE_PROCESSORS] / machine
        score = -(sim.weight[which, AGE_WEIGHT] * age + sim.weight[which, SIZE_WEIGHT] * size)
        sim.key[which, entry_of(sim, job)] = score


MULTIFACTOR = compiled_policy(
    "MULTIFACTOR",
    multifactor,
    [43_200.0, 1000.0, 1000.0],
    "Slurm's multifactor plug-in as reduced by SchedInspector (HPDC 2022)",
)
