"""Many simulations of one episode, one after the other: a cell is an episode under one policy."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.events import run
from hpcgym.core.kernels.lifecycle import reset
from hpcgym.core.kernels.measuring import measure
from hpcgym.core.kernels.predicting import forget_corrections
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.state import (
    CORRECT,
    KEEP_HISTORY,
    N_JOBS,
    N_ORDERS,
    N_SETTINGS,
    N_WEIGHTS,
    Float,
    Int,
)


@kernel
def set_rules(row: Row, setting: Int, weight: Float) -> None:
    """Set what is fixed of a cell.

    Args:
        row: The simulation.
        setting: The settings, shape (N_SETTINGS,).
        weight: Parameters of the rules, shape (N_ORDERS, N_WEIGHTS).

    Writes:
        `setting` and `weight` of the row.

    Source:
        House rule: one state serves all cells of a thread.
    """
    for column in range(N_SETTINGS):
        row.setting[column] = setting[column]
    for which in range(N_ORDERS):
        for column in range(N_WEIGHTS):
            row.weight[which, column] = weight[which, column]


@kernel
def recall_history(
    row: Row, run_time: Int, requested_time: Int, completed: Int, last_end_time: Int
) -> None:
    """Set what is known of each user back to what was known at time 0.

    Args:
        row: The simulation.
        run_time: Rings of `History`, shape (n_users, RING_JOBS), s.
        requested_time: Rings of `History`, shape (n_users, RING_JOBS), s.
        completed: Jobs completed, shape (n_users,).
        last_end_time: Latest end, shape (n_users,), s.

    Writes:
        The four `history_*` arrays.

    Source:
        Specification, section 10, "Episodes".
    """
    n_users, n_spots = run_time.shape
    for user in range(n_users):
        for spot in range(n_spots):
            row.history_run_time[user, spot] = run_time[user, spot]
            row.history_requested_time[user, spot] = requested_time[user, spot]
        row.history_completed[user] = completed[user]
        row.history_last_end_time[user] = last_end_time[user]


@kernel
def run_cells(
    jobs: Jobs,
    row: Row,
    log_largest: float,
    setting: Int,
    weight: Float,
    key: Float,
    key_row: Int,
    history_run_time: Int,
    history_requested_time: Int,
    history_completed: Int,
    history_last_end_time: Int,
    figure: Float,
) -> None:
    """Simulate an episode under one policy after the other, each to its end.

    Args:
        jobs: The job table; a policy given by keys finds them in column 0 of `keys`.
        row: A simulation large enough; what it held is lost.
        log_largest: Natural logarithm of the scenario's largest request in s.
        setting: Settings of each cell, shape (n_cells, N_SETTINGS).
        weight: Parameters of its rules, shape (n_cells, N_ORDERS, N_WEIGHTS).
        key: Keys of those given by keys, shape (n_keyed, n_jobs).
        key_row: Row of `key` of each cell, shape (n_cells,), -1 = not given by keys.
        history_run_time: As `run_time` of `recall_history`.
        history_requested_time: Likewise.
        history_completed: Likewise.
        history_last_end_time: Likewise.
        figure: Where to, shape (n_cells, N_FIGURES).

    Writes:
        `figure`, the row, column 0 of the jobs' keys, and estimates that are the row's own.

    Source:
        House rule: one dynamics; the clock is `hpcgym.core.kernels.events.run`.
    """
    for cell in range(len(figure)):
        set_rules(row, setting[cell], weight[cell])
        if row.setting[KEEP_HISTORY] != 0:
            recall_history(
                row,
                history_run_time,
                history_requested_time,
                history_completed,
                history_last_end_time,
            )
        if key_row[cell] >= 0:
            for job in range(row.setting[N_JOBS]):
                jobs.keys[job, 0] = key[key_row[cell], job]
        if row.setting[CORRECT] != 0:
            forget_corrections(jobs, row)
        reset(row, log_largest)
        run(jobs, row)
        measure(jobs, row, figure[cell])
