"""Record episodes of agents as a Minari data set, from which agents learn without a simulator.

A rule can be recorded in three kinds of action. As "policy" its actions are its place among the
rules recorded. As "order" they are scores of the visible jobs, and its schedule is the rule's own
while no job is out of sight. As "job" they are the first visible job; the jobs behind it follow in
the scenario's order, so the schedule is near the rule's and not equal. Any other agent is recorded
in the kind of action that it takes.

Source: Minari, data set standard 0.5; Specification, section 10, "Action semantics".
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import (
    EvaluationError,
    HpcgymError,
    OutputError,
    refuse_unless_whole,
    unknown_name,
)
from hpcgym.base.keywords import refuse_unknown
from hpcgym.base.output import make_folder, unfinished_folder, unfinished_of
from hpcgym.base.packages import RECORDING, needing
from hpcgym.base.progress import steps
from hpcgym.core.policy import as_policy
from hpcgym.env.observation import EXPECTATIONS
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.evaluation.chunks import Fresh, Work
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.executors import AnyExecutor, executor_of
from hpcgym.evaluation.runner import AnyAgent, loaded
from hpcgym.evaluation.store import Store, digest, digest_of_weeks

if TYPE_CHECKING:
    import pandas as pd

Task: TypeAlias = tuple[AnyAgent, str, int]  # an episode: agent, label of the week, seed

ACTIONS = ("own", "policy", "order", "job")

KEPT = "unfinished.sqlite"  # store of finished episodes in the folder of a recording until all are

NAME = re.compile(r"[-\w]+-v\d+")
MOST_DECISIONS = 2**17 - 1
"""Decisions of an episode; Minari reads a Parquet file in batches of one more."""


@dataclass(frozen=True)
class Recording:
    """A data set that was written, and what is in it.

    Attributes:
        frame: A row for each episode: agent, week, seed, decisions, return, mean bounded slowdown.
    """

    path: Path
    frame: pd.DataFrame


class Shown(TypedDict, total=False):
    """Keywords of `HPCBatch-v0` that say what a recording shows."""

    n_slots: int | None  # visible jobs; default the agents', or the environment's
    observation: str  # "dict", the default, "flat" or "small"


def record(
    agents: Sequence[str | AnyAgent],
    scenario: str | Path,
    name: str,
    *,
    weeks: str | None = None,
    action: str = "own",
    epsilon: float = 0.0,
    seed: int = 0,
    folder: str | Path | None = None,
    executor: AnyExecutor = None,
    resume: bool = False,
    force: bool = False,
    **shown: Unpack[Shown],
) -> Recording:
    """Play each agent on each week, and write the episodes as a Minari data set.

    A recording that is cut off keeps its finished episodes in a hidden folder beside its place.
    With an executor it keeps those before the first that is not finished.

    Args:
        agents: As of `hpcgym.evaluate`; all must play in the same environment.
        scenario: A name or a path: a data set states how its environment is made again.
        name: Name of the data set, with a version: busy-v0.
        weeks: Numbers of the weeks, such as "1-8"; default all.
        action: Kind of action in which rules are recorded; "own" takes each agent's own, "policy"
            for rules.
        epsilon: Share of decisions that are taken at random in place of the agent's.
        seed: Seed of the first episode; each later one has the next.
        folder: Folder of data sets; default Minari's own.
        executor: As of `hpcgym.evaluate`; the data set is the same.
        resume: Whether to go on from what a recording kept that was cut off.
        force: Whether to replace a data set of this name and, without `resume`, what was kept.
        **shown: As of `Shown`.

    Raises:
        EvaluationError: A number or name out of range, agents that need different environments, or
            Minari is not installed.
        CardError: No such agent.
        ScenarioError: No such scenario or week, or a rule that no step runs.
        OutputError: The data set, or a recording that was cut off, exists already; or it cannot be
            written.
    """
    _refuse(name, action, epsilon, seed)
    with needing("recording", *RECORDING, error=EvaluationError):
        from minari.dataset.minari_storage import MinariStorage
    path = _root(folder) / name
    _refuse_unasked(path, resume=resume, force=force)
    chosen: list[AnyAgent] = loaded(agents, load_agent)
    refuse_unknown("keyword", shown, Shown.__annotations__)
    keywords = _common_keywords(chosen, action, shown)
    every = Episodes(scenario)
    played = every if weeks is None else every.select(weeks)
    of_file = str(scenario).endswith(".toml")  # which the data set must name from anywhere
    source = str(Path(scenario).resolve() if of_file else scenario)
    stage = _Stage(source, keywords, epsilon)
    how = {"scenario": source, "action": stage.env.action, "epsilon": epsilon, "seed": seed}
    key = digest(played.workload(0), digest_of_weeks(played), how, chosen, keywords)
    make_folder(path.parent)
    with unfinished_folder(path) as partial:
        _refuse_unasked(path, resume=resume, force=force)  # another process may have been quicker
        if not resume:
            _clear(partial)
        kept = _Kept(partial, key)
        try:
            data = kept.open(MinariStorage, stage.made.spec)
            pairs = enumerate(product(chosen, played.labels), seed)
            tasks = [(agent, week, drawn) for drawn, (agent, week) in pairs]
            with executor_of(executor) as workers:
                rows = stage.fill(data, tasks, kept, Execution(workers))
            data.update_metadata(_metadata(name, [agent.name for agent in chosen], **how))
            kept.put_at(path)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(kept.left()) from None
        except OutputError as error:
            raise OutputError(f"{error}; {kept.left()}") from error
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{path}: writing failed: {reason}; {kept.left()}") from error
        except HpcgymError:
            _clear(partial)
            raise
    import pandas as pd

    return Recording(path, pd.DataFrame(rows))


def _refuse_unasked(path: Path, *, resume: bool, force: bool) -> None:
    """Refuse to replace a data set, or what a recording kept, that nobody asked to replace."""
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path}: is not a folder, so no data set is there; choose another name")
    unfinished = unfinished_of(path)
    is_kept = (unfinished / KEPT).exists() and (unfinished / KEPT).stat().st_size > 0
    if is_kept and not (resume or force):
        raise OutputError(
            f"{unfinished}: a recording that was cut off kept its finished episodes here; go on "
            "from them with resume (--resume), or begin anew with force (--force)"
        )
    if not path.exists() or force or (resume and is_kept):
        return
    if resume:
        with suppress(OSError):
            (path / KEPT).unlink()
        raise OutputError(
            f"{path}: is finished, so there is nothing to resume; force (--force) records it anew"
        )
    raise OutputError(f"{path}: exists already; name another, or replace it with force (--force)")


class _Kept:
    """What a recording has finished, in the folder that becomes its data set.

    Args:
        key: Digest of all that decides the recording.

    Raises:
        EvaluationError: The folder keeps another recording.
        OutputError: It cannot be read or written.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self._key = folder, key
        self._store = Store(folder / KEPT)
        self.rows: list[dict[str, Any]] = []  # A row about each finished episode
        if self._store.keeps_others_only(key):
            raise EvaluationError(
                f"{folder}: keeps another recording: its agents, weeks, options or version of "
                "hpcgym differ; begin anew with force alone (--force), or choose another name"
            )
        while (folder / "data" / str(len(self.rows))).is_dir():
            if (rows := self._store.find(self._key_of(len(self.rows)))) is None:
                break
            self.rows += rows

    def _key_of(self, episode: int) -> str:
        return f"{self._key}-{episode}"

    def open(self, storage: Any, spec: Any) -> Any:
        """Return Minari's storage of the finished episodes; what was cut off is removed."""
        folder = self.folder / "data"
        finished = {str(episode) for episode in range(len(self.rows))}
        for left in folder.iterdir() if folder.exists() else ():
            if left.name not in finished:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        data = storage.new(folder, env_spec=spec, data_format="parquet")
        n_steps = sum(row["decisions"] for row in self.rows)
        data.update_metadata({"total_steps": n_steps, "total_episodes": len(self.rows)})
        if self.rows:  # else Minari states the size with the first episode
            data.update_metadata({"dataset_size": data.get_size()})
        return data

    def add(self, row: dict[str, Any]) -> None:
        """Write down that an episode is finished."""
        self._store.keep(self._key_of(len(self.rows)), [row])
        self.rows.append(row)

    def left(self) -> str:
        """Say what is kept of a recording that ends now; remove its folder if that is nothing."""
        if not self.rows:
            with suppress(OutputError):
                _clear(self.folder)
            return "no episode had finished"
        return f"finished episodes are kept in {self.folder}: add --resume to go on from there"

    def put_at(self, path: Path) -> None:
        """Move the finished data set to its place; one that is there goes only then."""
        old = self.folder.with_name(f"{self.folder.name}-old")
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        try:
            self.folder.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
        (path / KEPT).unlink()
        shutil.rmtree(old, ignore_errors=True)


