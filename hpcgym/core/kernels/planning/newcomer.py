"""What a job would wait if it came now, for each of several shapes."""

from hpcgym.core.compiler.jit import kernel
from hpcgym.core.constants import BASE_ORDER
from hpcgym.core.kernels.passes.profile import find_start, make_profile, take_interval
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Int, Jobs, Sim


@kernel
def plan_newcomer(jobs: Jobs, sim: Sim, processors: Int, duration: Int, wait: Int) -> None:
    """Write the planned wait, s, of a job that comes now in each of its shapes, shape (n_shapes,).

    Every waiting job gets a reservation in base order, at its earliest hole; the newcomer comes
    last. Costs a walk over the profile for each waiting job and each shape. Writes the profile and
    `scratch`.

    Source: Specification, section 4, "Moldable".
    """
    make_profile(jobs, sim)
    n = list_jobs(sim, BASE_ORDER, sim.scratch)
    for position in range(n):
        job = sim.scratch[position]
        take_interval(jobs, sim, job, find_start(sim, jobs.processors[job], jobs.estimate[job]))
    for shape in range(len(wait)):
        wait[shape] = find_start(sim, processors[shape], duration[shape]) - sim.now
