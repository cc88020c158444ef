"""Runs of agents: the same weeks and the same jittered copies of them for every agent."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, MutableSequence, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.contest import contest_of
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.agent.training_weeks import refuse_training_weeks
from hpcgym.core.nodes import refuse_on_nodes
from hpcgym.core.policy import AnyPolicy, as_policy
from hpcgym.core.workload import Workload
from hpcgym.errors import EvaluationError, PolicyError, refuse_unless_a, refuse_unless_whole
from hpcgym.evaluation.content import content_digest
from hpcgym.evaluation.on_nodes import metrics_on_nodes
from hpcgym.evaluation.results import Evaluation
from hpcgym.evaluation.store import Row, Store, digest
from hpcgym.evaluation.waits import packed, waits_of
from hpcgym.evaluation.workers import as_finished, no_shares, refuse_unpicklable, workers
from hpcgym.progress import shown, steps
from hpcgym.scenario.episodes import Episodes
from hpcgym.schedule import Schedule, simulate
from hpcgym.trace.resample import jitter as jittered

if TYPE_CHECKING:
    from hpcgym.agent.trainers import Trainer
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.env.scheduling import SchedulingEnv
    from hpcgym.scenario.spec import Scenario

DEFAULT_SCENARIO = "synthetic-256-weeks"
"""Scenario of an evaluation that names none; bundled."""

MOST_PROCESSES = 4096

RATIO_BASELINE = "SAF"
"""Agent every ratio is taken to."""

WAITS = "waits"
"""Column of the packed waits of a run; see `hpcgym.evaluation.waits`."""

AnyAgent: TypeAlias = RuleAgent | NamedAgent

Task: TypeAlias = tuple[int, int]
"""Position of a week, position of an agent."""


def evaluate(
    agents: Sequence[str | AnyAgent],
    scenario: str | Path | Scenario | Episodes = DEFAULT_SCENARIO,
    *,
    weeks: str | None = None,
    jitter: int = 0,
    replicas: int = 0,
    seed: int = 0,
    processes: int = 1,
    resume: str | Path | None = None,
    progress: bool = True,
) -> Evaluation:
    """Run agents on the weeks of a scenario, and compare each with SAF in pairs.

    Each week is run as it is and on `replicas` copies whose submit times are jittered, the same
    copies for every agent. The scenario's threshold, backfilling and estimates hold for all, except
    what an agent's card states. Rules run in the simulator, all other agents through the
    environment, which would give a rule the same schedule. SAF is added where it is not named.
    Agents that count processors are left out where the machine has nodes; the result names them.

    Args:
        agents: Names on the shelf, names of registered policies, weights such as "e=1,q=0.5", or
            agents; no name twice.
        scenario: A name, a path, a scenario, or its episodes.
        weeks: Numbers of the weeks to run, such as "65-100"; default all.
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies and of the bootstrap.
        processes: How many processes share the weeks; the result is the same. With more than one,
            a script must guard its entry with `if __name__ == "__main__"`.
        resume: File that keeps finished weeks, and from which an interrupted run goes on; see
            `hpcgym.evaluation.store`.
        progress: Whether to show progress: a bar on a terminal, elsewhere a line a minute.

    Raises:
        EvaluationError: No agent, one name twice, another agent under the name SAF, copies without
            jitter or jitter without copies, a negative seed, or a `resume` that is no store. Or
            none of the agents can schedule the scenario's machine.
        CardError: No such agent, or a week is one it was trained on or adjacent to one.
        ScenarioError: No such scenario or week.

    Source: Specification, section 10, "Evaluation protocol", steps 2 to 4; input shaking: Tsafrir,
        Ouaknine, Feitelson 2007.

    Example:
        >>> evaluate(["FCFS"], "tiny", progress=False).frame[["agent", "n_jobs"]]
          agent  n_jobs
        0  FCFS       8
        1   SAF       8
    """
    check_numbers(jitter, replicas, seed, processes)
    every = scenario if isinstance(scenario, Episodes) else Episodes(scenario)
    episodes = every if weeks is None else every.select(weeks)
    given = _named(agents)
    left_out = misfits(given, episodes)
    named = [agent for agent in given if agent.name not in left_out]
    if len(left_out) == len(agents):
        reasons = "; ".join(left_out.values())
        raise EvaluationError(f"no agent can schedule {episodes.scenario.name}: {reasons}")
    for agent in named:
        refuse_training_weeks(agent, every, episodes.numbers)
        if agent.name == RATIO_BASELINE:
            refuse_namesake(agent, episodes.settings)
    runner = Runner(named, episodes, jitter, replicas, seed)
    tasks = [(week, agent) for week in range(len(episodes)) for agent in range(len(runner.agents))]
    if resume is not None:
        refuse_unless_a((str, os.PathLike), "resume", resume, "a path or None", EvaluationError)
    store = None if resume is None else Store(resume)
    rows = run_tasks(runner, tasks, store=store, processes=processes, progress=progress)
    import pandas as pd

    frame = pd.DataFrame([row for some in rows for row in some])
    return Evaluation(
        waits=waits_of(frame, frame.pop(WAITS)),
        frame=frame,
        scenario=episodes.scenario.name,
        threshold=episodes.settings.threshold,
        contests={one.name: contest_of(one, episodes.settings) for one in runner.agents},
        baseline=RATIO_BASELINE,
        jitter=jitter,
        replicas=replicas,
        seed=seed,
        left_out=left_out,
    )


def misfits(agents: Sequence[AnyAgent], episodes: Episodes) -> dict[str, str]:
    """Return the agents that cannot schedule the machine of some episodes, and why.

    Those are agents that count processors, on a machine of nodes.

    Example:
        >>> misfits([load_agent("DYNP")], Episodes("hetero-64-weeks"))["DYNP"]
        'DYNP plans with counts of processors; it cannot schedule a machine of nodes'
    """
    if episodes.scenario.machine.nodes is None:
        return {}
    found = {}
    for agent in agents:
        try:
            refuse_on_nodes(episodes.workload(0), _settings_of(agent, episodes.settings))
        except PolicyError as error:
            found[agent.name] = str(error)
    return found


def _settings_of(agent: AnyAgent, scenario: SchedulerSettings) -> SchedulerSettings:
    """Return a scenario's settings with what an agent states in their place."""
    if isinstance(agent, RuleAgent):
        return agent.settings(scenario)
    keys = ("backfill", "backfill_order")
    return replace(
        scenario, **{key: agent.env_keywords[key] for key in keys if key in agent.env_keywords}
    )


