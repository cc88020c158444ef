"""The simulator: set a pass's order, run to the next decision; copy and restore.

Environment, agents, evaluation and `hpcgym.simulate` all stand on this one dynamics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.core import state as s
from hpcgym.core.kernels import check, doors
from hpcgym.core.kernels.records import Jobs, Row
from hpcgym.core.policy import Policy, as_policy, features_of
from hpcgym.core.record import Record
from hpcgym.core.rows import jobs_of, row_of
from hpcgym.core.state import JobTable, State
from hpcgym.core.workload import LARGEST_TIME, Workload
from hpcgym.errors import HpcgymError, PolicyError, WorkloadError, unknown_name

Backfill = Literal["none", "easy"]
EventSemantics = Literal["batch", "pyss"]
Estimates = Literal["requested", "exact"]

_DECIDE = {"never": s.DECIDE_NEVER, "contested": s.DECIDE_CONTESTED, "event": s.DECIDE_EVENT}
_VIOLATIONS = {
    check.CAPACITY_BROKEN: "used and free processors do not add up to the machine",
    check.STARTED_EARLY: "a job started before its submission",
    check.COUNT_BROKEN: "a job is lost or stands in the queue twice",
    check.NOT_MAXIMAL: "a waiting job meets the start conditions after the pass",
    check.HEAD_DELAYED: "the head's shadow time moved later",
}


@dataclass(frozen=True)
class SchedulerSettings:
    """How the scheduler works; alike for an agent and for every baseline it is compared with.

    Attributes:
        policy: Primary order: a name, weights, or a `Policy`.
        backfill: Backfilling mode, "none" or "easy".
        backfill_order: Order of backfill candidates, as `policy`; None = the primary order.
        threshold: Wait beyond which a job goes first, s; None = no threshold.
        kill_at_limit: Whether a job ends at its request at the latest.
        estimates: What the scheduler takes run times to be: "requested", "exact", or whole numbers
            of seconds >= 1, shape (n_jobs,).
        event_semantics: "batch" or "pyss"; see the specification, section 1.
    """

    policy: str | Policy | Sequence[float] = "FCFS"
    backfill: Backfill = "easy"
    backfill_order: str | Policy | Sequence[float] | None = None
    threshold: int | None = None
    kill_at_limit: bool = True
    estimates: Estimates | ArrayLike = "requested"
    event_semantics: EventSemantics = "batch"

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated, naming what is allowed.

        Raises:
            PolicyError: An unknown name, a threshold below 0 or not whole, or a contradiction.
        """
        as_policy(self.policy)
        if self.backfill_order is not None:
            as_policy(self.backfill_order)
        if self.backfill not in get_args(Backfill):
            raise PolicyError(unknown_name("backfill", self.backfill, get_args(Backfill)))
        if self.event_semantics not in get_args(EventSemantics):
            allowed = get_args(EventSemantics)
            raise PolicyError(unknown_name("event_semantics", self.event_semantics, allowed))
        if isinstance(self.estimates, str) and self.estimates not in get_args(Estimates):
            raise PolicyError(unknown_name("estimates", self.estimates, get_args(Estimates)))
        if self.threshold is not None and not 0 <= int(self.threshold) == self.threshold:
            raise PolicyError(f"threshold must be whole seconds >= 0 or None, got {self.threshold}")
        if self.event_semantics == "pyss" and not (
            self.kill_at_limit and isinstance(self.estimates, str)
        ):
            raise PolicyError(
                "event_semantics 'pyss' counts a job's processors as free at its estimated end, so "
                "it needs kill_at_limit=True and estimates 'requested' or 'exact'"
            )


@dataclass(frozen=True, eq=False)
class Episode:
    """A workload made ready for the kernels under one set of settings.

    Attributes:
        workload: The job table it was made of.
        table: What the kernels read.
        setting: Row of `State.setting`, shape (N_SETTINGS,).
        weight: Row of `State.weight`, shape (N_QUEUES, N_WEIGHTS).
        policy: The primary order.
        fill_policy: The backfill order, None = the primary order.
        log_largest: Natural logarithm of the largest request in s, at least log 2.
    """

    workload: Workload
    table: JobTable
    setting: NDArray[np.int64]
    weight: NDArray[np.float64]
    policy: Policy
    fill_policy: Policy | None
    log_largest: float


