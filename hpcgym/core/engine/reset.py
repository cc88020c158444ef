"""Reset a simulation to the start of an episode, in memory that is allocated once.

Source: Specification, section 10, "Episodes".
"""

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.queue.ordered_queue import clear_queue
from hpcgym.core.kernels.scoring.online_regression import reset_regression
from hpcgym.core.kernels.types import Float, InitialState, Int, Sim


@kernel
def set_rules(sim: Sim, setting: Int, weight: Float, backfill_parameter: Float) -> None:
    """Set what is fixed for an episode: writes `setting`, `weight` and `backfill_parameter`."""
    for column in range(len(setting)):
        sim.setting[column] = setting[column]
    for which in range(s.N_ORDERS):
        for column in range(s.N_WEIGHTS):
            sim.weight[which, column] = weight[which, column]
    for column in range(len(backfill_parameter)):
        sim.backfill_parameter[column] = backfill_parameter[column]


@kernel
def recall_users(sim: Sim, initial: InitialState) -> None:
    """Set users' histories back to time 0; write `history_*`, `network` and the regression."""
    for user in range(len(initial.history_completed)):
        for spot in range(min(initial.history_completed[user], RING_JOBS)):
            sim.history_run_time[user, spot] = initial.history_run_time[user, spot]
            sim.history_requested_time[user, spot] = initial.history_requested_time[user, spot]
            sim.history_processors[user, spot] = initial.history_processors[user, spot]
        if len(sim.history_alike) > 0:
            # -1 marks what is derived from a user's history as stale.
            sim.history_alike[user, s.ALIKE_COMPLETED] = -1
        sim.history_completed[user] = initial.history_completed[user]
        sim.history_last_end_time[user] = initial.history_last_end_time[user]
        sim.history_shown_at[user] = -1
    for position in range(len(initial.network)):
        sim.network[position] = initial.network[position]
    reset_regression(sim)


@kernel
def recall_estimates(sim: Sim, initial: InitialState) -> None:
    """Set estimates that may change back to those of time 0; write `estimate` and `feature`."""
    for job in range(len(initial.estimate)):
        sim.estimate[job] = initial.estimate[job]
        for column in range(s.N_FEATURES):
            sim.feature[job, column] = initial.feature[job, column]


@kernel
def clear_machine(sim: Sim, log_largest: float) -> None:
    """Empty the machine and the queues, and set the clock to 0; its settings are in place.

    `log_largest` is the natural logarithm of the scenario's largest request in s. Writes all
    counters and gauges, and the queues. What the arrays hold of each job and user stays.
    """
    for column in range(len(sim.counter)):
        sim.counter[column] = 0
    for column in range(len(sim.gauge)):
        sim.gauge[column] = 0.0
    sim.log_largest = log_largest
    sim.free = sim.machine_processors
    sim.settled_head = sim.shadow = sim.pick = sim.checked_head = -1
    clear_queue(sim, s.BASE_ORDER)
    clear_queue(sim, s.BACKFILL_ORDER)


@kernel
def clear(sim: Sim, log_largest: float) -> None:
    """Empty the machine and the queues, and mark every job as not submitted.

    Writes what `clear_machine` writes, `start_time` and `flag`.
    """
    clear_machine(sim, log_largest)
    for job in range(sim.n_jobs):
        sim.start_time[job] = -1
        sim.flag[job] = 0


@kernel
def begin(sim: Sim, initial: InitialState) -> None:
    """Set a simulation that is large enough for the episode to its start.

    Writes all that the episode reads before it writes it.
    """
    set_rules(sim, initial.setting, initial.weight, initial.backfill_parameter)
    if sim.keep_history != s.HISTORY_NOT:
        recall_users(sim, initial)
    recall_estimates(sim, initial)
    if sim.keep_users == 1:
        sim.user_cost[:] = 0.0
    clear(sim, initial.log_largest)
