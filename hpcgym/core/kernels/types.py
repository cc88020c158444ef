"""What kernels work on, and the arguments that they share.

Each type below is a struct, which a kernel takes as one pointer (`hpcgym.core.compiler.struct`).
Docstrings of kernels do not explain the arguments that all kernels share:

| argument | meaning |
|---|---|
| `jobs` | the jobs of the episode, `Jobs` |
| `job` | index of a job there; the smaller index is the earlier job |
| `sim` | one simulation of the episode, `Sim` |
| `entry` | row of a job in the arrays that hold it only while it waits (`queue.entries`) |
| `which` | an order: `BASE_ORDER`, `BACKFILL_ORDER`, or `PASS_ORDER`, made for one pass |
| `head` | the first job in order that does not fit: it holds the reservation |
| `n` | how many jobs are listed in `scratch`, the list that a pass works on |
| `initial` | what the simulation begins with, `InitialState` |
| `action_spec` | how actions are read, `ActionSpec` |
| `reward_plan` | how rewards are paid, `RewardPlan` |
| `batch` | environments side by side, `Batch` |
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.compiler.struct import Address, Array, Columned, opener
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.numbers import Counter as Counter
from hpcgym.core.kernels.numbers import Gauge as Gauge
from hpcgym.core.kernels.numbers import Numbers
from hpcgym.core.observation_fields import N_HISTORY_FIELDS, N_KEPT_FIELDS, JobTrialField

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Single = NDArray[np.float32]
IntVector = Annotated[NDArray[np.int64], Array("int64", 1)]
IntTable = Annotated[NDArray[np.int64], Array("int64", 2)]
IntCube = Annotated[NDArray[np.int64], Array("int64", 3)]
FloatVector = Annotated[NDArray[np.float64], Array("float64", 1)]
FloatTable = Annotated[NDArray[np.float64], Array("float64", 2)]
SingleVector = Annotated[NDArray[np.float32], Array("float32", 1)]
ByteVector = Annotated[NDArray[np.uint8], Array("uint8", 1)]
ByteTable = Annotated[NDArray[np.uint8], Array("uint8", 2)]
ShortTable = Annotated[NDArray[np.int32], Array("int32", 2)]
SingleTable = Annotated[NDArray[np.float32], Array("float32", 2)]
Whole = Annotated[int, Array("int64", 0)]
Real = Annotated[float, Array("float64", 0)]
ModeAddress = Annotated[int, Address("mode_pass")]
NodesAddress = Annotated[int, Address("nodes_pass")]
EventAddresses = Annotated[NDArray[np.int64], Address("event_pass", 1)]
OrderAddresses = Annotated[Any, Address("orders", 1)]
ActAddress = Annotated["int | str", Address("act")]

AT_SUBMISSION, WHILE_SHOWN, OF_USER = "at submission", "while shown", "of user"
"""Marks of arrays of which steps of many environments fetch a row ahead (`env.step_batch`): that of
the next job, of each visible job, of the next job's user."""


class Axes(NamedTuple):
    """Lengths of an array's axes, by name where they depend on the workload; what it begins as."""

    lengths: tuple[str | int, ...]
    zeros: bool


def zeros(*lengths: str | int) -> Any:
    """Declare the axes of an array that begins with zeros."""
    return Axes(lengths, zeros=True)


def empty(*lengths: str | int) -> Any:
    """Declare the axes of an array whose elements are written before they are read."""
    return Axes(lengths, zeros=False)


