"""One pass that looks ahead: behind the head, the jobs start that together fill the machine most.

Jobs start in queue order while they fit; the first that does not is the head, with a reservation as
in EASY. Of the first jobs behind it in queue order, as many as the window is wide, whether they fit
or not, those start that together use most processors now: of `free` altogether, and of no more than
`extra` those that outlast the shadow time. Of several such choices it is the one that is found by
going through the window from its last job to its first: a job is left out wherever the jobs before
it alone can use as many of the processors still to be used, those that outlast the shadow time no
more than what is left of `extra`.

That is the recursion of the specification, V[i, f, x], walked back. What a choice is worth is the
processors it uses, so the two kinds of jobs, those back by the shadow time and those that outlast
it, meet in a sum only: for each kind `reach` says for each number of processors how many jobs of
the list it takes until a choice among them uses exactly so many. That is V for all i in two lines
instead of a table of `window` times `free` times `extra`.

Cost of a pass, with n jobs waiting, of which m in the window may start, f processors free and x
extra: O(n) to list, and O(m (f + x)). No more than the list where none of them may start, or all
together; and the list is gone through no further than until all processors can be used.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.easy import charge_extra, fits_behind, reserve
from hpcgym.core.kernels.passes.easy_dynamic import start_front
from hpcgym.core.kernels.queue.ordered_queue import least_processors, list_jobs
from hpcgym.core.kernels.queue.selection import take_first
from hpcgym.core.kernels.running_jobs import start_waiting
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BASE,
    EXTRA,
    FREE,
    N_WAITING,
    NEVER,
    NOW,
    SHADOW,
    WINDOW,
)

BACK, OUTLASTS = 0, 1
"""Rows of `reach`: jobs that end by the shadow time, and those that do not."""


@kernel(inlined=True)
def put_window_last(sim: Sim, which: int, n: int, width: int) -> int:
    """Put the first of the listed jobs, in order, at the end of the list.

    Args:
        row: The simulation, the jobs listed in `scratch`.
        which: The order whose keys decide.
        n: Number of jobs listed.
        width: How many of them are wanted.

    Returns:
        Place of the first of them.

    Writes:
        `scratch`.

    Source:
        House rule: no order is worked out further than it is asked for.
    """
    for taken in range(width):
        job = take_first(sim, which, n - taken, taken)
        sim.scratch[n - 1 - taken] = job
    first = n - width
    for place in range(width // 2):
        job = sim.scratch[first + place]
        sim.scratch[first + place] = sim.scratch[n - 1 - place]
        sim.scratch[n - 1 - place] = job
    return first


@kernel(inlined=True)
def list_fitting(jobs: Jobs, sim: Sim, first: int, width: int) -> int:
    """List the jobs of the window that may start behind the head, were each the only one.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known, the window listed in `scratch`.
        first: Place of the window's first job.
        width: Number of its jobs.

    Returns:
        Number of jobs listed.

    Writes:
        `scratch`, which lists them from its beginning.

    Source:
        Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """
    slack = sim.counter[SHADOW] - sim.counter[NOW]
    n = 0
    for place in range(first, first + width):
        job = sim.scratch[place]
        if fits_behind(jobs, job, sim.counter[FREE], sim.counter[EXTRA], slack):
            sim.scratch[n] = job
            n += 1
    return n


@kernel(inlined=True)
def outlasts(jobs: Jobs, sim: Sim, job: int) -> int:
    """Return the row of `reach` that a job belongs to.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known.
        job: Index of a waiting job.

    Returns:
        `OUTLASTS` if it would end after the shadow time, else `BACK`.

    Source:
        Specification, section 1, "EASY pass", step 3.
    """
    return int(sim.counter[NOW] + jobs.estimate[job] > sim.counter[SHADOW])


@kernel(inlined=True)
def all_fit(jobs: Jobs, sim: Sim, n: int) -> bool:
    """Tell whether all listed jobs may start behind the head together.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known, the jobs listed in `scratch`.
        n: Number of jobs listed.

    Returns:
        True if there is nothing to choose.

    Source:
        House rule: no work where it cannot matter.
    """
    wanted = 0
    wanted_extra = 0
    for place in range(n):
        job = sim.scratch[place]
        wanted += jobs.processors[job]
        wanted_extra += jobs.processors[job] * outlasts(jobs, sim, job)
    return wanted <= sim.counter[FREE] and wanted_extra <= sim.counter[EXTRA]


@kernel
def can_use(sim: Sim, processors: int, extra: int, n: int) -> bool:
    """Tell whether the first listed jobs can use exactly so many processors.

    Args:
        row: The simulation, `reach` made for these jobs.
        processors: How many, at most those free.
        extra: Processors that jobs may use beyond the shadow time.
        n: How many jobs, from the first of the list.

    Returns:
        True if some of them together can.

    Source:
        Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """
    for beyond in range(min(extra, processors) + 1):
        if sim.reach[OUTLASTS, beyond] <= n and sim.reach[BACK, processors - beyond] <= n:
            return True
    return False


@kernel
def make_reach(jobs: Jobs, sim: Sim, extra: int, n: int) -> int:
    """Work out with how many of the listed jobs each number of processors can be used.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known, the jobs listed in `scratch`.
        extra: Processors that jobs may use beyond the shadow time, at most those free.
        n: Number of jobs listed, each of which may start.

    Returns:
        How many of them have been gone through: no more than it takes to use all processors.

    Writes:
        `reach`, up to `extra` and up to the processors that are free.

    Source:
        Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """
    free = sim.counter[FREE]
    for processors in range(1, free + 1):
        sim.reach[BACK, processors] = NEVER
    for processors in range(1, extra + 1):
        sim.reach[OUTLASTS, processors] = NEVER
    sim.reach[BACK, 0] = 0
    sim.reach[OUTLASTS, 0] = 0
    for place in range(n):
        job = sim.scratch[place]
        kind = outlasts(jobs, sim, job)
        wanted = jobs.processors[job]
        for processors in range(extra if kind == OUTLASTS else free, wanted - 1, -1):
            if sim.reach[kind, processors] == NEVER and sim.reach[kind, processors - wanted] <= n:
                sim.reach[kind, processors] = place + 1
        if can_use(sim, free, extra, place + 1):
            return place + 1
    return n


@kernel(inlined=True)
def find_most(sim: Sim, extra: int) -> int:
    """Find the most processors that the listed jobs can use, in O(free) steps.

    Args:
        row: The simulation, `reach` made.
        extra: Processors that jobs may use beyond the shadow time, at most those free.

    Returns:
        V[n, free, extra].

    Source:
        Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """
    most = 0
    back = sim.counter[FREE]
    for beyond in range(extra + 1):
        if sim.reach[OUTLASTS, beyond] == NEVER:
            continue
        while back + beyond > sim.counter[FREE] or sim.reach[BACK, back] == NEVER:
            back -= 1
        most = max(most, back + beyond)
    return most


@kernel
def choose_fullest(jobs: Jobs, sim: Sim, n: int) -> int:
    """Choose the listed jobs that together use most processors, ties as the first lines here say.

    Args:
        jobs: The job table.
        row: The simulation, its reservation known, the jobs listed in `scratch` in queue order.
        n: Number of jobs listed, each of which may start.

    Returns:
        Place of the first of the chosen jobs, which are listed from there to place n - 1.

    Writes:
        `scratch` and `reach`.

    Source:
        Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """
    if all_fit(jobs, sim, n):
        return 0
    extra = min(sim.counter[EXTRA], sim.counter[FREE])
    place = make_reach(jobs, sim, extra, n)
    left = find_most(sim, extra)
    first = n
    while left > 0:
        place -= 1
        if not can_use(sim, left, extra, place):
            job = sim.scratch[place]
            left -= jobs.processors[job]
            extra -= jobs.processors[job] * outlasts(jobs, sim, job)
            first -= 1
            sim.scratch[first] = job
    return first


@kernel
def look_ahead_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make one scheduling pass that looks ahead.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether the order of this instant decides; else the kept one does, or any order
            gives the same starts.

    Returns:
        False if the picked job started and the pass stopped there, for a new decision.

    Writes:
        What `start_waiting` writes; SHADOW and EXTRA, -1 where they were not needed; `scratch`,
        `reach`, keys of orders that are not kept.

    Source:
        Shmueli and Feitelson 2003; specification, section 8, "LOS, lookahead".
    """
    primary, head = start_front(jobs, sim, contested)
    if head >= 0 and least_processors(sim, BASE) <= sim.counter[FREE]:
        reserve(jobs, sim, head)
        n = sim.counter[N_WAITING] - 1
        width = int(min(sim.backfill_parameter[WINDOW], float(n)))
        first = 1  # the head is listed before the others, unless it was taken out of the list
        if contested:
            first = put_window_last(sim, primary, n, width)
        else:
            list_jobs(sim, BASE, sim.scratch)
        n = list_fitting(jobs, sim, first, width)
        for place in range(choose_fullest(jobs, sim, n), n):
            charge_extra(jobs, sim, sim.scratch[place])
            start_waiting(jobs, sim, sim.scratch[place], True)
    return head != -2
