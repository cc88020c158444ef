"""Read and clean a log, and cut it into numbered episodes, once in a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from hpcgym.base.errors import ScenarioError
from hpcgym.core.history import empty_history
from hpcgym.core.workload import Workload
from hpcgym.env.scenario import spec
from hpcgym.machine import Machine
from hpcgym.trace.catalogue import find_log
from hpcgym.trace.clean import clean
from hpcgym.trace.cleaning_report import CleaningReport
from hpcgym.trace.load import read_log
from hpcgym.trace.populations import Populations
from hpcgym.trace.resample import resample
from hpcgym.trace.split import WEEK_S, Past, logged_end_time, weeks, window, windows

LabelledWorkload: TypeAlias = tuple[str, Workload]
"""Label, such as "week 7", and jobs of one episode."""

Cleaned: TypeAlias = tuple[Workload, CleaningReport]


class Takes(NamedTuple):
    """What decides which jobs of a log are taken, and what of each, besides the log itself."""

    processors: int | None  # those of the machine; None = what its nodes have, or the log states
    nodes: Machine | None  # its nodes; None = processors are counted
    placement: str  # where jobs run on nodes
    dependencies: bool  # whether fields 17 and 18 of an SWF log are read


@dataclass(frozen=True)
class Slices:
    """The episodes of one log, by number."""

    labels: dict[int, str]  # label of each episode
    # Jobs of each episode; those of a random kind are added on first use.
    workloads: dict[int, Workload] = field(default_factory=dict)
    # Makes a new random episode; None where all episodes are fixed.
    make: Callable[[np.random.Generator], LabelledWorkload] | None = None
    seed: int = 0  # seed of the numbered episodes of a random kind

    def label(self, number: int) -> str:
        """Return the label of an episode."""
        return self.labels[number]

    def before(self, number: int) -> list[int]:
        """Return the numbers of the log's episodes before one; none where they are random."""
        return [] if self.make else [earlier for earlier in self.labels if earlier < number]

    def workload(self, number: int) -> Workload:
        """Return the jobs of an episode, the same object at every call.

        An episode of a random kind depends on the seed and its number only.
        """
        if number not in self.workloads:
            assert self.make is not None
            self.workloads[number] = self.make(np.random.default_rng([self.seed, number]))[1]
        return self.workloads[number]


@dataclass(frozen=True, kw_only=True)
class GeneratedWeeks(Slices):
    """Weeks of generated logs, made and cut a log at a time when one of its weeks is first used.

    Weeks are counted through all logs, and each log has `populations.weeks`; so a number is the
    same week however many there are. `labels` has those of the scenario's parts.
    """

    populations: Populations  # the logs
    episode: spec.WeekEpisodes  # how each is cut into weeks

    def label(self, number: int) -> str:
        """Return the label of any week."""
        return f"week {number}"

    def before(self, number: int) -> list[int]:
        """Return the numbers of the weeks before one in its log."""
        return list(range(number - self._position(number)[1] + 1, number))

    def workload(self, number: int) -> Workload:
        """Return the jobs of a week, the same object at every call."""
        if number not in self.workloads:
            population = self._position(number)[0]
            cut = slice_workload(self.populations.log(population), self.episode)
            self.workloads.update(self._numbered(population, cut.workloads))
        return self.workloads[number]

    def apart(self, numbers: Sequence[int], held_out: Sequence[int]) -> Slices:
        """Cut out weeks as `slice_apart` does, from each log."""
        workloads: dict[int, Workload] = {}
        places = {number: self._position(number) for number in (*numbers, *held_out)}
        for population in sorted({places[number][0] for number in numbers}):
            chosen, held = (
                [places[number][1] for number in part if places[number][0] == population]
                for part in (numbers, held_out)
            )
            log = self.populations.log(population)
            cut = slice_apart(log, self.episode, chosen, held)
            workloads |= self._numbered(population, cut.workloads)
        return Slices({number: self.label(number) for number in numbers}, workloads)

    def _position(self, number: int) -> tuple[int, int]:
        """Return the log of a week, from 0, and its number there, from 1."""
        population, week = divmod(number - 1, self.populations.weeks)
        return population, week + 1

    def _numbered(self, population: int, cut: dict[int, Workload]) -> dict[int, Workload]:
        """Return the weeks of a log by their numbers through all logs."""
        first, n_weeks = population * self.populations.weeks, self.populations.weeks
        return {
            first + week: replace(part, name=f"{self.populations.name} week {first + week}")
            for week, part in cut.items()
            if week <= n_weeks
        }


