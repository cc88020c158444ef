"""Train or search the agents of a cross-validation, here or in workers, and keep each one."""

from __future__ import annotations

import base64
import os
import pickle
import time
from collections.abc import Callable, Generator, Iterator, Mapping, MutableSequence, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.threads import keep_to_threads
from hpcgym.errors import EvaluationError
from hpcgym.evaluation.runner import AnyAgent
from hpcgym.evaluation.store import Store
from hpcgym.evaluation.workers import (
    UNPICKLABLE,
    as_finished,
    no_shares,
    refuse_unpicklable,
    workers,
)
from hpcgym.progress import shown, steps

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where numerical libraries read how many threads to start."""


@dataclass(frozen=True)
class TrainingTask:
    """A training, or a search of weights, that gives an agent.

    Attributes:
        key: Digest of all that decides the agent.
        name: Name of the trainer.
        train: Returns the agent; pickled where a worker calls it.
    """

    key: str
    name: str
    train: Callable[[], object]


@dataclass(frozen=True)
class TrainedAgent:
    """An agent that was trained, and how long that took (wall time, s)."""

    agent: AnyAgent
    seconds: float


def train_all(
    tasks: Sequence[TrainingTask], *, store: Store | None, processes: int, progress: bool
) -> Mapping[str, TrainedAgent]:
    """Return the agent of every task by its key, and keep each agent as soon as it is trained.

    With one process, trainings are done here, on as many threads as they like. With more, each is
    done in a worker of one thread.

    Raises:
        EvaluationError: What was trained is no agent, cannot be kept or cannot be sent.
        OutputError: The store cannot be written.
    """
    trained = {} if store is None else _kept(tasks, store)
    todo = [one for one in tasks if one.key not in trained]
    shares = None if processes == 1 else no_shares(len(todo))
    fresh = _train_here(todo) if shares is None else _train_in_workers(todo, processes, shares)
    with (
        closing(fresh),
        shown(progress),
        steps(len(tasks), "training and searching", "trainings", shares=shares) as work,
    ):
        work.advance(len(trained))
        for task, found in fresh:
            if store is not None:
                _keep(task, found, store)
            trained[task.key] = found
            work.advance()
    return trained


def _kept(tasks: Sequence[TrainingTask], store: Store) -> dict[str, TrainedAgent]:
    """Return the agents that are in the store."""
    trained = {}
    for one in tasks:
        if (rows := store.find(one.key)) is not None:
            agent = pickle.loads(base64.b64decode(rows[0]["agent"]))
            trained[one.key] = TrainedAgent(agent, rows[0]["seconds"])
    return trained


def _keep(task: TrainingTask, trained: TrainedAgent, store: Store) -> None:
    """Put an agent into the store."""
    where = f"kept in {store.path}"
    pickled = _pickled(task.name, trained.agent, where, "without a file to resume from")
    text = base64.b64encode(pickled).decode()
    store.keep(task.key, [{"agent": text, "seconds": trained.seconds}])


def _train_here(tasks: Sequence[TrainingTask]) -> Generator[tuple[TrainingTask, TrainedAgent]]:
    """Yield agents that are trained in this process."""
    for task in tasks:
        yield task, _timed(task)


def _train_in_workers(
    tasks: Sequence[TrainingTask], processes: int, shares: MutableSequence[float]
) -> Generator[tuple[TrainingTask, TrainedAgent]]:
    """Yield agents that are trained in workers, as they finish."""
    for task in {one.name: one for one in tasks}.values():
        refuse_unpicklable(task, task.name, "cross-validate it")
    with workers(processes, keep_to_threads, 1, shares=shares) as pool:
        with _one_thread_each():
            trained = as_finished(pool, _train_in_worker, tasks)
        for place, (pickled, seconds) in trained:
            yield tasks[place], TrainedAgent(pickle.loads(pickled), seconds)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are spawned meanwhile load numerical libraries with one thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _train_in_worker(task: TrainingTask) -> tuple[bytes, float]:
    """Train one agent in a worker."""
    trained = _timed(task)
    where = "sent back from another process"
    return _pickled(task.name, trained.agent, where, "with processes=1"), trained.seconds


def _timed(task: TrainingTask) -> TrainedAgent:
    """Train one agent, and measure the time."""
    begun = time.perf_counter()
    agent = task.train()
    seconds = time.perf_counter() - begun
    if not isinstance(agent, (RuleAgent, NamedAgent)):
        raise EvaluationError(f"{task.name} made {agent!r}, which is no RuleAgent or NamedAgent")
    return TrainedAgent(agent, seconds)


def _pickled(name: str, agent: AnyAgent, where: str, how: str) -> bytes:
    """Pickle an agent, or say why that fails."""
    try:
        return pickle.dumps(agent)
    except UNPICKLABLE as error:
        raise EvaluationError(
            f"{name} made an agent that cannot be {where} ({error}); cross-validate it {how}"
        ) from None
