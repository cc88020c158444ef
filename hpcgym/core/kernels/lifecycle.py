"""The start of an episode's life."""

from hpcgym.core.jit import kernel
from hpcgym.core.kernels.queue import clear_queue
from hpcgym.core.kernels.records import Row
from hpcgym.core.state import (
    BASE,
    CHECKED_HEAD,
    FILL,
    FREE,
    LOG_LARGEST,
    MACHINE_PROCESSORS,
    N_COUNTERS,
    N_GAUGES,
    N_JOBS,
    PICK,
    SETTLED_HEAD,
    SHADOW,
)


@kernel
def reset(row: Row, log_largest: float) -> None:
    """Set one simulation to time 0: an empty machine, no job submitted.

    Args:
        row: The simulation; its settings, weights and history are in place.
        log_largest: Natural logarithm of the scenario's largest request in s.

    Writes:
        The row, but for settings, weights and history.

    Source:
        Specification, section 10, "Episodes".
    """
    for column in range(N_COUNTERS):
        row.counter[column] = 0
    for column in range(N_GAUGES):
        row.gauge[column] = 0.0
    row.gauge[LOG_LARGEST] = log_largest
    row.counter[FREE] = row.setting[MACHINE_PROCESSORS]
    for column in (SETTLED_HEAD, SHADOW, PICK, CHECKED_HEAD):
        row.counter[column] = -1
    clear_queue(row, BASE)
    clear_queue(row, FILL)
    for job in range(row.setting[N_JOBS]):
        row.start_time[job] = -1
        row.flag[job] = 0
