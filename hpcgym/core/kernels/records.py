"""What kernels work on: one simulation, its queues, its jobs."""

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
class Queue(NamedTuple):
    """One queue of one simulation.

    Attributes:
        key: Key of each job, shape (n_jobs,); read for jobs in the queue only.
        used: Blocks and jobs in use, shape (2,).
        order: Blocks in queue order, then the unused ones, shape (n_blocks,).
        size: Jobs in each block, shape (n_blocks,).
        processors: Least processors in each block, shape (n_blocks,).
        estimate: Least estimate in each block, shape (n_blocks,), s.
        job: Jobs of each block in order, shape (n_blocks, BLOCK_JOBS).
    """

    key: NDArray[np.float64]
    used: NDArray[np.int64]
    order: NDArray[np.int64]
    size: NDArray[np.int64]
    processors: NDArray[np.int64]
    estimate: NDArray[np.int64]
    job: NDArray[np.int64]


@by_reference
class Row(NamedTuple):
    """One simulation; fields as in `State`, without the axis n_envs, queues as `Queue`."""

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
    base: Queue
    fill: Queue
    order: Queue
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