def _clear(folder: Path) -> None:
    try:
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be emptied: {error.strerror or error}") from error


def _refuse(name: str, action: str, epsilon: float, seed: int) -> None:
    """Refuse names and numbers that no data set has."""
    if not NAME.fullmatch(name):
        raise EvaluationError(
            f"a data set's name has letters, digits, - and _, and a version: busy-v0; got {name!r}"
        )
    if action not in ACTIONS:
        raise EvaluationError(unknown_name("kind of action", action, ACTIONS))
    if not 0 <= epsilon <= 1:
        raise EvaluationError(f"epsilon is a share from 0 to 1, got {epsilon}")
    refuse_unless_whole("a seed", seed, error=EvaluationError)


def _root(folder: str | Path | None) -> Path:
    if folder is not None:
        return Path(folder).resolve()
    from minari.storage.datasets_root_dir import get_dataset_path

    return Path(get_dataset_path())


def _common_keywords(agents: Sequence[AnyAgent], action: str, shown: Shown) -> dict[str, Any]:
    """Return the keywords of the environment in which all agents play."""
    if not agents:
        raise EvaluationError("give at least one agent")
    rules = [agent for agent in agents if isinstance(agent, RuleAgent)]
    given = {"observation": "dict"} | {key: kept for key, kept in shown.items() if kept is not None}
    for agent in agents:
        for key, value in given.items():
            if agent.env_keywords.get(key, value) != value:
                needed = agent.env_keywords[key]
                raise EvaluationError(f"{agent.name} needs {key} {needed!r}, got {value!r}")
    needs = [_keywords(agent, action, rules) for agent in agents]
    for agent, need in zip(agents, needs, strict=True):
        for key in sorted({*need, *needs[0]}):
            first, other = (str(some.get(key, "the default")) for some in (needs[0], need))
            if first != other:
                raise EvaluationError(
                    f"{agents[0].name} and {agent.name} need different environments: {key} is "
                    f"{first} and {other}; record them apart, or choose another kind of action"
                )
    return given | needs[0]


