"""What the kernels work on: arrays that stay (`JobTable`) and arrays that move (`State`).

Every array of `State` carries a leading axis n_envs, so that one simulation and sixty-four are the
same struct of arrays; kernels see one row of it, in which that axis is gone (`hpcgym.core.rows`).
Whole numbers that move stand in named columns of `counter`, those that are fixed for an episode in
named columns of `setting`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.history import RING_JOBS

Int = NDArray[np.int64]
Float = NDArray[np.float64]

IntVector = Annotated[NDArray[np.int64], "int64", 1]
IntTable = Annotated[NDArray[np.int64], "int64", 2]
FloatVector = Annotated[NDArray[np.float64], "float64", 1]
FloatTable = Annotated[NDArray[np.float64], "float64", 2]
ByteVector = Annotated[NDArray[np.uint8], "uint8", 1]
ByteTable = Annotated[NDArray[np.uint8], "uint8", 2]
SingleTable = Annotated[NDArray[np.float32], "float32", 2]

NEVER = 2**62
"""An instant that does not come, s."""

FIRST_ENTRY = -2
"""Entry of `State.start_time` of the waiting job in seat 0; seat k is that less k."""

NODE_CHILDREN = 32
"""Jobs in one block of a queue, and blocks in one group."""

SIZE_CLASSES = 69
"""Classes of jobs by processors: one each up to 7, then 8-9, 10-11, 12-13, 14-15, 16-19 and so on,
four an octave; the last has no bound."""

# Columns of `State.setting`: fixed for an episode.
N_JOBS = 0
MACHINE_PROCESSORS = 1
THRESHOLD = 2  # s, -1 = none
BACKFILL = 3
SEMANTICS = 4
BASE_RULE = 5
ORDER_RULE = 6  # the rule of the primary order, `BY_BASE` while the base order itself serves
BACKFILL_RULE = 7  # `BY_BASE` while the backfill order is the primary order
DECIDE = 8
DECIDE_SECONDS = 9
KEEP_HISTORY = 10  # 0 = no, or HISTORY_FOR_*
KEEP_REWARD = 11
FULL_PASSES = 12
CHECK = 13
WEEK_START = 14  # seconds into the week at time 0
FILL_KEEPS = 15  # 1 if the backfill order does not change with time
PREDICT = 16  # PREDICT_*: what predicts run times while the simulation runs
CORRECT = 17  # CORRECT_*: what is said of a job that outlives its estimate
EXPECT = 18  # bits of EXPECT_*: by what run times of jobs are expected
SHOW_EXPECTED = 19  # EXPECT_*: by what observations show what is expected
N_SETTINGS = 20

# Columns of `State.counter`: what moves.
NOW = 0
FREE = 1
NEXT_JOB = 2
N_RUNNING = 3
N_WAITING = 4
N_STARTED = 5
N_OVERDUE = 6  # waiting jobs beyond the threshold
NEXT_OVERDUE = 7  # first job not yet looked at for the threshold
WAITING_PROCESSORS = 8
WAITING_AREA = 9
PHASE = 10
SETTLED_HEAD = 11  # head under which every waiting job was refused, -1 = a full pass is due
SHADOW = 12  # s, -1 = not known
EXTRA = 13
NEXT_DECISION = 14  # s, next instant of decisions at fixed intervals
ORDERED = 15  # 1 while the keys of `ORDER` are the decided order of this pass
PICK = 16  # job that goes first in this pass and ends it by starting, -1 = none
PASS_DUE = 17  # 0 at an instant without events, or whose pass has been made
N_ONSETS = 18
N_PASSES = 19
N_EVENTS = 20
N_RELEASES = 21
HOUR_AGO = 22  # first job submitted within the last hour
DAY_AGO = 23  # first job submitted within the last day
SUM_WAITING = 24  # waiting jobs summed over passes
MOST_WAITING = 25
CHECKED_HEAD = 26
CHECKED_SHADOW = 27
N_STEPS = 28  # steps of the environment in this episode
N_INVALID = 29  # actions that named an empty slot
N_ENTRIES = 30  # seats ever taken; those not in use stand in `spare_entry`
N_PROFILE = 31  # steps of the profile, within a pass
N_PLANNED = 32  # seats whose `planned_start` means something, in modes that keep reservations
FIRST_UNPLANNED = 33  # first job that came after reservations were last made
REPLAN = 34  # 1 if a reservation that is kept may have to move
N_PREDICTED = 35  # jobs that Python has predicted
LIMITED_HEAD = 36  # head whose reference time is kept, -1 = none; in relaxed backfilling
REFERENCE = 37  # s, that head's reference time
N_HELD = 38  # jobs out of sight, their delay not over
N_BATCH = 39  # jobs completed since the delay was last looked at
N_BATCH_SHORT = 40  # jobs among them whose slowdown counts
N_COUNTERS = 41

# Columns of `State.gauge`: real numbers.
RATE = 0  # reward rate of the waiting jobs, 1/s
ACCRUED = 1  # what the waiting jobs have cost so far
LOG_LARGEST = 2  # natural logarithm of the scenario's largest request in s
STARTED_COST = 3  # what the started jobs cost in all
PAID = 4  # what the rewards so far have paid of the agent's cost
PAID_BASELINE = 5  # and of the baseline's
REWARD = 6  # the latest reward
AGENT_TERM = 7  # its term for the agent, or for the comparison with the baseline
BASELINE_TERM = 8  # its term for the baseline
DELAY = 9  # of a job of the last class that is submitted now, s
BATCH_SLOWDOWN = 10  # summed slowdown of the `N_BATCH_SHORT` jobs
LAST_SLOWDOWN = 11  # mean of the last batch that had such jobs, 0 = none yet
N_GAUGES = 12

# Values.
BY_BASE = -1
BACKFILL_NONE, BACKFILL_EASY, BACKFILL_DEPTH, BACKFILL_SHIFT = 0, 1, 2, 3
BACKFILL_LOOK_AHEAD, BACKFILL_RELAXED, BACKFILL_SLACK = 5, 6, 7
BACKFILL_MULTI_QUEUE = 4
BATCH, PYSS = 0, 1
DECIDE_NEVER, DECIDE_CONTESTED, DECIDE_EVENT, DECIDE_INTERVAL = 0, 1, 2, 3
BETWEEN, AT_PASS, AT_SUBMISSIONS = 0, 1, 2
DONE, DECISION, PREDICTION, BAD_ACTION = 0, 1, 2, -100
HISTORY_FOR_KEYS, HISTORY_FOR_VIEWS = 1, 2  # at every submission; of jobs that are queued
HISTORY_FOR_PREDICTIONS = 3  # recorded only
PREDICT_NOT, PREDICT_RECENT, PREDICT_ASKED = 0, 1, 2
CORRECT_NOT, CORRECT_TO_REQUEST, CORRECT_BY_STEPS, CORRECT_BY_DOUBLING = 0, 1, 2, 3
ACTION_WEIGHTS, ACTION_POLICY, ACTION_ORDER, ACTION_JOB = 0, 1, 2, 3
PAY_AS_ACCRUED, PAY_AT_START, PAY_AT_END, PAY_LOG_RATIO, PAY_RELATIVE = 0, 1, 2, 3, 4

# Bits of `State.flag`; the last until the job's delay is over, the others from its start on.
BACKFILLED, THRESHOLDED, HELD = 1, 2, 4

# Orders: the base order, the backfill order where it is another one, the order of one pass. Those
# that keep stand in queues: the base order always, the backfill order where it is another one.
BASE, FILL, ORDER = 0, 1, 2
N_ORDERS, N_QUEUES = 3, 2
# Columns of `State.queue_used`: groups in the list, first of the nodes never used since the queue
# was cleared, first of those given back since then (-1 = none).
N_GROUPS, N_NODES, SPARE = 0, 1, 2

# Rules that score a job; parameters stand in rows of `State.weight`.
(
    RULE_WEIGHTS,
    RULE_SUBMIT,
    RULE_WFP3,
    RULE_UNICEF,
    RULE_F1,
    RULE_F2,
    RULE_F3,
    RULE_F4,
    RULE_MULTIFACTOR,
    RULE_SMITH,
    RULE_KEYS,
    RULE_INDEX,
) = range(12)
N_WEIGHTS = 9
"""Parameters of a rule: for `RULE_WEIGHTS` the six weights of features, for `RULE_INDEX` those of
all terms."""

# What `hpcgym.core.kernels.scoring.user_estimates` works with.
EXPECT_NOTHING, EXPECT_BY_RECORDS, EXPECT_BY_NETWORK, EXPECT_BY_REGRESSION = 0, 0b001, 0b011, 0b101
"""By what run times of jobs are expected, as bits; whatever expects, reads users' records, too."""
N_NETWORK_INPUTS = 27
"""Numbers that a network sees of a job."""
N_HIDDEN, N_LAST = 32, 16
"""Units of its two hidden layers."""
N_NETWORK = N_HIDDEN * (N_NETWORK_INPUTS + 1) + N_LAST * (N_HIDDEN + 1) + 2 * (N_LAST + 1)
"""Its parameters, layer by layer, weights before biases."""
(
    PROCESSORS,
    REQUEST,
    RUN_TIME_RATIO,
    SPEED,
    NETWORK_RUN_TIME_RATIO,
    NETWORK_SPEED,
    REGRESSED_RUN_TIME_RATIO,
    REGRESSED_SPEED,
    RECENT_RUN_TIME_RATIO,
) = range(N_WEIGHTS)
N_TERMS = N_WEIGHTS
"""What an index weighs: log processors, log E, log share and log speed by records, and the latter
two by the network and by the regression; log share by the user's last two jobs."""
N_REGRESSORS = 8
"""Numbers that the regression sees of a job."""

