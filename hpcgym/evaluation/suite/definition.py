"""What a suite fixes: logs by part, copies of each week, and the digest of the jobs of each log.

A suite is a file of the folder `suite` on the shelf of scenarios. Its name ends in its version, and
no version changes once it is published: another set of logs is another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcgym.base.errors import EvaluationError, ScenarioError, unknown_name
from hpcgym.base.registry import read_toml, shelf_folders
from hpcgym.core.columns import NODE_COLUMNS
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.runner import Copies

NEWEST = "suite-2"

DECIDING = ("submit_time", "run_time", "requested_time", "processors", "user_index")
"""Columns of the jobs whose content a digest holds; on nodes also what jobs ask of these."""


@dataclass(frozen=True)
class SuiteLog:
    """A log of a suite.

    Attributes:
        scenario: Its scenario, all weeks of which are played.
        part: Group of logs that are summed up together.
        digest: Of the jobs and the scheduler's settings, as `jobs_digest`.
    """

    scenario: str
    part: str
    digest: str


@dataclass(frozen=True)
class Suite:
    """A version of the suite.

    Attributes:
        name: Its name, such as "suite-2".
        description: What it is.
        copies: How weeks are copied.
        logs: The logs, by part.
    """

    name: str
    description: str
    copies: Copies
    logs: tuple[SuiteLog, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts, in their order."""
        return tuple(dict.fromkeys(log.part for log in self.logs))

    def of(self, parts: Sequence[str]) -> tuple[SuiteLog, ...]:
        """Return the logs of some parts, all where none is named; refuse a part that is none."""
        for part in parts:
            if part not in self.parts:
                raise ScenarioError(unknown_name(f"part of {self.name}", part, self.parts))
        return tuple(log for log in self.logs if not parts or log.part in parts)

    def log(self, scenario: str) -> SuiteLog:
        """Return the log of a scenario.

        Raises:
            ScenarioError: The suite has no such log.
        """
        for log in self.logs:
            if log.scenario == scenario:
                return log
        known = [log.scenario for log in self.logs]
        raise ScenarioError(unknown_name(f"log of {self.name}", scenario, known))

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """The logs of which the newest version has other jobs, so that no week can be replayed."""
        newest = {log.scenario: log.digest for log in load_suite().logs}
        return tuple(
            log.scenario for log in self.logs if newest.get(log.scenario, log.digest) != log.digest
        )

    @property
    def note(self) -> str:
        """What to know of a version that is not the newest; "" of the newest."""
        if self.name == NEWEST:
            return ""
        other = f", which has other jobs of {', '.join(self.changed)}" if self.changed else ""
        return f"{self.name} is an earlier version of {NEWEST}{other}"


def load_suite(name: str = NEWEST) -> Suite:
    """Read a version of the suite.

    Raises:
        ScenarioError: There is no such version, or its file is not understood.

    Example:
        >>> load_suite().parts
        ('bundled', 'old', 'today', 'nodes')
    """
    known = {path.stem: path for path in _files()}
    if name not in known:
        raise ScenarioError(unknown_name("suite", name, sorted(known)))
    table = read_toml(known[name], ScenarioError)
    try:
        copies = Copies(table["jitter"], table["replicas"], table["seed"])
        logs = [_log(entry) for entry in table["log"]]
        return Suite(name, table["description"], copies, tuple(logs))
    except (KeyError, TypeError) as error:
        raise ScenarioError(f"{known[name]}: not a suite: {error}") from None


def _files() -> list[Path]:
    folders = [folder / "suite" for folder in shelf_folders("scenarios")]
    return sorted(path for folder in folders for path in folder.glob("*.toml"))


def _log(table: dict[str, Any]) -> SuiteLog:
    """Return a log of a suite's file."""
    return SuiteLog(**{field.name: str(table[field.name]) for field in fields(SuiteLog)})


def jobs_digest(episodes: Episodes) -> str:
    """Digest the jobs of all weeks, and what schedules them; equal in every version of hpcgym.

    Example:
        >>> jobs_digest(Episodes("tiny"))[:8]
        '59f7b6a6'
    """
    settings = episodes.settings
    scheduler = (str(settings.backfill), settings.threshold, settings.estimates)
    hasher = hashlib.sha256(repr(scheduler).encode())
    nodes, columns = episodes.scenario.machine.nodes, [*DECIDING]
    if nodes is not None:
        columns += NODE_COLUMNS
        stated = [settings.placement, nodes.to_dict()]
        hasher.update(json.dumps(stated, sort_keys=True).encode())
    for position, number in enumerate(episodes.numbers):
        jobs = episodes.workload(position)
        hasher.update(f"{number} {jobs.machine_processors} ".encode())
        for column in columns:
            hasher.update(getattr(jobs, column).astype("<i8").tobytes())
    return hasher.hexdigest()


def episodes_of(log: SuiteLog, suite: Suite) -> Episodes:
    """Return the weeks of a log of a suite.

    Raises:
        TraceError: Its file is not here.
        EvaluationError: It holds other jobs than those of the suite.
    """
    if log.scenario in suite.changed:
        raise EvaluationError(
            f"{log.scenario}: {suite.note}; take {NEWEST}, or the hpcgym that {suite.name} is of"
        )
    episodes = Episodes(log.scenario)
    digest = jobs_digest(episodes)
    if digest != log.digest:
        raise EvaluationError(
            f"{log.scenario}: other jobs or settings than those of the suite: digest "
            f"{digest[:16]}, and not {log.digest[:16]}; take the log on record, unchanged"
        )
    return episodes
