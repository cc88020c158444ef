"""Runs of agents: the same weeks and the same jittered copies of them for every agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import EvaluationError, PolicyError, ScenarioError, refuse_unless_whole
from hpcgym.base.progress import steps
from hpcgym.core.action import kind_of
from hpcgym.core.dependencies import dependencies_of
from hpcgym.core.events import as_events
from hpcgym.core.policy import AnyPolicy, as_policy
from hpcgym.core.prepare import refuse_on_nodes
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import store
from hpcgym.evaluation.content import content_digest
from hpcgym.evaluation.on_nodes import metrics_on_nodes
from hpcgym.evaluation.store import Row, digest
from hpcgym.evaluation.waits import packed
from hpcgym.schedule.lost import refuse_lost, without_run
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.resample import jitter as jittered

if TYPE_CHECKING:
    from hpcgym.agent.own import Trainer
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.env.scheduling import SchedulingEnv

RATIO_BASELINE = "SAF"  # agent every ratio is taken to
WAITS = "waits"  # column of the packed waits of a run; see `hpcgym.evaluation.waits`

AnyAgent: TypeAlias = RuleAgent | NamedAgent

AgentT = TypeVar("AgentT", bound="AnyAgent | Trainer")

Task: TypeAlias = tuple[int, int]  # position of a week, position of an agent


@dataclass(frozen=True)
class Copies:
    """Jittered copies of weeks, the same for every agent.

    Raises:
        EvaluationError: Copies without jitter or jitter without copies, or a number out of range.
    """

    jitter: int = 0  # largest shift of a submit time in a copy, s
    replicas: int = 0  # copies of each week, besides the original
    seed: int = 0  # seed of the copies, and of what else is drawn in an evaluation

    def __post_init__(self) -> None:
        for name in ("jitter", "replicas"):
            refuse_unless_whole(name, getattr(self, name), error=EvaluationError)
        if (self.jitter > 0) != (self.replicas > 0):
            raise EvaluationError(
                f"jitter is {self.jitter} s and replicas {self.replicas}; copies of a week need "
                "both above 0 (such as 600 and 10), the original alone needs neither"
            )
        refuse_unless_whole("a seed", self.seed, most=inf, error=EvaluationError)


def misfits(agents: Sequence[AnyAgent], episodes: Episodes) -> dict[str, str]:
    """Return the agents that cannot schedule some episodes, and why.

    Those are agents that count processors, on a machine of nodes; agents that know no jobs that
    wait for others, or are held; and those of the price where there is none.
    """
    workload, waits = episodes.workload(0), episodes.settings.dependencies != "ignore"
    is_plain = episodes.scenario.machine.nodes is None and not waits and workload.eligible is None
    reasons = {}
    for agent in agents:
        try:
            action = None if isinstance(agent, RuleAgent) else agent.env_keywords.get("action")
            if action is not None:
                kind_of(action).events_of(as_events(episodes.settings.events))
            if is_plain:
                continue
            for settings in _settings_of(agent, episodes.settings):
                dependencies_of(workload, settings)
                if workload.machine is not None:
                    refuse_on_nodes(workload, settings)
            if workload.machine is not None and action is not None:
                kind_of(action).refuse_on_nodes()
        except (PolicyError, ScenarioError) as error:
            reasons[agent.name] = str(error)
    return reasons


def _settings_of(agent: AnyAgent, scenario: SchedulerSettings) -> list[SchedulerSettings]:
    """Return a scenario's settings with what an agent may state in their place."""
    if isinstance(agent, RuleAgent):
        return [choice.settings(scenario) for choice in agent.choices]
    keys = ("backfill", "backfill_order")
    stated = {key: agent.env_keywords[key] for key in keys if key in agent.env_keywords}
    return [replace(scenario, **stated)]


def loaded(agents: Iterable[str | AgentT], load: Callable[[str], AgentT]) -> list[AgentT]:
    """Return agents that are given or named, by a function that loads them; no name twice."""
    every = [load(agent) if isinstance(agent, str) else agent for agent in agents]
    names = [agent.name for agent in every]
    for name in names:
        if names.count(name) > 1:
            raise EvaluationError(f"two agents are called {name}; each name may stand once")
    return every


def refuse_namesake(agent: AnyAgent | Trainer, settings: SchedulerSettings) -> None:
    """Refuse an agent that has the name of a rule on the shelf and is not that rule.

    It is that rule if it chooses the same policy under the same settings.

    Raises:
        EvaluationError: It is not that rule.
    """
    # what a ratio is taken to must be the same in every table
    shelved = load_agent(agent.name)
    assert isinstance(shelved, RuleAgent)
    if not isinstance(agent, RuleAgent) or _chosen(agent, settings) != _chosen(shelved, settings):
        raise EvaluationError(
            f"an agent called {agent.name} is not the {agent.name} of the shelf, and tables would "
            "take it for that; give it another name"
        )


_week_digests: WeakKeyDictionary[Workload, dict[tuple[int, str, str], str]] = WeakKeyDictionary()
"""Digests of weeks so far in this process, by number, label and settings: agents share weeks."""


