"""Relaxed backfilling: the head may start later than it could, by a part of its estimate at most.

The head's shadow time is found as in EASY, at passes where a head waits and another job fits now.
Its reference time is the earliest shadow time it has had at such passes since it became head, so
that delays do not add up. Its limit is the reference time plus omega times its estimate, rounded
down. If the shadow time is later than that, since jobs outlived their estimates, it is the limit. A
candidate starts if it fits now and the head's new shadow time is not beyond the limit.

That is EASY's own test with the limit as the shadow time. Running jobs only give processors back,
so the head can start by the limit if and only if enough processors are free at the limit. A
candidate leaves them free if it ends by then, or needs no more than is left over beside the head.
With omega = 0 the schedules are EASY's.

Cost: that of EASY, and a second walk over the releases up to the limit.

Source: Ward, Mahood and West 2002; Specification, section 8, "Relaxed".
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
"""Bound of a delay where omega is infinite; longer than any log."""


@kernel(inlined=True)
def find_limit(jobs: Jobs, sim: Sim, head: int) -> int:
    """Return the latest start the head may be given, s; write `reference` and `limited_head`."""
    shadow = sim.counter[SHADOW]
    # The reference time follows the shadow time when jobs end early: else omega = 0 would not be
    # EASY. A job is head anew if another was head at the last such pass.
    if sim.counter[LIMITED_HEAD] != head or sim.counter[REFERENCE] > shadow:
        sim.counter[REFERENCE] = shadow
    sim.counter[LIMITED_HEAD] = head
    delay = min(sim.backfill_parameter[OMEGA] * jobs.estimate[head], LONGEST_DELAY_S)
    return max(sim.counter[REFERENCE] + int(delay), shadow)


@kernel(inlined=True)
def relax(jobs: Jobs, sim: Sim, head: int) -> None:
    """Reserve for the head at its limit.

    Writes `shadow`, the limit, and `extra`, the processors left over at that instant.
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
    """Make a pass that may delay the head; return False if it stopped at the picked job."""
    primary, head = start_front(jobs, sim, contested)
    if head >= 0 and least_processors(sim, BASE) <= sim.counter[FREE]:
        relax(jobs, sim, head)
        if contested:
            n = list_candidates(jobs, sim)
            backfill_first(jobs, sim, make_backfill_order(jobs, sim, primary, n), n)
        else:
            backfill(jobs, sim, FILL if sim.setting[FILL_KEEPS] == 1 else BASE, head)
    return head != -2
