"""Counterfactuals: what another option at one decision would have changed, job by job.

A branch is a copy of a simulation at a decision. It takes another option there, and then goes on as
the base does: by the same scheduler, with the same jobs to come. What differs is the credit of that
one option, exact and without noise. Branches of one decision run beside one base, compiled, and
stop where their states have merged with the base's.

A branch may know what no scheduler knows: how long jobs run, and which come. So its numbers are
labels and diagnoses. `Branches.decisions` shows features that a scheduler may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, refuse_unless_whole, unknown_name
from hpcgym.core import constants as s
from hpcgym.core.backfill import Easy, as_backfill
from hpcgym.core.compiler.struct import IS_COMPILED, Struct
from hpcgym.core.kernels.planning import branches as kernels
from hpcgym.core.kernels.types import Jobs
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.policy import AnyPolicy, Policy, as_policy, refuse_as_choice
from hpcgym.core.simulator import Simulator
from hpcgym.core.threads import checked_threads
from hpcgym.schedule.features import features_of_waiting

Until = Literal["merge", "horizon", "end"]
"""When branches stop: each where it merges, else at the end; at a horizon; all at the end."""

DAY_S = 86_400


_KINDS = {"first": kernels.FIRST, "last": kernels.LAST, "policy": kernels.RULE}

_JOB_COLUMNS = (
    *("submit_time", "run_time", "estimate", "requested_time", "processors", "size_class"),
    *("feature", "user", "keys", "requeue"),
)
"""Columns of `Jobs` with a row for each job, where processors are counted and nothing is shown."""


class Option(NamedTuple):
    """What a branch does at a decision: a job goes first or last in order, or a policy orders.

    `first`, `last` and `under` make options. A job beyond the threshold goes first in any case.
    """

    kind: str
    job: int = -1
    policy: Policy | None = None


def first(job: int) -> Option:
    """Return the option that a waiting job goes first; if it does not fit, it has a reservation."""
    return Option("first", int(job))


def last(job: int) -> Option:
    """Return the option that a waiting job goes last; it may start all the same, by backfilling."""
    return Option("last", int(job))


def under(policy: AnyPolicy) -> Option:
    """Return the option that another policy orders the waiting jobs."""
    return Option("policy", policy=as_policy(policy))


@dataclass(frozen=True)
class Future:
    """What branches take to come; the base of a branch takes the same to come.

    Attributes:
        run_times: "exact", "records" (drawn from those of the job's user that exceed the time it
            has run), or a share: each is off by at most so much, uniformly.
        jitter: Largest shift of each submission to come, s; none comes before the present.
        seed: Seed of what is drawn.

    Raises:
        PolicyError: Another text, or a number out of range.
    """

    run_times: str | float = "exact"
    jitter: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        given = self.run_times
        is_share = isinstance(given, (int, float)) and not isinstance(given, bool)
        if not (is_share and 0 <= float(given) < 1) and given not in ("exact", "records"):
            raise PolicyError(
                f"run_times must be 'exact', 'records' or a share from 0 to below 1, got {given!r}"
            )
        refuse_unless_whole("jitter, in s,", self.jitter, error=PolicyError)
        refuse_unless_whole("seed", self.seed, error=PolicyError)


FUTURES = {
    "same": Future(),
    "jitter": Future(jitter=1800),
    "resample": Future(run_times="records", jitter=1800),
}
"""Futures by name: as it will be; other submit times; other run times, too."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The waiting jobs at a pass that is still to be made, and what a scheduler may know of each.

    Attributes:
        now: The clock, s.
        jobs: Their positions in the job table, in the order of this pass, shape (n_waiting,).
        features: Shape (n_waiting, n_features), in the order of `features.FEATURES`.
    """

    now: int
    jobs: NDArray[np.int64]
    features: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Changes:
    """What options change against the base.

    Attributes:
        options: The options.
        merged_at: Instant at which each branch was found merged, shape (n_options,), s; -1 = it was
            not.
        slowdown: Change of each job's bounded slowdown, shape (n_options, n_jobs); below 0 = the
            job is better off. Jobs that wait at the horizon count as if they started then.
        start_time: Start of each job, shape (n_options, n_jobs), s; -1 = not before all stopped.
        base_start_time: Likewise under the base, shape (n_jobs,).
    """

    options: tuple[Option, ...]
    merged_at: NDArray[np.int64]
    slowdown: NDArray[np.float64]
    start_time: NDArray[np.int64]
    base_start_time: NDArray[np.int64]

    @property
    def total(self) -> NDArray[np.float64]:
        """Return the change of the sum of bounded slowdowns, shape (n_options,)."""
        total: NDArray[np.float64] = self.slowdown.sum(axis=1)
        return total


class Branches:
    """Branches of a simulation, at whichever decision it is.

    Copies are made once and used for every decision. The simulation itself is only read.

    Args:
        simulator: A simulation whose `run` stops at decisions; its policy is the base.
        threads: Threads that run the branches of a decision.

    Raises:
        PolicyError: Orders, passes or predictions are made in Python, or events or dependencies
            move jobs.

    Source: Specification, section 10, "Counterfactuals".

    Example:
        >>> import hpcgym
        >>> simulator = hpcgym.Simulator(hpcgym.load_workload("tiny"), decide="contested")
        >>> branches = Branches(simulator)
        >>> while simulator.run():
        ...     jobs = branches.decisions().jobs
        ...     changes = branches.branch([first(job) for job in jobs])
        ...     print(simulator.now, jobs, changes.total.round(1))
        0 [0 1 2 3] [  0.    1.    0.  -10.8]
        60 [1 3 4 5 6 7] [0.  0.  1.  4.8 2.3 7.7]
        70 [4 5 6 7] [ 0.   5.8 -1.2  2. ]
        80 [5 6 7] [ 0.  -2.7 -0.7]
        140 [6 7] [0.  0.8]
    """

    def __init__(self, simulator: Simulator, *, threads: int = 1) -> None:
        settings, episode = simulator.settings, simulator.episode
        mode = as_backfill(settings.backfill)
        orders = [order for order in (episode.policy, episode.backfill_policy) if order is not None]
        refuse_as_choice(orders)
        for policy in orders:
            if policy.is_python:
                raise PolicyError(
                    f"policy {policy.name} decides in Python, and branches run compiled; take a "
                    "policy with a compiled rule, such as SAF, or copy the simulator yourself"
                )
        if mode.number == s.BACKFILL_OWN or (settings.predictor and settings.predictor.ask):
            what = f"backfill '{mode}'" if mode.number == s.BACKFILL_OWN else "a predictor"
            raise PolicyError(f"{what} works in Python, and branches run compiled; choose another")
        if settings.events or episode.dependencies is not None:
            what = f"event '{settings.events[0]}'" if settings.events else "dependencies"
            raise PolicyError(f"branches know no {what}; leave them out of the settings")
        self.simulator = simulator
        self.threads = checked_threads(threads)
        keeps_nothing = not mode.keeps_state or (isinstance(mode, Easy) and mode.trial is None)
        self._may_merge = (
            keeps_nothing
            and simulator.workload.machine is None
            and settings.event_semantics == "batch"
        )
        self._twins: list[Simulator] = []

    def decisions(self) -> Decision:
        """Return the waiting jobs in the order of this pass, with their features.

        Raises:
            PolicyError: The simulation is at no decision.
        """
        simulator = self._at_decision()
        listed = np.empty(int(simulator.state.n_waiting[0]), dtype=np.int64)
        rank = np.empty(len(listed))
        twin = self._ready(1)[0]
        kernels.rank_now(twin._jobs.address, twin._sim.address, listed, rank)
        jobs = listed[np.lexsort((listed, rank))]
        return Decision(simulator.now, jobs, features_of_waiting(simulator, jobs))

    def branch(
        self,
        options: Option | Sequence[Option],
        duration: int = 0,
        *,
        until: Until = "merge",
        horizon: int = DAY_S,
        future: str | Future = "same",
    ) -> Changes:
        """Take each option in a branch of its own, and return what it changes.

        Args:
            options: An option, or several, which run side by side.
            duration: How long options hold, s: at this pass, and at each contested one until then
                at which the job still waits.
            until: When branches stop.
            horizon: For "horizon", s from now.
            future: What is to come: a name of `FUTURES`, or a `Future`.

        Raises:
            PolicyError: The simulation is at no decision; an option, a duration or a future that
                cannot be.
        """
        simulator = self._at_decision()
        chosen = (options,) if isinstance(options, Option) else tuple(options)
        for option in chosen:
            self._refuse_option(option)
        refuse_unless_whole("duration, in s,", duration, most=s.NEVER, error=PolicyError)
        if until not in get_args(Until):
            raise PolicyError(unknown_name("until", until, get_args(Until)))
        limit = -1
        if until == "horizon":
            refuse_unless_whole("horizon, in s,", horizon, 1, error=PolicyError)
            limit = simulator.now + horizon
        end = min(simulator.now + duration, s.NEVER if limit < 0 else limit)
        n_groups = max(min(self.threads, len(chosen)), 1)
        groups = [list(part) for part in np.array_split(np.arange(len(chosen)), n_groups)]
        twins = self._ready(len(chosen) + n_groups)
        plan = self._plan(twins[0], future)
        _copy([twins[0]], twins[1:])
        table = simulator._table if plan is None else plan.table
        jobs = Struct(table) if plan is not None else None
        merged_at = np.full(len(chosen), kernels.RUNS)
        merges = self._may_merge and until != "end"

        def run(group: int) -> int:
            rows, begin = groups[group], sum(map(len, groups[:group])) + group
            branches = twins[begin : begin + len(rows) + 1]
            merged = merged_at[rows].copy()
            ran = [chosen[row] for row in rows]
            status = kernels.run_branches(
                _addresses([(jobs or twin._jobs).address for twin in branches]),
                _addresses([twin._sim.address for twin in branches]),
                np.array([_KINDS[option.kind] for option in ran], dtype=np.int64),
                np.array([option.job for option in ran], dtype=np.int64),
                *_rules_of(ran),
                end,
                limit,
                merges,
                merged,
            )
            merged_at[rows] = merged
            return int(status)

        if n_groups == 1:
            statuses = [run(0)]
        else:
            with ThreadPoolExecutor(n_groups, thread_name_prefix="branches") as pool:
                statuses = list(pool.map(run, range(n_groups)))
        if min(statuses) < 0:
            raise PolicyError("a branch cannot go on: jobs wait that fit no more")
        places = np.cumsum([0, *(len(group) + 1 for group in groups[:-1])])
        started = np.array([twin.state.start_time[0, : len(table.processors)] for twin in twins])
        base = started[places[int(np.argmax([(started[at] >= 0).sum() for at in places]))]]
        branched = np.delete(started, places, axis=0)
        return _changes(chosen, table, base, branched, merged_at, limit, plan)

    def take(self, option: Option) -> None:
        """Take an option in the simulation itself, at this pass; `run` then goes on.

        Raises:
            PolicyError: The simulation is at no decision, or the option cannot be.
        """
        simulator = self._at_decision()
        self._refuse_option(option)
        rule, weight = _rules_of([option])
        address = simulator._jobs.address, simulator._sim.address
        kernels.take(*address, _KINDS[option.kind], option.job, rule[0], weight[0])

    def rollout(
        self,
        policy: AnyPolicy | None = None,
        *,
        until: Until = "end",
        horizon: int = DAY_S,
        future: str | Future = "same",
    ) -> Changes:
        """Go on under another policy, None = the base alone, and return what that changes.

        Arguments and errors are those of `branch`; the policy orders all passes to come.
        """
        options = [] if policy is None else [under(policy)]
        lasting = s.NEVER - self.simulator.now
        return self.branch(options, lasting, until=until, horizon=horizon, future=future)

    def _at_decision(self) -> Simulator:
        """Return the simulation, or refuse one that is at no decision."""
        state = self.simulator.state
        if state.phase[0] != s.PHASE_PASS or state.n_waiting[0] == 0:
            raise PolicyError(
                f"the simulation of {self.simulator.workload.name} is at no decision at "
                f"{self.simulator.now} s; make it with decide='contested', and call run() until it "
                "returns True"
            )
        return self.simulator

    def _refuse_option(self, option: Option) -> None:
        """Refuse an option that cannot be taken now."""
        if not isinstance(option, Option) or option.kind not in _KINDS:
            raise PolicyError(f"an option is made by first, last or under; got {option!r}")
        if option.policy is not None:
            if option.policy.is_python:
                raise PolicyError(f"{option.policy.name} decides in Python, and branches do not")
            self.simulator._refuse_unserved(option.policy)
        elif option.job not in self.simulator.waiting:
            raise PolicyError(
                f"job {option.job} does not wait; waiting: {self.simulator.waiting.tolist()}"
            )

    def _ready(self, n: int) -> list[Simulator]:
        """Return `n` twins, the first of which is a copy of the simulation as it is."""
        while len(self._twins) < n:
            self._twins.append(self.simulator.copy())
        _copy([self.simulator], self._twins[:1])
        return self._twins[:n]

    def _plan(self, twin: Simulator, future: str | Future) -> _Plan | None:
        """Give a twin another future; return its jobs, None if they are those of the episode."""
        if isinstance(future, str):
            if future not in FUTURES:
                raise PolicyError(unknown_name("future", future, FUTURES))
            future = FUTURES[future]
        if future.run_times in ("exact", 0) and future.jitter == 0:
            return None
        simulator, settings = self.simulator, self.simulator.settings
        if settings.moves_estimates or settings.requeues or simulator.workload.machine is not None:
            raise PolicyError(
                "another future needs estimates that stay, jobs that run once, and a machine "
                "without nodes; choose future 'same'"
            )
        generator = np.random.default_rng([future.seed, simulator.now])
        table, state = simulator._table, simulator.state
        n, now, coming = len(table.processors), simulator.now, int(state.next_job[0])
        running = simulator.running
        open_jobs = np.sort(np.concatenate([running, simulator.waiting, np.arange(coming, n)]))
        run_time = table.run_time.copy()
        run_time[open_jobs] = self._drawn(future, open_jobs, generator)
        started = state.start_time[0, running]
        run_time[running] = np.maximum(run_time[running], now + 1 - started)
        submit_time = table.submit_time.copy()
        if future.jitter:
            moved = generator.integers(-future.jitter, future.jitter + 1, n - coming)
            submit_time[coming:] = np.maximum(submit_time[coming:] + moved, now + 1)
        source = np.concatenate(
            [np.arange(coming), coming + np.argsort(submit_time[coming:], kind="stable")]
        )
        whole = table._replace(run_time=run_time, submit_time=submit_time)
        columns: dict[str, Any] = {
            name: getattr(whole, name)[source]
            for name in _JOB_COLUMNS
            if len(getattr(whole, name)) == n
        }
        columns["feature"][:, s.FEATURE_SUBMIT] = columns["submit_time"]
        ends = started + run_time[running]
        in_turn = np.lexsort((running, ends))[::-1]
        twin.state.ending_time[0, : len(running)] = ends[in_turn]
        twin.state.ending_job[0, : len(running)] = running[in_turn]
        return _Plan(table._replace(**columns), source)

    def _drawn(
        self, future: Future, jobs: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw the run times of jobs that have not ended, s, shape (n_listed,)."""
        simulator = self.simulator
        table = simulator._table
        if future.run_times == "records":
            if not simulator.state.history_run_time.shape[1]:
                raise PolicyError(
                    "run_times 'records' needs users' records; make the simulator with "
                    "extra_policies=[hpcgym.as_policy('SMITH-HISTORY')]"
                )
            drawn = np.empty(len(jobs), dtype=np.int64)
            chance = generator.random(len(jobs))
            address = simulator._jobs.address, simulator._sim.address
            kernels.draw_run_times(*address, jobs, chance, drawn)
            return drawn
        share = 0.0 if future.run_times == "exact" else float(future.run_times)
        factor = generator.uniform(1 - share, 1 + share, len(jobs))
        times = np.rint(table.run_time[jobs] * factor).astype(np.int64)
        if simulator.settings.kill_at_limit:
            times = np.minimum(times, table.requested_time[jobs])
        return np.maximum(times, np.minimum(table.run_time[jobs], 1))