# Columns of `State.backfill_parameter`, by mode.
DEPTH = 0  # `BACKFILL_DEPTH`: reservations at most, infinite = all waiting jobs
WINDOW = 0  # `BACKFILL_LOOK_AHEAD`: jobs behind the head that are looked at, infinite = all
OMEGA = 0  # `BACKFILL_RELAXED`: how many of its estimates a head may be delayed by
SLACK = 0  # `BACKFILL_SLACK`: how many of its estimates a promise lies behind a reservation
N_CLASSES = 0  # `BACKFILL_MULTI_QUEUE`, like the others: classes of jobs
FIRST_DELAY = 1  # s, 0 = no delay ever
BATCH_JOBS = 2
TOLERANCE = 3
PRINTED_DELTA = 4  # 1 = the first batch changes the delay by its slowdown
FIRST_BOUND = 5  # largest estimate of the first class, s; those of the others follow
MOST_CLASSES = 8
N_BACKFILL_PARAMETERS = FIRST_BOUND + MOST_CLASSES - 1
"""Parameters a backfilling mode can have."""

# Columns of `JobTable.feature`: processors, estimate (s), e/q, e*q.
Q, E, RHO, AREA = 0, 1, 2, 3
N_FEATURES = 4

N_STATIC_FIELDS = 4
N_HISTORY_FIELDS = 6
N_KEPT_FIELDS = 4


