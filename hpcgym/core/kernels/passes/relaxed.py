"""One pass that lets the head start later than it could, by a part of its estimate at most.

Where a head waits and another job fits now, the head's shadow time is found as in EASY. Its
reference time is the earliest shadow time it has had at such passes since it became head, so that
delays do not add up: a job becomes head anew where another was head at the last such pass. Its
limit is the reference time plus omega times its estimate, rounded down, or its shadow time where
that is later, as it may be where jobs outlive their estimates. Candidates are tried in backfill
order; one starts if it fits now and the head's new shadow time is not beyond the limit.

Running jobs only ever give processors back, so the head's shadow time lies within the limit just if
enough processors are free at the limit. A candidate leaves them free if it is back by then, or
needs no more than is left over beside the head then: it is EASY's own test, with the limit in the
shadow time's place. With omega = 0 the two are the same and so are the schedules.

Cost of a pass: that of EASY, and a second walk over the releases up to the limit.
"""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.easy import backfill, reserve
from hpcgym.core.kernels.passes.easy_dynamic import (
    backfill_first,
    list_candidates,
    make_backfill_order,
    start_front,
)
from hpcgym.core.kernels.queue.ordered_queue import least_processors
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.state import (
    BASE,
    EXTRA,
    FILL,
    FILL_KEEPS,
    FREE,
    LIMITED_HEAD,
    N_RELEASES,
    OMEGA,
    REFERENCE,
    SHADOW,
)

LONGEST_DELAY_S = 2.0**60
"""What stands for a delay without a limit; longer than any log."""


@kernel(inlined=True)
def find_limit(jobs: Jobs, sim: Sim, head: int) -> int:
    """Find the latest start that the head may be given.

    Args:
        jobs: The job table.
        row: The simulation, the head's shadow time known.
        head: Index of the head.

    Returns:
        The limit, s, at least the shadow time.

    Writes:
        REFERENCE and LIMITED_HEAD.

    Source:
        Ward, Mahood and West 2002. House rule: the reference time moves earlier with the shadow
        time, so that omega = 0 is EASY also where jobs end early.
    """
    shadow = sim.counter[SHADOW]
    if sim.counter[LIMITED_HEAD] != head or sim.counter[REFERENCE] > shadow:
        sim.counter[REFERENCE] = shadow
    sim.counter[LIMITED_HEAD] = head
    delay = min(sim.backfill_parameter[OMEGA] * jobs.estimate[head], LONGEST_DELAY_S)
    return max(sim.counter[REFERENCE] + int(delay), shadow)


@kernel(inlined=True)
def relax(jobs: Jobs, sim: Sim, head: int) -> None:
    """Reserve for the head at its limit, in as many steps as releases come before that.

    Args:
        jobs: The job table.
        row: The simulation.
        head: Index of a job that does not fit now.

    Writes:
        SHADOW: the limit, s. EXTRA: processors left over at that instant. REFERENCE, LIMITED_HEAD.

    Source:
        Ward, Mahood and West 2002.
    """
    reserve(jobs, sim, head)
    limit = find_limit(jobs, sim, head)
    if limit == sim.counter[SHADOW]:
        return
    free = sim.counter[FREE]
    for place in range(sim.counter[N_RELEASES] - 1, -1, -1):
        if sim.release_time[place] > limit:
            break
        free += jobs.processors[sim.release_job[place]]
    sim.counter[SHADOW] = limit
    sim.counter[EXTRA] = free - jobs.processors[head]


@kernel
def relaxed_pass(jobs: Jobs, sim: Sim, contested: bool) -> bool:
    """Make one scheduling pass that may delay the head up to its limit.

    Args:
        jobs: The job table.
        row: The simulation.
        contested: Whether orders of this instant decide; else the kept ones do, or any order gives
            the same starts.

    Returns:
        False if the picked job started and the pass stopped there, for a new decision.

    Writes:
        What `start_waiting` writes; SHADOW and EXTRA, -1 where they were not needed; REFERENCE,
        LIMITED_HEAD; `scratch`, keys of orders that are not kept.

    Source:
        Ward, Mahood and West 2002; specification, section 8, "Relaxed".
    """
    primary, head = start_front(jobs, sim, contested)
    if head >= 0 and least_processors(sim, BASE) <= sim.counter[FREE]:
        relax(jobs, sim, head)
        if contested:
            n = list_candidates(jobs, sim)
            backfill_first(jobs, sim, make_backfill_order(jobs, sim, primary, n), n)
        else:
            backfill(jobs, sim, FILL if sim.setting[FILL_KEEPS] == 1 else BASE, head)
    return head != -2
