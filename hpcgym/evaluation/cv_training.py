"""Trainings and searches of a cross-validation, and how each agent is kept."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.base.errors import EvaluationError
from hpcgym.evaluation.chunks import UNPICKLABLE
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.runner import AnyAgent
from hpcgym.evaluation.store import Row


@dataclass(frozen=True)
class TrainingTask:
    """A training, or a search of weights, that gives an agent."""

    name: str
    train: Callable[[], object]  # returns the agent; pickled where a worker calls it
    identify: Callable[[], str]  # returns the digest of all that decides the agent

    @cached_property
    def key(self) -> str:
        """The digest, worked out once."""
        return self.identify()


@dataclass(frozen=True)
class TrainedAgent:
    """An agent that was trained, and how long that took (wall time, s)."""

    agent: AnyAgent
    seconds: float


def train_all(tasks: Sequence[TrainingTask], execution: Execution) -> Mapping[str, TrainedAgent]:
    """Return the agent of every task by its key, and keep each agent as soon as it is trained.

    Without an executor, trainings are done here, on as many threads as they like. With one, each is
    done in a worker of one thread.

    Raises:
        EvaluationError: What was trained is no agent, cannot be kept or cannot be sent.
        OutputError: The store cannot be written.
    """
    rows = execution.rows(
        _train,
        tasks,
        _identified,
        named=attrgetter("name"),
        shown_as=("training and searching", "trainings"),
        packed=_pickled,
    )
    return {
        task.key: TrainedAgent(_unpickled(row["agent"]), row["seconds"])
        for task, (row,) in zip(tasks, rows, strict=True)
    }


def _identified(task: TrainingTask) -> str:
    """Work the key of a task out anew."""
    return task.identify()


def _train(task: TrainingTask) -> list[Row]:
    """Train one agent, and measure the time."""
    begun = time.perf_counter()
    agent = task.train()
    seconds = time.perf_counter() - begun
    if not isinstance(agent, (RuleAgent, NamedAgent)):
        raise EvaluationError(f"{task.name} made {agent!r}, which is no RuleAgent or NamedAgent")
    return [{"agent": agent, "seconds": seconds}]


def _pickled(task: TrainingTask, rows: list[Row], why: str, how: str) -> list[Row]:
    """Pickle an agent into text, or say why that fails."""
    (row,) = rows
    if isinstance(row["agent"], str):  # by the process that trained it
        return rows
    try:
        return [row | {"agent": base64.b64encode(pickle.dumps(row["agent"])).decode()}]
    except UNPICKLABLE as error:
        raise EvaluationError(
            f"{task.name} made an agent that cannot be {why} ({error}); cross-validate it {how}"
        ) from None


def _unpickled(agent: AnyAgent | str) -> AnyAgent:
    made: AnyAgent = pickle.loads(base64.b64decode(agent)) if isinstance(agent, str) else agent
    return made