class Jobs(NamedTuple):
    """The jobs of an episode, in order of submission, ties as in the log; a row for each.

    The scheduler plans with `estimate`; `run_time` only decides when a job ends.
    """

    submit_time: Annotated[IntVector, AT_SUBMISSION]  # s
    run_time: IntVector  # as executed, s; read at completions only
    estimate: Annotated[IntVector, AT_SUBMISSION]  # of the scheduler, s, >= 1
    requested_time: Annotated[IntVector, AT_SUBMISSION]  # the user's limit, s
    processors: Annotated[IntVector, AT_SUBMISSION, WHILE_SHOWN]
    size_class: Annotated[IntVector, AT_SUBMISSION]  # by processors, 0 to SIZE_CLASSES - 1
    # FEATURE_*: what rules weigh and time does not change; float64, so scores need no conversions.
    feature: Annotated[FloatTable, AT_SUBMISSION, WHILE_SHOWN]
    user: Annotated[IntVector, AT_SUBMISSION]  # dense index
    keys: Annotated[FloatTable, AT_SUBMISSION]  # a column for each policy given by keys
    # What a second of waiting costs, 1/s, and from which instant on; empty = no reward is kept.
    reward_rate: Annotated[FloatVector, AT_SUBMISSION]
    reward_onset: Annotated[IntVector, AT_SUBMISSION]
    # Observation fields that never change; empty = no observation is made.
    field: Annotated[SingleTable, AT_SUBMISSION, WHILE_SHOWN]
    mode_pass: ModeAddress  # the kernel of the backfilling mode's part, 0 = none
    event_pass: EventAddresses  # the kernel of each event's part
    event_first: IntVector  # where the numbers of each event begin in `event_data`
    event_data: IntVector
    # The machine's nodes and the requests of the jobs; all empty where processors are counted.
    nodes_pass: NodesAddress  # the kernel that works on nodes, 0 = none
    chunks: IntVector  # chunks of each job
    shape: IntVector  # request shape of each job
    request: IntVector  # number of the job's shape and chunks together
    placed_first: IntVector  # where a job's nodes are listed in `Sim.placed_node`
    need: IntTable  # of each shape, in the columns NEED_*
    capacity: IntTable  # of each node, in the columns CPUS, GPUS, MEMORY
    group: IntVector  # group of each node
    member: ByteTable  # 1 = the partition (row) has the node
    limit: IntTable  # of each partition, in the columns LIMIT_*
    shown_partition: IntVector  # partitions that observations show, higher tiers first
    largest_node: IntVector  # most of each resource on a node
    # Observation fields of a user's own: where their kernels lie, and bounds, of jobs first.
    own_of_job: IntVector = np.empty(0, dtype=np.int64)
    own_of_cluster: IntVector = np.empty(0, dtype=np.int64)
    own_bounds: FloatTable = np.empty((0, 2))
    reward_charge: FloatVector = np.empty(0)  # what an event charges a second for; empty = nothing
    requeue: IntVector = np.empty(0, dtype=np.int64)  # whom an outage loses, whom trials leave out
    orders: OrderAddresses = 1  # the kernel of each rule that is called, 0 = not loaded
    # Processors that the machine lacks for a time, in the columns OUTAGE_*.
    outage: IntTable = np.empty((0, s.N_OUTAGE_COLUMNS), dtype=np.int64)
    known_first: IntVector = np.empty(0, dtype=np.int64)  # first column of each event in `known`
    known: IntTable = np.empty((0, 0), dtype=np.int64)  # what events know of each job
    # Each beginning and end of an outage of a node, by time, in the columns CHANGE_*.
    node_change: IntTable = np.empty((0, s.N_CHANGE_COLUMNS), dtype=np.int64)