class JobTable(NamedTuple):
    """What stays of the jobs during an episode; arrays of shape (n_jobs,) unless said.

    Attributes:
        submit_time: Time the job enters the queue, s.
        run_time: Executed run time, s; read at completions only.
        estimate: What the scheduler takes the run time to be, s, >= 1.
        requested_time: The user's limit, s.
        processors: Processors requested.
        size_class: Class by processors, 0 to SIZE_CLASSES - 1.
        feature: What rules weigh and time does not change, shape (n_jobs, N_FEATURES), see the
            column names; float64, so that a score is worked out without conversions.
        user: Dense index of the user.
        keys: Keys of policies given by one number per job, shape (n_jobs, n_keys).
        reward_rate: What a second of waiting costs, 1/s; empty where no reward is kept.
        reward_onset: Instant from which waiting costs, s; empty likewise.
        field: Observation fields that never change, shape (n_jobs, N_STATIC_FIELDS); empty where
            no observation is made.
    """

    submit_time: Int
    run_time: Int
    estimate: Int
    requested_time: Int
    processors: Int
    size_class: Int
    feature: Float
    user: Int
    keys: Float
    reward_rate: Float
    reward_onset: Int
    field: NDArray[np.float32]


class State(NamedTuple):
    """What moves; every array has a leading axis n_envs that the list below leaves out.

    Attributes:
        setting: Whole numbers fixed for an episode, shape (N_SETTINGS,), see the column names.
        weight: Parameters of the rule of each order, shape (N_ORDERS, N_WEIGHTS).
        backfill_parameter: Parameters of the backfilling mode, shape (N_BACKFILL_PARAMETERS,), see
            the column names.
        counter: Whole numbers that move, shape (N_COUNTERS,), see the column names.
        gauge: Real numbers, shape (N_GAUGES,).
        start_time: Start of each job, shape (n_jobs,), s; -1 = not submitted, `FIRST_ENTRY` and
        less
            = waiting, see `hpcgym.core.kernels.queue.entries`.
        flag: `BACKFILLED`, `THRESHOLDED` and `HELD` bits, shape (n_jobs,).
        ending_time: True ends of the running jobs, descending, shape (n_running_max,), s.
        ending_job: The jobs that end then, shape (n_running_max,).
        release_time: Ends of the running jobs by estimate, descending, shape (n_running_max,), s.
        release_job: The jobs released then, shape (n_running_max,).
        key: Key of the waiting job in each seat in each order, -inf beyond the threshold, shape
            (N_ORDERS, n_jobs).
        spare_entry: Seats given back and not taken again, shape (n_jobs,).
        queue_used: What each queue has in use, shape (N_QUEUES, 3), see the column names.
        group_order: Groups in queue order, shape (N_QUEUES, n_groups).
        node_size: Children of each node, shape (n_nodes,); those of a queue are every second.
        node_child: Children of each node in order, blocks of a group or jobs of a block, shape
            (n_nodes, NODE_CHILDREN).
        node_processors: Least processors in each node, shape (n_nodes,).
        node_estimate: Least estimate in each node among jobs of at most each size class, shape
            (n_nodes, SIZE_CLASSES), s.
        onset: Heap of jobs that cost nothing yet, by onset, few but waiting ones, shape (n_jobs,).
        history_run_time: Rings of `History`, shape (n_users, RING_JOBS), s.
        history_requested_time: Rings of `History`, shape (n_users, RING_JOBS), s.
        history_processors: Rings of `History`, shape (n_users, RING_JOBS).
        history_log_bound: log D of the same jobs, shape (n_users, RING_JOBS); empty where
            nobody asks what is expected, like the nine arrays from `history_alike` on.
        history_inverse: 1/D of the same jobs, D = max(run time, tau), shape (n_users, RING_JOBS),
            1/s.
        history_completed: Jobs completed, shape (n_users,).
        history_last_end_time: Latest end, shape (n_users,), s.
        history_shown: Fields 0 to 3 of `history_field`, which change at the user's completions
            only, shape (n_users, N_KEPT_FIELDS).
        history_shown_at: Jobs completed when these were worked out, -1 = never, shape (n_users,).
        inverse: E[1/D] of the job in each seat, frozen at its submission, shape (n_jobs,), 1/s.
        history_field: Observation fields of the job in each seat, frozen at its submission, shape
            (n_jobs, N_HISTORY_FIELDS).
        history_alike: Of each user's job whose terms were worked out last: the jobs completed by
            then, -1 = never, its estimate, request and processors, shape (n_users, 4).
        history_alike_term: Its terms, shape (n_users, N_TERMS).
        expected: What orders weigh of the job in each seat, shape (n_jobs, N_TERMS); what the
            regression says of it is worked out at every pass.
        expected_at: Jobs the user had completed when that was worked out, -1 = never, shape
            (n_jobs,).
        regressor: What the regression sees of the job in each seat, shape (n_jobs, N_REGRESSORS),
            worked out with `expected`.
        coefficient: The regression's models of share and speed, shape (2, N_REGRESSORS).
        squares: Summed squares of the gradients of each coefficient, shape (2, N_REGRESSORS).
        network: Parameters of the network that expects, shape (N_NETWORK,).
        thought: Room for what a network works out, shape (N_NETWORK_INPUTS + N_HIDDEN + N_LAST +
        2,).
        planned_start: Reservation of the job in each seat, in modes that keep reservations, shape
            (n_jobs,), s.
        promise: Latest start of the job in each seat, in slack-based backfilling, shape (n_jobs,),
            s; elsewhere empty.
        trial_job: Waiting jobs by promise, within a pass of slack-based backfilling, shape
            (n_jobs,); elsewhere empty.
        trial_start: Reservations of these in the plan that is tried, s; likewise.
        reach: How many jobs of a list it takes until exactly so many processors can be used, within
            a pass that looks ahead, shape (2, machine_processors + 1); elsewhere (2, 0).
        profile_time: Instants from which so many processors are free by estimates, ascending, shape
            (n_profile_max,), s; made at a pass and forgotten after it.
        profile_free: Processors free from then on, shape (n_profile_max,).
        scratch: Room for a list of waiting jobs, shape (n_jobs,).
        estimate: `JobTable.estimate` of a simulation that predicts or corrects, shape (n_jobs,), s;
            its jobs are read from here (`hpcgym.core.rows.own_table`). Empty where none does.
        feature: `JobTable.feature` likewise, shape (n_jobs, N_FEATURES).
        partition: Processors in the partition of each class, idle ones and those of its running
            jobs, shape (MOST_CLASSES,); 0 in modes without partitions.
        partition_idle: The idle ones among them, shape (MOST_CLASSES,).
        held_time: Instants at which delays are over, descending, shape (n_jobs,), s.
        held_job: The jobs that become eligible then, shape (n_jobs,).
    """

    setting: Int
    weight: Float
    backfill_parameter: Float
    counter: Int
    gauge: Float
    start_time: Int
    flag: NDArray[np.uint8]
    ending_time: Int
    ending_job: Int
    release_time: Int
    release_job: Int
    key: Float
    spare_entry: Int
    queue_used: Int
    group_order: Int
    node_size: Int
    node_child: Int
    node_processors: Int
    node_estimate: Int
    onset: Int
    history_run_time: Int
    history_requested_time: Int
    history_processors: Int
    history_log_bound: Float
    history_inverse: Float
    history_completed: Int
    history_last_end_time: Int
    history_shown: NDArray[np.float32]
    history_shown_at: Int
    inverse: Float
    history_field: NDArray[np.float32]
    history_alike: Int
    history_alike_term: Float
    expected: Float
    expected_at: Int
    regressor: Float
    coefficient: Float
    squares: Float
    network: Float
    activations: Float
    planned_start: Int
    promise: Int
    trial_job: Int
    trial_start: Int
    reach: Int
    profile_time: Int
    profile_free: Int
    scratch: Int
    estimate: Int
    feature: Float
    partition: Int
    partition_idle: Int
    held_time: Int
    held_job: Int


