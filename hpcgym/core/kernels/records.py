"""What kernels work on: one simulation, and its jobs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.state import Float, Int
from hpcgym.core.struct import by_reference


@by_reference
class Jobs(NamedTuple):
    """The jobs of one episode; fields as in `JobTable`, jobs counted from 0."""

    submit_time: Int
    run_time: Int
    estimate: Int
    requested_time: Int
    processors: Int
    user: Int
    keys: Float
    reward_rate: Float
    reward_onset: Int
    field: NDArray[np.float32]


@by_reference
class Row(NamedTuple):
    """One simulation; fields as in `State`, without the axis n_envs."""

    setting: Int
    weight: Float
    counter: Int
    gauge: Float
    start_time: Int
    flag: NDArray[np.uint8]
    ending_time: Int
    ending_job: Int
    release_time: Int
    release_job: Int
    key: Float
    queue_used: Int
    block_order: Int
    block_size: Int
    block_processors: Int
    block_estimate: Int
    block_job: Int
    onset: Int
    history_run_time: Int
    history_requested_time: Int
    history_completed: Int
    history_last_end_time: Int
    inverse: Float
    history_field: NDArray[np.float32]
    scratch: Int


@by_reference
class Choice(NamedTuple):
    """How an environment reads actions.

    Attributes:
        kind: `ACTION_*`, shape (1,).
        rule: Rules to choose among, shape (n_policies,).
        rule_weight: Their parameters, shape (n_policies, N_WEIGHTS).
        divisor: What each feature is divided by before it is weighted, shape (6,).
        base_rule: Rule of the base order, shape (1,).
        base_weight: Its parameters, shape (N_WEIGHTS,).
    """

    kind: Int
    rule: Int
    rule_weight: Float
    divisor: Float
    base_rule: Int
    base_weight: Float
