"""What kernels work on: one simulation, its jobs, its start, how actions are read and rewards paid.

And many simulations side by side, each with its own of all four.
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
    """The jobs of one episode; fields as in `hpcgym.core.state.JobTable`."""

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
    """One simulation out of a stack; fields as in `hpcgym.core.state.State`, without n_envs."""

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
    """What a simulation of an episode begins with.

    Attributes:
        setting: Row of `hpcgym.core.state.State.setting`.
        weight: Rows of `State.weight`.
        backfill_parameter: Row of `State.backfill_parameter`.
        log_largest: Natural logarithm of the largest request in s, shape (1,).
        history_run_time: What is known of each user at time 0, as `State` has it, like the others.
        history_requested_time: Likewise.
        history_processors: Likewise.
        history_inverse: Likewise.
        history_completed: Likewise.
        history_last_end_time: Likewise.
        network: Parameters of the network that expects, shape (N_NETWORK,); empty = none.
        estimate: Estimates at time 0, shape (n_jobs,), s; empty where they never change.
        feature: `JobTable.feature` likewise.
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
    """How an environment reads actions.

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
    """How the rewards of an episode are paid, and what its baseline has cost by each instant.

    Attributes:
        form: How it pays (`PAY_*`), whether it is paired with a baseline, and the number of jobs
            that the reward is a mean over, shape (3,).
        amount: What waiting costs each job at its submission, and what it has cost all jobs under
            the baseline in the end, shape (2,).
        submit_time: Submissions, ascending, shape (n_jobs,), s.
        moment: Instants at which the rate of the baseline's cost changes, ascending, s.
        slope: The rate from then on, 1/s.
        passed: What the rates before have come to by then.
        started: Starts under the baseline, ascending, shape (n_jobs,), s.
        started_cost: Cost of so many started jobs, shape (n_jobs + 1,).
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
    """Environments side by side: where each finds its records, what it is told and what it shows.

    Attributes:
        address: Addresses of each one's `Jobs`, `Start`, `Bill`, `Row` and `Choice`, shape
            (n_envs, 5).
        resting: Which ones a step leaves alone, shape (n_envs,), 1 or 0.
        horizon: Steps after which an episode is cut short, 0 = none, shape (1,).
        n_choices: Actions that are numbers lie below this, shape (1,).
        number: Actions, where they are numbers, shape (n_envs,).
        values: Actions, where they are vectors, shape (n_envs, n_values).
        slot: Job in each slot, shape (n_envs, n_slots), -1 = empty.
        shown_jobs: The jobs' fields, shape (n_envs, n_slots * n_fields).
        shown_cluster: The state of the cluster, shape (n_envs, N_CLUSTER).
        mask: Which slots hold a job, shape (n_envs, n_slots).
        payment: Rewards, their terms for the agent, and for the baseline, shape (3, n_envs).
        tally: The clock, s, and actions that named an empty slot, shape (2, n_envs).
        ended: Which episodes ended by this step: terminated, truncated, shape (2, n_envs), 1 or 0.
        figure: What was measured of each episode that ended last, shape (n_envs, N_FIGURES).
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