def check_numbers(jitter: int, replicas: int, seed: int, processes: int) -> None:
    """Refuse copies without jitter or jitter without copies, and numbers out of range."""
    for name, number in (("jitter", jitter), ("replicas", replicas)):
        refuse_unless_whole(name, number, error=EvaluationError)
    if (jitter > 0) != (replicas > 0):
        raise EvaluationError(
            f"jitter is {jitter} s and replicas {replicas}; copies of a week need both above 0 "
            "(such as 600 and 10), the original alone needs neither"
        )
    refuse_unless_whole("a seed", seed, most=inf, error=EvaluationError)
    refuse_unless_whole("processes", processes, 1, MOST_PROCESSES, EvaluationError)


def refuse_one_name_twice(agents: Sequence[AnyAgent | Trainer]) -> None:
    """Refuse two agents of one name."""
    names = [agent.name for agent in agents]
    for name in names:
        if names.count(name) > 1:
            raise EvaluationError(f"two agents are called {name}; each name may stand once")


def refuse_namesake(agent: AnyAgent | Trainer, settings: SchedulerSettings) -> None:
    """Refuse an agent that has the name of a rule on the shelf and is not that rule.

    It is that rule if it chooses the same policy under the same settings.

    Raises:
        EvaluationError: It is not that rule.
    """
    # what a ratio is taken to must be the same in every table
    own = load_agent(agent.name)
    assert isinstance(own, RuleAgent)
    if not isinstance(agent, RuleAgent) or _chosen(agent, settings) != _chosen(own, settings):
        raise EvaluationError(
            f"an agent called {agent.name} is not the {agent.name} of the shelf, and tables would "
            "take it for that; give it another name"
        )


@dataclass
class Runner:
    """Runs one agent on one week and its copies; pickled once into every process.

    Attributes:
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies.
        envs: The environments played in so far, by position of the agent.
    """

    agents: list[AnyAgent]
    episodes: Episodes
    jitter: int
    replicas: int
    seed: int
    envs: dict[int, SchedulingEnv] = field(default_factory=dict)

    @cached_property
    def agent_digests(self) -> list[str]:
        """Digest of what each agent is, before it plays."""
        return [content_digest(agent) for agent in self.agents]

    def run(self, task: Task) -> list[Row]:
        """Return the metrics of one agent on one week, one row per replica."""
        week, agent = task
        number, label = self.episodes.numbers[week], self.episodes.labels[week]
        rows = []
        with steps(self.replicas + 1) as work:
            for replica in range(self.replicas + 1):
                workload = self.replica(week, replica)
                schedule = self.schedule(agent, workload)
                key = {"agent": self.agents[agent].name, "week": number, "label": label}
                metrics = {**schedule.metrics(), **metrics_on_nodes(schedule)}
                waits = packed(schedule.wait_time)
                rows.append({**key, "replica": replica, **metrics, WAITS: waits})
                work.advance()
        return rows

    def key(self, task: Task) -> str:
        """Return the digest of all that decides the rows of a task."""
        week, agent = task
        return digest(
            self.episodes.workload(week),
            self.agent_digests[agent],
            self.episodes.settings,
            (self.episodes.numbers[week], self.episodes.labels[week]),
            (self.jitter, self.replicas, self.seed),
            WAITS,  # rows of another form have another key
        )

    def replica(self, week: int, replica: int) -> Workload:
        """Return a week (replica 0) or a jittered copy, the same in every process.

        Source: Tsafrir, Ouaknine, Feitelson 2007 (input shaking).
        """
        workload = self.episodes.workload(week)
        if replica == 0:
            return workload
        generator = np.random.default_rng([self.seed, self.episodes.numbers[week], replica])
        return jittered(workload, generator, seconds=self.jitter)

    def schedule(self, position: int, workload: Workload) -> Schedule:
        """Let an agent schedule a workload: a rule in the simulator, any other in its env."""
        agent = self.agents[position]
        if isinstance(agent, RuleAgent):
            return simulate(workload, **vars(agent.settings(self.episodes.settings)))
        if position not in self.envs:
            from hpcgym.env.scheduling import SchedulingEnv

            self.envs[position] = SchedulingEnv(scenario=self.episodes, **agent.env_keywords)
        return play(agent, self.envs[position], workload)


