"""The configuration of an environment: its keywords, checked once, and the episodes it plays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.base.errors import ScenarioError, refuse_unless_whole, unknown_name
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.action import Action, kind_of
from hpcgym.core.actions.index import Index
from hpcgym.core.backfill import Backfill, Mode, as_backfill, as_mode
from hpcgym.core.dependencies import dependencies_of
from hpcgym.core.events import Event, as_events
from hpcgym.core.observation_fields import OwnField, SmallField
from hpcgym.core.policy import as_policy
from hpcgym.core.prepare import checked_keys, estimates_of, executed_run_time, network_of, prepare
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.env.action import ActionReader, action_spec_of, checked_decide, listed, unit_divisors
from hpcgym.env.episode import EnvEpisode, SafMean, played_under
from hpcgym.env.observation import (
    EXPECTATIONS,
    Expectations,
    ObservationKind,
    flat_places,
    flat_space,
    observation_space,
    own_fields,
    state_keywords,
    static_fields,
)
from hpcgym.env.reward import AnyReward, Cost, as_reward, in_units, mean_cost
from hpcgym.env.scale import Scale, scale_of
from hpcgym.env.scenario.augment import chosen_episodes
from hpcgym.env.scenario.episodes import Episodes

if TYPE_CHECKING:
    from hpcgym.env.scenario.spec import Scenario

KEPT_JOBS = 600_000
"""Jobs of the episodes that stay prepared for their next draw: enough for 400 busy weeks."""

MOST_SLOTS = 2**20  # largest number of visible jobs; the observation has some 70 MB then

Invalid = Literal["first", "error", "penalty"]

PENALTY = 0.01  # what `invalid="penalty"` takes off a reward: with `"ratio"`, a hundredth of SAF's
AnyScenario: TypeAlias = "str | Path | Scenario | Episodes"  # whatever names a scenario


class Keywords(TypedDict, total=False):
    """The fields of `EnvConfig`, as type checkers want them for `**keywords`."""

    action: str | None
    decide: str | int | None
    reward: AnyReward
    baseline: str | None
    policies: Sequence[str] | None
    n_slots: int | None
    observation: ObservationKind
    expectations: Expectations | None
    fields: Sequence[str | OwnField]
    invalid: Invalid
    backfill: str | Backfill | None
    backfill_order: str | None
    weeks: str | None


_SEEN = sorted(Keywords.__annotations__.keys() - {"invalid", "reward", "baseline", "weeks"})


def refused_keyword(name: str, *others: str) -> str | None:
    """Return why no environment has a keyword, None if it has; it takes the others, too."""
    if name in Keywords.__annotations__:
        return None
    return unknown_name("keyword", name, (*others, *Keywords.__annotations__))


class Drawn(NamedTuple):
    """The episode that a reset begins, its name, and its number in the scenario; -1 = none."""

    label: str
    number: int
    episode: EnvEpisode


@dataclass(eq=False)
class EnvConfig:
    """The keywords of an environment, said once, and what follows from them.

    Environments of one scenario and the same keywords share a configuration, and with it the
    episodes that it keeps prepared.

    Args:
        action: See Action Space. None = `index`, or `weights` where the machine has nodes or the
            backfilling mode no kappa.
        decide: When the agent decides. `"contested"`: at passes where the order can matter.
            `"event"`: at every pass with a waiting job. A number: every so many seconds, for
            actions `index`, `weights`, `policy`, `controls`, `trials` and `price`; each pass in
            between uses the same rule. None = 14,400 for `index`, 3,600 for `price`, `"contested"`
            for the others.
        reward: See Rewards.
        baseline: Policy of the paired baseline; None = not paired.
        policies: Names a `policy` action chooses among; None = all but SMITH-URGENT, which is
            newer than this version of the environment.
        n_slots: Visible jobs; None = 8 for `index`, 32 for the others.
        observation: `"dict"`, `"flat"` or `"small"`; see Observation Space.
        expectations: Source of fields 15 to 17 of `jobs`: "records", those of the job's user,
            "regression", which learns from all jobs, or "urgency", the same with SMITH-URGENT's
            score. A step then takes up to twice as long. None = these fields are 0.
        fields: Further observation fields, by name: `user_share`, `user_usage`, `user_fair_share`,
            or your own, as given to `hpcgym.register_field`.
        invalid: What follows where action `job` names a slot that serves nothing now: `"first"`
            lets the first job of the base order stand for it; `"error"` raises an ActionError;
            `"penalty"` does as `"first"`, and takes 0.01 off the reward, which no term of infos
            holds.
        backfill: Backfilling mode in place of the scenario's: `"none"`, `"easy"`,
            `"conservative"`, `"depth:k=3"` and others of `hpcgym.core.backfill`. In modes that keep
            reservations (`"conservative:compress=shift"`), every pass with an arrival or an early
            end is a decision, and action `job` is refused. Also an object of your own
            (`hpcgym.OwnBackfill`), which is asked at every pass; two waiting jobs make a decision.
        backfill_order: Backfill order in place of the scenario's.
        weeks: Episodes to draw from: `"train"`, `"validation"` or `"test"`, or numbers such as
            `"1-15"`; `"short"` draws days of the training weeks. None = `"train"` where a scenario
            that is no `Episodes` states its parts, else all.

    Attributes:
        episodes: Episodes of the scenario.
        settings: The scheduler, with the keywords in place of the scenario's.
        slots: Visible jobs, as a number.
        reader: Reads actions; its `space` is the action space.
        controls: Whether observations show what an action of controls needs.
        own_fields: Further fields that observations show.
        parts: Numbers of the backfilling mode and of events, as `SchedulerSettings.parts`.
        pays_by_user: Whether rewards compare users.
        places: Where each part of an observation is in a flat one.
        expects: Whether a policy or the observation needs expected run times.
        observation_space: Space of observations.
        shown_terms: Keys in infos of the terms whose sum is the reward.
        names_slots: Whether an action names a slot: then infos show a mask, and count what it
            does not allow.
        action_spec: Function that returns how kernels read actions.

    Raises:
        ScenarioError: An unknown or contradictory keyword.
        PolicyError: An unknown policy, or two policies with different networks.
    """

    scenario: InitVar[AnyScenario]
    _: KW_ONLY
    action: str | None = None
    decide: str | int | None = None
    reward: AnyReward = "ratio"
    baseline: str | None = None
    policies: Sequence[str] | None = None
    n_slots: int | None = None
    observation: ObservationKind = "dict"
    expectations: Expectations | None = None
    fields: Sequence[str | OwnField] = ()
    invalid: Invalid = "first"
    backfill: str | Backfill | None = None
    backfill_order: str | None = None
    weeks: str | None = None

    def __post_init__(self, scenario: AnyScenario) -> None:
        """Check everything, so that nothing is refused once an episode has begun."""
        seen = {name: getattr(self, name) for name in _SEEN}
        given = {name: value for name, value in seen.items() if value != getattr(EnvConfig, name)}
        self._reward = as_reward(self.reward)
        self.own_fields = own_fields(self.fields)
        self.episodes = scenario if isinstance(scenario, Episodes) else Episodes(scenario)
        self.action = self._usual_action() if self.action is None else self.action
        kind = kind_of(self.action)
        self._refuse_contradictions(kind)
        if self.weeks is None and self.episodes is not scenario and self.episodes.parts:
            self.weeks = "train"
        if self.weeks is not None:
            self.episodes = chosen_episodes(self.episodes, self.weeks)
        usual = kind.usual_mode(self.episodes.settings.backfill)
        mode = usual if self.backfill is None else self.backfill
        self.settings = _overridden(self.episodes.settings, mode, self.backfill_order)
        kept = as_backfill(self.settings.backfill)
        self.machine = self.episodes.scenario.machine.nodes
        kind.refuse(kept)
        if self.settings.moves_estimates:
            raise ScenarioError(
                f"estimates {self.settings.estimates!r} with correction "
                f"{self.settings.correction!r} change while the simulation runs, and observations "
                "do not show them; allowed are 'requested', 'exact', 'doubled' and 'f-model:f=..' "
                "without a correction. hpcgym.simulate and hpcgym.evaluate run rules with any"
            )
        action = kind(self.slots, self.policies)
        self.reader, chosen = ActionReader(action), action.policies
        self.pays_by_user, self.metric = self._reward.is_by_user, self._reward.metric
        prices = [each for each in as_events(self.settings.events) if hasattr(each, "premium")]
        if self._reward.charges and not prices:
            raise ScenarioError(
                f"reward {self._reward.name!r} needs the event 'price', as in [scheduler] "
                'events = "price:seed=1"'
            )
        self.price: Any = prices[0] if prices else None
        self._base = base = as_policy(self.settings.policy)
        backfill_policy = as_policy(self.settings.backfill_order or base)
        policies = (*chosen, base, backfill_policy)
        read = any(policy.expects for policy in policies) or kept.expects
        self.expects = bool(self.expectations) or read
        network_of(policies)  # refuses two networks
        self.decide = self._epochs = checked_decide(self.decide, kind)
        self._extra_policies = [*chosen, base] if base.expects else chosen
        self._baseline = self._baseline_settings()
        # Slots show jobs in SAF order; usage is kept for the base order and for fields.
        events = (*kind.events_of(as_events(self.settings.events)), *self._usage())
        self._shown = replace(self.settings, policy="SAF", events=events)
        self.parts = self._shown.parts(self.machine is not None)
        self._saf = replace(self.episodes.settings, policy="SAF")  # by the scenario's own mode
        processors = self.episodes.scenario.machine.processors
        largest = self.episodes.largest_request
        divisor = unit_divisors(processors, largest, self.settings.threshold)
        self.action_spec = partial(action_spec_of, action, base, divisor, kept.row())
        self.action_spec()  # refuses policies that a step cannot run
        space_of = observation_space if self.observation == "dict" else flat_space
        self.shows_small = self.observation == "small"
        if self.machine is not None:
            kind.refuse_on_nodes()
        self._kind, self.controls = kind, kind.SHOWS_CONTROLS
        if kind.FIELDS is not None and self.own_fields:
            raise ScenarioError(f"action {self.action!r} shows fields of its own; leave fields out")
        shows = kind.SHOWS_TRIALS, SmallField if self.shows_small else kind.FIELDS
        shown = self.slots, self.machine, self.controls, self.own_fields, *shows
        self.observation_space: spaces.Space[Any] = space_of(*shown)
        self.places = flat_places(*shown)
        state_keywords(given | {"action": self.action}, self.observation_space, self.reader.space)
        self.shown_terms: tuple[str, ...] = ()
        if self.baseline is not None:
            self.shown_terms = ("agent_term", "baseline_term")
        if self._reward.is_terminal:
            self.shown_terms = ("compared_term",)
        self.names_slots = action.names_slot
        self._numbers = dict(zip(self.episodes.labels, self.episodes.numbers, strict=True))
        self._kept: OrderedDict[int, EnvEpisode] = OrderedDict()
        self._n_kept = 0

    def _usual_action(self) -> str:
        """Return the kind of action where the keyword names none."""
        settings = self.episodes.settings
        limited = any(event.WITHHOLDS for event in as_events(settings.events))
        if limited or self.episodes.scenario.machine.nodes is not None:
            return "weights"
        mode = Index.usual_mode(settings.backfill)
        return (
            "index" if Index.serves(mode if self.backfill is None else self.backfill) else "weights"
        )

    def _usage(self) -> list[Event]:
        """Return what keeps usage for the base order or fields, unless a backfill order does."""
        asked = [field.keeps for field in self.own_fields if field.keeps is not None]
        kept = self.settings.kept or tuple(asked[:1])
        if kept and as_backfill(self.settings.backfill).requeues:
            raise ScenarioError(
                f"fields of usage know no trials; got backfill '{self.settings.backfill}'"
            )
        order = self.settings.backfill_order
        is_kept = order is not None and as_policy(order).keeps is not None
        return [] if is_kept else list(kept)

    def _refuse_contradictions(self, kind: type[Action]) -> None:
        """Refuse keywords that are wrong whatever the scenario is."""
        n_slots = kind.USUAL_SLOTS if self.n_slots is None else self.n_slots
        refuse_unless_whole("n_slots", n_slots, 1, MOST_SLOTS, ScenarioError)
        self.slots = int(n_slots)
        if self.invalid not in get_args(Invalid):
            raise ScenarioError(unknown_name("invalid", str(self.invalid), get_args(Invalid)))
        if self.observation not in get_args(ObservationKind):
            kinds = get_args(ObservationKind)
            raise ScenarioError(unknown_name("observation", str(self.observation), kinds))
        if self.observation == "small":
            self._refuse_beside_small(kind)
        known = (None, *EXPECTATIONS)
        if not isinstance(self.expectations, (str, type(None))) or self.expectations not in known:
            raise ScenarioError(unknown_name("expectations", str(self.expectations), EXPECTATIONS))
        given = {"policies": self.policies is not None, "invalid": self.invalid != "first"}
        for key, is_given in given.items():
            if is_given and key not in kind.TAKES:
                takers = listed(name for name in loaders.ACTIONS if key in kind_of(name).TAKES)
                raise ScenarioError(f"{key!r} belongs to action {takers}, not to {self.action!r}")

    def _refuse_beside_small(self, kind: type[Action]) -> None:
        """Refuse what a small observation does not show, or what names what it does not show."""
        shows_more = kind.SHOWS_CONTROLS or kind.SHOWS_TRIALS or kind.FIELDS is not None
        if kind.SIZE == "n_slots" or shows_more:
            raise ScenarioError(
                f"action {self.action!r} needs what observation 'small' does not show; choose "
                "'flat', or action 'index', 'weights' or 'policy'"
            )
        needless: dict[str, Any] = {"n_slots": self.n_slots, "expectations": self.expectations}
        needless["fields"] = self.own_fields or None
        for key, given in needless.items():
            if given is not None:
                raise ScenarioError(f"observation 'small' shows no {key}; leave {key} out")
        if self.episodes.scenario.machine.nodes is not None:
            raise ScenarioError(
                "observation 'small' counts processors; a machine of nodes takes 'dict' or 'flat'"
            )

    def _baseline_settings(self) -> SchedulerSettings | None:
        """Return the baseline's scheduler, None without one; refuse a reward that lacks it."""
        if self.baseline is not None and self._reward.is_by_user:
            raise ScenarioError(
                f"reward {self._reward.name!r} compares users, and takes no baseline off; leave "
                "baseline out, or choose reward 'ratio'"
            )
        if self.baseline is not None:
            return replace(self.settings, policy=as_policy(self.baseline))
        if self._reward.needs_baseline:
            raise ScenarioError(
                f"reward {self._reward.name!r} compares with a baseline; name one, say 'SAF'"
            )
        return None

    def refuse_cut(self) -> None:
        """Raise a ScenarioError unless the reward lets a time limit cut episodes short."""
        self._reward.refuse_cut()

    @cached_property
    def scale(self) -> Scale | None:
        """The scale of this problem, read where an episode first ends; None where none is known."""
        if self.backfill_order is not None:
            return None
        mode = "" if self.backfill is None else str(self.backfill)
        return scale_of(self.episodes.scenario.name, str(self.action), mode, self.episodes.settings)

    def gap_closed(
        self, number: int, jobs: Workload, metrics: Mapping[str, float]
    ) -> dict[str, float]:
        """Return `gap_closed` of an episode that is over, by what infos say of it; or nothing.

        Source: Specification, section 10, "Gap closed".
        """
        if number < 0 or not metrics["complete"] or self.scale is None:
            return {}
        gap = self.scale.gap_closed(number, jobs, metrics[self.scale.metric])
        return {} if gap is None else {"gap_closed": gap}

    def draw(self, options: dict[str, Any], generator: np.random.Generator) -> Drawn:
        """Return the episode that the options of a reset name, or a drawn one.

        Args:
            options: `{"episode": number or label}`, `{"workload": jobs}`, or none.
            generator: Moved on only if the options name nothing.

        Raises:
            ScenarioError: An unknown option or episode, or jobs for a machine of another size.

        Source: Specification, section 10, "Episodes".
        """
        if not isinstance(options, Mapping):
            raise ScenarioError(f"reset options must be a dict, got {options!r}")
        for key in options:
            if key not in ("episode", "workload"):
                raise ScenarioError(unknown_name("reset option", key, ("episode", "workload")))
        if len(options) > 1:
            raise ScenarioError("reset options 'episode' and 'workload' exclude each other")
        number = -1
        if "workload" in options:
            workload = options["workload"]
            if not isinstance(workload, Workload):
                raise ScenarioError(f"option 'workload' must be a Workload, got {workload!r}")
            label = workload.name
        elif "episode" in options:
            position = self.episodes.position(options["episode"])
            label, workload = self.episodes.labels[position], self.episodes.workload(position)
            number = self.episodes.numbers[position]
        else:
            label, workload = self.episodes.draw(generator)
            number = self._numbers.get(label, -1)
        episode = self.episode_of(workload)
        _ = episode.reward_plan  # simulates the baseline, which may fail, before anything begins
        return Drawn(label, number, episode)

    def episode_of(self, workload: Workload) -> EnvEpisode:
        """Return the episode of a workload, the same one again while it is kept.

        Raises:
            ScenarioError: The workload was made for a machine of another size.
        """
        kept = self._kept.get(id(workload))
        if kept is not None:
            self._kept.move_to_end(id(workload))
            return kept
        episode = self._prepare(workload)
        self._kept[id(workload)] = episode
        self._n_kept += len(workload)
        while self._n_kept > KEPT_JOBS and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._n_kept -= dropped.n_jobs
        return episode

    def _prepare(self, workload: Workload) -> EnvEpisode:
        machine = self.episodes.scenario.machine.processors
        if workload.machine_processors != machine:
            raise ScenarioError(
                f"{workload.name} was made for {workload.machine_processors} processors; the "
                f"scenario's machine has {machine}"
            )
        if workload.machine != self.machine:
            no_nodes = "a machine without nodes"
            raise ScenarioError(
                f"{workload.name} was made for {workload.machine or no_nodes}; the scenario has "
                f"{self.machine or no_nodes}"
            )
        settings, largest = self._shown, self.episodes.largest_request
        run_time = executed_run_time(workload, settings.kill_at_limit)
        cost = self._reward.cost_of(workload, run_time)
        saf = SafMean(self._saf, workload, run_time)
        if self._reward.by_baseline:
            if self._baseline is None:
                cost = in_units(cost, saf.value)
            else:
                rule = dependencies_of(workload, settings)
                cost = in_units(cost, mean_cost(played_under(self._baseline, workload, rule, cost)))
        cost = self._charged(cost, workload, run_time, saf)
        estimate = estimates_of(workload, settings)
        prepared = prepare(
            workload,
            settings,
            decide=self._epochs,
            extra_policies=self._extra_policies,
            keep_history=not self.shows_small,
            largest_request=largest,
            reward_rate=cost.rate,
            reward_onset=np.ascontiguousarray(cost.onset),
            field=static_fields(estimate, estimate, workload.processors, machine, largest),
        )
        if self.expectations:
            prepared.setting.show_expected = EXPECTATIONS[self.expectations]
            prepared.setting.expect |= EXPECTATIONS[self.expectations]
        prepared.setting.show_controls = int(self.controls)
        if cost.charge is not None:
            table = prepared.table._replace(reward_charge=cost.charge)
            prepared = replace(prepared, table=table)
        prepared.setting.show_event = int(self._kind.FIELDS is not None)
        prepared.setting.show_small = int(self.shows_small)
        prepared.setting.keep_users = int(self.pays_by_user)
        if self._base.constant is not None:
            prepared.table.keys[:, 0] = checked_keys(workload, self._base)  # SAF has none
        if self._kind.SHOWS_TRIALS:
            prepared.setting.show_trials = 1
            prepared.setting.hears |= s.ON_END  # run times of completed jobs are counted
        return EnvEpisode(
            prepared, self._reward, cost, self._baseline, saf, self.own_fields, self.price
        )

    def _charged(
        self, cost: Cost, workload: Workload, run_time: NDArray[np.int64], saf: SafMean
    ) -> Cost:
        """Return the cost with what starts cost, in units of SAF's cost, if the reward charges."""
        if not self._reward.charges:
            return cost
        price = self.price
        bill = price.energy(workload, saf.played.start_time, run_time)[1]
        charge = price.charge(workload) * (price.weight * len(workload) / bill)
        return cost._replace(
            charge=charge, premium=partial(price.premium, workload, run_time=run_time)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the kept episodes, whose keys are addresses of this process."""
        return self.__dict__ | {"_kept": OrderedDict(), "_n_kept": 0}


def _overridden(
    settings: SchedulerSettings, backfill: str | Mode, backfill_order: str | None
) -> SchedulerSettings:
    """Return the scenario's settings with what the caller sets in their place."""
    mode = as_mode(backfill)
    if not isinstance(mode, Backfill):
        raise ScenarioError(
            f"backfill '{mode}' {mode.REASON}, which a step cannot run; hpcgym.simulate and "
            "hpcgym.evaluate do"
        )
    order = settings.backfill_order if backfill_order is None else backfill_order
    if not mode.TAKES_ORDER and backfill_order is None:
        order = None  # the scenario's went with its mode
    settings = replace(settings, backfill=mode, backfill_order=order)
    if order is not None and as_policy(order).is_python:
        raise ScenarioError(
            f"backfill order {as_policy(order).name!r} orders in Python, which a step "
            "cannot run; register it by keys instead"
        )
    return settings
