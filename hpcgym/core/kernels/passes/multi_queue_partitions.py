"""Classes of jobs by estimate, and the partition of the machine that each class has.

Partitions are kept by count: how many processors each has, and how many of them are idle. A class
that starts a job takes what its own partition lacks from the others' idle processors, and keeps
them when the job ends. So a job may start wherever processors are free at all: partitions say who
has them, not who may have them. O(classes) for a start, O(1) for an end.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import FIRST_BOUND, MACHINE_PROCESSORS, MOST_CLASSES, N_CLASSES, E


@kernel(inlined=True)
def class_of(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the class of a job, in a step per class.

    Args:
        jobs: The job table.
        row: The simulation, its backfilling mode one with classes.
        job: Index of the job.

    Returns:
        0 for the shortest; by the estimate at its submission, which stays.

    Source:
        Lawson, Smirni, Puiu 2002, section 3.2.
    """
    estimate = jobs.feature[job, E]
    last = int(sim.backfill_parameter[N_CLASSES]) - 1
    for number in range(last):
        if estimate <= sim.backfill_parameter[FIRST_BOUND + number]:
            return number
    return last


@kernel(inlined=True)
def begin_partitions(sim: Sim) -> None:
    """Part the empty machine evenly, the first classes taking what is left over.

    Args:
        row: The simulation, its settings and parameters in place.

    Writes:
        `partition` and `partition_idle`.

    Source:
        Lawson, Smirni, Puiu 2002, section 3.2; specification, section 7.
    """
    n = int(sim.backfill_parameter[N_CLASSES])
    machine = sim.setting[MACHINE_PROCESSORS]
    for number in range(MOST_CLASSES):
        size = machine // n + int(number < machine % n) if number < n else 0
        sim.partition[number] = size
        sim.partition_idle[number] = size


@kernel(inlined=True)
def most_idle(sim: Sim, taker: int) -> int:
    """Find the partition that gives to another.

    Args:
        row: The simulation.
        taker: The class that takes.

    Returns:
        The other class with the most idle processors, ties the lowest.

    Source:
        Specification, section 7: largest idle first.
    """
    giver = -1
    for number in range(int(sim.backfill_parameter[N_CLASSES])):
        if number != taker and (
            giver < 0 or sim.partition_idle[number] > sim.partition_idle[giver]
        ):
            giver = number
    return giver


@kernel
def occupy_partition(jobs: Jobs, sim: Sim, job: int) -> None:
    """Give a job that starts its processors out of its class's partition.

    Args:
        jobs: The job table.
        row: The simulation, as many processors free as the job wants.
        job: Index of the job.

    Writes:
        `partition` and `partition_idle`.

    Source:
        Lawson, Smirni, Puiu 2002, section 3.2; specification, section 7.
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
    """Let the processors of a job be idle in its class's partition.

    Args:
        jobs: The job table.
        row: The simulation.
        job: Index of a job whose processors become free.

    Writes:
        `partition_idle`.

    Source:
        Specification, section 7.
    """
    sim.partition_idle[class_of(jobs, sim, job)] += jobs.processors[job]
