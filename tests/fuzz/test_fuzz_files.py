"""Files with flipped bytes, cut or stretched: they act as before, or are refused."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from fuzzing import Change, changes, damaged, many
from hpcgym.agent.network import read_network
from hpcgym.agent.run_time_network import read_run_time_network
from hpcgym.base.errors import HpcgymError
from hpcgym.base.registry import shelf_folders
from hpcgym.core.compiler.kernel_cache import DIGEST_BYTES, KernelCache
from hpcgym.env.scenario.load import load_scenario
from hpcgym.evaluation.store import Store
from hpcgym.trace import find_trace, load_workload

SHELF = shelf_folders("agents")[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files."""
    return tmp_path_factory.mktemp("files")


def network(path: Path) -> Any:
    """Return what decides how a network acts."""
    agent = read_network(path)
    return agent.spec, {name: array.tobytes() for name, array in agent.weights.items()}


def run_time_network(path: Path) -> Any:
    """Return what decides what a network predicts."""
    return read_run_time_network(path).tobytes()


def workload(path: Path) -> Any:
    """Return the jobs of a log or table."""
    jobs = load_workload(path, machine_processors=256)
    columns = (jobs.submit_time, jobs.run_time, jobs.requested_time, jobs.processors)
    return [column.tobytes() for column in columns]


def scenario(path: Path) -> Any:
    """Return what a scenario states."""
    return load_scenario(path)


@cache
def contents(name: str) -> bytes:
    """Return the bytes of a whole file of each kind."""
    if name.endswith(".npz"):
        return (SHELF / name).read_bytes()
    if name.endswith(".toml"):
        return (Path(__file__).parents[2] / "scenarios" / name).read_bytes()
    return find_trace(name.removesuffix(".swf.gz")).read_bytes()


def acts_as_before_or_is_refused(
    read: Any, name: str, changed: list[Change], folder: Path, *, sealed: bool
) -> None:
    """Damage a file and read it; one without a digest may also be read as another."""
    path = folder / name
    whole = contents(name)
    path.write_bytes(whole)
    expected = read(path) if sealed else None
    path.write_bytes(damaged(whole, changed))
    try:
        assert not sealed or read(path) == expected
        if not sealed:
            read(path)
    except HpcgymError as error:
        assert "\n" not in str(error)


@many(2)
@given(changes(20_000))
@pytest.mark.parametrize(
    ("name", "read"), [("ppo-order.npz", network), ("smith-net.npz", run_time_network)]
)
def test_a_damaged_network_acts_as_before_or_is_refused(
    folder: Path, name: str, read: Any, changed: list[Change]
) -> None:
    acts_as_before_or_is_refused(read, name, changed, folder, sealed=True)


@many(1)
@given(changes(40_000))
def test_a_damaged_packed_log_acts_as_before_or_is_refused(
    folder: Path, changed: list[Change]
) -> None:
    name = "synthetic-256.swf.gz"
    acts_as_before_or_is_refused(workload, name, changed, folder, sealed=True)


@many(2)
@given(changes(1_200))
def test_a_damaged_scenario_is_read_or_refused(folder: Path, changed: list[Change]) -> None:
    name = "synthetic-256-weeks.toml"
    acts_as_before_or_is_refused(scenario, name, changed, folder, sealed=False)


@many(4)
@given(changes(12_288))
def test_a_damaged_store_gives_only_runs_that_were_kept_and_goes_on(
    folder: Path, changed: list[Change]
) -> None:
    path = folder / "runs.sqlite"
    path.unlink(missing_ok=True)
    kept = {hashlib.sha256(bytes([n])).hexdigest(): [{"bsld": 1.5 + n}] for n in range(3)}
    for key, rows in kept.items():
        Store(path).keep(key, rows)
    path.write_bytes(damaged(path.read_bytes(), changed))
    try:
        store = Store(path)
        for key, rows in kept.items():
            assert store.find(key) in (None, rows)
            store.keep(key, rows)
        assert [store.find(key) for key in kept] == list(kept.values())
    except HpcgymError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@many(2)
@given(changes(4_000))
@example(changed=[("flip", 3889, 0)])
def test_a_damaged_table_of_jobs_is_read_or_refused(
    folder: Path, suffix: str, changed: list[Change]
) -> None:
    pytest.importorskip("pyarrow")
    path = folder / f"jobs{suffix}"
    frame = load_workload("tiny").to_frame()
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    path.write_bytes(damaged(path.read_bytes(), changed))
    try:
        load_workload(path, machine_processors=256)
    except HpcgymError as error:
        assert "\n" not in str(error)


@many(2)
@given(changes(5_000))
def test_a_damaged_kernel_is_never_loaded(folder: Path, changed: list[Change]) -> None:
    data = bytes(range(256)) * 16
    whole = hashlib.sha256(data).digest() + data
    assert len(whole) == DIGEST_BYTES + len(data)
    path = folder / "a.kernel"
    content = damaged(whole, changed)
    path.write_bytes(content)
    if content != whole:
        assert KernelCache(damaged, folder)._read(path, None) is None
        assert not path.exists()
