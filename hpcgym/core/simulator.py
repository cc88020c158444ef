"""The simulator: set a pass's order, run to the next decision; copy and restore.

`hpcgym.simulate`, policies that plan or choose, baselines of rewards and the training of run-time
networks use it. Environments and `simulate_many` call the same kernels directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import HpcgymError, PolicyError
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.columns import LARGEST_TIME
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.dependencies import begin, lay_out
from hpcgym.core.engine import invariants
from hpcgym.core.features import features_of
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.types import Jobs, Sim
from hpcgym.core.own_backfill import refuse_own
from hpcgym.core.own_pass import own_passes
from hpcgym.core.policy import ChooserRun, Policy, as_policy, checked_candidates, refuse_as_choice
from hpcgym.core.predictor import Submission
from hpcgym.core.prepare import prepare, state_for
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulated import Simulated
from hpcgym.core.state import State, copy_into, in_use, sim_of
from hpcgym.core.workload import Workload

_VIOLATIONS = {
    invariants.CAPACITY_BROKEN: "used and free processors do not add up to the machine",
    invariants.STARTED_EARLY: "a job started before its submission",
    invariants.COUNT_BROKEN: "a job is lost or is in the queue twice",
    invariants.NOT_MAXIMAL: "a waiting job meets the start conditions after the pass",
    invariants.HEAD_DELAYED: "the head's shadow time moved later",
    invariants.NODE_BROKEN: "jobs use more of a node than it has",
}


class Simulator(Simulated):
    """One simulation: run it to its end, or from decision to decision.

    Args:
        workload: The job table.
        settings: How the scheduler works; default FCFS with EASY backfilling.
        decide: When `run` stops for a decision: "never", "contested" (where the order can matter),
            "event" (at every pass with a waiting job), or an interval in s.
        extra_policies: Policies that decisions may choose besides; their expectations are kept.
        check_invariants: Whether to check invariants after every pass; slow.
        full_passes: Whether every pass looks at the whole queue; slow, for tests.

    Raises:
        WorkloadError: Estimates or a policy's keys do not fit the workload.
        PolicyError: An unknown `decide`.

    Source: Specification, sections 1 and 10.

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

    is_stopped = False

    def __init__(
        self,
        workload: Workload,
        settings: SchedulerSettings | None = None,
        *,
        decide: str | int = "never",
        extra_policies: Iterable[Policy] = (),
        check_invariants: bool = False,
        full_passes: bool = False,
    ) -> None:
        self.settings = (settings or SchedulerSettings()).on(workload.machine)
        self.episode = prepare(
            workload,
            self.settings,
            decide=decide,
            extra_policies=extra_policies,
            check_invariants=check_invariants,
            full_passes=full_passes,
            no_waits="" if decide == "never" else f"a simulator with decide={decide!r}",
        )
        self._open()
        self.reset()

    def reset(self) -> None:
        """Set the clock back to 0: an empty machine, no job submitted."""
        entry_points.begin(self._sim.address, self.episode.initial.address)
        if self.episode.dependencies is not None:
            begin(self._table, self.state, 0, self.episode.table)
        chooser = self.episode.policy.chooser
        self._chooser_run: ChooserRun | None = None if chooser is None else chooser.begin()
        self._own_passes = own_passes(self.settings)

    def run(self) -> bool:
        """Run to the next decision, or until every job has started.

        Returns:
            True at a decision; False when every job has started.

        Raises:
            HpcgymError: An invariant was found broken (only with `check_invariants`).
            PolicyError: A predictor, a formula or a mode of your own gives what cannot be used.
        """
        while True:
            status = entry_points.run(self._jobs.address, self._sim.address)
            if self.is_stopped:
                return False
            if status == s.STATUS_STUCK:
                raise PolicyError("jobs wait that fit no more, and no event is to come")
            if status < 0:
                what = _VIOLATIONS.get(status) or as_backfill(self.settings.backfill).broken[status]
                raise HpcgymError(f"at {self.now} s: {what}; this is a bug")
            if status == s.STATUS_PREDICTION:
                self._take_predictions()
                continue
            if status == s.STATUS_OWN_PASS:
                assert self._own_passes is not None
                self._own_passes.make(self.workload, self._jobs, self._sim)
                continue
            formulas = [
                (which, policy.formula)
                for which, policy in (
                    (s.PASS_ORDER, self.episode.policy),
                    (s.BACKFILL_ORDER, self.episode.backfill_policy),
                )
                if policy is not None and policy.formula is not None
            ]
            if status == s.STATUS_DONE or not (formulas or self._chooser_run):
                return status == s.STATUS_DECISION
            if self._chooser_run is not None:
                chosen = self._chooser_run.choose(self)
                if isinstance(chosen, Policy):
                    self._follow(chosen)
                else:
                    self.order_by_keys(chosen)
            for which, formula in formulas:
                self._order(which, formula)

    def stop(self) -> None:
        """Have `run`, on another thread, return at the next event; what it simulates is over."""
        self.is_stopped = True
        self.state.stopped[0] = 1

    def order_by(self, policy: str | Policy | Sequence[float]) -> None:
        """Decide this pass's primary order by a policy with a compiled rule.

        Raises:
            PolicyError: The policy is unknown, given by keys or a formula, or reads what is not
                kept of users.

        Source: Specification, section 10, "Action semantics".
        """
        chosen = as_policy(policy)
        self._refuse_unserved(chosen)
        # A policy's parameters are read-only; a writable copy spares numba a second compilation.
        weight = np.array(chosen.parameters)
        entry_points.order_by_rule(self._jobs.address, self._sim.address, chosen.rule, weight)

    def order_by_keys(self, keys: ArrayLike) -> None:
        """Decide this pass's primary order by one key per job in `waiting`, lowest first.

        Raises:
            PolicyError: Another shape than (n_waiting,), or NaN.

        Source: Specification, section 10, "Action semantics".
        """
        waiting = self._waiting
        array = np.asarray(keys, dtype=np.float64)
        if array.shape != waiting.shape or np.isnan(array).any():
            raise PolicyError(
                f"{len(waiting)} jobs wait: give as many keys, none NaN; got shape {array.shape}"
            )
        entry_points.order_by_keys(
            self._jobs.address, self._sim.address, s.PASS_ORDER, waiting, array
        )

    def scores(self) -> NDArray[np.float64]:
        """Decide this pass's primary order by the policy itself, and return its scores.

        Returns:
            Shape (n_waiting,), of the jobs in `waiting`, lowest first.

        Raises:
            PolicyError: The policy is Python, which scores no jobs of its own.
        """
        policy, waiting = self.episode.policy, self._waiting
        if policy.is_python:
            raise PolicyError(f"{policy.name} orders the queue in Python; it has no scores here")
        weight = np.array(policy.parameters)  # writable, as in `order_by`
        entry_points.order_by_rule(self._jobs.address, self._sim.address, policy.rule, weight)
        entries = s.FIRST_ENTRY - self.state.start_time[0, waiting]
        scored: NDArray[np.float64] = self.state.key[0, s.PASS_ORDER, entries]
        return scored

    def _follow(self, policy: Policy) -> None:
        """Let a policy order this pass, or all passes until the next decision of an interval."""
        if self.episode.setting.decide != s.DECIDE_INTERVAL:
            self.order_by(policy)
            return
        self._refuse_unserved(policy)
        self.state.order_rule[0] = policy.rule
        self.state.weight[0, s.PASS_ORDER] = policy.parameters

    def _refuse_unserved(self, policy: Policy) -> None:
        """Refuse a policy that cannot decide here."""
        refuse_as_choice([policy])
        if policy.rule == s.RULE_KEYS:
            raise PolicyError(f"{policy.name}: decide by its keys instead (order_by_keys)")
        if not self.episode.serves(policy):
            raise PolicyError(
                f"{policy.name} reads what {self.episode.policy.name} does not keep of users; "
                "decide by its keys instead (order_by_keys), or simulate under the policy itself"
            )

    def predict(self, candidates: Sequence[str | Policy]) -> NDArray[np.float64]:
        """Predict the mean bounded slowdown of the waiting jobs under each of some policies.

        A copy of the simulation is rolled out to its end with estimates for run times and without
        further submissions.

        Args:
            candidates: Names or policies, whose orders do not change with time.

        Returns:
            Shape (n_candidates,); NaN if no job waits.

        Raises:
            PolicyError: A candidate cannot be planned with, or the machine has nodes, or a mode in
                Python makes the passes.

        Source: Streit 2002; specification, section 8, "dynP".
        """
        policies = checked_candidates(candidates)
        if self.workload.machine is not None:
            raise PolicyError(
                f"{self.workload.name} is on a machine of nodes; plans count processors"
            )
        mode = as_backfill(self.settings.backfill)
        if self.settings.events:
            raise PolicyError(f"plans know no events; got '{self.settings.events[0]}'")
        refuse_own(mode, "a rollout", "plan with a mode that keeps nothing, such as easy")
        predicted = np.full(len(policies), np.nan)
        if self.state.n_waiting[0] > 0:
            jobs, plan = self._planned
            entry_points.predict_each(
                jobs.address,
                self._sim.address,
                plan.address,
                np.array([policy.rule for policy in policies], dtype=np.int64),
                np.stack([policy.parameters for policy in policies]),
                predicted,
            )
        return predicted

    @cached_property
    def _planned(self) -> tuple[Struct[Jobs], Struct[Sim]]:
        """Return the jobs with estimates for run times, and a simulation for rollouts."""
        table = self._table._replace(run_time=self._table.estimate)
        return Struct(table), sim_of(state_for([self.episode]), 0)

    def network_inputs(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the inputs of a network that expects run times, for the waiting jobs now.

        Returns:
            The jobs' indices in base order, shape (n_waiting,), and their inputs, shape (n_waiting,
            N_NETWORK_INPUTS), which
            `hpcgym.core.kernels.scoring.user_estimates.read_network_inputs` defines.

        Raises:
            PolicyError: The policy expects nothing, so that not all inputs are kept.
        """
        if not self.episode.expects:
            raise PolicyError(
                f"{self.episode.policy.name} expects nothing of users; SMITH-HISTORY does"
            )
        listed = self._waiting
        inputs = np.empty((len(listed), s.N_NETWORK_INPUTS))
        entry_points.describe_listed(self._jobs.address, self._sim.address, listed, inputs)
        return self.rows(listed), inputs

    def terms(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the terms of the index of each waiting job at this instant.

        Returns:
            The jobs' indices in base order, shape (n_waiting,), and their terms, shape (n_waiting,
            N_TERMS). `hpcgym.core.index_policy.TERMS` names the terms; those that no policy reads
            are 0.

        Raises:
            PolicyError: The policy is no index.
        """
        if not self.episode.expects:
            raise PolicyError(
                f"{self.episode.policy.name} is no index, such as SMITH-HISTORY, and has no terms"
            )
        listed = self._waiting
        term = np.empty((len(listed), s.N_TERMS))
        entry_points.copy_terms(self._jobs.address, self._sim.address, listed, term)
        return self.rows(listed), term

    def pick(self, job: int) -> None:
        """Decide that one waiting job goes first in this pass.

        Raises:
            PolicyError: The job does not wait, or reservations are kept.

        Source: Specification, section 10, "Action semantics", `job`.
        """
        if as_backfill(self.settings.backfill).keeps_reservations:
            raise PolicyError(
                f"backfill '{self.settings.backfill}' keeps reservations: no job can go first"
            )
        if job not in self.waiting:
            raise PolicyError(f"job {job} does not wait; waiting: {self.waiting.tolist()}")
        base = int(self.episode.setting.base_rule)
        weight = self.episode.weight[s.BASE_ORDER]
        entry_points.order_picked_first(self._jobs.address, self._sim.address, job, base, weight)

    def _take_predictions(self) -> None:
        """Ask the predictor for the run time of each job submitted now."""
        first = int(self.state.next_job[0])
        end = int(np.searchsorted(self.workload.submit_time, self.now, side="right"))
        predicted = [self._ask(job) for job in range(first, end)]
        given = np.array(predicted, dtype=np.int64)
        entry_points.give_predictions(self._jobs.address, self._sim.address, given)

    def _ask(self, job: int) -> int:
        """Ask the predictor for the run time of a job that is being submitted."""
        jobs, state = self.workload, self.state
        user = int(jobs.user_index[job])
        completed = int(state.history_completed[0, user])
        ring = np.arange(max(completed - RING_JOBS, 0), completed) % RING_JOBS
        predictor = self.settings.predictor
        assert predictor is not None and predictor.ask is not None
        seconds = predictor.ask(
            Submission(
                submit_time=int(jobs.submit_time[job]),
                requested_time=int(jobs.requested_time[job]),
                processors=int(jobs.processors[job]),
                user=int(jobs.user[job]),
                completed=completed,
                run_times=state.history_run_time[0, user, ring],
                requested_times=state.history_requested_time[0, user, ring],
                last_end_time=int(state.history_last_end_time[0, user]) if completed else None,
            )
        )
        if not (isinstance(seconds, (int, float, np.number)) and 1 <= seconds <= LARGEST_TIME):
            raise PolicyError(
                f"a predictor must give seconds, a number from 1 to {LARGEST_TIME}; for job "
                f"{jobs.job_id[job]} it gave {seconds!r}"
            )
        return int(seconds)

    def _order(self, which: int, formula: Any) -> None:
        """Order the waiting jobs of this pass by a formula in Python."""
        waiting, table = self._waiting, self._table
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
        entry_points.order_by_keys(self._jobs.address, self._sim.address, which, waiting, keys)

    def copy(self) -> Simulator:
        """Return a simulation that goes on from here on its own; it shares episode and settings."""
        twin = object.__new__(Simulator)
        twin.settings, twin.episode = self.settings, self.episode
        twin._open()
        twin._take_state_of(self.state)
        twin._take_memory_of(self)
        return twin

    def _take_state_of(self, state: State) -> None:
        """Copy a state of the same episode into this one's, and number the jobs as it does."""
        copy_into(self.state, state)
        if self.episode.dependencies is not None:
            moved = self.settings.moves_estimates
            lay_out(self._table, self.state, 0, self.episode.table, estimates=not moved)

    def _take_memory_of(self, other: Simulator) -> None:
        """Copy what the policy and the mode of another simulation remember in Python."""
        self._chooser_run = deepcopy(other._chooser_run)
        self._own_passes = deepcopy(other._own_passes)

    def __getstate__(self) -> dict[str, Any]:
        """Keep only what of the state is in use; no addresses, which hold in this process."""
        state = in_use(self.state)
        kept = {
            "settings": self.settings,
            "episode": self.episode,
            "_chooser_run": self._chooser_run,
            "_own_passes": self._own_passes,
        }
        return kept | {"state": state}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Allocate a state and copy the kept one into it."""
        state = kept.pop("state")
        self.__dict__.update(kept)
        self._open()
        self._take_state_of(state)

    def restore(self, other: Simulator) -> None:
        """Take the state of another simulation of the same episode, such as a copy or a pickle.

        Raises:
            PolicyError: The other simulates another episode.
        """
        if not self.episode.is_same_as(other.episode):
            raise PolicyError("restore needs a copy of this simulator")
        self._take_state_of(other.state)
        self._take_memory_of(other)