def run_tasks(
    runner: Runner,
    tasks: Sequence[Task],
    *,
    store: Store | None,
    processes: int,
    progress: bool,
) -> list[list[Row]]:
    """Return the rows of each task, and keep each task's rows as soon as it is finished.

    Raises:
        EvaluationError: An agent cannot be sent to another process.
        OutputError: The store cannot be written.
    """
    keys = ["" if store is None else runner.key(task) for task in tasks]
    kept = [None if store is None else store.find(key) for key in keys]
    todo = [place for place, found in enumerate(kept) if found is None]
    shares = None if processes == 1 else no_shares(len(todo))
    rows = list(kept)
    with (
        closing(_run_all(runner, [tasks[place] for place in todo], processes, shares)) as fresh,
        shown(progress),
        steps(len(tasks), runner.episodes.scenario.name, "runs", shares=shares) as work,
    ):
        work.advance(len(tasks) - len(todo))
        for place, some in fresh:
            if store is not None:
                store.keep(keys[todo[place]], some)
            rows[todo[place]] = some
            work.advance()
    return [some for some in rows if some is not None]


def play(agent: AnyAgent, env: SchedulingEnv, workload: Workload) -> Schedule:
    """Let an agent play one episode deterministically, and return its schedule.

    Args:
        env: The environment, created with the keywords that the agent needs.

    Source: Stable-Baselines3, `evaluate_policy`.
    """
    observation, _ = env.reset(options={"workload": workload})
    state, start, done = None, np.ones(1, dtype=np.bool_), False
    while not done:
        action, state = agent.predict(observation, state, start, True)
        observation, _, terminated, truncated, _ = env.step(action)
        start, done = np.zeros(1, dtype=np.bool_), terminated or truncated
    return env.schedule()


def _named(agents: Sequence[str | AnyAgent]) -> list[AnyAgent]:
    """Return the agents, with the baseline that ratios are taken to."""
    refuse_unless_a(Iterable, "agents", agents, "a list of at least one agent", EvaluationError)
    if isinstance(agents, (str, bytes)) or not len(agents):
        raise EvaluationError(f"give a list of at least one agent, got {agents!r}")
    for agent in agents:
        if not isinstance(agent, str) and not hasattr(agent, "name"):
            raise EvaluationError(
                f"an agent must be a name or have one (NamedAgent), got {agent!r}"
            )
    named = [load_agent(agent) if isinstance(agent, str) else agent for agent in agents]
    refuse_one_name_twice(named)
    has_baseline = any(agent.name == RATIO_BASELINE for agent in named)
    return named if has_baseline else [*named, load_agent(RATIO_BASELINE)]


def _chosen(agent: RuleAgent, settings: SchedulerSettings) -> dict[str, object]:
    """Return the settings of a rule's scheduler, in a form in which equal policies are equal."""
    chosen = vars(agent.settings(settings))
    return chosen | {key: _what_it_is(chosen[key]) for key in ("policy", "backfill_order")}


def _what_it_is(policy: AnyPolicy | None) -> object:
    """Return what a policy orders by, without its name."""
    if policy is None:
        return None
    own = as_policy(policy)
    numbers = [None if some is None else some.tolist() for some in (own.parameters, own.network)]
    return own.order, own.keys, own.formula, own.chooser, numbers


def _run_all(
    runner: Runner, tasks: list[Task], processes: int, shares: MutableSequence[float] | None
) -> Generator[tuple[int, list[Row]]]:
    """Yield the place and the rows of every task, as they finish."""
    if shares is None:
        yield from enumerate(map(runner.run, tasks))
        return
    refuse_unpicklable(runner, "an agent", "evaluate it")
    with workers(processes, _begin_worker, runner, shares=shares) as pool:
        yield from as_finished(pool, _run_in_worker, tasks)


_worker: Runner


def _begin_worker(runner: Runner) -> None:
    """Keep the runner that a worker runs tasks with."""
    global _worker
    _worker = runner


def _run_in_worker(task: Task) -> list[Row]:
    """Run one task in a worker."""
    return _worker.run(task)
