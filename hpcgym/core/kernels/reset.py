"""The start of an episode's life."""

from hpcgym.core.history import RING_JOBS
from hpcgym.core.jit import kernel
from hpcgym.core.kernels.passes.multi_queue_partitions import begin_partitions
from hpcgym.core.kernels.queue.ordered_queue import clear_queue
from hpcgym.core.kernels.scoring.online_regression import forget_lessons
from hpcgym.core.kernels.scoring.user_history import log_bounded
from hpcgym.core.kernels.types import Row, Start
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
def set_rules(row: Row, setting: Int, weight: Float, backfill_parameter: Float) -> None:
    """Set what is fixed of an episode.

    Args:
        row: The simulation.
        setting: The settings, shape (N_SETTINGS,).
        weight: Parameters of the rules, shape (N_ORDERS, N_WEIGHTS).
        backfill_parameter: Those of the backfilling mode, shape (N_BACKFILL_PARAMETERS,).

    Writes:
        `setting`, `weight` and `backfill_parameter` of the row.

    Source:
        House rule: allocate once, reset often.
    """
    for column in range(N_SETTINGS):
        row.setting[column] = setting[column]
    for which in range(N_ORDERS):
        for column in range(N_WEIGHTS):
            row.weight[which, column] = weight[which, column]
    for column in range(N_BACKFILL_PARAMETERS):
        row.backfill_parameter[column] = backfill_parameter[column]


@kernel
def recall_users(row: Row, start: Start) -> None:
    """Set what is known of each user back to what was known at time 0.

    Args:
        row: The simulation.
        start: What its episode begins with.

    Writes:
        The `history_*` arrays, the network that reads them, and what `forget_lessons` writes.

    Source:
        Specification, section 10, "Episodes".
    """
    for user in range(len(start.history_completed)):
        for spot in range(min(start.history_completed[user], RING_JOBS)):
            row.history_run_time[user, spot] = start.history_run_time[user, spot]
            row.history_requested_time[user, spot] = start.history_requested_time[user, spot]
            row.history_processors[user, spot] = start.history_processors[user, spot]
            row.history_inverse[user, spot] = start.history_inverse[user, spot]
            if len(row.history_log_bound) > 0:
                row.history_log_bound[user, spot] = log_bounded(start.history_run_time[user, spot])
        if len(row.history_alike) > 0:
            row.history_alike[user, 0] = -1
        row.history_completed[user] = start.history_completed[user]
        row.history_last_end_time[user] = start.history_last_end_time[user]
        row.history_shown_at[user] = -1
    for place in range(len(start.network)):
        row.network[place] = start.network[place]
    forget_lessons(row)


@kernel
def recall_estimates(row: Row, start: Start) -> None:
    """Set estimates of the simulation's own back to those it begins with.

    Args:
        row: The simulation.
        start: What its episode begins with.

    Writes:
        `estimate` and `feature`.

    Source:
        Specification, section 8, "EASY++".
    """
    for job in range(len(start.estimate)):
        row.estimate[job] = start.estimate[job]
        for column in range(N_FEATURES):
            row.feature[job, column] = start.feature[job, column]


@kernel
def clear_machine(row: Row, log_largest: float) -> None:
    """Empty the machine and the queue, and set the clock to 0.

    Args:
        row: The simulation; its settings and weights are in place.
        log_largest: Natural logarithm of the scenario's largest request in s.

    Writes:
        The row, but for settings, weights, history, and what it holds of each job.

    Source:
        Specification, section 10, "Episodes".
    """
    for column in range(N_COUNTERS):
        row.counter[column] = 0
    for column in range(N_GAUGES):
        row.gauge[column] = 0.0
    row.gauge[LOG_LARGEST] = log_largest
    row.counter[FREE] = row.setting[MACHINE_PROCESSORS]
    for column in (SETTLED_HEAD, SHADOW, PICK, CHECKED_HEAD, LIMITED_HEAD):
        row.counter[column] = -1
    clear_queue(row, BASE)
    clear_queue(row, FILL)
    if row.setting[BACKFILL] == BACKFILL_MULTI_QUEUE:
        begin_partitions(row)
        row.gauge[DELAY] = row.backfill_parameter[FIRST_DELAY]


@kernel
def clear(row: Row, log_largest: float) -> None:
    """Empty the machine and the queue, and let no job have been submitted.

    Args:
        row: The simulation; its settings, weights and history are in place.
        log_largest: Natural logarithm of the scenario's largest request in s.

    Writes:
        The row, but for settings, weights and history.

    Source:
        Specification, section 10, "Episodes".
    """
    clear_machine(row, log_largest)
    for job in range(row.setting[N_JOBS]):
        row.start_time[job] = -1
        row.flag[job] = 0


@kernel
def begin(row: Row, start: Start) -> None:
    """Set one simulation to the start of an episode.

    Args:
        row: The simulation; large enough for the episode.
        start: What the episode begins with.

    Writes:
        The row.

    Source:
        Specification, section 10, "Episodes".
    """
    set_rules(row, start.setting, start.weight, start.backfill_parameter)
    if row.setting[KEEP_HISTORY] != 0:
        recall_users(row, start)
    recall_estimates(row, start)
    clear(row, start.log_largest[0])
