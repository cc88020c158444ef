"""Chunks of tasks on executors that reorder, duplicate, drop and kill: as in one process."""

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostile import Hostile
from hpcgym.agent import NamedAgent, RuleAgent
from hpcgym.base.errors import EvaluationError
from hpcgym.evaluation import chunks, evaluate
from hpcgym.evaluation.chunks import Work, results
from hpcgym.evaluation.executors import executor_of
from hpcgym.evaluation.store import versions
from stores import keys_in

COMPARED = {"weeks": "1-6", "jitter": 600, "replicas": 1, "progress": False}
AGENTS = ["FCFS", "SPF", NamedAgent("wrapped", RuleAgent("SAF"), RuleAgent("SAF").env_keywords)]
SCENARIO = "synthetic-256-weeks"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no Ctrl-C where a worker is lost."""
    monkeypatch.setattr(chunks, "INTERRUPT_S", 0.0)


@pytest.fixture(scope="module")
def alone() -> Any:
    """The comparison in this process."""
    return evaluate(AGENTS, SCENARIO, **COMPARED)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_what_is_reordered_repeated_dropped_and_killed_is_as_in_one_process(
    alone: Any, tmp_path: Path, seed: int
) -> None:
    hostile, path = Hostile(seed, lost=0.25), tmp_path / "kept.sqlite"
    try:
        found = evaluate(AGENTS, SCENARIO, executor=hostile, resume=path, **COMPARED)
    except EvaluationError as error:
        assert "tried 4 times" in error.__notes__[0]
        found = evaluate(AGENTS, SCENARIO, executor=Hostile(99), resume=path, **COMPARED)
    assert hostile.done > 0
    assert found.frame.equals(alone.frame)
    assert str(found.table()) == str(alone.table())
    assert len(keys_in(path)) == 6 * 4


def test_any_executor_of_the_standard_library_will_do(alone: Any) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = evaluate(AGENTS, SCENARIO, executor=threads, **COMPARED)
        assert threads.submit(int).result() == 0, "it is not shut down"
    assert found.frame.equals(alone.frame)


@pytest.mark.long
def test_only_what_is_missing_is_done_when_it_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    evaluate(AGENTS[:2], SCENARIO, resume=path, **COMPARED)
    executor = Hostile(1, n_chunks=1000)
    evaluate(AGENTS, SCENARIO, resume=path, executor=executor, **COMPARED)
    assert executor.done == 6, "one chunk for each week of the third agent"


def double(task: int) -> int:
    """Return twice a number, and fail for some."""
    if task in (3, 5):
        raise KeyError(f"no {task}")
    return 2 * task


WORK = Work(double, str, "number {}".format)


def collected(
    executor: Executor, tasks: list[int], work: Work = WORK
) -> tuple[dict[int, int], Any]:
    """Return what finished, and the error in the end."""
    done: dict[int, int] = {}
    try:
        for place, made in results(executor, work, tasks, list(map(str, tasks))):
            done[place] = made
    except Exception as error:
        return done, error
    return done, None


def test_a_task_that_fails_is_tried_again_and_named_and_the_rest_goes_on() -> None:
    done, error = collected(Hostile(0), list(range(8)))
    assert done == {place: 2 * place for place in range(8) if place not in (3, 5)}
    assert type(error) is KeyError and error.args == ("no 3",)
    named, traced = error.__notes__
    assert named == "number 3, tried 4 times; 1 more tasks failed"
    assert "raise KeyError" in traced


def test_a_worker_whose_code_log_or_agent_differs_refuses() -> None:
    stale = replace(WORK, versions=versions() | {"numba": "0.1"})
    done, error = collected(Hostile(0), [1, 2], stale)
    assert (done, type(error)) == ({}, EvaluationError)
    assert f"numba {versions()['numba']}, not 0.1" in str(error)
    other = replace(WORK, key=repr)
    done = dict(results(Hostile(0), other, [1], ["1"]))
    assert done == {0: 2}
    with pytest.raises(EvaluationError, match="another log or agent under the same name"):
        list(results(Hostile(0), other, [1], ["2"]))


def test_workers_that_all_die_end_the_work() -> None:
    executor = Hostile(0, 1.0)
    done, error = collected(executor, list(range(1000)))
    assert not done
    assert "a worker was ended from outside" in str(error)
    assert executor.done < 1000


class Unpicklable(Exception):
    """Cannot be made of its arguments again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def fail(_: int) -> int:
    """Fail so that no process can be told as it is."""
    raise Unpicklable(1, 2)


def test_an_error_that_cannot_be_sent_keeps_its_type_and_text_as_words() -> None:
    _, error = collected(Hostile(0), [1], replace(WORK, run=fail))
    assert str(error) == "Unpicklable: 1 and 2"


def test_what_a_worker_cannot_load_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Hostile(0)
    monkeypatch.setattr(chunks, "_pickled", lambda *_: b"cmissing_module\nname\n.")
    _, error = collected(executor, [1])
    assert "cannot load what it works with (ModuleNotFoundError" in str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("locall:2", "did you mean 'local'"),
        ("local:two", "local must be a whole number from 1"),
        ("slurm:partitoin=debug", "did you mean 'partition'"),
        ("slurm:time=", "time=VALUE needs a value"),
        ("slurm:jobs=0", "slurm: jobs must be a whole number from 1"),
        (2, "got 2"),
    ],
)
def test_an_executor_that_cannot_be_is_refused(text: Any, message: str) -> None:
    with pytest.raises(EvaluationError, match=message), executor_of(text):
        pass
