"""What a scheduler may know of each waiting job at a decision, as numbers for learners."""

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core.simulator import Simulator

FEATURES = (
    *("log_processors", "log_estimate", "log_wait", "width", "fits", "log_place"),
    *("log_expected_ratio", "log_expected_speed", "log_area_to_first"),
    *("first_log_processors", "first_log_estimate", "first_log_wait", "first_fits"),
    *("free", "log_waiting", "waiting_processors", "log_time_to_room"),
)
"""What `Branches.decisions` shows of each waiting job: of the job; of the first job in order; of
the machine. Logarithms are natural, of 1 + s for times; widths are shares of the machine."""


def features_of_waiting(simulator: Simulator, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the features of waiting jobs in order, shape (n_waiting, n_features)."""
    table, state, now = simulator._table, simulator.state, simulator.now
    machine = float(simulator.workload.machine_processors)
    free, q = simulator.free_processors, table.processors[jobs].astype(np.float64)
    estimate = np.maximum(table.estimate[jobs], 1).astype(np.float64)
    wait = np.log1p(now - table.submit_time[jobs])
    expected = np.zeros((len(jobs), 2))
    if simulator.episode.expects:
        listed, term = simulator.terms()
        at = np.searchsorted(np.sort(listed), jobs)
        by_job = term[np.argsort(listed)][at]
        learns = simulator.episode.setting.expect & s.EXPECT_BY_REGRESSION == s.EXPECT_BY_REGRESSION
        columns = (s.TERM_RUN_TIME_RATIO, s.TERM_SPEED)
        if learns:
            columns = (s.TERM_REGRESSED_RUN_TIME_RATIO, s.TERM_REGRESSED_SPEED)
        expected = by_job[:, columns]
    # When the first job that does not fit would fit, by the estimates of the running jobs.
    n = int(state.n_releases[0])
    release = state.release_time[0, :n][::-1]
    room = free + np.cumsum(table.processors[state.release_job[0, :n][::-1]])
    behind = np.flatnonzero(np.cumsum(q) > free)
    needed = q[behind[0]] if len(behind) else 0.0
    at_room = np.searchsorted(room, needed) if needed > free else n
    until_room = max(int(release[at_room]) - now, 0) if at_room < n else 0
    area = np.log(q * estimate)
    of_job = (
        *(np.log(q), np.log(estimate), wait, q / machine, q <= free),
        *(np.log1p(np.arange(len(jobs))), expected[:, 0], expected[:, 1], area - area[0]),
    )
    shared = (
        *(np.log(q[0]), np.log(estimate[0]), wait[0], float(q[0] <= free)),
        *(free / machine, np.log1p(len(jobs)), q.sum() / machine, np.log1p(until_room)),
    )
    features = np.empty((len(jobs), len(FEATURES)))
    for column, values in enumerate((*of_job, *shared)):
        features[:, column] = values
    return features