@dataclass
class Runner:
    """Runs one agent on one week and its copies; pickled once for all workers."""

    agents: list[AnyAgent]
    episodes: Episodes
    copies: Copies = Copies()
    # The environments played in so far, by position of the agent.
    envs: dict[int, SchedulingEnv] = field(default_factory=dict)
    # What rules that differ from week to week are, by task.
    rules: dict[Task, RuleAgent] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what another process works out anew."""
        return {"agents": self.agents, "episodes": self.episodes, "copies": self.copies} | {
            "envs": {},
            "rules": {},
        }

    @cached_property
    def settings_digest(self) -> str:
        """Digest of what decides a run beside agent and jobs."""
        return content_digest((store.versions(), self.episodes.settings, astuple(self.copies)))

    @cached_property
    def agent_digests(self) -> list[str]:
        """Digest of what each agent is, before it plays."""
        return [content_digest(agent) for agent in self.agents]

    def run(self, task: Task) -> list[Row]:
        """Return the metrics of one agent on one week, one row per replica."""
        week, agent = task
        number, label = self.episodes.numbers[week], self.episodes.labels[week]
        rows = []
        replicas = range(self.copies.replicas + 1)
        with steps(len(replicas)) as work:
            for replica in replicas:
                workload = self.replica(week, replica)
                schedule = self.schedule(agent, week, workload)
                refuse_lost(schedule)
                key = {"agent": self.agents[agent].name, "week": number, "label": label}
                metrics = {**schedule.metrics(), **metrics_on_nodes(schedule)}
                waits = packed(schedule.wait_time[~without_run(schedule)])
                rows.append({**key, "replica": replica, **metrics, WAITS: waits})
                work.advance()
        return rows

    def key(self, task: Task) -> str:
        """Return the digest of all that decides the rows of a task."""
        week, agent = task
        entrant, rule = self.agents[agent], self.rule(task)
        in_week = self.agent_digests[agent] if rule in (None, entrant) else content_digest(rule)
        return content_digest((self.week_digest(week), in_week))

    def week_digest(self, week: int) -> str:
        """Return the digest of a week's jobs and copies, worked out once in a process."""
        workload, numbers = self.episodes.workload(week), self.episodes.numbers
        stated = numbers[week], self.episodes.labels[week], self.settings_digest
        digests = _week_digests.setdefault(workload, {})
        if stated not in digests:
            digests[stated] = digest(
                workload,
                self.episodes.settings,
                stated[:2],
                astuple(self.copies),
                WAITS,  # rows of another form have another key
            )
        return digests[stated]

    def named(self, task: Task) -> str:
        """Return what messages call a task."""
        week, agent = task
        return f"{self.agents[agent].name} on {self.episodes.labels[week]}"

    def rule(self, task: Task) -> RuleAgent | None:
        """Return the rule that an agent follows in a week, None where it follows none."""
        week, agent = task
        entrant = self.agents[agent]
        if not isinstance(entrant, RuleAgent):
            return None
        if task not in self.rules:
            self.rules[task] = entrant.in_week(self.episodes, week)
        return self.rules[task]

    def replica(self, week: int, replica: int) -> Workload:
        """Return a week (replica 0) or a jittered copy, the same in every process.

        Source: Tsafrir, Ouaknine, Feitelson 2007 (input shaking).
        """
        workload = self.episodes.workload(week)
        if replica == 0:
            return workload
        generator = np.random.default_rng([self.copies.seed, self.episodes.numbers[week], replica])
        return jittered(workload, generator, seconds=self.copies.jitter)

    def schedule(self, position: int, week: int, workload: Workload) -> Schedule:
        """Let an agent schedule a week or a copy: a rule in the simulator, others in their env."""
        agent, rule = self.agents[position], self.rule((week, position))
        if rule is not None:
            return simulate(workload, **vars(rule.settings(self.episodes.settings)))
        if position not in self.envs:
            from hpcgym.env.scheduling import SchedulingEnv

            self.envs[position] = SchedulingEnv(scenario=self.episodes, **agent.env_keywords)
        return play(agent, self.envs[position], workload)


def play(agent: AnyAgent, env: SchedulingEnv, workload: Workload) -> Schedule:
    """Let an agent play one episode deterministically, in an environment with its keywords.

    Source: Stable-Baselines3, `evaluate_policy`.
    """
    observation, _ = env.reset(options={"workload": workload})
    state, start, done = None, np.ones(1, dtype=np.bool_), False
    while not done:
        action, state = agent.predict(observation, state, start, True)
        observation, _, terminated, truncated, _ = env.step(action)
        start, done = np.zeros(1, dtype=np.bool_), terminated or truncated
    return env.schedule()


def _chosen(agent: RuleAgent, settings: SchedulerSettings) -> dict[str, object]:
    """Return the settings of a rule's scheduler, in a form in which equal policies are equal."""
    chosen = vars(agent.settings(settings))
    return chosen | {key: _what_it_is(chosen[key]) for key in ("policy", "backfill_order")}


def _what_it_is(policy: AnyPolicy | None) -> object:
    """Return what a policy orders by, without its name."""
    if policy is None:
        return None
    parsed = as_policy(policy)
    numbers = [
        None if some is None else some.tolist() for some in (parsed.parameters, parsed.network)
    ]
    return parsed.order, parsed.keys, parsed.formula, parsed.chooser, numbers