class Sim(Numbers, Columned):
    """The state of one simulation.

    Its numbers are columns of the first arrays, which name their axes: `hpcgym.core.state.allocate`
    says how long each is, and `in_use` how much of it means something. An axis "a if b" is empty
    unless b is kept.

    Parts add to it, each by a subclass that declares its own numbers and arrays. They come behind
    all others, and the arrays are empty unless the part is in use.
    """

    @classmethod
    def additions(cls) -> list[type[Sim]]:
        """Return the subclass of each part, in the order of `loaders.PARTS`."""
        return [added for position in range(len(loaders.PARTS)) for added in additions_of(position)]

    setting: IntVector = zeros("settings")
    counter: IntVector = zeros("counters")
    gauge: FloatVector = zeros("gauges")
    backfill_parameter: FloatVector = zeros(s.N_BACKFILL_PARAMETERS)
    weight: FloatTable = zeros(s.N_ORDERS, s.N_WEIGHTS)  # parameters of the rule of each order

    n_groups: IntVector = zeros(s.N_QUEUES)  # groups of each queue
    n_nodes: IntVector = zeros(s.N_QUEUES)
    """First of the nodes that a queue has not used since it was cleared."""
    spare_node: IntVector = zeros(s.N_QUEUES)  # first of the nodes given back since then, -1 = none
    group_order: IntTable = empty(s.N_QUEUES, "groups")  # groups in queue order
    node_size: IntVector = empty("nodes")
    """Children of each node; those of a queue are every second."""
    node_processors: IntVector = empty("nodes")  # least processors in each node

    ending_time: IntVector = empty("running")  # true ends of the running jobs, descending, s
    ending_job: IntVector = empty("running")
    release_time: IntVector = empty("releases")
    """Ends of the running jobs by estimate, descending, s."""
    release_job: IntVector = empty("releases")

    key: FloatTable = empty(s.N_ORDERS, "entries")
    """Key of each waiting job in each order, -inf beyond the threshold."""
    age: ShortTable = empty("entries if fields", 2)
    """Waiting jobs submitted just before and just after each, in the columns OLDER and YOUNGER."""
    spare_entry: IntVector = empty("entries")  # entries given back and not taken again
    node_child: IntTable = empty("nodes", s.NODE_CHILDREN)
    """Children of each node in order: blocks of a group, or jobs of a block."""
    node_estimate: IntTable = empty("nodes", "classes")
    """Least estimate in each node among jobs of at most each size class, s."""
    node_extreme: ShortTable = empty("nodes if fields", 2)
    """Summary of each node: most processors, -1 = not known, and oldest job; `queue.summary`."""
    node_area: SingleTable = empty("nodes if fields", 2)
    """Least and largest field `LOG_AREA` of its jobs."""

    onset: IntVector = empty("onsets if reward")
    """Heap of jobs that cost nothing yet, by onset; few but waiting ones."""
    user_cost: FloatVector = zeros("users if costs by user")
    """What the waits of each user's started jobs cost."""
    user_total: FloatVector = zeros("users if costs by user")  # and of waiting ones, at a payment

    start_time: Annotated[IntVector, WHILE_SHOWN] = empty("jobs")
    """Start of each job, s; -1 = not submitted, `FIRST_ENTRY` and less = waiting."""
    flag: ByteVector = empty("jobs")  # `FLAG_*` bits of each job
    shown_controls: SingleVector = empty("fields of controls if controls")
    """What observations show for controls, in the columns `ControlsField`."""
    shown_event: SingleVector = empty("fields of events if event fields")
    """What observations show where that is all an event's, in the columns `PriceField`."""
    shown_trials: SingleVector = empty("fields of trials if controls")
    """What they show about trials: `TrialField` and rows of `RunningField`."""
    shown_attempts: SingleTable = zeros("entries if attempts and fields", len(JobTrialField))
    """What they show about attempts of the visible jobs, in the order of the slots."""
    shown_ran: IntVector = zeros("entries if attempts and fields")
    log_ran: SingleVector = zeros("entries if attempts and fields")
    """By entry: the longest run of attempts that was shown there last, s, and what was shown."""
    ended_up_to: ShortTable = empty(1, "classes of run times if attempts and fields")
    """Completed jobs up to each class of run time, once `n_timed` is not 0."""
    recent: ShortTable = empty("users if attempts and fields", RING_JOBS + 3)
    """By user: completed jobs, -1 = the row is not kept; a limit of trials, s; how many run times
    are within it; then the run times of `history_run_time`, at least 1 s."""
    log_request: SingleVector = empty("jobs if attempts and fields")
    """Requested time of each started job as it is shown."""

    # The rings of `hpcgym.core.history.History`.
    history_run_time: Annotated[IntTable, OF_USER] = zeros("users if history", RING_JOBS)
    history_requested_time: Annotated[IntTable, OF_USER] = zeros("users if history", RING_JOBS)
    history_processors: Annotated[IntTable, OF_USER] = zeros("users if history", RING_JOBS)
    history_completed: Annotated[IntVector, OF_USER] = zeros("users if history")  # jobs completed
    history_last_end_time: Annotated[IntVector, OF_USER] = zeros("users if history")
    """Latest end, s."""
    history_shown: Annotated[SingleTable, OF_USER] = zeros(
        "users if history and fields", N_KEPT_FIELDS
    )
    """Fields 0 to 3 of `history_field`, which change at the user's completions only."""
    history_shown_at: Annotated[IntVector, OF_USER] = zeros("users if history")
    """Jobs completed when these were computed, -1 = never."""
    inverse: FloatVector = empty("entries if history")
    """E[1/D] of each waiting job, frozen at its submission, 1/s."""
    history_field: SingleTable = empty("entries if fields", N_HISTORY_FIELDS)
    """Observation fields of each waiting job, frozen at its submission."""
    history_alike: IntTable = zeros("users if history and expectations", s.N_ALIKE)
    """Of each user's job whose terms were computed last: the jobs completed by then, -1 = never,
    its estimate, request and processors."""
    history_alike_term: FloatTable = zeros("users if history and expectations", s.N_KEPT_TERMS)
    """Its terms, and the logarithm of the completed jobs."""

    expected: FloatTable = empty("entries if expectations", s.N_TERMS)
    """Terms that index policies weigh; those of the regression change at every end."""
    expected_at: IntVector = empty("entries if expectations")
    """Jobs the user had completed when the terms were computed, -1 = never."""
    regressed_at: IntVector = empty("entries if expectations")
    """Jobs completed in all when the regression's terms were computed, -1 = never."""
    regressor: FloatTable = empty("entries if expectations", s.N_REGRESSORS)
    """What the regression reads of each waiting job, computed with `expected`."""
    record_speed: FloatTable = empty("kinds of records if expectations", RING_JOBS)
    """E/D of the records of one job's user, by kind."""
    coefficient: FloatTable = zeros("models if expectations", s.N_REGRESSORS)
    """The regression's models, of the run-time ratio and of the speed."""
    squares: FloatTable = zeros("models if expectations", s.N_REGRESSORS)
    """Summed squares of the gradients of each coefficient."""
    network: FloatVector = zeros("parameters if expectations")
    """Parameters of the network that expects run times."""
    activations: FloatVector = empty("activations if expectations")
    """Inputs and activations of that network."""

    profile_time: IntVector = empty("profile if plans")
    """Instants from which so many processors are free by estimates, ascending, s; within a pass."""
    profile_free: IntVector = empty("profile if plans")  # processors free from then on
    scratch: IntVector = empty("scratch")  # room for a list of waiting jobs

    estimate: IntVector = empty("jobs if estimates")
    """`Jobs.estimate` of a simulation that predicts or corrects, s, see `state.own_table`."""
    feature: FloatTable = empty("jobs if estimates", s.N_FEATURES)  # `Jobs.feature` likewise

    held_time: IntVector = empty("held if plans")  # instants at which delays end, descending, s
    held_job: IntVector = empty("held if plans")  # the jobs that become eligible then

    job_on_trial: IntVector = empty("running if attempts")
    """Jobs on trial, those that began last at the end; of one instant, the earlier jobs."""
    begun_job: IntVector = empty("running if attempts")
    """Jobs that the pass at hand has started anew, in its order."""
    taken: IntVector = empty("jobs if attempts")
    """When each job took processors for its latest attempt, s; -1 = at its start."""
    since: IntVector = empty("jobs if attempts")  # since when that runs usefully, s
    over: IntVector = empty("jobs if attempts")  # when its trial is over, s
    ran: IntVector = empty("jobs if attempts")
    """Longest useful run of each job's attempts that ended in vain, s."""
    killed_at: IntVector = empty("jobs if attempts")
    """Instant at which each job's latest attempt ended in vain, s; -1 = none did."""
    away_until: IntVector = empty("entries if attempts")
    """When killed jobs can start again that cannot yet, descending, s."""
    away_job: IntVector = empty("entries if attempts")
    wasted: IntVector = empty("jobs if attempts")  # time that such attempts held processors, s
    n_tried: ByteVector = empty("jobs if attempts")  # trials of each job that ended in vain
    n_gave_way: ByteVector = empty("jobs if attempts")  # how often each job gave way
    attempt: IntTable = empty("attempts if attempts and log", s.N_ATTEMPT_COLUMNS)
    """Attempts that ended in vain, in the columns `ATTEMPT_*`; only where no rewards are kept."""

    free_on: IntTable = empty("nodes of the machine", s.N_RESOURCES)
    """What no job occupies of each node: cpus, GPUs and memory in MB."""
    lent_on: IntTable = empty("nodes of the machine if attempts", s.N_RESOURCES)
    """What jobs on trial hold of each node; `free_on` has it, too, but while jobs go on trial."""
    placed_node: IntVector = empty("placements")
    """Nodes of each job that has started or is on trial, from `Jobs.placed_first` on."""
    placed_chunks: IntVector = empty("placements")  # its chunks on each
    placed_on: IntVector = empty("jobs if nodes")  # how many nodes each such job has
    cleared_at: IntVector = empty("jobs if attempts")
    """When the nodes of each job's last killed trial are cleared, s; -1 = they are."""
    cleared_on: IntVector = empty("jobs if nodes and attempts")  # how many these are
    cleared_node: IntVector = empty("placements if attempts")  # they, as in `placed_node`
    cleared_chunks: IntVector = empty("placements if attempts")
    due: ByteVector = empty("components")
    """1 = a job of the component was submitted or ended, or its trial is over, at this instant."""
    passed_at: IntVector = empty("components if attempts")
    """`n_passes` when each component had its last pass, -1 = it had none."""
    changed_node: IntVector = empty("nodes of the machine")
    """Ring of the nodes whose free resources changed last."""
    free_cpus: IntVector = empty("partitions")  # free cpus of each partition's nodes

    row_of_shape: IntVector = zeros("shapes")
    """Row of `room` that a shape had last; it still has it if `room_shape` says so."""
    room_shape: IntVector = zeros("rows of rooms")
    """Shape that each row of `room` is about, plus 1; 0 = none, also where a state has grown."""
    room_at: IntVector = empty("rows of rooms")
    """`n_changes` up to which the row is right, -1 = never."""
    room_total: IntVector = empty("rows of rooms")  # chunks that the free nodes take in all
    room: ShortTable = empty("rows of rooms", "nodes of the machine")
    """Chunks that each node can still take, `spread` aside."""

    unplaced_at: IntVector = empty("shapes")  # `n_vacated` when `unplaced_chunks` was found
    unplaced_chunks: IntVector = empty("shapes")
    """Fewest chunks of a shape that were found to have no placement since."""
    placeable_at: IntVector = empty("shapes")  # `n_changes` when `placeable_chunks` was found
    placeable_chunks: IntVector = empty("shapes")
    """Most chunks of a shape that were found to have a placement at that state of the nodes."""
    refused_at: IntTable = empty("requests", s.N_REACHES)
    """`mark_of` the state in which a request was refused in step 3."""
    refused_more_at: IntTable = empty("shapes", s.N_REACHES)
    """`mark_of` the state that `refused_chunks` is about."""
    refused_chunks: IntTable = empty("shapes", s.N_REACHES)
    """Fewest chunks of a shape for which it is known that as many and more are refused."""

    walk: IntVector = empty("walk if nodes")  # the waiting jobs in queue order, within a pass
    component_walk: IntVector = empty("walk if nodes")  # those of one component, higher tiers first
    plan_job: IntTable = empty(2, "plan")
    """Jobs with reservations, in the order these were made; the plan, and one that is tried."""
    plan_start: IntTable = empty(2, "plan")  # start of each reservation, s
    plan_end: IntTable = empty(2, "plan")  # its end, s
    plan_first: IntTable = empty(2, "plan")  # where its nodes are listed in `planned_node`
    plan_on: IntTable = empty(2, "plan")  # how many nodes it has
    plan_by_start: IntTable = empty(2, "plan")  # reservations by start
    plan_by_end: IntTable = empty(2, "plan")  # reservations by end
    plan_spare: IntVector = empty("plan")
    """Cpus that each reservation leaves idle in its partition when it begins, at most."""
    planned_node: IntTable = empty(2, "plan of nodes")  # nodes of the reservations
    planned_chunks: IntTable = empty(2, "plan of nodes")  # chunks on each
    planned_of: IntVector = empty("partitions")  # reservations of each partition in the pass

    cursor: IntTable = empty("cursors", s.N_CURSOR_FIELDS)
    """Where each cursor is in the events to come, in the columns CURSOR_*; see `nodes.timeline`."""
    later: IntCube = empty("cursors", "nodes of the machine", s.N_RESOURCES)
    """What more is free of each node at the cursor's instant than now, by estimates."""
    touched_node: IntTable = empty("cursors", "nodes of the machine")
    """Nodes whose `later` was written."""
    is_touched: ByteTable = empty("cursors", "nodes of the machine")  # 1 = the node is listed there
    row: ShortTable = empty("cursors", "nodes of the machine")
    """Chunks of one shape that each node takes at the cursor's instant, or throughout a window."""
    chosen_node: IntVector = empty("nodes of the machine")  # nodes of the placement found last
    chosen_chunks: IntVector = empty("nodes of the machine")  # chunks on each
    group_room: IntVector = empty("groups of nodes")
    """Chunks that each group takes, within a search."""
    group_is_taken: ByteVector = empty("groups of nodes")  # 1 = the search has taken the group
    foreseen: IntVector = empty("changes of nodes")
    """Rows of `Jobs.node_change` at which nodes will go down or come back, as far as is known."""
    is_down: ByteVector = empty("nodes of the machine if outages")  # 1 = the node is down
    down_by: IntVector = empty("nodes of the machine if outages")
    """How many outages each node is down by, within an instant."""
    component_shadow: IntVector = empty("components")
    """Shadow time of each component as of the latest observation, s, -1 = none."""
    shown_job: SingleVector = empty("fields of nodes")
    """Fields of the job shown last, in the columns `NodesField`."""
    shown_machine: SingleVector = empty("fields of the machine")
    """Free share of each resource in each partition that is shown."""


