"""What a job would wait if it came now, for each of several shapes it might have."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.profile import find_start, make_profile, take_interval
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import BASE, NOW, Int


@kernel
def plan_newcomer(jobs: Jobs, sim: Sim, processors: Int, duration: Int, wait: Int) -> None:
    """Predict the wait of a job that comes now, by a plan in which every waiting job has its place.

    The waiting jobs get reservations in base order, each at its earliest hole; the newcomer comes
    last. O(n_waiting) walks over the profile, and one for each shape.

    Args:
        jobs: The job table.
        row: The simulation, at an instant at which jobs are submitted.
        processors: Processors of each shape, shape (n_shapes,).
        duration: Its run time as the scheduler expects it, shape (n_shapes,), s, >= 1.
        wait: Where to, shape (n_shapes,), s.

    Writes:
        `wait`; the profile and `scratch`.

    Source:
        Lecture on batch scheduling, "Rigid/Moldable jobs"; specification, section 4, "Moldable".
    """
    make_profile(jobs, sim)
    n = list_jobs(sim, BASE, sim.scratch)
    for place in range(n):
        job = sim.scratch[place]
        take_interval(jobs, sim, job, find_start(sim, jobs.processors[job], jobs.estimate[job]))
    for shape in range(len(wait)):
        wait[shape] = find_start(sim, processors[shape], duration[shape]) - sim.counter[NOW]
