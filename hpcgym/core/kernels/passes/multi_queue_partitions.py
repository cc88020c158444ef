"""Classes of jobs by estimate, and the partition of the machine that each class has.

A partition is a count of processors, some of them idle. A class that starts a job takes what its
partition lacks from idle processors of the others, and keeps them when the job ends. So a job may
start wherever processors are free: partitions record who has them, and refuse no one.

Source: Lawson, Smirni, Puiu 2002, section 3.2; Specification, section 7, "Multiple queue".
"""

from hpcgym.core.constants import FEATURE_ESTIMATE, FIRST_BOUND, MOST_CLASSES
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def class_of(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the class of a job, 0 for the shortest, by its estimate at submission."""
    # The feature keeps the estimate of the submission, whatever is corrected later.
    estimate = jobs.feature[job, FEATURE_ESTIMATE]
    last = int(sim.n_classes) - 1
    for number in range(last):
        if estimate <= sim.backfill_parameter[FIRST_BOUND + number]:
            return number
    return last


@kernel(inlined=True)
def begin_partitions(sim: Sim) -> None:
    """Divide the empty machine evenly, the first classes taking the remainder.

    The settings are in place. Writes `partition` and `partition_idle`.
    """
    n = int(sim.n_classes)
    machine = sim.machine_processors
    for number in range(MOST_CLASSES):
        size = machine // n + int(number < machine % n) if number < n else 0
        sim.partition[number] = size
        sim.partition_idle[number] = size


@kernel(inlined=True)
def most_idle(sim: Sim, taker: int) -> int:
    """Return the other class with most idle processors, ties the lowest."""
    giver = -1
    for number in range(int(sim.n_classes)):
        if number != taker and (
            giver < 0 or sim.partition_idle[number] > sim.partition_idle[giver]
        ):
            giver = number
    return giver


@kernel
def occupy_partition(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take the processors of a job that starts from its class's partition, in O(classes).

    As many processors are free. Writes `partition` and `partition_idle`.
    """
    taker = class_of(jobs, sim, job)
    while sim.partition_idle[taker] < jobs.processors[job]:
        giver = most_idle(sim, taker)
        given = min(sim.partition_idle[giver], jobs.processors[job] - sim.partition_idle[taker])
        sim.partition[giver] -= given
        sim.partition_idle[giver] -= given
        sim.partition[taker] += given
        sim.partition_idle[taker] += given
    sim.partition_idle[taker] -= jobs.processors[job]


@kernel(inlined=True)
def vacate_partition(jobs: Jobs, sim: Sim, job: int) -> None:
    """Return the processors of a job to its class's partition as idle; write `partition_idle`."""
    sim.partition_idle[class_of(jobs, sim, job)] += jobs.processors[job]