def allocate(
    n_envs: int,
    n_jobs: int,
    n_users: int,
    machine_processors: int,
    *,
    history: bool,
    reward: bool,
    fields: bool,
    estimates: bool,
    expectations: bool,
    modes: Collection[int] = (),
) -> State:
    """Allocate the state of `n_envs` simulations of at most `n_jobs` jobs each.

    Memory that no job ever needs is never touched: the operating system hands out a page when it
    is first written, and a queue or a running list is written no further than it was long.

    Args:
        n_envs: Simulations side by side.
        n_jobs: Most jobs of an episode.
        n_users: Most users of an episode.
        machine_processors: Processors of the largest machine; it bounds the running jobs.
        history: Whether users' completed jobs are recorded.
        reward: Whether a reward is kept.
        fields: Whether observations are made.
        estimates: Whether estimates are predicted or corrected.
        expectations: Whether a rule or an observation asks what is expected of a job.
        modes: The backfilling modes, `BACKFILL_*`; some need arrays that others do not.

    Returns:
        A state that must be reset before use.

    Source:
        House rule: allocate once, reset often.
    """
    n_running = min(2 * machine_processors, n_jobs)  # pyss: ends of one instant overlap starts
    half = NODE_CHILDREN // 2
    n_blocks = 2 * n_jobs // half + 1  # a new one takes half a node, each job comes at most twice
    n_groups = n_blocks // half + 1
    n_nodes = N_QUEUES * (n_blocks + n_groups)
    known = n_users if history else 0
    n_promised = n_jobs if BACKFILL_SLACK in modes else 0
    n_reach = machine_processors + 1 if BACKFILL_LOOK_AHEAD in modes else 0
    n_profile = n_running + 2 * n_jobs + 3  # an end each, and start and end of a reservation each
    own = n_jobs if estimates else 0
    n_expected, n_awaited = (n_jobs, known) if expectations else (0, 0)
    return State(
        setting=np.zeros((n_envs, N_SETTINGS), dtype=np.int64),
        weight=np.zeros((n_envs, N_ORDERS, N_WEIGHTS)),
        backfill_parameter=np.zeros((n_envs, N_BACKFILL_PARAMETERS)),
        counter=np.zeros((n_envs, N_COUNTERS), dtype=np.int64),
        gauge=np.zeros((n_envs, N_GAUGES)),
        start_time=np.empty((n_envs, n_jobs), dtype=np.int64),
        flag=np.empty((n_envs, n_jobs), dtype=np.uint8),
        ending_time=np.empty((n_envs, n_running), dtype=np.int64),
        ending_job=np.empty((n_envs, n_running), dtype=np.int64),
        release_time=np.empty((n_envs, n_running), dtype=np.int64),
        release_job=np.empty((n_envs, n_running), dtype=np.int64),
        key=np.empty((n_envs, N_ORDERS, n_jobs)),
        spare_entry=np.empty((n_envs, n_jobs), dtype=np.int64),
        queue_used=np.zeros((n_envs, N_QUEUES, 3), dtype=np.int64),
        group_order=np.empty((n_envs, N_QUEUES, n_groups), dtype=np.int64),
        node_size=np.empty((n_envs, n_nodes), dtype=np.int64),
        node_child=np.empty((n_envs, n_nodes, NODE_CHILDREN), dtype=np.int64),
        node_processors=np.empty((n_envs, n_nodes), dtype=np.int64),
        node_estimate=np.empty((n_envs, n_nodes, SIZE_CLASSES), dtype=np.int64),
        onset=np.empty((n_envs, n_jobs if reward else 0), dtype=np.int64),
        history_run_time=np.zeros((n_envs, known, RING_JOBS), dtype=np.int64),
        history_requested_time=np.zeros((n_envs, known, RING_JOBS), dtype=np.int64),
        history_processors=np.zeros((n_envs, known, RING_JOBS), dtype=np.int64),
        history_log_bound=np.zeros((n_envs, n_awaited, RING_JOBS)),
        history_inverse=np.zeros((n_envs, known, RING_JOBS)),
        history_completed=np.zeros((n_envs, known), dtype=np.int64),
        history_last_end_time=np.zeros((n_envs, known), dtype=np.int64),
        history_shown=np.zeros((n_envs, known if fields else 0, N_KEPT_FIELDS), dtype=np.float32),
        history_shown_at=np.zeros((n_envs, known), dtype=np.int64),
        inverse=np.empty((n_envs, n_jobs if history else 0)),
        history_field=np.empty(
            (n_envs, n_jobs if fields else 0, N_HISTORY_FIELDS), dtype=np.float32
        ),
        history_alike=np.zeros((n_envs, n_awaited, 4), dtype=np.int64),
        history_alike_term=np.zeros((n_envs, n_awaited, N_TERMS)),
        expected=np.empty((n_envs, n_expected, N_TERMS)),
        expected_at=np.empty((n_envs, n_expected), dtype=np.int64),
        regressor=np.empty((n_envs, n_expected, N_REGRESSORS)),
        coefficient=np.zeros((n_envs, 2 if expectations else 0, N_REGRESSORS)),
        squares=np.zeros((n_envs, 2 if expectations else 0, N_REGRESSORS)),
        network=np.zeros((n_envs, N_NETWORK if expectations else 0)),
        activations=np.empty(
            (n_envs, N_NETWORK_INPUTS + N_HIDDEN + N_LAST + 2 if expectations else 0)
        ),
        planned_start=np.empty((n_envs, n_jobs), dtype=np.int64),
        promise=np.empty((n_envs, n_promised), dtype=np.int64),
        trial_job=np.empty((n_envs, n_promised), dtype=np.int64),
        trial_start=np.empty((n_envs, n_promised), dtype=np.int64),
        reach=np.empty((n_envs, 2, n_reach), dtype=np.int64),
        profile_time=np.empty((n_envs, n_profile), dtype=np.int64),
        profile_free=np.empty((n_envs, n_profile), dtype=np.int64),
        scratch=np.empty((n_envs, n_jobs), dtype=np.int64),
        estimate=np.empty((n_envs, own), dtype=np.int64),
        feature=np.empty((n_envs, own, N_FEATURES)),
        partition=np.zeros((n_envs, MOST_CLASSES), dtype=np.int64),
        partition_idle=np.zeros((n_envs, MOST_CLASSES), dtype=np.int64),
        held_time=np.empty((n_envs, n_jobs), dtype=np.int64),
        held_job=np.empty((n_envs, n_jobs), dtype=np.int64),
    )


