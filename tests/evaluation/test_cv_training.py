"""Agents trained in workers: as those trained here, one thread each, and kept as they finish."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import EvaluationError
from hpcgym.core.threads import checked_threads
from hpcgym.evaluation.cv_training import TrainingTask, train_all
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.executors import executor_of
from stores import keys_in


def task(name: str, train: Callable[[], object]) -> TrainingTask:
    """Return a task whose key is its name."""
    return TrainingTask(name, train, partial(str, name))


TASKS = [task(name, partial(load_agent, name)) for name in ("SPF", "SAF", "F1")]


@pytest.mark.long
@pytest.mark.parametrize("executor", [None, "local:2"])
def test_agents_are_made_once_and_taken_from_the_store_then(
    tmp_path: Path, executor: str | None
) -> None:
    store = tmp_path / "store.sqlite"
    train_all(TASKS[:1], Execution(None, store, progress=False))
    with executor_of(executor) as workers:
        made = train_all(TASKS, Execution(workers, store, progress=False))
        assert {key: one.agent.name for key, one in made.items()} == {
            n: n for n in ("SPF", "SAF", "F1")
        }
        assert sorted(keys_in(store)) == ["F1", "SAF", "SPF"]
        refusing = [task(one.name, partial(load_agent, "none")) for one in TASKS]
        again = train_all(refusing, Execution(workers, store, progress=False))
    assert {key: (one.agent.name, one.seconds) for key, one in again.items()} == {
        key: (one.agent.name, one.seconds) for key, one in made.items()
    }


@pytest.mark.long
def test_process_that_makes_agents_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    own = task("threads", partial(checked_threads, None))
    libraries = task("threads", partial(os.getenv, "OPENBLAS_NUM_THREADS"))
    with executor_of("local:2") as workers:
        with pytest.raises(EvaluationError, match="threads made 1, which is no RuleAgent"):
            train_all([own], Execution(workers, progress=False))
        with pytest.raises(EvaluationError, match="threads made '1', which is no RuleAgent"):
            train_all([libraries], Execution(workers, progress=False))
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def end_from_outside() -> None:
    """End the process as the system does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_process_that_is_ended_from_outside_is_an_error_and_all_others_are_kept(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store.sqlite"
    killing = [task("killed", end_from_outside), *TASKS]
    with (
        executor_of("local:2") as workers,
        pytest.raises(EvaluationError, match=r"ended from outside.*fewer processes") as caught,
    ):
        train_all(killing, Execution(workers, store, progress=False))
    assert caught.value.__notes__[0] == "killed, tried 4 times"
    assert sorted(keys_in(store)) == ["F1", "SAF", "SPF"]


def test_what_cannot_be_sent_to_another_process_is_refused() -> None:
    own = task("mine", lambda: load_agent("SPF"))
    with (
        executor_of("local:2") as workers,
        pytest.raises(EvaluationError, match="mine cannot be sent to another process"),
    ):
        train_all([own], Execution(workers, progress=False))