def executed_run_time(workload: Workload, kill_at_limit: bool) -> NDArray[np.int64]:
    """Return how long each job runs.

    Args:
        workload: The job table.
        kill_at_limit: Whether a job ends at its request at the latest.

    Returns:
        Executed run times, shape (n_jobs,), s.

    Source:
        Specification, section 1, "Run time".
    """
    if kill_at_limit:
        return np.minimum(workload.run_time, workload.requested_time)
    return workload.run_time.copy()


def estimates_of(workload: Workload, settings: SchedulerSettings) -> NDArray[np.int64]:
    """Return what the scheduler takes each job's run time to be.

    Args:
        workload: The job table.
        settings: The settings; "exact" means the executed run time, at least 1 s.

    Returns:
        Estimates, shape (n_jobs,), s, >= 1.

    Raises:
        WorkloadError: An array of another shape, or with a value that is not a whole number >= 1.

    Source:
        Specification, section 1; house rule: an estimate is at least one second.
    """
    if isinstance(settings.estimates, str):
        if settings.estimates == "requested":
            return workload.requested_time
        return np.maximum(executed_run_time(workload, settings.kill_at_limit), 1)
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
) -> Episode:
    """Make a workload ready for the kernels.

    Args:
        workload: The job table.
        settings: How the scheduler works.
        decide: "never", "contested", "event", or an interval in s: when decisions are asked for.
        extra_policies: Policies that decisions may choose besides; those given by keys get the rows
            of `JobTable.keys` from 2 on, in order.
        keep_history: Whether users' completed jobs are recorded though no policy needs them.
        check_invariants: Whether invariants are checked after every pass.
        full_passes: Whether every pass looks at the whole queue; for tests.
        largest_request: Largest request of the scenario, s; default that of the estimates.
        reward_rate: What a second of waiting costs, shape (n_jobs,), 1/s; None = no reward.
        reward_onset: Instant from which it does, shape (n_jobs,), s.
        field: Observation fields that never change, shape (n_jobs, N_STATIC_FIELDS).

    Returns:
        The episode.

    Raises:
        WorkloadError: Estimates or a policy's keys do not fit the workload.
        PolicyError: An unknown `decide`.

    Source:
        House rule: normalise at the door, so that kernels compile once.
    """
    policy = as_policy(settings.policy)
    fill = None if settings.backfill_order is None else as_policy(settings.backfill_order)
    if fill is policy:
        fill = None
    others = list(extra_policies)
    estimate = np.ascontiguousarray(estimates_of(workload, settings))
    n = len(workload)
    keys = np.empty((n, 2 + len(others)))
    for row, keyed in enumerate([policy, fill, *others]):
        if keyed is not None and keyed.keys is not None:
            keys[:, row] = _checked_keys(workload, keyed)
    table = JobTable(
        submit_time=workload.submit_time,
        run_time=executed_run_time(workload, settings.kill_at_limit),
        estimate=estimate,
        requested_time=workload.requested_time,
        processors=workload.processors,
        size_class=np.minimum(np.frexp(workload.processors)[1] - 1, s.SIZE_CLASSES - 1).astype(
            np.int64
        ),
        user=workload.user_index,
        keys=keys,
        reward_rate=np.empty(0) if reward_rate is None else reward_rate,
        reward_onset=np.empty(0, dtype=np.int64) if reward_onset is None else reward_onset,
        field=np.empty((0, s.N_STATIC_FIELDS), dtype=np.float32) if field is None else field,
    )
    setting = np.zeros(s.N_SETTINGS, dtype=np.int64)
    weight = np.zeros((s.N_QUEUES, s.N_WEIGHTS))
    keeps = policy.formula is None and policy.keeps_order
    base = policy if keeps else as_policy("FCFS")
    setting[s.N_JOBS] = n
    setting[s.MACHINE_PROCESSORS] = workload.machine_processors
    setting[s.THRESHOLD] = -1 if settings.threshold is None else settings.threshold
    setting[s.BACKFILL] = s.BACKFILL_EASY if settings.backfill == "easy" else s.BACKFILL_NONE
    setting[s.SEMANTICS] = s.PYSS if settings.event_semantics == "pyss" else s.BATCH
    setting[s.BASE_RULE] = base.rule
    weight[s.BASE] = base.parameters
    setting[s.ORDER_RULE] = s.BY_BASE
    if not keeps and policy.formula is None:
        setting[s.ORDER_RULE] = policy.rule
        weight[s.ORDER] = policy.parameters
    setting[s.BACKFILL_RULE] = s.BY_BASE
    if fill is not None and settings.backfill == "easy":
        filled = fill if fill.formula is None else as_policy("FCFS")
        setting[s.BACKFILL_RULE] = filled.rule
        setting[s.FILL_KEEPS] = int(filled.keeps_order)
        weight[s.FILL] = filled.parameters
        if filled.rule == s.RULE_KEYS:
            weight[s.FILL, 0] = 1.0
    if isinstance(decide, str):
        if decide not in _DECIDE:
            raise PolicyError(unknown_name("decide", decide, [*_DECIDE, "a number of seconds"]))
        setting[s.DECIDE] = _DECIDE[decide]
    else:
        setting[s.DECIDE] = s.DECIDE_INTERVAL
        setting[s.DECIDE_SECONDS] = decide
    if any(given is not None and given.formula is not None for given in (policy, fill)):
        setting[s.DECIDE] = s.DECIDE_CONTESTED
    setting[s.KEEP_HISTORY] = int(
        keep_history
        or any(given is not None and given.needs_history for given in (policy, fill, *others))
    )
    setting[s.KEEP_REWARD] = int(reward_rate is not None)
    setting[s.FULL_PASSES] = int(full_passes)
    setting[s.CHECK] = int(check_invariants)
    largest = int(estimate.max()) if largest_request is None else largest_request
    return Episode(workload, table, setting, weight, policy, fill, math.log(max(largest, 2)))


