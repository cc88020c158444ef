"""Trials on a machine of nodes: where they run, whom they give way to, and where they are kept.

A pass works on `free_on`, which takes the nodes of jobs on trial for free. What these hold together
is in `lent_on`. A waiting job that is on trial has no other placement now than its own nodes: a
pass has it run on there, or does not start it.

While jobs go on trial, what trials hold is out of `free_on` as well (`show_idle`).

Cost: O(nodes of the trials) for an instant at which jobs may go on trial; O(trials) for a node on
which one ends.

A guaranteed trial has its nodes for itself: they are neither in `free_on` nor in `lent_on`, and the
estimated ends list the end of the guarantee. Where a test asks whether it may run on, what it holds
is taken for free (`set_apart`).

Source: Specification, section 15, "Trials on nodes", "Young jobs on nodes", "Overhead on nodes".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.by_address import ask_mode
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.calendar import add_release, remove_release
from hpcgym.core.engine.life import is_guaranteed, take_back
from hpcgym.core.kernels.nodes.rooms import component_of, give_back, occupy, room_now, use_of
from hpcgym.core.kernels.types import Int, Jobs, Sim


@kernel
def mark_over(jobs: Jobs, sim: Sim) -> None:
    """Mark the components of the trials whose limit is over; write `due`."""
    for position in range(sim.n_trials):
        job = sim.job_on_trial[position]
        if sim.over[job] <= sim.now:
            sim.due[component_of(jobs, job)] = 1


@kernel
def choose_own(jobs: Jobs, sim: Sim, job: int) -> int:
    """Make the nodes of a job on trial the placement found last, and return their number."""
    first, n = jobs.placed_first[job], sim.placed_on[job]
    for each in range(n):
        sim.chosen_node[each] = sim.placed_node[first + each]
        sim.chosen_chunks[each] = sim.placed_chunks[first + each]
    return n


@kernel
def has_own_nodes(jobs: Jobs, sim: Sim, job: int) -> bool:
    """Tell whether no start of the pass keeps a job on trial from its nodes."""
    first = jobs.placed_first[job]
    if is_guaranteed(sim, job):
        return True
    for each in range(first, first + sim.placed_on[job]):
        room = room_now(jobs, sim, jobs.shape[job], sim.placed_node[each])
        if room < sim.placed_chunks[each]:
            return False
    return True


@kernel
def place_on_own(jobs: Jobs, sim: Sim, at: int, job: int) -> int:
    """Place a job on trial on its nodes, if these have the room in the row of a cursor.

    Return the number of nodes, -1 if they have not. Writes `chosen_*`.
    """
    n = choose_own(jobs, sim, job)
    for each in range(n):
        if sim.row[at, sim.chosen_node[each]] < sim.chosen_chunks[each]:
            return -1
    return n


@kernel
def count_lent(jobs: Jobs, sim: Sim, job: int, sign: int) -> None:
    """Count what a job on trial holds in `lent_on`, or, where `sign` is -1, no more."""
    first, shape = jobs.placed_first[job], jobs.shape[job]
    for each in range(first, first + sim.placed_on[job]):
        node, chunks = sim.placed_node[each], sim.placed_chunks[each]
        for resource in range(s.N_RESOURCES):
            sim.lent_on[node, resource] += sign * use_of(jobs, shape, node, chunks, resource)


@kernel
def change_held(jobs: Jobs, sim: Sim, job: int, sign: int) -> None:
    """Return the nodes of a job to `free_on`, or, where `sign` is -1, take them from it."""
    first = jobs.placed_first[job]
    for each in range(first, first + sim.placed_on[job]):
        chunks = sign * sim.placed_chunks[each]
        give_back(jobs, sim, jobs.shape[job], sim.placed_node[each], chunks)


@kernel
def change_guaranteed(jobs: Jobs, sim: Sim, job: int, sign: int) -> None:
    """Take what a guaranteed trial holds for free, or, where `sign` is -1, no more."""
    change_held(jobs, sim, job, sign)
    if sign > 0:
        remove_release(sim, job, sim.over[job])
    else:
        add_release(sim, job, sim.over[job])


@kernel(inlined=True)
def set_apart(jobs: Jobs, sim: Sim, job: int, sign: int) -> None:
    """Do what `change_guaranteed` does, if a job is on a guaranteed trial."""
    if is_guaranteed(sim, job):
        change_guaranteed(jobs, sim, job, sign)


@kernel
def take_idle(jobs: Jobs, sim: Sim, job: int, n: int) -> None:
    """Give a job that goes on trial the n nodes of the placement found last; see `show_idle`."""
    occupy(jobs, sim, job, n)
    count_lent(jobs, sim, job, 1)


@kernel
def share_nodes(jobs: Jobs, sim: Sim, job: int) -> None:
    """Have others use the nodes of a job whose trial was guaranteed until now."""
    count_lent(jobs, sim, job, 1)
    change_held(jobs, sim, job, 1)
    sim.n_vacated += 1  # a shape without a placement there may have one now


@kernel
def clear(jobs: Jobs, sim: Sim, job: int) -> None:
    """Take the nodes of a killed trial while they are cleared; the job may have others soon.

    They are listed in `release_*`, where `cleared_at` tells them from the job's own.
    """
    first = jobs.placed_first[job]
    for each in range(first, first + sim.placed_on[job]):
        sim.cleared_node[each] = sim.placed_node[each]
        sim.cleared_chunks[each] = sim.placed_chunks[each]
    sim.cleared_on[job] = sim.placed_on[job]
    sim.cleared_at[job] = sim.now + int(sim.overhead)
    change_held(jobs, sim, job, -1)


@kernel
def end_clearing(jobs: Jobs, sim: Sim, job: int) -> None:
    """Free the nodes of a killed trial, which are clear now; write `due`."""
    first = jobs.placed_first[job]
    for each in range(first, first + sim.cleared_on[job]):
        give_back(jobs, sim, jobs.shape[job], sim.cleared_node[each], sim.cleared_chunks[each])
    sim.cleared_at[job] = -1
    sim.n_vacated += 1
    sim.due[component_of(jobs, job)] = 1


@kernel(inlined=True)
def is_clearing(sim: Sim, position: int) -> bool:
    """Tell whether an entry of the releases is about nodes that are cleared.

    They are clear before any later attempt of the job could end by its estimate.
    """
    return sim.n_busy > 0 and (
        sim.cleared_at[sim.release_job[position]] == sim.release_time[position]
    )


@kernel(inlined=True)
def nodes_released(jobs: Jobs, sim: Sim, position: int) -> tuple[Int, Int, int, int]:
    """Return the lists that have what an entry of the releases frees: nodes, and chunks on each.

    Return also where it begins there, and how many nodes it has.
    """
    job = sim.release_job[position]
    first = jobs.placed_first[job]
    if is_clearing(sim, position):
        return sim.cleared_node, sim.cleared_chunks, first, sim.cleared_on[job]
    return sim.placed_node, sim.placed_chunks, first, sim.placed_on[job]


@kernel
def keep(jobs: Jobs, sim: Sim, job: int) -> None:
    """Have a job that was on trial keep its nodes for good."""
    count_lent(jobs, sim, job, -1)
    change_held(jobs, sim, job, -1)


@kernel
def show_idle(jobs: Jobs, sim: Sim, until: int) -> None:
    """Take what trials hold out of `free_on`, or, once jobs have gone on trial, return it.

    Guaranteed ones hold nothing of it.

    Trials that begin now are over at `until`, s; it is 0 once jobs have gone on trial.
    """
    sim.idle_until = until
    for position in range(sim.n_trials):
        job = sim.job_on_trial[position]
        if not is_guaranteed(sim, job):
            change_held(jobs, sim, job, -1 if until > 0 else 1)
    if until == 0:
        sim.n_vacated += 1  # a shape without a placement there may have one now


@kernel(inlined=True)
def lacks(sim: Sim, node: int) -> bool:
    """Tell whether trials hold more of a node than running jobs leave."""
    for resource in range(s.N_RESOURCES):
        if sim.lent_on[node, resource] > sim.free_on[node, resource]:
            return True
    return False


@kernel
def is_placed_on(jobs: Jobs, sim: Sim, job: int, node: int) -> bool:
    """Tell whether a job has a chunk on a node."""
    each = jobs.placed_first[job]
    end = each + sim.placed_on[job]
    while each < end and sim.placed_node[each] != node:
        each += 1
    return each < end


@kernel
def end_last_on(jobs: Jobs, sim: Sim, node: int) -> None:
    """End the trial on a node that began last of those not guaranteed, as `take_back` does."""
    position = sim.n_trials - 1
    job = sim.job_on_trial[position]
    while is_guaranteed(sim, job) or not is_placed_on(jobs, sim, job, node):
        position -= 1
        job = sim.job_on_trial[position]
    take_back(jobs, sim, job, s.TRIAL_EVICTED)


@kernel
def make_room(jobs: Jobs, sim: Sim) -> None:
    """End trials where the starts of the pass, in turn, need their nodes; write `n_begun`."""
    n, sim.n_begun = sim.n_begun, 0
    if sim.n_trials == 0:
        return
    for position in range(n):
        change_held(jobs, sim, sim.begun_job[position], 1)
    for position in range(n):
        job = sim.begun_job[position]
        change_held(jobs, sim, job, -1)
        first, n_trials = jobs.placed_first[job], sim.n_trials
        for each in range(first, first + sim.placed_on[job]):
            while lacks(sim, sim.placed_node[each]):
                end_last_on(jobs, sim, sim.placed_node[each])
        if sim.n_trials < n_trials and sim.overhead > 0.0:
            ask_mode(jobs.mode_pass, jobs, sim, s.POSTPONE, job)
