"""A workload prepared for the kernels under one set of settings.

Kernels are compiled for one layout of each array. Those of structs are contiguous, with the types
that `hpcgym.core.kernels.types` declares. Arrays passed beside structs are contiguous and writable:
numba compiles a kernel once more for read-only ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, WorkloadError, refuse_unless_whole, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.backfill import Backfill, OwnSimulator, as_backfill, as_mode
from hpcgym.core.columns import LARGEST_TIME
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.dependencies import dependencies_of
from hpcgym.core.events import Event, as_events, columns_of_events, may_lose, most_outages
from hpcgym.core.history import empty_history
from hpcgym.core.kernels.types import InitialState, Jobs
from hpcgym.core.nodes import NodeSizes, columns_of, sizes_of
from hpcgym.core.observation_fields import N_STATIC_FIELDS
from hpcgym.core.parts.dependencies import Dependencies
from hpcgym.core.policy import Policy, as_policy, refuse_as_choice
from hpcgym.core.predictor import CORRECTIONS, ONLINE, PREDICTORS
from hpcgym.core.requests import PLACEMENTS, unplaceable
from hpcgym.core.setting_list import EventSemantics
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.state import Room, SettingRows, State, allocate
from hpcgym.core.workload import Workload

_DECIDE = {"never": s.DECIDE_NEVER, "contested": s.DECIDE_CONTESTED, "event": s.DECIDE_EVENT}


@dataclass(frozen=True, eq=False)
class PreparedEpisode:
    """What kernels read of a workload under one set of settings."""

    workload: Workload  # the job table it was made from
    table: Jobs
    setting: SettingRows  # `Sim.setting` by name
    weight: NDArray[np.float64]  # `Sim.weight`, shape (N_ORDERS, N_WEIGHTS)
    # `Sim.backfill_parameter`, shape (N_BACKFILL_PARAMETERS,).
    backfill_parameter: NDArray[np.float64]
    policy: Policy  # the primary order
    backfill_policy: Policy | None  # the backfill order, None = the primary order
    log_largest: float  # natural logarithm of the largest request in s, at least log 2
    # Parameters of the network that expects run times, shape (N_NETWORK,); empty = none.
    network: NDArray[np.float64]
    # What makes jobs wait out of sight; None if nothing does.
    dependencies: Dependencies | None = None
    shares: int = 0  # shares of the machine that are kept

    @property
    def expects(self) -> bool:
        """Tell whether a rule reads what is expected of a job."""
        return bool(self.setting.expect)

    def serves(self, policy: Policy) -> bool:
        """Tell whether a decision may order by a compiled policy.

        It may not where the policy reads users' records, or expectations, that this episode does
        not keep.
        """
        read = self.setting.keep_history in (s.HISTORY_FOR_KEYS, s.HISTORY_FOR_OBSERVATIONS)
        return (
            (read or not policy.needs_history)
            and policy.expects & ~self.setting.expect == 0
            and (policy.network is None or np.array_equal(policy.network, self.network))
        )

    @cached_property
    def size(self) -> Room:
        """Return how much room its jobs, users, nodes and reservations need in a state."""
        is_easy = self.setting.hears & s.EASY_ON_NODES != 0
        is_deep = self.setting.backfill > s.BACKFILL_EASY and not is_easy
        depth = float(self.backfill_parameter[0]) if is_deep else 1.0
        n_users = len(self.workload.history.completed)
        sizes, waits = sizes_of(self.table, depth), self.dependencies is not None
        return Room(len(self.workload), n_users, sizes, waits=waits, shares=self.shares)

    @cached_property
    def initial(self) -> Struct[InitialState]:
        """Return the state that a simulation of the episode begins with, for kernels."""
        keeps = self.setting.keep_history != s.HISTORY_NOT
        history = self.workload.history if keeps else empty_history(0)
        predicts = self.setting.predict != s.PREDICT_NOT
        moves = predicts or self.setting.correct != s.CORRECT_NOT
        return Struct(
            InitialState(
                setting=self.setting.rows,
                weight=self.weight,
                backfill_parameter=self.backfill_parameter,
                log_largest=self.log_largest,
                **{f"history_{key}": each.copy() for key, each in history._asdict().items()},
                network=self.network,
                estimate=self.table.estimate if moves else self.table.estimate[:0],
                feature=self.table.feature if moves else self.table.feature[:0],
            )
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out addresses, which hold in this process only."""
        return {key: value for key, value in self.__dict__.items() if key != "initial"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Load the kernels of the orders, which another process may have had."""
        self.__dict__.update(kept)
        for policy in filter(None, (self.policy, self.backfill_policy)):
            _ = policy.rule

    @property
    def _read(self) -> tuple[Any, ...]:
        """Return what kernels read."""
        return *self.table, self.setting.rows, self.weight, self.backfill_parameter, self.network

    def is_same_as(self, other: PreparedEpisode) -> bool:
        """Tell whether jobs, settings and rules are equal; O(1) for the same object."""
        if other is self:
            return True
        return all(
            np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
            for mine, theirs in zip(self._read, other._read, strict=True)
        )


def executed_run_time(workload: Workload, kill_at_limit: bool) -> NDArray[np.int64]:
    """Return how long each job runs, shape (n_jobs,), s.

    Source: Specification, section 1, "Run time".
    """
    if kill_at_limit:
        return np.minimum(workload.run_time, workload.requested_time)
    return workload.run_time.copy()


def estimates_of(workload: Workload, settings: SchedulerSettings) -> NDArray[np.int64]:
    """Return what the scheduler takes run times to be, shape (n_jobs,), s, >= 1.

    Where they are predicted during the simulation, these are the requests.

    Raises:
        WorkloadError: An array of another shape, or with a value that is not a whole number >= 1.

    Source: Specification, section 1.
    """
    predictor = settings.predictor
    if predictor == PREDICTORS["requested"]:
        return workload.requested_time
    if predictor is not None:
        run_time = executed_run_time(workload, settings.kill_at_limit)
        return predictor.work_out(workload.requested_time, run_time, workload.job_id)
    given = np.asarray(settings.estimates)
    if given.shape != (len(workload),):
        raise WorkloadError(
            f"{workload.name}: estimates must have shape ({len(workload)},), got {given.shape}"
        )
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise WorkloadError(f"{workload.name}: estimates must be finite numbers")
    whole = given.astype(np.int64)
    bad = np.flatnonzero((whole != given) | (whole < 1) | (whole > LARGEST_TIME))
    if len(bad):
        raise WorkloadError(
            f"{workload.name}: estimate in row {bad[0]} is {given[bad[0]]}; whole seconds >= 1 only"
        )
    return whole


def prepare(
    workload: Workload,
    settings: SchedulerSettings,
    *,
    decide: str | int = "never",
    extra_policies: Iterable[Policy] = (),
    keep_history: bool = False,
    check_invariants: bool = False,
    full_passes: bool = False,
    largest_request: int | None = None,
    reward_rate: NDArray[np.float64] | None = None,
    reward_onset: NDArray[np.int64] | None = None,
    field: NDArray[np.float32] | None = None,
    no_waits: str = "",
) -> PreparedEpisode:
    """Prepare a workload for the kernels.

    Args:
        workload: The job table.
        settings: How the scheduler works.
        decide: When decisions are due: "never", "contested", "event", or an interval in s.
            Policies in Python decide at their own instants instead.
        extra_policies: Policies that decisions may choose besides. Keys of the one at position i,
            if it is given by keys, are in column 2 + i of `Jobs.keys`.
        keep_history: Whether to record users' completed jobs though no policy needs them.
        check_invariants: Whether to check invariants after every pass.
        full_passes: Whether every pass looks at the whole queue; for tests.
        largest_request: Largest request of the scenario, s; default the largest estimate.
        reward_rate: Cost of a second of waiting, shape (n_jobs,), 1/s; None = no reward.
        reward_onset: Instant from which waiting costs, shape (n_jobs,), s.
        field: Observation fields that never change, shape (n_jobs, N_STATIC_FIELDS).
        no_waits: What of the caller's cannot be where jobs wait for others or are held; "" =
            nothing.

    Raises:
        WorkloadError: Estimates or a policy's keys do not fit the workload.
        PolicyError: An unknown `decide`, two policies with different networks, or rewards where an
            event may lose jobs.
    """
    refuse_on_nodes(workload, settings)
    settings = settings.on(workload.machine)
    policy = as_policy(settings.policy)
    mode, events = as_backfill(settings.backfill), as_events(settings.events)
    dependencies = dependencies_of(workload, settings, no_waits)
    waits = () if dependencies is None else (dependencies,)
    events = (*events, *waits, *settings.kept)
    backfill_order = settings.backfill_order
    backfill_policy = None if backfill_order is None else as_policy(backfill_order)
    if backfill_policy is policy and decide == "never":  # decisions set the primary order only
        backfill_policy = None
    others = list(extra_policies)
    refuse_as_choice(others)
    requeue = who_may_be_killed(workload, mode, events)
    number, hears = mode.asked(workload.machine is not None)
    if may_lose(events, workload) and reward_rate is not None:
        raise PolicyError(
            f"jobs of {workload.name} must not be started again (column requeue), and event "
            f"'{events[0]}' may lose them; rewards count every job, so leave the column out"
        )
    estimate = np.ascontiguousarray(estimates_of(workload, settings))
    n = len(workload)
    keys = np.empty((n, 2 + len(others)))
    for row, keyed in enumerate([policy, backfill_policy, *others]):
        if keyed is not None and (keyed.keys is not None or keyed.constant is not None):
            keys[:, row] = checked_keys(workload, keyed)
    run_time = executed_run_time(workload, settings.kill_at_limit)
    timeless = [workload.processors, estimate, workload.submit_time]
    table = Jobs(
        submit_time=workload.submit_time,
        run_time=run_time,
        estimate=estimate,
        requested_time=workload.requested_time,
        processors=workload.processors,
        size_class=size_classes(workload.processors),
        feature=np.stack(timeless, axis=1).astype(np.float64),
        user=workload.user_index,
        keys=keys,
        reward_rate=np.empty(0) if reward_rate is None else reward_rate,
        reward_onset=np.empty(0, dtype=np.int64) if reward_onset is None else reward_onset,
        field=np.empty((0, N_STATIC_FIELDS), dtype=np.float32) if field is None else field,
        requeue=requeue,
        mode_pass=number if mode.part else 0,
        **columns_of_events(events, workload),
        **columns_of(workload),
    )
    setting, weight = rules_of(policy, backfill_policy, settings)
    setting.backfill, setting.hears = number, hears
    if dependencies is not None:
        setting.events_hear |= dependencies.hears
    setting.n_jobs = n
    setting.machine_processors = workload.machine_processors
    setting.week_start = workload.week_start
    _decide_as(setting, decide)
    if any(given is not None and given.formula is not None for given in (policy, backfill_policy)):
        setting.decide = s.DECIDE_CONTESTED
    if policy.chooser is not None:
        _decide_as(setting, policy.chooser.decide)
    shows = keep_history or any(other.needs_history for other in others)
    if shows and setting.keep_history != s.HISTORY_FOR_KEYS:
        setting.keep_history = s.HISTORY_FOR_OBSERVATIONS
    for other in others:
        setting.expect |= other.expects
    setting.keep_reward = int(reward_rate is not None)
    # Shortcuts around whole passes are about counts of processors, and know compiled modes.
    setting.full_passes = int(
        full_passes or number == s.BACKFILL_OWN or workload.machine is not None
    )
    setting.check = int(check_invariants)
    largest = int(estimate.max()) if largest_request is None else largest_request
    return PreparedEpisode(
        workload,
        table,
        setting,
        weight,
        mode.row(),
        policy,
        backfill_policy,
        math.log(max(largest, 2)),
        network_of(each for each in (policy, backfill_policy, *others) if each is not None),
        dependencies,
        sum(event.n_shares(workload) + 1 for event in events),
    )


def who_may_be_killed(
    workload: Workload, mode: Backfill, events: Sequence[Event]
) -> NDArray[np.int64]:
    """Return `Jobs.requeue`: jobs that trials leave out are lost only if their column says so."""
    by_trials = mode.requeueable(workload)
    if not any(event.requeues for event in events):
        return by_trials
    if workload.requeue is None:
        return np.where(by_trials == 0, s.NOT_BY_TRIALS, by_trials)
    again = np.where(workload.requeue, s.MAY_BE_KILLED, s.NOT_AGAIN)
    return again if len(by_trials) == 0 else np.where(by_trials < again, s.NOT_BY_TRIALS, again)


def refuse_on_nodes(workload: Workload, settings: SchedulerSettings) -> None:
    """Refuse what a machine of nodes cannot do, and jobs that can never run on it.

    Raises:
        PolicyError: A mode, a policy or semantics that count processors.
        WorkloadError: A job has no placement on its empty partition, or asks for more time than the
            partition allows.
    """
    mode = as_mode(settings.backfill)
    if isinstance(mode, OwnSimulator) and "nodes" in mode.knows:
        return
    as_backfill(mode)
    settings.refuse_on(workload.machine)
    if workload.machine is None:
        return
    if refused := unplaceable(workload, settings.placement):
        row, why = refused[0]
        raise WorkloadError(
            f"{workload.name}: job {workload.job_id[row]} (row {row}) can never run: it {why} "
            f"({len(refused)} such jobs)"
        )


def network_of(policies: Iterable[Policy]) -> NDArray[np.float64]:
    """Return the network of an episode's policies, shape (N_NETWORK,); empty = none.

    Raises:
        PolicyError: Two policies have different networks; expectations are computed once for all.
    """
    network: NDArray[np.float64] = np.empty(0)
    for policy in policies:
        if policy.network is None:
            continue
        if len(network) and not np.array_equal(network, policy.network):
            raise PolicyError(
                f"{policy.name} has another network than a policy beside it; the policies of one "
                "simulation share a network"
            )
        network = policy.network
    return network


def _decide_as(setting: SettingRows, decide: str | int) -> None:
    """Set when decisions are due; write `decide` and, for an interval, `decide_seconds`."""
    if not isinstance(decide, str):
        refuse_unless_whole("decide, in s,", decide, 1, error=PolicyError)
        setting.decide = s.DECIDE_INTERVAL
        setting.decide_seconds = decide
    elif decide in _DECIDE:
        setting.decide = _DECIDE[decide]
    else:
        raise PolicyError(unknown_name("decide", decide, [*_DECIDE, "a number of seconds"]))


def rules_of(
    policy: Policy, backfill_policy: Policy | None, settings: SchedulerSettings
) -> tuple[SettingRows, NDArray[np.float64]]:
    """Return `Sim.setting` and `Sim.weight` for two orders and the settings of a scheduler.

    `weight` has shape (N_ORDERS, N_WEIGHTS). Settings that depend on the workload are 0. The base
    order is the primary order if that is compiled and static, else FCFS. In the second case the
    primary order is computed at each pass; an order in Python comes from decisions.
    """
    setting = SettingRows()
    weight = np.zeros((s.N_ORDERS, s.N_WEIGHTS))
    keeps = not policy.is_python and policy.is_static
    base = policy if keeps else as_policy("FCFS")
    setting.threshold = -1 if settings.threshold is None else settings.threshold
    mode = as_backfill(settings.backfill)
    heard = (event.hears for event in (*as_events(settings.events), *settings.kept))
    setting.events_hear = reduce(or_, heard, 0)
    setting.semantics = get_args(EventSemantics).index(settings.event_semantics)
    setting.base_rule = base.rule
    setting.placement = PLACEMENTS[settings.placement]
    weight[s.BASE_ORDER] = base.parameters
    setting.order_rule = setting.backfill_rule = s.BY_BASE
    if not keeps and not policy.is_python:
        setting.order_rule = policy.rule
        weight[s.PASS_ORDER] = policy.parameters
    if backfill_policy is not None and mode.TAKES_ORDER:
        compiled = as_policy("FCFS") if backfill_policy.is_python else backfill_policy
        setting.backfill_rule = compiled.rule
        setting.backfill_order_is_static = int(compiled.is_static)
        weight[s.BACKFILL_ORDER] = compiled.parameters
        if compiled.rule == s.RULE_KEYS:
            weight[s.BACKFILL_ORDER, 0] = 1.0
    asking = [policy] if backfill_policy is None else [policy, backfill_policy]
    if mode.expects or any(each.needs_history for each in asking):
        setting.keep_history = s.HISTORY_FOR_KEYS
    setting.expect = reduce(or_, (each.expects for each in asking), mode.expects)
    setting.correct = CORRECTIONS[settings.correction]
    predictor = settings.predictor
    if predictor is not None and predictor.online:
        setting.predict = ONLINE[predictor.kind]
        setting.keep_history = setting.keep_history or s.HISTORY_FOR_PREDICTIONS
    return setting, weight


def checked_keys(workload: Workload, policy: Policy) -> NDArray[np.float64]:
    """Return a policy's key of each job, shape (n_jobs,), all above minus infinity.

    Raises:
        WorkloadError: Keys of another shape, or NaN.
    """
    maker = policy.keys or policy.constant
    assert maker is not None
    keys = np.asarray(maker(workload), dtype=np.float64)
    if keys.shape != (len(workload),) or np.isnan(keys).any():
        raise WorkloadError(
            f"policy {policy.name!r} must give {len(workload)} keys that are not NaN for "
            f"{workload.name}; got shape {keys.shape}"
        )
    return np.maximum(keys, np.finfo(np.float64).min)  # -inf is the threshold's


def size_classes(processors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the size class of each request, shape (n_jobs,), 0 to SIZE_CLASSES - 1.

    It equals `hpcgym.core.kernels.queue.btree.size_class_of`.
    """
    octave = np.frexp(processors)[1].astype(np.int64) - 1
    return np.minimum(4 * octave + ((4 * processors >> octave) & 3), s.SIZE_CLASSES - 1)


def _kept_by(episode: PreparedEpisode) -> set[str]:
    """Return what an episode asks of `hpcgym.core.state.KEPT`."""
    setting = episode.setting
    asked = {
        "history": setting.keep_history,
        "reward": setting.keep_reward,
        "costs by user": setting.keep_users,
        "estimates": setting.predict or setting.correct,
        "expectations": episode.expects,
    }
    return set(filter(asked.get, asked))


def state_for(
    episodes: Sequence[PreparedEpisode],
    *,
    fields: bool = False,
    more_jobs: int = 0,
    room: Room | None = None,
) -> State:
    """Allocate a state of one simulation that any of the episodes fits into.

    Args:
        episodes: The episodes.
        fields: Whether to hold observation fields.
        more_jobs: Further jobs to hold, beyond those of the longest episode.
        room: How large an episode it has room for; default the largest given.
    """
    if room is None:
        sizes = [episode.size for episode in episodes]
        room = Room(
            max(size.jobs for size in sizes) + more_jobs,
            max(size.users for size in sizes),
            reduce(NodeSizes.joined, (size.nodes for size in sizes)),
            shares=max(size.shares for size in sizes),
        )
    return allocate(
        1,
        room,
        max(episode.workload.machine_processors for episode in episodes),
        keeps={"log"}.union({"fields"} if fields else (), *map(_kept_by, episodes)),
        parts={
            int(part)
            for episode in episodes
            for part in (episode.setting.backfill, *episode.table.event_pass)
        },
        n_events=max(most_outages(episode.table.outage) for episode in episodes),
    )