def _keywords(agent: AnyAgent, action: str, rules: Sequence[RuleAgent]) -> dict[str, Any]:
    """Return the keywords that an agent needs when its actions are of some kind."""
    keywords = dict(agent.env_keywords)
    if not isinstance(agent, RuleAgent):
        kind = keywords.get("action", "index")
        if action not in ("own", kind):
            raise EvaluationError(
                f"{agent.name} takes actions of kind {kind!r}, and cannot be recorded as {action!r}"
            )
        if "policies" in keywords:
            keywords["policies"] = [as_policy(policy).name for policy in keywords["policies"]]
        return keywords
    if agent.policy.network is not None:
        raise EvaluationError(
            f"{agent.name} orders by a network, which the environment of a data set cannot name"
        )
    if action in ("own", "policy"):
        return keywords | {"policies": [rule.policy.name for rule in rules]}
    del keywords["policies"]
    return keywords | {"action": action} | _expectations(rules)


def _expectations(rules: Sequence[RuleAgent]) -> dict[str, str]:
    """Return the keyword under which an environment computes what rules read of users."""
    names = {bits: name for name, bits in EXPECTATIONS.items()}
    needed: dict[str, str] = {}
    for rule in rules:
        bits = rule.policy.expects
        if bits and bits not in names:
            raise EvaluationError(
                f"{rule.name} reads more of users than an observation shows; record it as 'policy'"
            )
        if bits and needed.setdefault("expectations", names[bits]) != names[bits]:
            raise EvaluationError(
                f"{rule.name} reads the {names[bits]} of users, and others here the "
                f"{needed['expectations']}; record them apart"
            )
    return needed


