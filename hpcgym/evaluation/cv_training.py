"""Agents to train: trained or searched, one after another or abreast, and kept."""

from __future__ import annotations

import base64
import os
import pickle
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.threads import keep_to_threads
from hpcgym.errors import EvaluationError
from hpcgym.evaluation.run_cache import RunCache
from hpcgym.evaluation.runner import progress_bar
from hpcgym.evaluation.workers import workers

AnyAgent: TypeAlias = RuleAgent | NamedAgent

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where numerical libraries read how many threads to start."""

_UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)


@dataclass(frozen=True)
class TrainingTask:
    """An agent that is still to be made.

    Attributes:
        key: Digest of all that decides it.
        name: Who makes it.
        make: What makes it; pickled where it is made in another process.
    """

    key: str
    name: str
    train: Callable[[], object]


@dataclass(frozen=True)
class TrainedAgent:
    """An agent that was made.

    Attributes:
        agent: The agent.
        seconds: Wall time it took, s.
    """

    agent: AnyAgent
    seconds: float


def train_all(
    tasks: Sequence[TrainingTask], *, cache: RunCache | None, processes: int, progress: bool
) -> Mapping[str, TrainedAgent]:
    """Make agents, or take those kept; keep each as soon as it is made.

    Args:
        tasks: What is to be made.
        cache: Where agents are kept and taken from, or None.
        processes: How many to make abreast, each in a process of one thread; 1 makes them here, on
            as many threads as they like.
        progress: Whether to show a progress bar, on a terminal.

    Returns:
        What was made, by its key.

    Raises:
        EvaluationError: What was made is no agent, cannot be kept or cannot be sent.
        OutputError: The run cache cannot be written.

    Source:
        House rule: a long run can be cut off at any time and taken up again.
    """
    trained = {} if cache is None else _kept(tasks, cache)
    todo = [one for one in tasks if one.key not in trained]
    fresh = _train_here(todo) if processes == 1 else _train_in_workers(todo, processes)
    with (
        closing(fresh),
        progress_bar(len(tasks), "training and searching", shown=progress) as advance,
    ):
        for _ in trained:
            advance()
        for task, found in fresh:
            if cache is not None:
                _keep(task, found, cache)
            trained[task.key] = found
            advance()
    return trained


def _kept(tasks: Sequence[TrainingTask], cache: RunCache) -> dict[str, TrainedAgent]:
    """Take what is kept."""
    trained = {}
    for one in tasks:
        rows = cache.find(one.key)
        if rows is not None:
            agent = pickle.loads(base64.b64decode(rows[0]["agent"]))
            trained[one.key] = TrainedAgent(agent, rows[0]["seconds"])
    return trained


def _keep(task: TrainingTask, trained: TrainedAgent, cache: RunCache) -> None:
    """Keep an agent."""
    where = f"kept in {cache.path}"
    packed = _pickled(task.name, trained.agent, where, "without a file to resume from")
    text = base64.b64encode(packed).decode()
    cache.keep(task.key, [{"agent": text, "seconds": trained.seconds}])


def _train_here(tasks: Sequence[TrainingTask]) -> Generator[tuple[TrainingTask, TrainedAgent]]:
    """Yield agents that are made in this process."""
    for task in tasks:
        yield task, _timed(task)


def _train_in_workers(
    tasks: Sequence[TrainingTask], processes: int
) -> Generator[tuple[TrainingTask, TrainedAgent]]:
    """Yield agents that are made in spawned processes, as they finish."""
    for task in {one.name: one for one in tasks}.values():
        try:
            pickle.dumps(task)
        except _UNPICKLABLE as error:
            raise EvaluationError(
                f"{task.name} cannot be sent to another process ({error}); cross-validate it "
                "with processes=1"
            ) from None
    with workers(processes, keep_to_threads, 1) as pool:
        with _one_thread_each():
            futures = {pool.submit(_train_in_worker, task): task for task in tasks}
        for future in as_completed(futures):
            packed, seconds = future.result()
            yield futures[future], TrainedAgent(pickle.loads(packed), seconds)


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
    """Make one agent in a spawned process."""
    trained = _timed(task)
    where = "sent back from another process"
    return _pickled(task.name, trained.agent, where, "with processes=1"), trained.seconds


def _timed(task: TrainingTask) -> TrainedAgent:
    """Make one agent, and say in how many seconds."""
    begun = time.perf_counter()
    agent = task.train()
    seconds = time.perf_counter() - begun
    if not isinstance(agent, (RuleAgent, NamedAgent)):
        raise EvaluationError(f"{task.name} made {agent!r}, which is no RuleAgent or NamedAgent")
    return TrainedAgent(agent, seconds)


def _pickled(name: str, agent: AnyAgent, where: str, how: str) -> bytes:
    """Pickle an agent, or say why not."""
    try:
        return pickle.dumps(agent)
    except _UNPICKLABLE as error:
        raise EvaluationError(
            f"{name} made an agent that cannot be {where} ({error}); cross-validate it {how}"
        ) from None
