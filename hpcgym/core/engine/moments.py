"""The moments of a job's life, and which parts hear of each: one line for each part.

A part is a noun of the scheduler in one file of `hpcgym/core/parts`. The engine calls it at moments
and knows nothing else of it. What every simulation may need is written out here and compiled in.
A backfilling mode is called by its address, only at the moments that it `HEARS`; it is compiled
when a simulation first needs it. So is each event, after the mode.

The order within a moment matters, and each function says why.
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_event, ask_mode, ask_nodes, has_nodes
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.kernels.scoring.user_estimates import is_expected, learn_from
from hpcgym.core.kernels.scoring.user_history import record_completion
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.parts import waiting_cost


@kernel
def tell_events(jobs: Jobs, sim: Sim, task: int, job: int) -> int:
    """Have each event do a task, in the order of the settings; return the bits of all answers."""
    answers, asked = 0, sim.event
    for event in range(len(jobs.event_pass)):
        sim.event = event
        answers |= ask_event(jobs.event_pass[event], jobs, sim, task, job)
    sim.event = asked  # an event may take jobs off the machine, which others hear of meanwhile
    return answers


@kernel(inlined=True)
def has_limits(sim: Sim) -> bool:
    """Tell whether limits may hold waiting jobs."""
    return sim.events_hear & s.IS_BLOCKED != 0


@kernel(inlined=True)
def is_withheld(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether a limit holds a waiting job, which is out of sight as long as one does."""
    return has_limits(sim) and tell_events(jobs, sim, s.IS_BLOCKED, job) != 0


@kernel(inlined=True)
def event_number(jobs: Jobs, sim: Sim, which: int) -> int:
    """Return a number of the event that is asked, of `hpcgym.core.events.Event.numbers`."""
    return int(jobs.event_data[jobs.event_first[sim.event] + which])


@kernel
def ask_ahead(jobs: Jobs, sim: Sim, task: int, argument: int) -> int:
    """Have the event that makes the passes do a task: while `Sim.looks_ahead` is set."""
    return ask_event(jobs.event_pass[sim.looks_ahead - 1], jobs, sim, task, argument)


@kernel
def more_ahead(jobs: Jobs, sim: Sim, span: int) -> int:
    """Return how many processors more are known to be taken within a span from now on, s."""
    if sim.looks_ahead == 0:
        return 0
    return ask_ahead(jobs, sim, s.MORE_AHEAD, sim.now + span)


@kernel
def next_event(jobs: Jobs, sim: Sim) -> int:
    """Return the next instant at which an event happens, s; `NEVER` if none does."""
    instant = s.NEVER
    for event in range(len(jobs.event_pass)):
        sim.event = event
        asked = ask_event(jobs.event_pass[event], jobs, sim, s.NEXT_INSTANT, 0)
        instant = min(instant, asked)
    return instant


@kernel(inlined=True)
def at_submit(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job submitted now: it has its entry, keys and estimate, and is in no queue yet."""
    if sim.keep_reward == 1:
        waiting_cost.on_submit(jobs, sim, job)
    if sim.hears & s.ON_SUBMIT != 0:
        ask_mode(jobs.mode_pass, jobs, sim, s.ON_SUBMIT, job)
    if sim.events_hear & s.ON_SUBMIT != 0:
        tell_events(jobs, sim, s.ON_SUBMIT, job)


@kernel(inlined=True)
def at_leave(jobs: Jobs, sim: Sim, job: int) -> int:
    """Tell of a job that is about to start: it has left the queues, and still has its entry.

    What is known of a waiting job lies in its entry, so the mode hears of a start before it goes.
    Return the flags that the mode gives the job, 0 if none.
    """
    if sim.hears & s.ON_START == 0:
        return 0
    return ask_mode(jobs.mode_pass, jobs, sim, s.ON_START, job)


@kernel(inlined=True)
def at_start(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that has started: it has no entry, and `n_waiting` does not count it."""
    if sim.keep_reward == 1:
        waiting_cost.on_start(jobs, sim, job, sim.start_time[job])
    if sim.events_hear & s.ON_START != 0:
        tell_events(jobs, sim, s.ON_START, job)


@kernel(inlined=True)
def at_evict(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that is about to wait again: its start and its flags still stand."""
    if sim.events_hear & s.ON_EVICT != 0:
        tell_events(jobs, sim, s.ON_EVICT, job)
    if sim.keep_reward == 1:
        waiting_cost.on_evict(jobs, sim, job, sim.start_time[job])


@kernel(inlined=True)
def at_trial(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that has just gone on trial: while it runs, its wait costs nothing."""
    if sim.keep_reward == 1:
        waiting_cost.on_start(jobs, sim, job, sim.since[job])


@kernel(inlined=True)
def at_take_back(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a trial that is about to end in vain: it has cost what waiting would have."""
    if has_nodes(jobs):
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_TAKE_BACK, job)
    if sim.keep_reward == 1:
        waiting_cost.on_evict(jobs, sim, job, sim.since[job])
        waiting_cost.on_submit(jobs, sim, job)


@kernel(inlined=True)
def at_guarantee_end(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a trial that was guaranteed until now; its nodes are lent from now on."""
    if has_nodes(jobs):
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_SHARE, job)


@kernel(inlined=True)
def at_promote(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that was on trial until now, and runs on."""
    if has_nodes(jobs):
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_KEEP, job)


@kernel(inlined=True)
def at_trial_end(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that ends while it is on trial; the mode promotes it."""
    ask_mode(jobs.mode_pass, jobs, sim, s.ON_TRIAL_END, job)


@kernel(inlined=True)
def at_release(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell that the processors of a job are free: at its end, with `pyss` perhaps before."""
    if sim.hears & s.ON_RELEASE != 0:
        ask_mode(jobs.mode_pass, jobs, sim, s.ON_RELEASE, job)


@kernel(inlined=True)
def at_end(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that has ended, and whose processors are free."""
    if sim.hears & s.ON_END != 0:
        ask_mode(jobs.mode_pass, jobs, sim, s.ON_END, job)
    if sim.keep_history != s.HISTORY_NOT:
        # The regression learns from what was known of the user before this end.
        if is_expected(sim, s.EXPECT_BY_REGRESSION):
            learn_from(jobs, sim, job)
        record_completion(jobs, sim, job)
    if sim.events_hear & s.ON_END != 0:
        tell_events(jobs, sim, s.ON_END, job)


@kernel(inlined=True)
def at_lose(jobs: Jobs, sim: Sim, job: int) -> None:
    """Tell of a job that has been lost; the mode has heard that its processors are free."""
    if sim.events_hear & s.ON_LOSE != 0:
        tell_events(jobs, sim, s.ON_LOSE, job)


@kernel(inlined=True)
def at_vacate(jobs: Jobs, sim: Sim, job: int) -> None:
    """Give back the nodes of a job that is about to end."""
    if has_nodes(jobs):
        ask_nodes(jobs.nodes_pass, jobs, sim, s.NODES_VACATE, job)