class _Plan(NamedTuple):
    """The jobs of another future, and which job of the episode each row is, shape (n_jobs,)."""

    table: Jobs
    source: NDArray[np.int64]


def _words(simulator: Simulator) -> NDArray[np.int64]:
    """View all that a simulation holds, but the address of its table."""
    begins = simulator.state.begins
    assert begins is not None
    size = begins.strides[0] // begins.itemsize
    return as_strided(begins, (size,), (begins.itemsize,))[1:]


def _copy(source: Sequence[Simulator], to: Sequence[Simulator]) -> None:
    """Copy a simulation into others of the same episode, whose memory is laid out alike."""
    words = _words(source[0])
    for twin in to:
        _words(twin)[:] = words


def _addresses(each: Sequence[Any]) -> NDArray[Any]:
    """Return addresses as kernels take them."""
    listed = np.empty(len(each), dtype=np.int64 if IS_COMPILED else object)
    listed[:] = each if IS_COMPILED else [*each]
    return listed


def _rules_of(options: Sequence[Option]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return rules and parameters, shape (n_options,) and (n_options, N_WEIGHTS); 0 = none."""
    rule = np.zeros(len(options), dtype=np.int64)
    weight = np.zeros((len(options), s.N_WEIGHTS))
    for row, option in enumerate(options):
        if option.policy is not None:
            rule[row], weight[row] = option.policy.rule, option.policy.parameters
    return rule, weight


def _slowdown(table: Jobs, start_time: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return bounded slowdowns by start time, shape (..., n_jobs)."""
    turnaround = start_time - table.submit_time + table.run_time
    return np.maximum(turnaround / np.maximum(table.run_time, BSLD_BOUND_S), 1.0)


def _changes(
    options: tuple[Option, ...],
    table: Jobs,
    base: NDArray[np.int64],
    branched: NDArray[np.int64],
    merged_at: NDArray[np.int64],
    limit: int,
    plan: _Plan | None,
) -> Changes:
    """Return what starts, as kernels hold them, tell of the options."""
    has_merged = merged_at >= 0
    # From where a branch has merged, its starts are the base's.
    joined = np.where(has_merged[:, np.newaxis] & (branched < 0), base, branched)
    start, other = np.broadcast_arrays(base, joined)
    if limit >= 0:
        start, other = (
            np.maximum(np.minimum(np.where(each < 0, limit, each), limit), table.submit_time)
            for each in (start, other)
        )
    counts = (start >= 0) & (other >= 0)
    change = np.where(counts, _slowdown(table, other) - _slowdown(table, start), 0.0)
    starts, base_starts = np.maximum(joined, -1), np.maximum(base, -1)
    if plan is not None:
        back = np.argsort(plan.source)
        change, starts, base_starts = change[:, back], starts[:, back], base_starts[back]
    return Changes(options, np.maximum(merged_at, -1), change, starts, base_starts)
