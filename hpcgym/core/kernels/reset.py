"""Reset a simulation to the start of an episode, in memory that is allocated once.

Source: Specification, section 10, "Episodes".
"""

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.multi_queue_partitions import begin_partitions
from hpcgym.core.kernels.queue.ordered_queue import clear_queue
from hpcgym.core.kernels.scoring.online_regression import forget_lessons
from hpcgym.core.kernels.scoring.user_history import log_bounded
from hpcgym.core.kernels.types import InitialState, Sim
from hpcgym.core.state import (
    BACKFILL,
    BACKFILL_MULTI_QUEUE,
    BASE,
    CHECKED_HEAD,
    DELAY,
    FILL,
    FIRST_DELAY,
    FREE,
    KEEP_HISTORY,
    LIMITED_HEAD,
    LOG_LARGEST,
    MACHINE_PROCESSORS,
    N_BACKFILL_PARAMETERS,
    N_COUNTERS,
    N_FEATURES,
    N_GAUGES,
    N_JOBS,
    N_ORDERS,
    N_SETTINGS,
    N_WEIGHTS,
    PICK,
    SETTLED_HEAD,
    SHADOW,
    Float,
    Int,
)


@kernel
def set_rules(sim: Sim, setting: Int, weight: Float, backfill_parameter: Float) -> None:
    """Set what is fixed for an episode: writes `setting`, `weight` and `backfill_parameter`."""
    for column in range(N_SETTINGS):
        sim.setting[column] = setting[column]
    for which in range(N_ORDERS):
        for column in range(N_WEIGHTS):
            sim.weight[which, column] = weight[which, column]
    for column in range(N_BACKFILL_PARAMETERS):
        sim.backfill_parameter[column] = backfill_parameter[column]


@kernel
def recall_users(sim: Sim, initial: InitialState) -> None:
    """Set users' histories back to time 0; write `history_*`, `network` and the regression."""
    for user in range(len(initial.history_completed)):
        for spot in range(min(initial.history_completed[user], RING_JOBS)):
            sim.history_run_time[user, spot] = initial.history_run_time[user, spot]
            sim.history_requested_time[user, spot] = initial.history_requested_time[user, spot]
            sim.history_processors[user, spot] = initial.history_processors[user, spot]
            sim.history_inverse[user, spot] = initial.history_inverse[user, spot]
            if len(sim.history_log_bound) > 0:
                sim.history_log_bound[user, spot] = log_bounded(
                    initial.history_run_time[user, spot]
                )
        if len(sim.history_alike) > 0:
            # -1 marks what is derived from a user's history as stale.
            sim.history_alike[user, 0] = -1
        sim.history_completed[user] = initial.history_completed[user]
        sim.history_last_end_time[user] = initial.history_last_end_time[user]
        sim.history_shown_at[user] = -1
    for place in range(len(initial.network)):
        sim.network[place] = initial.network[place]
    forget_lessons(sim)


@kernel
def recall_estimates(sim: Sim, initial: InitialState) -> None:
    """Set estimates that may change back to those of time 0; write `estimate` and `feature`."""
    for job in range(len(initial.estimate)):
        sim.estimate[job] = initial.estimate[job]
        for column in range(N_FEATURES):
            sim.feature[job, column] = initial.feature[job, column]


@kernel
def clear_machine(sim: Sim, log_largest: float) -> None:
    """Empty the machine and the queues and set the clock to 0, without touching the arrays of jobs.

    `log_largest` is the natural logarithm of the largest request in s. Writes counters, gauges,
    queues and partitions.
    """
    for column in range(N_COUNTERS):
        sim.counter[column] = 0
    for column in range(N_GAUGES):
        sim.gauge[column] = 0.0
    sim.gauge[LOG_LARGEST] = log_largest
    sim.counter[FREE] = sim.setting[MACHINE_PROCESSORS]
    for column in (SETTLED_HEAD, SHADOW, PICK, CHECKED_HEAD, LIMITED_HEAD):
        sim.counter[column] = -1
    clear_queue(sim, BASE)
    clear_queue(sim, FILL)
    if sim.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        begin_partitions(sim)
        sim.gauge[DELAY] = sim.backfill_parameter[FIRST_DELAY]


@kernel
def clear(sim: Sim, log_largest: float) -> None:
    """Empty the machine and the queues, and mark every job as not submitted."""
    clear_machine(sim, log_largest)
    for job in range(sim.setting[N_JOBS]):
        sim.start_time[job] = -1
        sim.flag[job] = 0


@kernel
def begin(sim: Sim, initial: InitialState) -> None:
    """Set a simulation, large enough for the episode, to its start; write all of `sim`."""
    set_rules(sim, initial.setting, initial.weight, initial.backfill_parameter)
    if sim.setting[KEEP_HISTORY] != 0:
        recall_users(sim, initial)
    recall_estimates(sim, initial)
    clear(sim, initial.log_largest[0])
