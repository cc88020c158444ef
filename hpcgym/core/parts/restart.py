"""Jobs that were killed where none on trial is promoted: they wait anew, later and last.

So batch systems do that know no promotion. A job is *away* while it is on trial, and after a kill
until it may start again: passes go on as if it did not wait.

Source: Specification, section 15, "Restart".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import put_in_turn
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.kernels.queue.entries import entry_of, is_overdue
from hpcgym.core.kernels.queue.ordered_queue import put_in, take_out
from hpcgym.core.kernels.types import Jobs, Sim


@kernel(inlined=True)
def is_away(sim: Sim, job: int) -> bool:
    """Tell whether a waiting job is on trial without promotion, or cannot start again yet."""
    if sim.restart == 0.0:
        return False
    killed_at = sim.killed_at[job]
    return is_on_trial(sim, job) or (killed_at >= 0 and sim.now < killed_at + int(sim.restart))


@kernel(inlined=True)
def some_are_away(sim: Sim) -> bool:
    """Tell whether a waiting job is away."""
    return sim.restart > 0.0 and sim.n_trials + sim.n_away > 0


@kernel
def requeue(jobs: Jobs, sim: Sim, which: int, job: int, submitted: int) -> None:
    """Move a waiting job in a queue to where one is that was submitted then; write its key."""
    take_out(jobs, sim, which, job)
    sim.key[which, entry_of(sim, job)] = sim.weight[which, 0] * float(submitted)
    put_in(jobs, sim, which, job)


@kernel
def send_away(jobs: Jobs, sim: Sim, job: int) -> None:
    """Let a job that is killed now wait anew after the restart; write `away_*` and its keys."""
    if sim.restart == 0.0:
        return
    until = sim.now + int(sim.restart)
    put_in_turn(sim.away_until, sim.away_job, sim.n_away, until, job)
    sim.n_away += 1
    if is_overdue(sim, job):
        return
    if sim.base_rule == s.RULE_SUBMIT:
        requeue(jobs, sim, s.BASE_ORDER, job, until)
    if sim.backfill_order_is_static == 1 and sim.backfill_rule == s.RULE_SUBMIT:
        requeue(jobs, sim, s.BACKFILL_ORDER, job, until)


@kernel(inlined=True)
def next_restart(sim: Sim) -> int:
    """Return the next instant at which a job may start again, s; `NEVER` if none may."""
    return sim.away_until[sim.n_away - 1] if sim.n_away > 0 else s.NEVER


@kernel(inlined=True)
def let_start_again(sim: Sim) -> None:
    """Take the jobs off the list that may start again from now on; write `n_away`."""
    while sim.n_away > 0 and sim.away_until[sim.n_away - 1] == sim.now:
        sim.n_away -= 1
