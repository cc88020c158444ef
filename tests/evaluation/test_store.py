"""An evaluation that was cut off goes on from what it had finished."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from hpcgym.agent import RuleAgent
from hpcgym.base.errors import EvaluationError, OutputError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import Evaluation, evaluate, store
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.store import Store
from stores import count_runs, keys_in


def run(path: Path | None, **options: int) -> Evaluation:
    """Evaluate three rules on tiny."""
    settings = {"jitter": 60, "replicas": 2, "seed": 1} | options
    return evaluate(["FCFS", "SPF", "SAF"], "tiny", resume=path, progress=False, **settings)


def test_run_that_was_cut_off_goes_on_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(None)
    path = tmp_path / "store.sqlite"
    with monkeypatch.context() as patch:
        count_runs(patch, stop_at=5)
        with pytest.raises(InterruptedError):
            run(path)
    noted = count_runs(monkeypatch)
    pd.testing.assert_frame_equal(run(path).frame, whole.frame)
    assert noted == ["SPF"] * 3 + ["SAF"] * 3


def test_finished_run_is_not_repeated_and_other_settings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    run(path)
    noted = count_runs(monkeypatch)
    run(path)
    assert noted == []
    run(path, seed=2)
    assert len(noted) == 9
    run(path)
    assert len(noted) == 9


def test_agent_with_other_settings_under_the_same_name_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    noted = count_runs(monkeypatch)
    for order in (None, "SPF"):
        agent = RuleAgent("FCFS", backfill_order=order, name="mine")
        evaluate([agent], "tiny", resume=path, progress=False)
    assert noted == ["FCFS", "SAF", "FCFS"]


def test_run_of_other_code_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.sqlite"
    run(path)
    noted = count_runs(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(store, "versions", lambda: {"hpcgym": "mended"})
        run(path)
    assert len(noted) == 9
    run(path)
    assert len(noted) == 9


@pytest.mark.parametrize(
    ("place", "decides"),
    [
        ("core/kernels/easy.py", True),
        ("agent/search.py", True),
        ("__init__.py", True),
        ("evaluation/pictures/figures.py", False),
        ("evaluation/results.py", False),
    ],
)
def test_code_that_runs_and_trains_is_digested_and_code_that_shows_is_not(
    tmp_path: Path, place: str, decides: bool
) -> None:
    own = Path(str(files("hpcgym")))
    copied = Path(
        shutil.copytree(own, tmp_path / "hpcgym", ignore=shutil.ignore_patterns("__pycache__"))
    )
    before = store.source_digest(copied)
    assert before == store.source_digest(own)
    with (copied / place).open("a") as file:
        file.write("# mended\n")
    assert (store.source_digest(copied) != before) == decides


@pytest.mark.parametrize("column", ["job_id", "unix_start"])
def test_jobs_under_other_ids_or_in_another_part_of_the_week_are_other_jobs(column: str) -> None:
    """The f-model draws by ids, and regressions look at the time of the week."""
    jobs = Episodes("tiny").workload(0)
    other = {"job_id": jobs.job_id + 1, "unix_start": 3_600}[column]
    assert store.digest(replace(jobs, **{column: other})) != store.digest(jobs)


@pytest.mark.parametrize("content", [b"agent,week\n", b"a", b"[1]\n", b"\xff\0\n" * 4096])
def test_file_that_is_no_store_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "precious.csv"
    path.write_bytes(content)
    with pytest.raises(EvaluationError, match=r"precious\.csv: is not a store"):
        run(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("table", ["jobs (id)", "kept (key, rows)"])
def test_database_of_another_program_is_refused_and_kept(tmp_path: Path, table: str) -> None:
    path = tmp_path / "precious.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE {table}")
    content = path.read_bytes()
    with pytest.raises(EvaluationError, match=r"precious\.sqlite: is not a store"):
        run(path)
    assert path.read_bytes() == content


def test_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    for path in (tmp_path / "absent" / "store.sqlite", tmp_path):
        with pytest.raises(OutputError, match=f"{path}: cannot be read or written: unable to open"):
            Store(path)


ROWS = [{"agent": "SAF", "week": 3, "mean_bsld": 12.5, "utilisation": float("inf")}]


def test_what_is_kept_again_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store, other = Store(path), Store(path)
    assert store.find("a") is None
    assert not store.keeps_others_only("a")
    for rows in (ROWS, ROWS * 2, []):
        store.keep("a", rows)
        assert other.find("a") == store.find("a") == rows
    assert keys_in(path) == ["a"]
    assert other.keeps_others_only("b")
    assert not other.keeps_others_only("a")


@pytest.mark.long
def test_altered_bytes_are_refused_or_run_again_and_never_taken(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = Store(path)
    kept = {key: [{**ROWS[0], "agent": key}] for key in ("first", "second")}
    for key, rows in kept.items():
        store.keep(key, rows)
    whole = path.read_bytes()
    refused, lost = 0, 0
    for place in [place for place, byte in enumerate(whole) if byte]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            altered = Store(path)
            found = [altered.find(key) for key in kept]
        except EvaluationError as error:
            assert str(error).startswith(f"{path}: is not a store of finished work, or is damaged")
            refused += 1
        else:
            assert all(one in (None, rows) for one, rows in zip(found, kept.values(), strict=True))
            lost += None in found
    n_bytes = sum(len(json.dumps(rows)) for rows in kept.values())
    assert lost > n_bytes, "rows, keys and digests"
    assert refused > 100, "the header and the table's definition"


def test_store_cut_anywhere_is_refused_or_gives_what_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = Store(path)
    for key in "abcdefgh":
        store.keep(key, ROWS * 20)
    whole, refused = path.read_bytes(), 0
    for end in range(1, len(whole), 509):
        path.write_bytes(whole[:end])
        try:
            assert all(Store(path).find(key) in (None, ROWS * 20) for key in "abcdefgh")
        except EvaluationError as error:
            assert str(error).startswith(f"{path}: is not a store of finished work, or is damaged")
            refused += 1
    assert refused > len(whole) // 509 // 2


WRITER = """
import sys
from hpcgym.evaluation.store import Store
store = Store(sys.argv[1])
for number in range(int(sys.argv[3])):
    key = f"{sys.argv[2]}-{number}"
    store.keep(key, [{"key": key}] * 1000)
    print(key, flush=True)
