"""What kernels work on, and the arguments that they share.

Each type below is a struct of arrays, which a kernel takes as one pointer (`hpcgym.core.struct`).
Its docstring explains the arguments of that type; kernels explain only arguments of their own.
"""

from typing import NamedTuple

from hpcgym.core.state import (
    ByteTable,
    ByteVector,
    FloatTable,
    FloatVector,
    IntTable,
    IntVector,
    SingleTable,
)
from hpcgym.core.struct import opener


class Jobs(NamedTuple):
    """The jobs of an episode, the argument `jobs`; fields as in `hpcgym.core.state.JobTable`.

    A `job` is an index into these arrays. Jobs are numbered in order of submission, ties as in the
    log, so the smaller index is the earlier job. The scheduler plans with `estimate`; `run_time`
    only decides when a job ends.
    """

    submit_time: IntVector
    run_time: IntVector
    estimate: IntVector
    requested_time: IntVector
    processors: IntVector
    size_class: IntVector
    feature: FloatTable
    user: IntVector
    keys: FloatTable
    reward_rate: FloatVector
    reward_onset: IntVector
    field: SingleTable


class Sim(NamedTuple):
    """The state of one simulation, the argument `sim`; fields as in `hpcgym.core.state.State`.

    Kernels use these arguments and terms with it:

    - `entry`: the row of arrays such as `key` and `planned_start` that a job has only while it
      waits (`hpcgym.core.kernels.queue.entries`).
    - `which`: an order of the waiting jobs: `BASE`, `FILL` (the backfill order), or `ORDER` (made
      for one pass). `BASE` is kept as a queue, and so is `FILL` where it does not change with time.
    - `n`: the number of jobs listed in `scratch`, the list that a pass works on.
    """

    setting: IntVector
    weight: FloatTable
    backfill_parameter: FloatVector
    counter: IntVector
    gauge: FloatVector
    start_time: IntVector
    flag: ByteVector
    ending_time: IntVector
    ending_job: IntVector
    release_time: IntVector
    release_job: IntVector
    key: FloatTable
    spare_entry: IntVector
    queue_used: IntTable
    group_order: IntTable
    node_size: IntVector
    node_child: IntTable
    node_processors: IntVector
    node_estimate: IntTable
    onset: IntVector
    history_run_time: IntTable
    history_requested_time: IntTable
    history_processors: IntTable
    history_log_bound: FloatTable
    history_inverse: FloatTable
    history_completed: IntVector
    history_last_end_time: IntVector
    history_shown: SingleTable
    history_shown_at: IntVector
    inverse: FloatVector
    history_field: SingleTable
    history_alike: IntTable
    history_alike_term: FloatTable
    expected: FloatTable
    expected_at: IntVector
    regressor: FloatTable
    coefficient: FloatTable
    squares: FloatTable
    network: FloatVector
    activations: FloatVector
    planned_start: IntVector
    promise: IntVector
    trial_job: IntVector
    trial_start: IntVector
    reach: IntTable
    profile_time: IntVector
    profile_free: IntVector
    scratch: IntVector
    estimate: IntVector
    feature: FloatTable
    partition: IntVector
    partition_idle: IntVector
    held_time: IntVector
    held_job: IntVector


class InitialState(NamedTuple):
    """What a simulation begins an episode with, the argument `initial`.

    Fields named as in `hpcgym.core.state.State` hold the values of time 0. Others, and those that
    may be empty:

    Attributes:
        log_largest: Natural logarithm of the largest request in s, shape (1,).
        network: Parameters of the run-time network, shape (N_NETWORK,); empty = none.
        estimate: Estimates, shape (n_jobs,), s; empty where they never change, as is `feature`.
    """

    setting: IntVector
    weight: FloatTable
    backfill_parameter: FloatVector
    log_largest: FloatVector
    history_run_time: IntTable
    history_requested_time: IntTable
    history_processors: IntTable
    history_inverse: FloatTable
    history_completed: IntVector
    history_last_end_time: IntVector
    network: FloatVector
    estimate: IntVector
    feature: FloatTable


class ActionSpec(NamedTuple):
    """How an environment reads actions, the argument `action_spec`.

    Attributes:
        kind: `ACTION_*`, shape (1,).
        rule: Rules to choose among, shape (n_policies,).
        rule_weight: Their parameters, shape (n_policies, N_WEIGHTS).
        divisor: What each feature is divided by before it is weighted, shape (6,).
        base_rule: Rule of the base order, shape (1,).
        base_weight: Its parameters, shape (N_WEIGHTS,).
    """

    kind: IntVector
    rule: IntVector
    rule_weight: FloatTable
    divisor: FloatVector
    base_rule: IntVector
    base_weight: FloatVector


class RewardPlan(NamedTuple):
    """How an episode pays rewards, and its baseline's cost over time: the argument `reward_plan`.

    Attributes:
        form: How it pays (`PAY_*`), whether it is paired with a baseline, and the number of jobs
            that the reward is a mean over, shape (3,).
        amount: What waiting costs each job at its submission, and the final cost of all jobs under
            the baseline, shape (2,).
        submit_time: Submissions, ascending, shape (n_jobs,), s.
        moment: Instants at which the rate of the baseline's cost changes, ascending, s.
        slope: The rate from then on, 1/s.
        passed: The baseline's cost accrued by then.
        started: Starts under the baseline, ascending, shape (n_jobs,), s.
        started_cost: Cost of that many started jobs, shape (n_jobs + 1,).
    """

    form: IntVector
    amount: FloatVector
    submit_time: IntVector
    moment: IntVector
    slope: FloatVector
    passed: FloatVector
    started: IntVector
    started_cost: FloatVector


class Batch(NamedTuple):
    """Environments side by side, with their structs, actions and outputs: the argument `batch`.

    Attributes:
        address: Addresses of each one's `Jobs`, `InitialState`, `RewardPlan`, `Sim` and
            `ActionSpec`, shape (n_envs, 5).
        resting: Which environments a step leaves alone, shape (n_envs,), 1 or 0.
        horizon: Steps after which an episode is cut short, 0 = none, shape (1,).
        n_choices: Upper bound, exclusive, of actions that are numbers, shape (1,).
        number: Actions that are numbers, shape (n_envs,).
        values: Actions that are vectors, shape (n_envs, n_values).
        slot: Job in each slot, shape (n_envs, n_slots), -1 = empty.
        shown_jobs: Observation of the jobs, shape (n_envs, n_slots * n_fields).
        shown_cluster: Observation of the cluster, shape (n_envs, N_CLUSTER).
        mask: Which slots hold a job, shape (n_envs, n_slots).
        payment: Rewards, their terms for the agent, and for the baseline, shape (3, n_envs).
        tally: The clock, s, and the number of actions that named an empty slot, shape (2, n_envs).
        ended: Episodes that this step terminated, and truncated, shape (2, n_envs), 1 or 0.
        figure: Metrics of each one's last finished episode, shape (n_envs, N_FIGURES).
    """

    address: IntTable
    resting: ByteVector
    horizon: IntVector
    n_choices: IntVector
    number: IntVector
    values: SingleTable
    slot: IntTable
    shown_jobs: SingleTable
    shown_cluster: SingleTable
    mask: SingleTable
    payment: FloatTable
    tally: IntTable
    ended: ByteTable
    figure: FloatTable


open_jobs = opener(Jobs)
open_sim = opener(Sim)
open_initial_state = opener(InitialState)
open_action_spec = opener(ActionSpec)
open_reward_plan = opener(RewardPlan)
open_batch = opener(Batch)
