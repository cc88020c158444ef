"""Runs of an agent on a suite, and the record that they make.

A record names the agent with all that it is: a rule or a card with its text, weights with their
bytes. Of each week it has one digest over the starts, and the attempts, of all copies, and the
metrics of each copy. Who has the log can replay any week of it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.contest import contest_of
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.sandbox import load_sandboxed
from hpcgym.agent.shelf import load_agent
from hpcgym.agent.training_weeks import open_weeks
from hpcgym.base.errors import EvaluationError
from hpcgym.base.registry import shelf_entries
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.executors import AnyExecutor, executor_of
from hpcgym.evaluation.runner import AnyAgent, Runner, misfits
from hpcgym.evaluation.store import Row, versions
from hpcgym.evaluation.suite.definition import NEWEST, Suite, SuiteLog, episodes_of, load_suite
from hpcgym.schedule.schedule import Schedule

FORMAT = 1

METRICS = (*("mean_bsld", "mean_wait_time", "max_wait_time", "waste", "share_killed"), "n_jobs")
"""What a record has of each copy, 0 where a schedule has no such metric."""

VAIN = ("job", "taken", "start", "end", "reason")  # what is digested of attempts in vain


@dataclass
class Player:
    """Plays weeks of a suite; pickled once for all workers."""

    runners: list[Runner]  # a runner of the agent on each log
    # Logs that it cannot schedule, and why.
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """Every week, as the positions of its log and in it, the same log's weeks together."""
        return [
            (log, week)
            for log, runner in enumerate(self.runners)
            for week in range(len(runner.episodes))
        ]

    def run(self, task: tuple[int, int]) -> list[Row]:
        """Play a week and its copies; return one row."""
        log, week = task
        runner = self.runners[log]
        hasher = hashlib.sha256()
        copies: dict[str, list[float]] = {name: [] for name in METRICS}
        for replica in range(runner.copies.replicas + 1):
            schedule = runner.schedule(0, week, runner.replica(week, replica))
            _add_starts(hasher, schedule)
            metrics = schedule.metrics()
            for name in METRICS:
                copies[name].append(float(metrics.get(name, 0)))
        return [{"week": runner.episodes.numbers[week], "starts": hasher.hexdigest()} | copies]

    def key(self, task: tuple[int, int]) -> str:
        """Return the digest of all that decides a week."""
        return f"suite {self.runners[task[0]].key((task[1], 0))}"

    def named(self, task: tuple[int, int]) -> str:
        """Return what messages call a week."""
        runner = self.runners[task[0]]
        return f"{runner.episodes.scenario.name}, {runner.named((task[1], 0))}"


def _add_starts(hasher: Any, schedule: Schedule) -> None:
    """Digest when each job starts, and when attempts in vain begin and end."""
    hasher.update(schedule.start_time.astype("<i8").tobytes())
    if schedule.attempts is not None:
        for name in VAIN:
            hasher.update(getattr(schedule.attempts, name).astype("<i8").tobytes())


def weeks_open(agent: AnyAgent, episodes: Episodes) -> Episodes:
    """Return the weeks of a log that an agent plays: none that it was trained on, or next to one.

    Raises:
        EvaluationError: It has no weeks to play.
    """
    if not isinstance(agent, (RuleAgent, NamedAgent)) or agent.training is None:
        return episodes
    numbers = open_weeks(agent.training, episodes)
    if not numbers:
        raise EvaluationError(f"{agent.name} was trained on all of {episodes.scenario.name}")
    return episodes.select(",".join(map(str, numbers)))


def player_of(agent: AnyAgent, suite: Suite, logs: Sequence[SuiteLog]) -> Player:
    """Return what plays an agent on some logs, those left out that it cannot schedule.

    Raises:
        EvaluationError: It can schedule none of them, or has no weeks to play on one; or a log is
            not the suite's.
        TraceError: A log is not here.
    """
    runners, left_out = [], {}
    for log in logs:
        episodes = weeks_open(agent, episodes_of(log, suite))
        if refused := misfits([agent], episodes):
            left_out[log.scenario] = refused[agent.name]
        else:
            runners.append(Runner([agent], episodes, suite.copies))
    if not runners:
        raise EvaluationError("; ".join(left_out.values()))
    return Player(runners, left_out)


def run_suite(
    agent: str,
    suite: str | None = None,
    *,
    parts: Sequence[str] = (),
    sandbox: bool = False,
    executor: AnyExecutor = None,
    resume: str | Path | None = None,
    progress: bool = True,
    told: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Run an agent on a suite and return its record, as it is written in JSON.

    Logs that it cannot schedule are left out, such as one of nodes where it counts processors.

    Args:
        agent: As `hpcgym.agent.shelf.load_agent` takes it.
        suite: Name of the suite; None = the newest.
        parts: Parts of it; none = all.
        sandbox: Whether the agent is the code of a file, which runs in a sandbox only
            (`hpcgym.agent.sandbox`).
        executor: As of `hpcgym.evaluation.evaluate`; the record is the same.
        resume: File that keeps finished weeks, and from which an interrupted run goes on.
        progress: Whether to show progress.
        told: What is called with a line for each log that is left out.

    Raises:
        CardError: There is no such agent, or no sandbox.
        ScenarioError: There is no such suite or part.
        EvaluationError: The agent can play no log, or a log is not the suite's.
        TraceError: A log is not here.

    Example:
        >>> record = run_suite("SAF", parts=["bundled"], progress=False)
        >>> record["agent"]["name"], list(record["logs"])[0]
        ('SAF', 'synthetic-256-weeks')
    """
    chosen: AnyAgent = load_sandboxed(agent) if sandbox else load_agent(agent)
    known = load_suite(suite or NEWEST)
    player = player_of(chosen, known, known.of(parts))
    for name, reason in player.left_out.items():
        told(f"{name} is left out: {reason}")
    logs = [log for log in known.of(parts) if log.scenario not in player.left_out]
    with executor_of(executor) as workers:
        rows = Execution(workers, resume, progress).rows(
            player.run, player.tasks, player.key, named=player.named, shown_as=(known.name, "weeks")
        )
    by_log: dict[str, Any] = {
        log.scenario: {
            "digest": log.digest,
            "contest": contest_of(chosen, runner.episodes.settings),
            "weeks": {},
        }
        for log, runner in zip(logs, player.runners, strict=True)
    }
    for (log, _), (row,) in zip(player.tasks, rows, strict=True):
        number = str(row["week"])
        by_log[logs[log].scenario]["weeks"][number] = {
            key: value for key, value in row.items() if key != "week"
        }
    return {
        "format": FORMAT,
        "suite": known.name,
        "agent": described(agent, chosen),
        "versions": versions(),
        "logs": by_log,
    }


def described(given: str, agent: AnyAgent) -> dict[str, Any]:
    """Return all that an agent is: its card and weights; of code only what was typed.

    Raises:
        EvaluationError: A file beside its card cannot be read.
    """
    named: dict[str, Any] = {"name": agent.name, "given": Path(given).name}
    is_path = given.endswith(".toml")
    card = Path(given) if is_path else shelf_entries("agents").get(given.casefold())
    if card is None:
        return named | {"card": None, "weights": {}}
    beside = card.with_suffix(".npz")
    try:
        content = beside.read_bytes() if beside.exists() else None
        text = card.read_text("utf-8")
    except OSError as error:
        raise EvaluationError(f"{card}: {error}") from None
    weights = {} if content is None else {beside.name: base64.b64encode(content).decode()}
    return named | {"card": text, "weights": weights}
