"""Two observation fields in one file: one of each visible job, one of the cluster.

They are what docs/extending.md shows: names, formulas, bounds and kernels.
"""

import hpcgym
from hpcgym.core.constants import BASE_ORDER
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Jobs, Sim


def idle_after_start(jobs: Jobs, sim: Sim, job: int) -> float:
    """Return the share of the machine that is idle once a job has started, below 0 if none fits."""
    return (sim.free - jobs.processors[job]) / sim.machine_processors


def longest_wait(jobs: Jobs, sim: Sim) -> float:
    """Return the longest wait so far, as x / (x + 1 h); writes `scratch`."""
    longest = 0
    for place in range(list_jobs(sim, BASE_ORDER, sim.scratch)):
        longest = max(longest, sim.now - jobs.submit_time[sim.scratch[place]])
    return longest / (longest + 3600)


IDLE = hpcgym.register_field(
    "idle_after_start",
    idle_after_start,
    meaning="x, processors that are idle if the job starts now; negative = it does not fit",
    formula="x / M, at least -1",
    low=-1,
)
WAIT = hpcgym.register_field(
    "longest_wait",
    longest_wait,
    meaning="x, the longest wait so far of a waiting job, s",
    formula="x / (x + 3600)",
)
