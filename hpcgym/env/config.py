"""What the keywords of an environment come to: alike for one simulation and for many in a stack."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_args

import numpy as np

from hpcgym.core import metrics
from hpcgym.core import state as s
from hpcgym.core.backfill import Backfill, as_backfill, as_mode, order_refused
from hpcgym.core.kernels.types import ActionSpec
from hpcgym.core.policy import as_policy
from hpcgym.core.prepare import executed_run_time, network_of
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.struct import Struct
from hpcgym.core.workload import Workload
from hpcgym.env.action import ActionKind, ActionReader, Scale, action_spec_of, unit_divisors
from hpcgym.env.episode import EXPECTATIONS, Expectations, Prepared, Preparer, steppable_policies
from hpcgym.env.observation import N_SLOTS, observation_space
from hpcgym.env.reward import TERMINAL_REWARDS, Reward
from hpcgym.errors import ScenarioError, unknown_name
from hpcgym.scenario.episodes import Episodes
from hpcgym.schedule import Schedule

if TYPE_CHECKING:
    from hpcgym.scenario.spec import Scenario


AnyScenario: TypeAlias = "str | Path | Scenario | Episodes"
"""What names a scenario."""


class Keywords(TypedDict, total=False):
    """Keywords of an environment besides its scenario, as `SchedulingEnv` describes them."""

    action: ActionKind
    decide: str | int
    reward: Reward
    baseline: str | None
    policies: Sequence[str] | None
    scale: Scale
    n_slots: int
    expectations: Expectations | None
    backfill: str | Backfill | None
    backfill_order: str | None


class Wiring:
    """Scenario, scheduler, actions, observations and rewards of an environment, checked.

    Args:
        scenario: As the keyword of `hpcgym.env.scheduling.SchedulingEnv`, like the others.
        action: Likewise.
        decide: Likewise.
        reward: Likewise.
        baseline: Likewise.
        policies: Likewise.
        scale: Likewise.
        n_slots: Likewise.
        expectations: Likewise.
        backfill: Likewise.
        backfill_order: Likewise.

    Attributes:
        episodes: The scenario's episodes.
        settings: The scheduler, with what the keywords set in place of the scenario's.
        reader: Reads actions; its `space` is the action space.
        preparer: Makes episodes ready.
        observation_space: Space of observations.
        n_slots: Visible positions of the queue.
        reward_terms: Names of the terms a reward is the sum of.

    Raises:
        ScenarioError: An unknown or contradictory keyword.
        PolicyError: An unknown policy, or two with networks that differ.

    Source:
        Specification, section 10.
    """

    def __init__(
        self,
        scenario: AnyScenario,
        *,
        action: ActionKind = "weights",
        decide: str | int = "contested",
        reward: Reward = "bsld",
        baseline: str | None = None,
        policies: Sequence[str] | None = None,
        scale: Scale = "unit",
        n_slots: int = N_SLOTS,
        expectations: Expectations | None = None,
        backfill: str | Backfill | None = None,
        backfill_order: str | None = None,
    ) -> None:
        if type(n_slots) is not int or n_slots < 1:
            raise ScenarioError(f"n_slots must be a whole number >= 1, got {n_slots!r}")
        if expectations is not None and expectations not in EXPECTATIONS:
            raise ScenarioError(unknown_name("expectations", str(expectations), EXPECTATIONS))
        if scale not in get_args(Scale):
            raise ScenarioError(unknown_name("scale", scale, get_args(Scale)))
        if action != "policy" and policies is not None:
            raise ScenarioError(f"policies belong to action 'policy', not to {action!r}")
        if action != "weights" and scale != "unit":
            raise ScenarioError(f"scale belongs to action 'weights', not to {action!r}")
        self.episodes = scenario if isinstance(scenario, Episodes) else Episodes(scenario)
        self.settings = _overridden(self.episodes.settings, backfill, backfill_order)
        if action == "job" and as_backfill(self.settings.backfill).keeps_reservations:
            raise ScenarioError(
                f"action 'job' starts or reserves one job at a time, but backfill "
                f"{self.settings.backfill!r} keeps every reservation; choose action 'order', "
                "'policy' or 'weights', or backfill 'conservative'"
            )
        _refuse_predictions(self.settings)
        chosen = steppable_policies(policies) if action == "policy" else []
        self.reader = ActionReader(action, n_slots, chosen)
        base = as_policy(self.settings.policy)
        fill = as_policy(self.settings.backfill_order or base)
        self.expects = bool(expectations) or any(policy.expects for policy in (*chosen, base, fill))
        network_of((*chosen, base, fill))  # refuses two before any episode begins
        self.preparer = Preparer(
            self.episodes,
            self.settings,
            decide=_checked_decide(decide, action),
            policies=[*chosen, base] if base.expects else chosen,
            reward=reward,
            baseline=baseline,
            expectations=expectations,
        )
        divisor = np.ones(6)
        if scale == "unit":
            processors = self.episodes.scenario.machine.processors
            largest = self.episodes.largest_request
            divisor = unit_divisors(processors, largest, self.settings.threshold)
        self._action_spec_parts = (action, chosen, base, divisor)
        action_spec_of(
            *self._action_spec_parts
        )  # raises what it has to say before any episode begins
        self.observation_space = observation_space(n_slots)
        self.n_slots = n_slots
        self.reward_terms = ("agent",) if baseline is None else ("agent", "baseline")
        if reward in TERMINAL_REWARDS:
            self.reward_terms = ("compared",)

    def choice(self) -> Struct[ActionSpec]:
        """Return how actions are read, as kernels see it."""
        return action_spec_of(*self._action_spec_parts)

    def draw(self, options: dict[str, Any], generator: np.random.Generator) -> tuple[str, Prepared]:
        """Draw an episode, or take the one that the options of a reset name, and make it ready.

        Args:
            options: `{"episode": number or label}`, `{"workload": jobs}`, or none.
            generator: Source of randomness, moved on where the options name nothing.

        Returns:
            Label of the episode, and the episode.

        Raises:
            ScenarioError: An unknown option or episode, or jobs for a machine of another size.

        Source:
            Specification, section 10, "Episodes".
        """
        for key in options:
            if key not in ("episode", "workload"):
                raise ScenarioError(unknown_name("reset option", key, ("episode", "workload")))
        if len(options) > 1:
            raise ScenarioError("reset options 'episode' and 'workload' exclude each other")
        if "workload" in options:
            workload = options["workload"]
            if not isinstance(workload, Workload):
                raise ScenarioError(f"option 'workload' must be a Workload, got {workload!r}")
            label = workload.name
        elif "episode" in options:
            position = self.episodes.position(options["episode"])
            label, workload = self.episodes.labels[position], self.episodes.workload(position)
        else:
            label, workload = self.episodes.draw(generator)
        prepared = self.preparer.of(workload)
        _ = (
            prepared.reward_plan
        )  # may simulate a baseline: what can fail fails before anything begins
        return label, prepared

    def schedule(self, state: s.State, env: int, prepared: Prepared) -> Schedule:
        """Return the schedule that one simulation of a stack has made so far.

        Args:
            state: The stack.
            env: Row of the stack.
            prepared: Its episode.

        Returns:
            The schedule; start -1 where a job has not started.

        Source:
            House rule: one record of a schedule behind every face.
        """
        workload = prepared.episode.workload
        flag = state.flag[env, : len(workload)]
        return Schedule(
            workload=workload,
            start_time=np.maximum(state.start_time[env, : len(workload)], -1),
            run_time=executed_run_time(workload, self.settings.kill_at_limit),
            backfilled=(flag & s.BACKFILLED) != 0,
            thresholded=(flag & s.THRESHOLDED) != 0,
        )

    def metrics(self, state: s.State, env: int, prepared: Prepared) -> dict[str, float]:
        """Return the metrics of the schedule that one simulation of a stack has made so far.

        Args:
            state: The stack.
            env: Row of the stack.
            prepared: Its episode.

        Returns:
            As `hpcgym.core.metrics.summary`; jobs that wait count as if they started now.

        Source:
            Specification, section 1, "Metrics".
        """
        made = self.schedule(state, env, prepared)
        return metrics.summary(
            made.workload,
            made.start_time,
            made.run_time,
            made.backfilled,
            made.thresholded,
            now=int(state.counter[env, s.NOW]),
        )


def _checked_decide(decide: str | int, action: str) -> str | int:
    """Refuse epochs that are unknown, or that an action cannot be taken at."""
    if isinstance(decide, str):
        if decide not in ("contested", "event"):
            allowed = ("contested", "event", "a number of seconds")
            raise ScenarioError(unknown_name("decide", decide, allowed))
        return decide
    if isinstance(decide, bool) or not isinstance(decide, numbers.Integral) or decide < 1:
        raise ScenarioError(f"decide must be whole seconds >= 1, got {decide!r}")
    if action not in ("weights", "policy"):
        raise ScenarioError(
            f"decide={decide} s is for actions 'weights' and 'policy': an order of visible jobs "
            f"lasts one pass only, so action {action!r} decides 'contested' or at each 'event'"
        )
    return int(decide)


def _refuse_predictions(settings: SchedulerSettings) -> None:
    """Refuse estimates that an episode does not begin with."""
    if settings.moves_estimates:
        raise ScenarioError(
            f"estimates {settings.estimates!r} with correction {settings.correction!r} change "
            "while the simulation runs, and observations do not show them; allowed are 'requested',"
            " 'exact', 'doubled' and 'f-model:f=..' without a correction. hpcgym.simulate and "
            "hpcgym.evaluate run rules with any"
        )


def _overridden(
    settings: SchedulerSettings, backfill: str | Backfill | None, backfill_order: str | None
) -> SchedulerSettings:
    """Return the scenario's settings with what the caller sets in their place."""
    mode = as_mode(settings.backfill if backfill is None else backfill)
    if not isinstance(mode, Backfill):
        raise ScenarioError(
            f"backfill '{mode}' {mode.REASON}, which a step cannot run; hpcgym.simulate and "
            "hpcgym.evaluate do"
        )
    if not mode.TAKES_ORDER:
        if backfill_order is not None:
            raise ScenarioError(order_refused(mode))
        settings = replace(settings, backfill_order=None)  # the scenario's went with its mode
    settings = replace(settings, backfill=mode)
    if backfill_order is not None:
        settings = replace(settings, backfill_order=backfill_order)
    fill = settings.backfill_order
    if fill is not None and as_policy(fill).is_python:
        raise ScenarioError(
            f"backfill order {as_policy(fill).name!r} orders in Python, which a step cannot run; "
            "register it by keys instead"
        )
    return settings