def additions_of(position: int) -> list[type[Sim]]:
    """Return what a part adds to `Sim` itself, by its position in `loaders.PARTS`; < 0 = none."""
    if position < 0:
        return []
    module = loaders.module(loaders.PARTS[position])
    kinds = [
        member
        for member in vars(module).values()
        if isinstance(member, type) and issubclass(member, Sim)
    ]
    return [kind for kind in kinds if kind.__module__ == module.__name__]


class InitialState(NamedTuple):
    """What a simulation of an episode begins with; arrays as in `Sim`."""

    log_largest: Real
    setting: IntVector
    weight: FloatTable
    backfill_parameter: FloatVector
    history_run_time: IntTable
    history_requested_time: IntTable
    history_processors: IntTable
    history_completed: IntVector
    history_last_end_time: IntVector
    network: FloatVector  # empty = none
    estimate: IntVector  # empty where estimates never change
    feature: FloatTable  # likewise


class ActionSpec(NamedTuple):
    """How an environment reads actions."""

    act: ActAddress  # the kernel of the kind of action
    names_slot: Whole  # 1 = an action is the number of a slot
    base_rule: Whole
    rule: IntVector  # rules to choose among
    rule_weight: FloatTable  # parameters of each
    divisor: FloatVector  # what each of the six features is divided by before it is weighted
    base_weight: FloatVector
    middle: FloatVector  # parameters of the backfilling mode, which controls of 0 leave


