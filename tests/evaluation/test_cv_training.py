"""Agents trained in workers: as those trained here, one thread each, and kept as they finish."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from hpcgym.agent.shelf import load_agent
from hpcgym.core.threads import checked_threads
from hpcgym.errors import EvaluationError
from hpcgym.evaluation.cv_training import TrainingTask, train_all
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.store import Store
from stores import keys_in

TASKS = [TrainingTask(name, "by name", partial(load_agent, name)) for name in ("SPF", "SAF", "F1")]


@pytest.mark.parametrize("processes", [1, 2])
def test_agents_are_made_once_and_taken_from_the_store_then(tmp_path: Path, processes: int) -> None:
    store = tmp_path / "store.sqlite"
    train_all(TASKS[:1], Execution(1, store, progress=False))
    made = train_all(TASKS, Execution(processes, store, progress=False))
    assert {key: one.agent.name for key, one in made.items()} == {
        n: n for n in ("SPF", "SAF", "F1")
    }
    assert sorted(keys_in(store)) == ["F1", "SAF", "SPF"]
    refusing = [TrainingTask(one.key, one.name, partial(load_agent, "none")) for one in TASKS]
    again = train_all(refusing, Execution(processes, store, progress=False))
    assert {key: (one.agent.name, one.seconds) for key, one in again.items()} == {
        key: (one.agent.name, one.seconds) for key, one in made.items()
    }


def test_process_that_makes_agents_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    own = TrainingTask("own", "threads", partial(checked_threads, None))
    with pytest.raises(EvaluationError, match="threads made 1, which is no RuleAgent"):
        train_all([own], Execution(2, progress=False))
    libraries = TrainingTask("libraries", "threads", partial(os.getenv, "OPENBLAS_NUM_THREADS"))
    with pytest.raises(EvaluationError, match="threads made '1', which is no RuleAgent"):
        train_all([libraries], Execution(2, progress=False))
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def end_from_outside() -> None:
    """End the process as the system does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_process_that_is_ended_from_outside_is_an_error_and_what_had_finished_is_kept(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store.sqlite"
    train_all(TASKS[:1], Execution(1, store, progress=False))
    killed = TrainingTask("killed", "killed", end_from_outside)
    with pytest.raises(EvaluationError, match=r"ended from outside.*fewer processes"):
        train_all([TASKS[0], killed], Execution(2, store, progress=False))
    assert Store(store).find("SPF") is not None


def test_what_cannot_be_sent_to_another_process_is_refused() -> None:
    task = TrainingTask("key", "mine", lambda: load_agent("SPF"))
    with pytest.raises(EvaluationError, match="mine cannot be sent to another process"):
        train_all([task], Execution(2, progress=False))