def in_use(state: State) -> State:
    """Return what a state holds at this instant, without room to spare.

    Beyond the start and flag of each job and the records of users, it is as long as the lists of
    running jobs, and as the seats and nodes that waiting jobs have had since the reset.

    Args:
        state: The state.

    Returns:
        Views; `scratch`, the profile and what a pass tries, which hold nothing between calls, are
        empty.

    Source:
        House rule: state grows with the jobs that wait, not with the log.
    """
    counter, queue_used = state.counter, state.queue_used
    running = slice(int(counter[:, N_RUNNING].max()))
    releases = slice(int(counter[:, N_RELEASES].max()))
    seats = slice(int(counter[:, N_ENTRIES].max()))
    nodes = slice(int(queue_used[:, :, N_NODES].max()))
    planned = slice(int(counter[:, N_PLANNED].max()))
    held = slice(int(counter[:, N_HELD].max()))
    return state._replace(
        ending_time=state.ending_time[:, running],
        ending_job=state.ending_job[:, running],
        release_time=state.release_time[:, releases],
        release_job=state.release_job[:, releases],
        key=state.key[:, :, seats],
        spare_entry=state.spare_entry[:, seats],
        group_order=state.group_order[:, :, : int(queue_used[:, :, N_GROUPS].max())],
        node_size=state.node_size[:, nodes],
        node_child=state.node_child[:, nodes],
        node_processors=state.node_processors[:, nodes],
        node_estimate=state.node_estimate[:, nodes],
        onset=state.onset[:, : int(counter[:, N_ONSETS].max())],
        inverse=state.inverse[:, seats],
        history_field=state.history_field[:, seats],
        expected=state.expected[:, seats],
        expected_at=state.expected_at[:, seats],
        regressor=state.regressor[:, seats],
        activations=state.activations[:, :0],
        planned_start=state.planned_start[:, planned],
        promise=state.promise[:, planned],
        trial_job=state.trial_job[:, :0],
        trial_start=state.trial_start[:, :0],
        reach=state.reach[:, :, :0],
        profile_time=state.profile_time[:, :0],
        profile_free=state.profile_free[:, :0],
        scratch=state.scratch[:, :0],
        held_time=state.held_time[:, held],
        held_job=state.held_job[:, held],
    )


def copy_into(larger: State, state: State) -> None:
    """Copy a state into one as large or larger, where each simulation can go on.

    Args:
        larger: Where to; at least as large in every axis as what is in use.
        state: The state, whole or only what is in use of it.

    Writes:
        `larger`, as far as the state is in use: a copy costs what the jobs at hand need.

    Source:
        House rule: a simulation knows its jobs, users and nodes by numbers, never by place.
    """
    there: Any
    here: Any
    for there, here in zip(larger, in_use(state), strict=True):
        there[tuple(slice(length) for length in here.shape)] = here
