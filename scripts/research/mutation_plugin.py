"""What pytest does for mutation tests: note which lines a test runs, or run the tests of a list.

Loaded by `pytest -p research.mutation_plugin`. A test that takes more of the processor's time than
it may is ended with the whole process, by SIGPROF, so that compiled loops without an end stop too.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from research.probes import take_hits

TASK = os.environ.get("MUTATION_TASK")
GIVEN: dict[str, Any] = {} if TASK is None else json.loads(Path(TASK).read_text())
"""`report`, the file to append to; `tests` to run, in order, each with the time it may take, s, or
`limit` for every test; with `whole`, lines are noted for so many seconds, but of those `done`, and
of `slow` functions."""

ORDER: dict[str, float] | None = GIVEN.get("tests")
MEMORY = 6 * 2**30
_begun: list[str] = []


def tell(**what: Any) -> None:
    """Append a line to the report."""
    with open(GIVEN["report"], "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def pytest_configure() -> None:
    """Limit memory, and leave out the shrinking of what fails."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    drawn = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))
    few = [Phase.explicit, Phase.generate]
    settings.register_profile("mutation", drawn, phases=few, database=None)
    settings.load_profile("mutation")
    if "slow" in GIVEN:
        signal.signal(signal.SIGPROF, give_up)


def give_up(number: int, frame: object) -> None:
    """Say which lines a test ran that takes too long, and end."""
    tell(test=_begun[-1], seconds=GIVEN["limit"], lines=take_hits())
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the list, in its order."""
    if "slow" in GIVEN:
        tell(collected=len(items), lines=take_hits())
        of_function: Counter[str] = Counter()
        turns = []
        for number, item in enumerate(items):
            name = item.nodeid.partition("[")[0]
            turns.append((of_function[name], number, item))
            of_function[name] += 1
        left_out = {*GIVEN["slow"], *GIVEN["done"]}
        items[:] = [
            item
            for *_, item in sorted(turns)
            if not left_out & {item.nodeid, item.nodeid.partition("[")[0]}
        ]
    elif ORDER is not None:
        place = {name: number for number, name in enumerate(ORDER)}
        items[:] = sorted(
            (item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid]
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Say which test runs, for how long it may, and afterwards what it ran."""
    limit = GIVEN["limit"] if ORDER is None else ORDER[item.nodeid]
    if "slow" in GIVEN and time.process_time() > GIVEN["whole"]:
        item.session.shouldstop = "enough"
    tell(begun=item.nodeid)
    _begun.append(item.nodeid)
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = round(time.process_time() - begun, 3)
        if "slow" in GIVEN:
            tell(test=item.nodeid, seconds=seconds, lines=take_hits())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say what failed or was skipped."""
    if report.failed or report.skipped:
        tell(**{report.outcome: report.nodeid})
