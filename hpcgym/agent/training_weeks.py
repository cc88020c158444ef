"""What an agent was trained on, and which weeks it may therefore be evaluated on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hpcgym.base.errors import CardError, ScenarioError, TraceError
from hpcgym.base.ranges import number_ranges
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scenario.slicing import cleaned_log, taken_by
from hpcgym.env.scenario.spec import Scenario, WeekEpisodes
from hpcgym.trace.catalogue import digest_of, find_trace, is_same_text, name_without_version
from hpcgym.trace.split import WEEK_S

if TYPE_CHECKING:
    from hpcgym.env.scenario.episodes import Episodes


@dataclass(frozen=True)
class Training:
    """How an agent was trained."""

    # Numbers of the training weeks, by the name of their scenario.
    weeks: Mapping[str, tuple[int, ...]]
    seed: int
    seconds: float  # wall time it took, s
    commit: str  # the project's commit it was made at
    command: str
    # sha256 of the uncompressed text of the log behind each scenario, where the log was at hand. It
    # identifies the log where the scenario is unknown.
    logs: Mapping[str, str] = field(default_factory=dict)
    # Whether the agent is what the training began with, since nothing that was tried was better.
    ended_at_start: bool = False


class Trained(Protocol):
    """An agent, as its training weeks are asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def training(self) -> Training | None:
        """How it was trained; None if it was not."""
        ...


def open_weeks(training: Training, episodes: Episodes) -> tuple[int, ...]:
    """Return the numbers of the weeks that an agent may be evaluated on after its training.

    Training weeks and weeks adjacent to one are closed, in every scenario of the same log. Weeks
    are compared by the time at which they begin. All weeks are closed in three cases: in another
    version of the log, whose clock may begin at another instant; in episodes of another kind; and
    where the log is the same, but the training's scenario is on no shelf (`hpcgym.add_folder`).

    Raises:
        TraceError: A log that was trained on, and is cut here too, cannot be cleaned as it was.

    Source: Specification, section 10, "Evaluation protocol", step 1.
    """
    used: set[int] = set()
    for name, numbers in training.weeks.items():
        scenario = episodes.scenario if name == episodes.scenario.name else _known(name)
        if scenario is None:
            digest = training.logs.get(name)
            if digest is not None and digest == _digest_of(episodes.scenario):
                return ()
            continue
        if not is_same_log(scenario, episodes.scenario):
            continue
        cut, evaluated = scenario.episode, episodes.scenario.episode
        later = _seconds_later(scenario, episodes.scenario)
        if (
            later is None
            or not isinstance(cut, WeekEpisodes)
            or not isinstance(evaluated, WeekEpisodes)
        ):
            return ()
        begins = [later + cut.offset_s + number * WEEK_S for number in numbers]
        used |= {
            number
            for number in episodes.numbers
            if any(
                abs(evaluated.offset_s + number * WEEK_S - start) < 2 * WEEK_S for start in begins
            )
        }
    return tuple(number for number in episodes.numbers if number not in used)


def refuse_training_weeks(agent: Trained, episodes: Episodes, numbers: Sequence[int]) -> None:
    """Refuse to evaluate an agent on weeks it was trained on, or on their neighbours.

    Raises:
        CardError: One of `numbers` is a training week or adjacent to one.

    Source: Specification, section 10, "Evaluation protocol", step 1.
    """
    if agent.training is None:
        return
    allowed = open_weeks(agent.training, episodes)
    wrong = [number for number in numbers if number not in allowed]
    if wrong:
        trained = "; ".join(
            f"{number_ranges(weeks)} of {log}" for log, weeks in agent.training.weeks.items()
        )
        raise CardError(
            f"{agent.name} was trained on weeks {trained}, which {number_ranges(wrong)} of "
            f"{episodes.scenario.name} touch or are adjacent to; it may be evaluated on "
            f"{number_ranges(allowed)}"
        )


def is_same_log(scenario: Scenario, other: Scenario) -> bool:
    """Return whether two scenarios cut one log: one file, the same text, or versions of one log."""
    if scenario is other or scenario.trace.log == other.trace.log:
        return True
    name = name_without_version(scenario.trace.log)
    if name is not None and name == name_without_version(other.trace.log):
        return True
    return _is_same_text(scenario, other)


def digests_of_logs(scenarios: Iterable[str | Path | Scenario]) -> dict[str, str]:
    """Return the digest of each log at hand by the name of its scenario, for `Training.logs`.

    Raises:
        ScenarioError: No such scenario.
        TraceError: A log cannot be read.
    """
    known = [load_scenario(scenario) for scenario in scenarios]
    digests = {scenario.name: _digest_of(scenario) for scenario in known}
    return {name: digest for name, digest in digests.items() if digest is not None}


def _digest_of(scenario: Scenario) -> str | None:
    """Return the digest of a scenario's log, or None where it is not at hand."""
    path = _log_of(scenario)
    return None if path is None else digest_of(path)


def _seconds_later(scenario: Scenario, other: Scenario) -> int | None:
    """Return how much later a log's clock begins in one scenario than in another; None if unknown.

    It begins at the first job that cleaning keeps. It is unknown for two versions of a log.
    """
    if (scenario.trace, taken_by(scenario)) == (other.trace, taken_by(other)):
        return 0
    if not _is_same_text(scenario, other):
        return None
    first, second = (
        cleaned_log(cut.trace, *taken_by(cut))[1].time_offset for cut in (scenario, other)
    )
    return first - second


def _known(name: str) -> Scenario | None:
    """Return a scenario of the shelf, or None where there is none of that name."""
    try:
        return load_scenario(name)
    except ScenarioError:
        return None


def _is_same_text(scenario: Scenario, other: Scenario) -> bool:
    """Return whether the logs of two scenarios are at hand and have the same text."""
    first, second = _log_of(scenario), _log_of(other)
    return first is not None and second is not None and is_same_text(first, second)


def _log_of(scenario: Scenario) -> Path | None:
    """Return the path of a scenario's log, or None where it is not at hand."""
    try:
        return find_trace(scenario.trace.log)
    except TraceError:
        return None