@dataclass(frozen=True)
class _Stage:
    """Where agents play, and how their actions are written."""

    scenario: str  # a name or a path
    keywords: Mapping[str, Any]  # of the environment
    epsilon: float  # share of decisions taken at random

    @cached_property
    def made(self) -> gymnasium.Env[Any, Any]:
        """The environment as Gymnasium makes it."""
        return gymnasium.make("HPCBatch-v0", scenario=self.scenario, **self.keywords)

    @property
    def env(self) -> SchedulingEnv:
        """The environment itself."""
        return cast(SchedulingEnv, self.made.unwrapped)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the environment, which another process makes anew."""
        return {key: value for key, value in self.__dict__.items() if key != "made"}

    def fill(
        self, data: Any, tasks: Sequence[Task], kept: _Kept, execution: Execution
    ) -> list[dict[str, Any]]:
        """Play episodes, add them to a storage in order, and return a row about each."""
        left = tasks[len(kept.rows) :]
        keys = ["" if execution.executor is None else self.key(task) for task in left]
        shares = getattr(execution.executor, "shares", ())
        name = self.env.episodes.scenario.name
        fresh = execution.fresh(Work(self.play, self.key, self.named), left, keys)
        with closing(fresh), steps(len(tasks), name, "episodes", shares=shares) as work:
            work.advance(len(kept.rows))
            for episode, row, end in _in_order(fresh):
                data.update_episodes([episode])
                data.update_episode_metadata([end | row], [len(kept.rows)])
                kept.add(row)
                work.advance()
        return kept.rows

    def key(self, task: Task) -> str:
        """Return the digest of all that decides an episode."""
        episodes = self.env.episodes
        week = episodes.workload(episodes.labels.index(task[1]))
        return digest(week, episodes.settings, self.keywords, self.epsilon, task)

    def named(self, task: Task) -> str:
        """Return what messages call an episode."""
        agent, week, seed = task
        return f"{agent.name}, {week}, seed {seed}"

    def play(self, task: Task) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Play an episode; return Minari's buffer of it, a row about it, and what its end says.

        Minari wants the same keys of every info, and most are there when an episode ends.
        """
        from minari.data_collector.episode_buffer import EpisodeBuffer

        agent, week, seed = task
        env, generator = self.env, np.random.default_rng(seed)
        env.action_space.seed(seed)
        options = {"episode": week}
        shown, _ = env.reset(seed=seed, options=options)
        observations, actions, rewards = [shown], [], []
        state, start, over = None, np.ones(1, dtype=np.bool_), False
        while not over:
            action, state = self.choose(agent, shown, state, start)
            if generator.random() < self.epsilon:
                mask = env.action_masks() if env.action == "job" else None
                action = env.action_space.sample(mask)  # of slots, one that holds a job
            shown, reward, terminated, truncated, info = env.step(action)
            observations.append(shown)
            actions.append(action)
            rewards.append(reward)
            start, over = np.zeros(1, dtype=np.bool_), terminated or truncated
        if len(actions) > MOST_DECISIONS:
            raise EvaluationError(f"{week} has more than {MOST_DECISIONS:,} decisions")
        buffer = EpisodeBuffer(
            seed=seed,
            options=options,
            observations=_stacked(observations),
            actions=list(np.array(actions, dtype=env.action_space.dtype)),
            rewards=rewards,
            terminations=[False] * (len(actions) - 1) + [terminated],
            truncations=[False] * (len(actions) - 1) + [truncated],
        )
        row = {"agent": agent.name, "week": week, "seed": seed}
        row |= {"decisions": len(actions), "return": sum(rewards)}
        row["mean_bsld"] = env.metrics()["mean_bsld"]
        return buffer, row, {key: value for key, value in info.items() if np.ndim(value) == 0}

    def choose(
        self, agent: AnyAgent, shown: Any, state: Any, start: NDArray[np.bool_]
    ) -> tuple[Any, Any]:
        """Return an agent's action, in the kind of the environment, and its state."""
        if not isinstance(agent, RuleAgent):
            return agent.predict(shown, state, start, True)
        if self.env.action == "policy":
            return self.keywords["policies"].index(agent.policy.name), None
        first = self.env.first_by(agent.policy)
        if self.env.action == "job":
            return int(first[0]), None
        score = np.zeros(self.env.n_slots, dtype=np.float32)
        score[first] = np.linspace(-1, 1, len(first), dtype=np.float32)
        return score, None


def _in_order(fresh: Fresh) -> Iterator[Any]:
    """Yield results in the order of their tasks, and hold back those that are early."""
    early: dict[int, Any] = {}
    n_given = 0
    for task, made in fresh:
        early[task] = made
        while n_given in early:
            yield early.pop(n_given)
            n_given += 1


def _stacked(parts: Sequence[Any]) -> Any:
    """Return arrays, or dicts of them, with one more axis in front."""
    if isinstance(parts[0], Mapping):
        return {key: np.stack([part[key] for part in parts]) for key in parts[0]}
    return np.stack(parts)


def _metadata(name: str, agents: Sequence[str], **how: object) -> dict[str, Any]:
    """Return what a data set says about itself."""
    import minari

    return {
        "dataset_id": name,
        "minari_version": minari.__version__,
        "algorithm_name": ", ".join(agents),
        "author": {"hpcgym"},
        "description": f"Episodes of {', '.join(agents)} on weeks of {how['scenario']}.",
        "requirements": ["hpcgym>=" + version("hpcgym")],
        "hpcgym": {"version": version("hpcgym"), "agents": list(agents), **how},
    }
