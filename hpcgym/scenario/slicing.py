"""From a log to numbered episodes: read, cleaned and cut once in a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hpcgym.core.history import empty_history
from hpcgym.core.workload import Workload
from hpcgym.scenario.spec import (
    EpisodeSpec,
    RandomWindowEpisodes,
    ResampledEpisodes,
    Scenario,
    TraceSpec,
    WeekEpisodes,
    WholeEpisode,
    WindowEpisodes,
)
from hpcgym.trace.catalogue import find_trace
from hpcgym.trace.clean import CleaningReport, clean
from hpcgym.trace.resample import resample
from hpcgym.trace.split import WEEK_S, Past, logged_end_time, weeks, window, windows
from hpcgym.trace.swf import read_swf

Part: TypeAlias = tuple[str, Workload]
"""One episode: its label, such as "week 7", and its jobs."""

Cleaned: TypeAlias = tuple[Workload, CleaningReport]


@dataclass(frozen=True)
class Cut:
    """The episodes of one log, by number.

    Attributes:
        labels: Name of each episode, such as "week 7".
        parts: The jobs of each; those of a random kind are added when first asked for.
        make: Makes a fresh episode; None where there are only the fixed ones.
        seed: Seed of the numbered episodes of a random kind.
    """

    labels: dict[int, str]
    parts: dict[int, Workload] = field(default_factory=dict)
    make: Callable[[np.random.Generator], Part] | None = None
    seed: int = 0

    def workload(self, number: int) -> Workload:
        """Return the jobs of an episode.

        Args:
            number: Its number; one of a random kind depends on the seed and this alone.

        Returns:
            The job table; the same object at every call.

        Source:
            House rule: seeded, bit-identical replays.
        """
        if number not in self.parts:
            assert self.make is not None
            self.parts[number] = self.make(np.random.default_rng([self.seed, number]))[1]
        return self.parts[number]


def cut_log(scenario: Scenario) -> tuple[Workload, CleaningReport, Cut]:
    """Read, clean and cut the log of a scenario, or take what this process holds of it.

    Args:
        scenario: The scenario.

    Returns:
        The whole cleaned log, the report of the cleaning, and the episodes.

    Raises:
        TraceError: The log cannot be found, read, cleaned or cut.

    Source:
        House rule: many environments of one scenario share one log.
    """
    path, stamp = _located(scenario.trace)
    key = path, stamp, scenario.trace, scenario.machine.processors
    return *_cleaned(*key), _cut_cleaned(*key, scenario.episode)


def cleaned_log(trace: TraceSpec, processors: int | None) -> Cleaned:
    """Read and clean a log, or take what this process holds of it.

    Args:
        trace: Which log, and how it is cleaned.
        processors: Processors of the machine; None = what the log's header says.

    Returns:
        The job table, and the report of the cleaning.

    Raises:
        TraceError: The log cannot be found, read or cleaned.

    Source:
        Specification, section 1, "Reading SWF".

    Example:
        >>> cleaned_log(TraceSpec(name="tiny", missing_request="drop"), None)[0]
        Workload('tiny', 8 jobs, 4 processors)
    """
    return _cleaned(*_located(trace), trace, processors)


def cut_workload(log: Workload, episode: EpisodeSpec) -> Cut:
    """Cut a log into episodes.

    Args:
        log: The whole cleaned log.
        episode: How.

    Returns:
        The episodes, by number.

    Raises:
        TraceError: The log is too short for an episode of that kind.

    Source:
        Specification, section 10, "Episodes".
    """
    match episode:
        case WholeEpisode():
            return Cut({1: "whole"}, {1: log})
        case WeekEpisodes():
            parts = {
                _number(part): _remembering(part, episode.warm_history)
                for part in weeks(log, rule=episode.rule, offset=episode.offset_s)
            }
            return Cut({number: f"week {number}" for number in parts}, parts)
        case WindowEpisodes():
            parts = {
                number: _remembering(part, episode.warm_history)
                for number, part in enumerate(windows(log, episode.n_jobs), 1)
            }
            return Cut({number: f"window {number}" for number in parts}, parts)
        case RandomWindowEpisodes():
            labels = {number: f"window {number}" for number in range(1, episode.episodes + 1)}
            return Cut(labels, make=_window_maker(log, episode), seed=episode.seed)
        case ResampledEpisodes():
            labels = {number: f"sample {number}" for number in range(1, episode.episodes + 1)}
            return Cut(labels, make=_sample_maker(log, episode), seed=episode.seed)


def cut_apart(
    log: Workload, episode: WeekEpisodes, numbers: Sequence[int], held_out: Sequence[int]
) -> Cut:
    """Cut weeks out that know nothing of the rest of the log but their users' past.

    A held-out job is one whose life in the log, from submission to logged end, touches a held-out
    week: those submitted in it, and those of other weeks that reach into it.

    Args:
        log: The whole cleaned log.
        episode: How it is cut.
        numbers: Numbers of the weeks.
        held_out: Numbers of the weeks whose jobs no history may hold.

    Returns:
        The weeks, without their way back to the log.

    Source:
        Specification, section 10, "Episodes": a training week's warm history skips the jobs of the
        held-out block.
    """
    submit, end = log.submit_time, logged_end_time(log)
    mask = np.zeros(len(log), dtype=np.bool_)
    for number in held_out:
        start = episode.offset_s + number * WEEK_S
        mask |= (submit < start + WEEK_S) & (end >= start)
    parts = {
        _number(part): replace(
            _remembering(part, episode.warm_history), source=None, source_row=None
        )
        for part in weeks(log, rule=episode.rule, offset=episode.offset_s, held_out=mask)
    }
    return Cut(
        {number: f"week {number}" for number in numbers},
        {number: parts[number] for number in numbers},
    )


def _window_maker(
    log: Workload, episode: RandomWindowEpisodes
) -> Callable[[np.random.Generator], Part]:
    """Return what cuts a window out at a random job."""
    past = Past(log)
    window(log, 0, episode.n_jobs, past=past)  # refuse too many jobs now, not at the first draw

    def make(generator: np.random.Generator) -> Part:
        first = int(generator.integers(len(log) - episode.n_jobs + 1))
        part = window(log, first, episode.n_jobs, past=past)
        return f"window at job {first + 1}", _remembering(part, episode.warm_history)

    return make


def _sample_maker(
    log: Workload, episode: ResampledEpisodes
) -> Callable[[np.random.Generator], Part]:
    """Return what resamples the log, and cuts a week out where weeks are asked for."""
    if episode.part == "week":
        weeks(log)  # refuse a log without weeks now, not at the first draw

    def make(generator: np.random.Generator) -> Part:
        sample = resample(log, generator, mode=episode.mode)
        if episode.part == "whole":
            return "sample", sample
        n_whole = int(sample.submit_time[-1]) // WEEK_S
        edges = np.searchsorted(sample.submit_time, WEEK_S * np.arange(1, n_whole + 1))
        numbers = np.flatnonzero(np.diff(edges)) + 1
        if not len(numbers):  # all jobs fell into the first week or the last, partial one
            return make(generator)
        number = int(generator.choice(numbers))
        label = f"sample week {number}"
        jobs = np.arange(edges[number - 1], edges[number])
        return label, sample.select(jobs, start=number * WEEK_S, name=f"{log.name} {label}")

    return make


def _number(part: Workload) -> int:
    """Return the number of a week, which its name ends in."""
    return int(part.name.rpartition(" ")[2])


def _remembering(part: Workload, warm: bool) -> Workload:
    """Return a part with its warm history, or with an empty one."""
    if warm:
        return part
    return replace(part, history=empty_history(len(part.history.completed)))


def _located(trace: TraceSpec) -> tuple[Path, tuple[int, int]]:
    """Return where a log lies, and what changes when its file does."""
    path = find_trace(trace.log)
    status = path.stat()
    return path, (status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _cleaned(
    path: Path, stamp: tuple[int, int], trace: TraceSpec, processors: int | None
) -> Cleaned:
    """Read and clean a log; the stamp is part of the key."""
    return clean(
        read_swf(path, on_bad_line=trace.on_bad_line),
        machine_processors=processors,
        missing_request=trace.missing_request,
        max_request=trace.max_request_s,
        minimum_run_time=trace.minimum_run_time_s,
        seed=0 if trace.tsafrir_seed is None else trace.tsafrir_seed,
    )


@lru_cache(maxsize=4)
def _cut_cleaned(
    path: Path,
    stamp: tuple[int, int],
    trace: TraceSpec,
    processors: int,
    episode: EpisodeSpec,
) -> Cut:
    """Cut a cleaned log."""
    return cut_workload(_cleaned(path, stamp, trace, processors)[0], episode)