"""


def writing(path: Path, name: str, most: int) -> subprocess.Popen[str]:
    """Start a process that keeps some rows, and prints the key of each when it is kept."""
    command = [sys.executable, "-c", WRITER, str(path), name, str(most)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_process_killed_at_any_instant_loses_at_most_what_it_was_writing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    said: list[str] = []
    for number in range(5):
        with writing(path, str(number), 10**6) as writer:
            assert writer.stdout is not None
            said.append(writer.stdout.readline().strip())
            time.sleep(random.Random(number).uniform(0, 0.2))
            writer.kill()
            said += writer.stdout.read().splitlines()
        store = Store(path)
        assert all(store.find(key) == [{"key": key}] * 1000 for key in said)
        assert len(keys_in(path)) <= len(said) + number + 1
    store.keep("last", ROWS)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.long
def test_two_processes_that_write_at_once_keep_all(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    writers = [writing(path, name, 20) for name in "ab"]
    said = [writer.communicate(timeout=120)[0].splitlines() for writer in writers]
    assert [len(some) for some in said] == [20, 20]
    assert sorted(keys_in(path)) == sorted(said[0] + said[1])
    assert all(Store(path).find(key) == [{"key": key}] * 1000 for key in keys_in(path))


def test_what_a_killed_process_left_half_written_is_not_put_into_a_new_store(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite"
    Store(path).keep("old", ROWS)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        database.execute("BEGIN")
        rows = [(str(number), b"x" * 4000) for number in range(20)]
        database.executemany("INSERT INTO kept VALUES (?, ?, '')", rows)
        left = [(one, one.read_bytes()) for one in sorted(tmp_path.iterdir())]
    assert [one.name for one, _ in left] == ["store.sqlite", "store.sqlite-journal"]
    for one, content in left:
        one.write_bytes(content)
    assert Store(path).find("old") == ROWS
    for one, content in left:
        one.write_bytes(content)
    path.write_bytes(b"")
    store = Store(path)
    assert store.find("old") is None
    store.keep("new", ROWS)
    assert keys_in(path) == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def test_full_disk_is_a_clear_error_and_what_was_kept_stays(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "store.sqlite"
    Store(path).keep("a", ROWS)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(OutputError, match=r"store\.sqlite: cannot be read or written: "):
            Store(path).keep("b", ROWS * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert Store(path).find("a") == ROWS
    assert keys_in(path) == ["a"]
    assert list(tmp_path.iterdir()) == [path]


class AtOnce(Executor):
    """Does chunks as they are submitted, so that all handed over have ended when it is asked."""

    n_chunks, chunk_s = 4, 0.0

    def submit(self, function, /, *given, **keywords):
        future = Future()
        future.set_result(function(*given, **keywords))
        return future


def failing(task: int) -> list[dict[str, object]]:
    if task == 9:
        raise ValueError("nine")
    return [{"task": task}]


@pytest.mark.parametrize("executor", [None, AtOnce()])
def test_results_that_came_together_are_kept_together_and_before_an_error(
    executor: Executor | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    keep_all = Store.keep_all

    def noted(self: Store, rows: dict[str, object]) -> None:
        written.append([*rows])
        keep_all(self, rows)

    monkeypatch.setattr(Store, "keep_all", noted)
    path = tmp_path / "store.sqlite"
    with pytest.raises(ValueError, match="nine"):
        Execution(executor, path, False).rows(
            failing, range(10), str, named=str, shown_as=("a", "b")
        )
    assert (
        sorted(key for keys in written for key in keys)
        == [str(task) for task in range(9)]
        == keys_in(path)
    )
    sizes = [len(keys) for keys in written]
    assert sizes == [1] * 9 if executor is None else max(sizes) > 1


def test_rows_that_cannot_all_be_kept_leave_none(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    Store(path).keep("old", ROWS)
    with pytest.raises(TypeError):
        Store(path).keep_all({"a": ROWS, "b": [{"no": object()}]})
    assert keys_in(path) == ["old"]