def _checked_keys(workload: Workload, policy: Policy) -> NDArray[np.float64]:
    """Ask a policy for its keys and refuse what cannot order the jobs."""
    assert policy.keys is not None
    keys = np.asarray(policy.keys(workload), dtype=np.float64)
    if keys.shape != (len(workload),) or np.isnan(keys).any():
        raise WorkloadError(
            f"policy {policy.name!r} must give {len(workload)} keys that are not NaN for "
            f"{workload.name}; got shape {keys.shape}"
        )
    return np.maximum(keys, np.finfo(np.float64).min)  # -inf is the threshold's


class Simulator:
    """One simulation: run it to its end, or from decision to decision.

    Example:
        >>> from hpcgym.core.workload import Workload
        >>> jobs = Workload.from_arrays([0, 0, 0], [10, 10, 5], [10, 10, 5], [2, 4, 2],
        ...                             machine_processors=4)
        >>> simulator = Simulator(jobs)
        >>> simulator.run()
        False
        >>> simulator.start_time
        array([ 0, 10,  0])
    """

    def __init__(
        self,
        workload: Workload,
        settings: SchedulerSettings | None = None,
        *,
        decide: str | int = "never",
        check_invariants: bool = False,
        full_passes: bool = False,
    ) -> None:
        """Make a workload ready and set the clock to 0.

        Args:
            workload: The job table.
            settings: How the scheduler works; default FCFS with EASY backfilling.
            decide: "never", "contested" (where the order can matter), "event" (at every pass with
                a waiting job), or an interval in s: when `run` stops for a decision.
            check_invariants: Whether invariants are checked after every pass; slow.
            full_passes: Whether every pass looks at the whole queue; slow, for tests.

        Raises:
            WorkloadError: Estimates or a policy's keys do not fit the workload.
            PolicyError: An unknown `decide`.

        Source:
            Specification, sections 1 and 10.
        """
        self.settings = SchedulerSettings() if settings is None else settings
        self.episode = prepare(
            workload,
            self.settings,
            decide=decide,
            check_invariants=check_invariants,
            full_passes=full_passes,
        )
        self.state = state_for([self.episode])
        self._open()
        self.reset()

    def _open(self) -> None:
        """Take hold of the state the way kernels see it."""
        self._row: Record[Row] = row_of(self.state, 0)
        self._jobs: Record[Jobs] = jobs_of(self.episode.table, 0, len(self.workload))

    @property
    def workload(self) -> Workload:
        """Return the job table."""
        return self.episode.workload

    def reset(self) -> None:
        """Set the clock back to 0: an empty machine, no job submitted."""
        load(self.state, 0, self._row, self.episode)

    def run(self) -> bool:
        """Run to the next decision, or until every job has started.

        Returns:
            True at a decision; False when every job has started.

        Raises:
            HpcgymError: An invariant was found broken (only with `check_invariants`).

        Source:
            Specification, section 1.
        """
        while True:
            status = doors.run(self._jobs.address, self._row.address)
            if status < 0:
                raise HpcgymError(f"at {self.now} s: {_VIOLATIONS[status]}; this is a bug")
            formulas = [
                (which, policy.formula)
                for which, policy in (
                    (s.ORDER, self.episode.policy),
                    (s.FILL, self.episode.fill_policy),
                )
                if policy is not None and policy.formula is not None
            ]
            if status == s.DONE or not formulas:
                return status == s.DECISION
            for which, formula in formulas:
                self._order(which, formula)

    def order_by(self, policy: str | Policy | Sequence[float]) -> None:
        """Decide this pass's primary order by a policy.

        Args:
            policy: A name, weights or a policy given by a compiled rule.

        Raises:
            PolicyError: The policy is unknown, or given by keys or a formula.

        Source:
            Specification, "Action semantics".
        """
        chosen = as_policy(policy)
        if chosen.rule == s.RULE_KEYS or (
            chosen.needs_history and not self.episode.setting[s.KEEP_HISTORY]
        ):
            raise PolicyError(f"{chosen.name}: decide by its keys instead (order_by_keys)")
        doors.order_by_rule(self._jobs.address, self._row.address, chosen.rule, chosen.parameters)

    def order_by_keys(self, keys: ArrayLike) -> None:
        """Decide this pass's primary order by one key per waiting job, lowest first.

        Args:
            keys: Keys of the jobs in `waiting`, in that order, shape (n_waiting,).

        Raises:
            PolicyError: Another shape, or NaN.

        Source:
            Specification, "Action semantics".
        """
        waiting = self.waiting
        array = np.asarray(keys, dtype=np.float64)
        if array.shape != waiting.shape or np.isnan(array).any():
            raise PolicyError(
                f"{len(waiting)} jobs wait: give as many keys, none NaN; got shape {array.shape}"
            )
        doors.order_by_keys(self._jobs.address, self._row.address, s.ORDER, waiting, array)

    def pick(self, job: int) -> None:
        """Decide that one waiting job goes first in this pass.

        Args:
            job: Index of a waiting job.

        Raises:
            PolicyError: The job does not wait.

        Source:
            Specification, "Action semantics", `job`.
        """
        if job not in self.waiting:
            raise PolicyError(f"job {job} does not wait; waiting: {self.waiting.tolist()}")
        base = int(self.episode.setting[s.BASE_RULE])
        weight = self.episode.weight[s.BASE]
        doors.order_picked_first(self._jobs.address, self._row.address, job, base, weight)

    def _order(self, which: int, formula: Any) -> None:
        """Order the waiting jobs of this pass by a formula in Python."""
        waiting, table = self.waiting, self.episode.table
        features = features_of(
            table.processors[waiting],
            table.estimate[waiting],
            table.submit_time[waiting],
            table.user[waiting],
            self.now,
        )
        keys = np.asarray(formula(features), dtype=np.float64)
        if keys.shape != waiting.shape or np.isnan(keys).any():
            raise PolicyError(
                f"a formula must give {len(waiting)} scores that are not NaN; got {keys.shape}"
            )
        keys = np.maximum(keys, np.finfo(np.float64).min)
        doors.order_by_keys(self._jobs.address, self._row.address, which, waiting, keys)

    @property
    def now(self) -> int:
        """Return the clock, s."""
        return int(self.state.counter[0, s.NOW])

    @property
    def free_processors(self) -> int:
        """Return the idle processors."""
        return int(self.state.counter[0, s.FREE])

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Return the waiting jobs' indices in base order, shape (n_waiting,)."""
        listed = np.empty(int(self.state.counter[0, s.N_WAITING]), dtype=np.int64)
        doors.list_waiting(self._row.address, listed)
        return listed

    @property
    def running(self) -> NDArray[np.int64]:
        """Return the running jobs' indices by estimated end, shape (n_running,)."""
        return self.state.release_job[0, : self.state.counter[0, s.N_RELEASES]].copy()

    @property
    def start_time(self) -> NDArray[np.int64]:
        """Return the start of each job, shape (n_jobs,), s, -1 = not started."""
        return self.state.start_time[0, : len(self.workload)].copy()

    @property
    def backfilled(self) -> NDArray[np.bool_]:
        """Return which jobs started in step 3 of a pass, shape (n_jobs,)."""
        return self._has_flag(s.BACKFILLED)

    @property
    def thresholded(self) -> NDArray[np.bool_]:
        """Return which jobs were beyond the threshold when they started, shape (n_jobs,)."""
        return self._has_flag(s.THRESHOLDED)

    def counts(self) -> dict[str, float]:
        """Count what the simulation has done so far.

        Returns:
            `events` (submissions and completions), `passes`, and the queue length at passes:
            `mean_waiting`, `max_waiting`.

        Source:
            House rule: know the cost of every step.
        """
        counter = self.state.counter[0]
        passes = int(counter[s.N_PASSES])
        return {
            "events": int(counter[s.N_EVENTS]),
            "passes": passes,
            "mean_waiting": float(counter[s.SUM_WAITING]) / max(passes, 1),
            "max_waiting": int(counter[s.MOST_WAITING]),
        }

    def _has_flag(self, bit: int) -> NDArray[np.bool_]:
        """Tell which jobs started with a bit of `State.flag` set."""
        flag: NDArray[np.bool_] = (self.state.flag[0, : len(self.workload)] & bit) != 0
        return flag

    def copy(self) -> Simulator:
        """Return a simulation that goes on from here on its own.

        Returns:
            A simulator with this one's state; episode and settings are shared.

        Source:
            House rule: planners try orders on copies.
        """
        twin = object.__new__(Simulator)
        twin.settings, twin.episode = self.settings, self.episode
        arrays: Iterator[Any] = (array.copy() for array in self.state)
        twin.state = State(*arrays)
        twin._open()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only this process can hold."""
        return {"settings": self.settings, "episode": self.episode, "state": self.state}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take hold of the state again."""
        self.__dict__.update(kept)
        self._open()

    def restore(self, other: Simulator) -> None:
        """Go back, or over, to the state of another simulation of the same episode.

        Args:
            other: A copy of this simulator, or one of its copies.

        Raises:
            PolicyError: The other simulates another episode.

        Source:
            House rule: planners try orders on copies.
        """
        if other.episode is not self.episode:
            raise PolicyError("restore needs a copy of this simulator")
        arrays: Iterator[tuple[Any, Any]] = zip(self.state, other.state, strict=True)
        for mine, theirs in arrays:
            mine[...] = theirs


