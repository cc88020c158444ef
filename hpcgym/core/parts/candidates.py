"""Waiting jobs that may go on trial.

Source: Specification, section 15, "Trials" and "Young jobs give way".
"""

from typing import Any

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.life import is_on_trial
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.parts import restart
from hpcgym.core.parts.trial_fields import was_attempted
from hpcgym.core.parts.young_jobs import may_be_killed

LEAST_ESTIMATE_S = 10  # estimates count for no less where jobs on trial are ordered


@kernel(inlined=True)
def may_try(jobs: Jobs, sim: Any, job: int, untried: bool) -> bool:
    """Tell whether a waiting job may go on trial; `untried` asks for one that never ran."""
    most, longest = (1.0, 1.0) if untried else (sim.most_tried, sim.limit)
    if sim.n_tried[job] >= most or is_on_trial(sim, job):
        return False
    ran = 0
    if was_attempted(sim, job):  # few were, and what is known of attempts is not in the cache
        if sim.killed_at[job] == sim.now:
            return False
        ran = sim.ran[job]
    return ran < longest and may_be_killed(jobs, job) and not restart.is_away(sim, job)


@kernel
def list_candidates(jobs: Jobs, sim: Any, most: int, untried: bool) -> int:
    """List the waiting jobs on at most so many processors that may go on trial, and count them.

    Writes `scratch`, and their keys of `PASS_ORDER`: the area of their estimates, a whole number.
    """
    n = 0
    for at in range(sim.n_groups[s.BASE_ORDER]):
        group = sim.group_order[s.BASE_ORDER, at]
        if sim.node_processors[group] > most:
            continue
        for child in range(sim.node_size[group]):
            block = sim.node_child[group, child]
            if sim.node_processors[block] > most:
                continue
            for spot in range(sim.node_size[block]):
                job = sim.node_child[block, spot]
                if jobs.processors[job] <= most and may_try(jobs, sim, job, untried):
                    area = max(jobs.estimate[job], LEAST_ESTIMATE_S) * jobs.processors[job]
                    sim.key[s.PASS_ORDER, entry_of(sim, job)] = float(area)
                    sim.scratch[n] = job
                    n += 1
    return n
