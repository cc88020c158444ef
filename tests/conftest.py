"""Fixtures and hypothesis profiles shared by all tests."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from forked_workers import forked_workers
from hpcgym.base.registry import has_room
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WeekEpisodes

FROM_PARENT = (
    *("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"),
    *("LC_ALL", "LANG", "LANGUAGE", "TZ", "PYTHONWARNINGS", "PYTHONOPTIMIZE"),
    *("HPCGYM_UNVERIFIED", "XDG_STATE_HOME"),
)
"""Variables that change what commands print or where they look; tests set what they need."""

for _name in FROM_PARENT:
    os.environ.pop(_name, None)
time.tzset()
os.umask(0o022)
try:
    os.fstat(0)
except OSError:  # standard input is closed: the next file would be 0
    os.open(os.devnull, os.O_RDONLY)
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:  # as for what a script starts by "&"
        signal.signal(_number, _handler)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})

_PROFILE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("check", max_examples=10, derandomize=True, **_PROFILE)
settings.register_profile("few", max_examples=5, derandomize=True, **_PROFILE)
settings.register_profile("thorough", max_examples=3000, **_PROFILE)
settings.register_profile("fuzz", max_examples=100, **_PROFILE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))


LONGEST = ("tests/test_notebooks.py", "tests/test_readme.py")
"""Tests of many seconds each, which should not be the last of two workers."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look into no helper for doctests: it would be imported once more, and toys register parts."""
    is_helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_helper and Path(__file__).parent in collection_path.parents else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over the thousands of tests, a tenth of all time else."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


WEEK_S = 604_800
FIRST_REQUEST = 5_000_000


@pytest.fixture(autouse=True)
def workers_are_forked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork workers of executors, but where it is tested how they start and what they load."""
    if request.path.stem in ("test_workers", "test_plugins"):
        yield
        return
    with forked_workers():
        yield


@pytest.fixture(scope="session")
def real_log() -> Callable[[str], Path]:
    """Return a function from the name of a real log to its path; it skips where there is none.

    Real logs lie in the folder that the environment variable HPCGYM_TRACES names, as
    `<name>.swf.gz`; they are never copied into the project.
    """

    def find(name: str) -> Path:
        folder = os.environ.get("HPCGYM_TRACES")
        if not folder:
            pytest.skip("HPCGYM_TRACES is not set: no real logs")
        path = Path(folder) / f"{name}.swf.gz"
        if not path.exists():
            pytest.skip(f"{path} does not exist")
        return path

    return find


@pytest.fixture(scope="session")
def marked_log() -> Workload:
    """Eight whole weeks; job i asks for 5,000,000 + i s, a number that nothing else is."""
    generator = np.random.default_rng(11)
    n = 1_500
    run = generator.lognormal(8.5, 1.5, n).astype(np.int64) + 1
    return Workload.from_arrays(
        np.sort(generator.integers(0, 10 * WEEK_S, n)),
        np.minimum(run, 3 * 86_400),
        FIRST_REQUEST + np.arange(n),
        generator.integers(1, 25, n),
        machine_processors=32,
        user=generator.integers(0, 9, n),
        wait_time=generator.integers(0, 20_000, n),
        name="marked",
        source=object(),
        source_row=np.arange(n),
    )


@pytest.fixture(scope="session")
def marked_weeks(marked_log: Workload) -> Episodes:
    """Its weeks, 1 to 8, with warm histories."""
    scenario = Scenario(
        name="marked-weeks",
        description="Weeks of a log that tells its jobs apart.",
        trace=TraceSpec(name="marked", missing_request="drop"),
        machine=MachineSpec(processors=32, largest_request_s=marked_log.largest_request),
        episode=WeekEpisodes(),
        scheduler=SchedulerSpec(threshold_s=100_000),
    )
    return Episodes(scenario, workload=marked_log)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that runs the command, expects success and returns what it printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def succeed(*arguments: object) -> str:
        result = typed(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    return succeed


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that runs the command, expects one line of error and returns it."""
    monkeypatch.setenv("COLUMNS", "200")

    def fail(*arguments: object) -> str:
        result = typed(*arguments)
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit)
        assert result.stderr.startswith("hpcgym: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return fail


def typed(*arguments: object) -> Any:
    """Run the command; skip the test where a subcommand went with its folder of the package."""
    from typer.testing import CliRunner

    from hpcgym.cli.root import ROOMS, app

    words = [str(argument) for argument in arguments]
    if not has_room(ROOMS.get(words[0], "")):
        pytest.skip(f"{ROOMS[words[0]]} is deleted")
    return CliRunner().invoke(app, words)
