"""Agents in the making: trained or searched, one after another or abreast, and kept."""

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
from hpcgym.evaluation.run_cache import Journal
from hpcgym.evaluation.runner import progress_bar
from hpcgym.evaluation.workers import workers

AnyAgent: TypeAlias = RuleAgent | NamedAgent

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Where numerical libraries read how many threads to start."""

_UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)


@dataclass(frozen=True)
class Making:
    """An agent that is still to be made.

    Attributes:
        key: Digest of all that decides it.
        name: Who makes it.
        make: What makes it; pickled where it is made in another process.
    """

    key: str
    name: str
    make: Callable[[], object]


@dataclass(frozen=True)
class Made:
    """An agent that was made.

    Attributes:
        agent: The agent.
        seconds: Wall time it took, s.
    """

    agent: AnyAgent
    seconds: float


def make_all(
    makings: Sequence[Making], *, journal: Journal | None, processes: int, progress: bool
) -> Mapping[str, Made]:
    """Make agents, or take those kept; keep each as soon as it is made.

    Args:
        makings: What is to be made.
        journal: Where agents are kept and taken from, or None.
        processes: How many to make abreast, each in a process of one thread; 1 makes them here, on
            as many threads as they like.
        progress: Whether to show a progress bar, on a terminal.

    Returns:
        What was made, by its key.

    Raises:
        EvaluationError: What was made is no agent, cannot be kept or cannot be sent.
        OutputError: The journal cannot be written.

    Source:
        House rule: a long run can be cut off at any time and taken up again.
    """
    made = {} if journal is None else _taken(makings, journal)
    todo = [one for one in makings if one.key not in made]
    fresh = _made_here(todo) if processes == 1 else _made_abreast(todo, processes)
    with (
        closing(fresh),
        progress_bar(len(makings), "training and searching", shown=progress) as advance,
    ):
        for _ in made:
            advance()
        for making, found in fresh:
            if journal is not None:
                _keep(making, found, journal)
            made[making.key] = found
            advance()
    return made


def _taken(makings: Sequence[Making], journal: Journal) -> dict[str, Made]:
    """Take what is kept."""
    made = {}
    for one in makings:
        rows = journal.find(one.key)
        if rows is not None:
            agent = pickle.loads(base64.b64decode(rows[0]["agent"]))
            made[one.key] = Made(agent, rows[0]["seconds"])
    return made


def _keep(making: Making, made: Made, journal: Journal) -> None:
    """Keep an agent."""
    where = f"kept in {journal.path}"
    packed = _packed(making.name, made.agent, where, "without a file to resume from")
    text = base64.b64encode(packed).decode()
    journal.keep(making.key, [{"agent": text, "seconds": made.seconds}])


def _made_here(makings: Sequence[Making]) -> Generator[tuple[Making, Made]]:
    """Yield agents that are made in this process."""
    for making in makings:
        yield making, _timed(making)


def _made_abreast(makings: Sequence[Making], processes: int) -> Generator[tuple[Making, Made]]:
    """Yield agents that are made in spawned processes, as they finish."""
    for making in {one.name: one for one in makings}.values():
        try:
            pickle.dumps(making)
        except _UNPICKLABLE as error:
            raise EvaluationError(
                f"{making.name} cannot be sent to another process ({error}); cross-validate it "
                "with processes=1"
            ) from None
    with workers(processes, keep_to_threads, 1) as pool:
        with _one_thread_each():
            futures = {pool.submit(_make_in_worker, making): making for making in makings}
        for future in as_completed(futures):
            packed, seconds = future.result()
            yield futures[future], Made(pickle.loads(packed), seconds)


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


def _make_in_worker(making: Making) -> tuple[bytes, float]:
    """Make one agent in a spawned process."""
    made = _timed(making)
    where = "sent back from another process"
    return _packed(making.name, made.agent, where, "with processes=1"), made.seconds


def _timed(making: Making) -> Made:
    """Make one agent, and say in how many seconds."""
    begun = time.perf_counter()
    agent = making.make()
    seconds = time.perf_counter() - begun
    if not isinstance(agent, (RuleAgent, NamedAgent)):
        raise EvaluationError(f"{making.name} made {agent!r}, which is no RuleAgent or NamedAgent")
    return Made(agent, seconds)


def _packed(name: str, agent: AnyAgent, where: str, how: str) -> bytes:
    """Pickle an agent, or say why not."""
    try:
        return pickle.dumps(agent)
    except _UNPICKLABLE as error:
        raise EvaluationError(
            f"{name} made an agent that cannot be {where} ({error}); cross-validate it {how}"
        ) from None