def state_for(episodes: Sequence[Episode], *, fields: bool = False) -> State:
    """Allocate a state of one row that any of the episodes fits into.

    Args:
        episodes: The episodes.
        fields: Whether observations are made.

    Returns:
        The state; `load` an episode before use.

    Source:
        House rule: allocate once, reset often.
    """
    return s.allocate(
        1,
        max(len(episode.workload) for episode in episodes),
        max(len(episode.workload.history.completed) for episode in episodes),
        max(episode.workload.machine_processors for episode in episodes),
        history=any(episode.setting[s.KEEP_HISTORY] for episode in episodes),
        reward=any(episode.setting[s.KEEP_REWARD] for episode in episodes),
        fields=fields,
    )


def load(state: State, env: int, row: Record[Row], episode: Episode) -> None:
    """Set one row of a state to the start of an episode.

    Args:
        state: The stack; large enough for the episode.
        env: Row of the stack.
        row: The same row, as kernels see it.
        episode: The episode.

    Writes:
        The row.

    Source:
        Specification, section 10, "Episodes".
    """
    state.setting[env] = episode.setting
    state.weight[env] = episode.weight
    if episode.setting[s.KEEP_HISTORY]:
        history = episode.workload.history
        n_users = len(history.completed)
        state.history_run_time[env, :n_users] = history.run_time
        state.history_requested_time[env, :n_users] = history.requested_time
        state.history_completed[env, :n_users] = history.completed
        state.history_last_end_time[env, :n_users] = history.last_end_time
    doors.reset(row.address, episode.log_largest)
    if episode.setting[s.DECIDE] == s.DECIDE_INTERVAL:
        state.counter[env, s.NEXT_DECISION] = 0