def generated_weeks(scenario: spec.Scenario) -> GeneratedWeeks:
    """Return the weeks of a scenario that states a generator, unless this process has them.

    Raises:
        ScenarioError: There are more or fewer digests than logs.
    """
    assert isinstance(scenario.episode, spec.WeekEpisodes)
    return _generated(scenario.name, scenario.trace, scenario.machine.processors, scenario.episode)


@lru_cache(maxsize=4)
def _generated(
    name: str, trace: spec.TraceSpec, processors: int, episode: spec.WeekEpisodes
) -> GeneratedWeeks:
    """Return generated weeks, none of them made."""
    assert trace.seed is not None and trace.load is not None and trace.population_weeks is not None
    numbers = [number for part in episode.parts.values() for number in part]
    logs = list(dict.fromkeys((number - 1) // trace.population_weeks for number in numbers))
    digests = (trace.digests or "").split()
    if digests and len(digests) != len(logs):
        raise ScenarioError(
            f"{name}: [trace] digests has {len(digests)}, yet train, validation and test need "
            f"{len(logs)} logs of {trace.population_weeks} weeks"
        )
    on_record = dict(zip(logs, digests, strict=False))
    weeks = trace.population_weeks
    mix = trace.wide or 0.0, trace.session_jobs or 4.0
    populations = Populations(name, trace.seed, weeks, trace.load, processors, *mix, on_record)
    labels = {number: f"week {number}" for number in sorted(numbers)}
    return GeneratedWeeks(labels, populations=populations, episode=episode)


def slice_log(scenario: spec.Scenario) -> tuple[Workload, CleaningReport, Slices]:
    """Return the cleaned log of a scenario, the cleaning's report, and the episodes; made once.

    Raises:
        TraceError: The log cannot be found, read, cleaned or cut.
    """
    path, stamp = _located(scenario.trace)
    key = path, stamp, scenario.trace, taken_by(scenario)
    return *_cleaned(*key), _sliced(*key, scenario.episode)


def taken_by(scenario: spec.Scenario) -> Takes:
    """Return what decides which jobs of a log a scenario takes."""
    machine, scheduler = scenario.machine, scenario.scheduler
    waits = scheduler.dependencies != "ignore"
    return Takes(machine.processors, machine.nodes, scheduler.placement, waits)


def cleaned_log(
    trace: spec.TraceSpec,
    processors: int | None,
    nodes: Machine | None = None,
    placement: str = "lowest",
    dependencies: bool = False,
) -> Cleaned:
    """Read and clean a log, unless this process has done so.

    Without processors or nodes the machine is the one that the log's header states.

    Raises:
        TraceError: The log cannot be found, read or cleaned.

    Source: Specification, section 1, "Reading SWF".
    """
    return _cleaned(*_located(trace), trace, Takes(processors, nodes, placement, dependencies))


def slice_workload(log: Workload, episode: spec.EpisodeSpec) -> Slices:
    """Cut a cleaned log into episodes.

    Raises:
        TraceError: The log is too short for an episode of that kind.

    Source: Specification, section 10, "Episodes".
    """
    match episode:
        case spec.WholeEpisode():
            return Slices({1: "whole"}, {1: log})
        case spec.WeekEpisodes():
            workloads = {
                _number(part): _with_history(part, episode.warm_history)
                for part in weeks(log, rule=episode.rule, offset=episode.offset_s)
            }
            return Slices({number: f"week {number}" for number in workloads}, workloads)
        case spec.WindowEpisodes():
            parts = windows(log, episode.n_jobs, warm=episode.warm_history)
            workloads = dict(enumerate(parts, 1))
            return Slices({number: f"window {number}" for number in workloads}, workloads)
        case spec.RandomWindowEpisodes():
            labels = {number: f"window {number}" for number in range(1, episode.episodes + 1)}
            return Slices(labels, make=_window_maker(log, episode), seed=episode.seed)
        case spec.ResampledEpisodes():
            labels = {number: f"sample {number}" for number in range(1, episode.episodes + 1)}
            return Slices(labels, make=_sample_maker(log, episode), seed=episode.seed)


def slice_apart(
    log: Workload, episode: spec.WeekEpisodes, numbers: Sequence[int], held_out: Sequence[int]
) -> Slices:
    """Cut out weeks that hold nothing of the log but their own jobs and their users' histories.

    Histories leave out every job whose life in the log, from submission to logged end, touches a
    held-out week: those submitted in it, and those of other weeks that reach into it.

    Source: Specification, section 10, "Episodes".
    """
    submit, end = log.submit_time, logged_end_time(log)
    mask = np.zeros(len(log), dtype=np.bool_)
    for number in held_out:
        start = episode.offset_s + number * WEEK_S
        mask |= (submit < start + WEEK_S) & (end >= start)
    workloads = {
        _number(part): replace(
            _with_history(part, episode.warm_history), source=None, source_row=None
        )
        for part in weeks(log, rule=episode.rule, offset=episode.offset_s, held_out=mask)
    }
    labels = {number: f"week {number}" for number in numbers}
    return Slices(labels, {number: workloads[number] for number in numbers})


def _window_maker(
    log: Workload, episode: spec.RandomWindowEpisodes
) -> Callable[[np.random.Generator], LabelledWorkload]:
    """Return a function that cuts a window out at a random job."""
    past = Past(log)
    window(log, 0, episode.n_jobs, past=past)  # refuse too many jobs now, not at the first draw

    def make(generator: np.random.Generator) -> LabelledWorkload:
        first = int(generator.integers(len(log) - episode.n_jobs + 1))
        part = window(log, first, episode.n_jobs, past=past)
        return f"window at job {first + 1}", _with_history(part, episode.warm_history)

    return make


def _sample_maker(
    log: Workload, episode: spec.ResampledEpisodes
) -> Callable[[np.random.Generator], LabelledWorkload]:
    """Return a function that resamples the log, and takes one week of it where weeks are wanted."""
    if episode.part == "week":
        weeks(log)  # refuse a log without weeks now, not at the first draw

    def make(generator: np.random.Generator) -> LabelledWorkload:
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
    """Return the number of a week, the last word of its name."""
    return int(part.name.rpartition(" ")[2])


def _with_history(part: Workload, warm: bool) -> Workload:
    if warm:
        return part
    return replace(part, history=empty_history(len(part.history.completed)))


def _located(trace: spec.TraceSpec) -> tuple[Path, tuple[int, int]]:
    """Return the path of a log, and a stamp that changes with the file."""
    path = find_log(trace.log)
    status = path.stat()
    return path, (status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _cleaned(path: Path, stamp: tuple[int, int], trace: spec.TraceSpec, takes: Takes) -> Cleaned:
    """Read and clean a log; `stamp` is in the key of the cache only."""
    return clean(
        read_log(path, on_bad_line=trace.on_bad_line, machine=takes.nodes, timezone=trace.timezone),
        machine_processors=takes.processors,
        missing_request=trace.missing_request,
        max_request=trace.max_request_s,
        minimum_run_time=trace.minimum_run_time_s,
        seed=0 if trace.tsafrir_seed is None else trace.tsafrir_seed,
        machine=takes.nodes,
        placement=takes.placement,
        dependencies=takes.dependencies,
        requested_memory=trace.requested_memory,
    )


@lru_cache(maxsize=4)
def _sliced(
    path: Path,
    stamp: tuple[int, int],
    trace: spec.TraceSpec,
    takes: Takes,
    episode: spec.EpisodeSpec,
) -> Slices:
    """Cut a cleaned log."""
    return slice_workload(_cleaned(path, stamp, trace, takes)[0], episode)