class RewardPlan(NamedTuple):
    """How the rewards of an episode are paid, and what its baseline has cost by each instant."""

    form: Whole  # PAY_*
    is_paired: Whole  # 1 = with a baseline
    n_jobs: Whole  # the reward is a mean over so many
    at_submission: Real  # what waiting costs each job at its submission
    baseline_total: Real  # what it costs all jobs under the baseline in the end
    submit_time: IntVector  # ascending, s
    moment: IntVector  # instants at which the rate of the baseline's cost changes, ascending, s
    slope: FloatVector  # the rate from then on, 1/s
    passed: FloatVector  # the cost until then
    started: IntVector  # starts under the baseline, ascending, s
    started_cost: FloatVector  # cost of the first 0, 1, ... n_jobs of these
    user_weight: FloatVector  # of each user 1 over its jobs, 0 = none; empty = not by user


class Batch(NamedTuple):
    """Environments side by side: where the structs of each are, its action, what it shows."""

    time_limit: Whole  # steps after which an episode is truncated, 0 = none
    n_choices: Whole  # actions that are numbers lie below this
    address: IntTable  # of each one's structs, in the columns that `env.step_batch` names
    order: IntVector  # environments in the order of their turns
    n_taken: IntVector  # turns taken by each pair of threads, each in its own line of the cache
    resting: ByteVector  # what each does in a call, as `env.step_batch` names it
    number: IntVector  # actions, where they are numbers
    values: SingleTable  # actions, where they are vectors
    slot: IntTable  # job in each slot, -1 = empty
    shown_jobs: SingleTable  # fields of the jobs, slot by slot
    shown_cluster: SingleTable
    mask: SingleTable  # 1 = the slot holds a job
    out: IntVector  # where copies of observations go, in the columns that `env.step_batch` names
    reward: FloatVector  # of the latest step, like the next two
    agent_term: FloatVector  # its term for the agent, or for the comparison with the baseline
    baseline_term: FloatVector  # its term for the baseline
    now: IntVector  # the clock, s
    n_invalid: IntVector  # actions of the episode that named an empty slot
    terminated: ByteVector  # 1 = the latest step started the last jobs
    truncated: ByteVector  # 1 = the latest step reached the time limit
    full: ByteVector  # 1 = the state has no room for the jobs submitted now: the step is not over
    metric: FloatTable  # metrics of each episode that ended last


open_jobs = opener(Jobs)
open_sim = opener(Sim)
open_initial_state = opener(InitialState)
open_action_spec = opener(ActionSpec)
open_reward_plan = opener(RewardPlan)
open_batch = opener(Batch)
