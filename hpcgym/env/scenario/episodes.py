"""The episodes of a scenario: the log is read and cut once, then episodes are drawn."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.base.errors import ScenarioError, unknown_name
from hpcgym.base.ranges import number_ranges, parse_numbers
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scenario.slicing import (
    GeneratedWeeks,
    LabelledWorkload,
    Slices,
    generated_weeks,
    slice_apart,
    slice_log,
    slice_workload,
)
from hpcgym.env.scenario.spec import NOT_GENERATED, NUMBERS, PartedEpisodes, Scenario, WeekEpisodes
from hpcgym.env.scenario.splits import named_part, split_of, with_more
from hpcgym.trace.clean import CANNOT_RUN
from hpcgym.trace.cleaning_report import CleaningReport


class Episodes:
    """The episodes of a scenario, in time order, numbered from 1.

    A process reads and cuts a log once for all objects; generated logs are made when one of their
    weeks is first used. A pickle holds the scenario only, unless the jobs were handed in, and
    unpickling reads the log again. Episodes from `set_apart` carry their weeks and never read it.

    Args:
        scenario: A name, a path, or a scenario.
        workload: Jobs to use in place of the scenario's log.

    Attributes:
        scenario: The scenario.
        settings: The scheduler that agents and baselines share.
        largest_request: Largest request of the scenario, s.
        numbers: Number of each episode, ascending.
        labels: Label of each episode, such as "week 7".
        report: Report of the cleaning, None where the jobs were handed in or are generated.

    Raises:
        ScenarioError: No such scenario or episode, a request larger than stated, or jobs wider
            than the machine that the scenario does not drop.
        TraceError: The log cannot be found, read, cleaned or cut.

    Source: Specification, section 10, "Episodes".

    Example:
        >>> episodes = Episodes("tiny")
        >>> episodes.labels, episodes.workload(0)
        (('whole',), Workload('tiny', 8 jobs, 4 processors))
    """

    def __init__(
        self, scenario: str | Path | Scenario, *, workload: Workload | None = None
    ) -> None:
        self.scenario = load_scenario(scenario)
        self._given = workload
        self._apart: Slices | None = None
        self._load(None)

    def _load(self, numbers: tuple[int, ...] | None) -> None:
        """Read and cut the log; keep the episodes of these numbers, or the scenario's."""
        scenario = self.scenario
        self.report: CleaningReport | None = None
        if self._apart is not None:
            assert numbers is not None
            labels = {number: self._apart.labels[number] for number in numbers}
            workloads = {number: self._apart.workloads[number] for number in numbers}
            self._apart = Slices(labels, workloads)
            self._keep(self._apart, numbers)
            return
        if self._given is None and scenario.trace.generator is not None:
            weeks = generated_weeks(scenario)
            self._keep(weeks, tuple(weeks.labels) if numbers is None else numbers)
            return
        if self._given is None:
            log, self.report, slices = slice_log(scenario)
            _refuse_wide_jobs(scenario, self.report)
        else:
            log, slices = self._given, slice_workload(self._given, scenario.episode)
        if log.machine_processors != scenario.machine.processors:
            raise ScenarioError(
                f"{scenario.name}: [machine] processors is {scenario.machine.processors}, yet "
                f"{log.name} was made for {log.machine_processors}"
            )
        if log.machine != scenario.machine.nodes:
            raise ScenarioError(
                f"{scenario.name}: {log.name} was made for other nodes than those of [machine]"
            )
        if log.largest_request > scenario.machine.largest_request_s:
            raise ScenarioError(
                f"{scenario.name}: requests reach {log.largest_request} s, yet [machine] "
                f"largest_request_s is {scenario.machine.largest_request_s}; state "
                f"{log.largest_request}, or cut the requests with [trace] max_request_s"
            )
        stated = scenario.episode.weeks if isinstance(scenario.episode, WeekEpisodes) else None
        if numbers is None and stated is not None:
            what = f"{scenario.name}: [episode] weeks"
            numbers = parse_numbers(stated, tuple(slices.labels), what=what)
        for part, named in self.parts.items():
            if missing := sorted({*named} - {*slices.labels}):
                what = f"{scenario.name}: [episode] {part}"
                raise ScenarioError(f"{what}: the log has no {number_ranges(missing)}")
        self._keep(slices, tuple(slices.labels) if numbers is None else numbers)

    def _keep(self, slices: Slices, numbers: tuple[int, ...]) -> None:
        """Set the attributes that follow from the kept episodes."""
        self.numbers = numbers
        self.labels = tuple(map(slices.label, numbers))
        self.settings = self.scenario.scheduler.settings
        self.largest_request = self.scenario.machine.largest_request_s
        self._slices = slices

    def __len__(self) -> int:
        return len(self.numbers)

    def workload(self, index: int) -> Workload:
        """Return the jobs of the episode at a position from 0, the same object at every call."""
        return self._slices.workload(self.numbers[index])

    def before(self, index: int) -> list[Workload]:
        """Return the jobs of the log's weeks before an episode, those that are not here, too.

        None where the episodes are random: their numbers are no order in time.
        """
        return [self._slices.workload(week) for week in self._slices.before(self.numbers[index])]

    def position(self, episode: int | str) -> int:
        """Return the position, from 0, of an episode by its number or its label, such as "week 7".

        Raises:
            ScenarioError: There is no such episode; the message names the nearest.

        Example:
            >>> Episodes("tiny").position("whole")
            0
        """
        among: tuple[int | str, ...] = self.labels if isinstance(episode, str) else self.numbers
        names_one = isinstance(episode, (str, numbers.Real)) and not isinstance(episode, bool)
        if not names_one or episode not in among:
            why = unknown_name("episode", episode, map(str, among))
            for part in (part for part, stated in self.parts.items() if episode in stated):
                here = number_ranges(self.numbers)
                why = f'episode {episode} is not among {here}, but in weeks="{part}"'
            raise ScenarioError(f"{self.scenario.name}: {why}")
        return among.index(episode)

    def draw(self, generator: np.random.Generator) -> LabelledWorkload:
        """Return label and jobs of a random episode, which depends on the generator's state only.

        Weeks and windows are drawn uniformly. Random windows and resampled logs are made anew,
        unless episodes were selected.
        """
        if self._slices.make is not None and len(self.numbers) == len(self._slices.labels):
            return self._slices.make(generator)
        index = int(generator.integers(len(self.numbers)))
        return self.labels[index], self.workload(index)

    def select(self, text: str) -> Episodes:
        """Return the episodes of some numbers, such as "65-100" or "1,3,5-7", in time order.

        The text may also name a part, one of `SPLITS` of `scenario.splits`, or its first weeks:
        "test:30". Of generated weeks there are more at will: "test:900", or any number.

        Raises:
            ScenarioError: The text is not understood, or names an episode that does not exist.

        Example:
            >>> Episodes("tiny").select("2")
            Traceback (most recent call last):
            hpcgym.base.errors.ScenarioError: tiny: episodes "2": there is no 2; allowed are 1
        """
        is_weekly = isinstance(self.scenario.episode, WeekEpisodes)
        what = f"{self.scenario.name}: {'weeks' if is_weekly else 'episodes'}"
        part, n_first = named_part(text, what)
        if part is None:
            numbers = parse_numbers(text, self._selectable, what=what)
        else:
            numbers = self._part(part, what)
            if n_first is not None:
                numbers = with_more(numbers, n_first, self.parts, self._selectable, what)
        chosen = object.__new__(type(self))
        chosen.__setstate__(self.__getstate__() | {"numbers": numbers})
        return chosen

    @property
    def _selectable(self) -> Sequence[int]:
        """Numbers that may be selected: those here, but any week that a generator makes."""
        is_whole = self.numbers == tuple(self._slices.labels)
        return NUMBERS if isinstance(self._slices, GeneratedWeeks) and is_whole else self.numbers

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Numbers of the parts that the scenario states, none where shares make them."""
        cut = self.scenario.episode
        return cut.parts if isinstance(cut, PartedEpisodes) else {}

    def _part(self, part: str, what: str) -> tuple[int, ...]:
        """Return the numbers of a part, as the scenario states it or by shares."""
        if not self.parts:
            return split_of(self.numbers, part)
        stated = {*self.parts[part]}
        numbers = tuple(number for number in self.numbers if number in stated)
        if not numbers:
            raise ScenarioError(
                f'{what} "{part}": of {number_ranges(sorted(stated))} none is among '
                f"{number_ranges(self.numbers)}"
            )
        return numbers

    def set_apart(self, numbers: Sequence[int], *, held_out: Sequence[int] = ()) -> Episodes:
        """Return episodes with the jobs of some weeks, which cannot reach any other job of the log.

        Their scenario names no log, so nothing that is made of it can read the rest. Their
        histories hold no job that touches a held-out week.

        Args:
            numbers: Numbers of the weeks.
            held_out: Numbers of weeks whose jobs no history may hold.

        Raises:
            ScenarioError: The episodes are not weeks, or are set apart already; no week is named,
                one does not exist, or one is both kept and held out.

        Source: Specification, section 10, "Evaluation protocol", step 1.

        Example:
            >>> weeks = Episodes("synthetic-256-weeks")
            >>> weeks.set_apart([1, 2, 3], held_out=[5]).select("3-4")
            Traceback (most recent call last):
            hpcgym.base.errors.ScenarioError: synthetic-256-weeks: weeks "3-4": there is no 4; \
allowed are 1-3
        """
        name, episode = self.scenario.name, self.scenario.episode
        known = self._selectable if isinstance(self._selectable, range) else {*self.numbers}
        if self._apart is not None or not isinstance(episode, WeekEpisodes):
            why = "are set apart already" if self._apart is not None else f"are {episode.kind}"
            raise ScenarioError(
                f"{name}: only weeks of a log can be set apart, and these episodes {why}"
            )
        missing = sorted(number for number in {*numbers, *held_out} if number not in known)
        if missing or not numbers or set(numbers) & set(held_out):
            raise ScenarioError(
                f"{name}: weeks {number_ranges(sorted(numbers))} cannot be set apart from "
                f"{number_ranges(sorted(held_out))}; give at least one, none twice, of "
                f"{number_ranges(self.numbers)}"
            )
        ordered = tuple(sorted(set(numbers)))
        if isinstance(self._slices, GeneratedWeeks):
            slices = self._slices.apart(ordered, held_out)
        else:
            log = slice_log(self.scenario)[0] if self._given is None else self._given
            slices = slice_apart(log, episode, ordered, held_out)
        no_log: dict[str, Any] = {"name": f"weeks set apart from {name}", "file": None}
        trace = replace(self.scenario.trace, **no_log, **NOT_GENERATED)
        apart = object.__new__(Episodes)
        apart.__setstate__(
            {
                "scenario": replace(self.scenario, trace=trace),
                "given": None,
                "apart": slices,
                "numbers": ordered,
            }
        )
        return apart

    def __getstate__(self) -> dict[str, Any]:
        """Return what the episodes can be made of again."""
        return {
            "scenario": self.scenario,
            "given": self._given,
            "apart": self._apart,
            "numbers": self.numbers,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read and cut the log again, or use what this process holds of it."""
        self.scenario, self._given = state["scenario"], state["given"]
        self._apart = state["apart"]
        self._load(state["numbers"])

    def __repr__(self) -> str:
        return f"Episodes({self.scenario.name!r}, {len(self)} of kind {self.scenario.episode.kind})"


def _refuse_wide_jobs(scenario: Scenario, report: CleaningReport) -> None:
    """Refuse jobs of the log that are wider than the machine, unless the scenario drops them."""
    if scenario.trace.on_wide_job == "drop":
        return
    n_wide = report.count("larger than the machine")
    for step in report.steps:
        if step.name == CANNOT_RUN and step.jobs:
            raise ScenarioError(
                f"{scenario.name}: {step.jobs} of {report.records} jobs of {report.name} can never "
                f"run on the nodes of [machine] with placement {scenario.scheduler.placement!r}: "
                f'{step.detail}; leave such jobs out with [trace] on_wide_job = "drop"'
            )
    if n_wide:
        raise ScenarioError(
            f"{scenario.name}: [machine] processors is {scenario.machine.processors}, yet {n_wide} "
            f"of {report.records} jobs of {report.name} ask for more, the widest for "
            f"{report.widest}; state {report.widest}, or leave such jobs out with [trace] "
            'on_wide_job = "drop"'
        )


def settings_but_policy(settings: SchedulerSettings) -> dict[str, Any]:
    """Return the settings, without the policy, as keywords of `simulate_many`.

    Orders that are tried on the same episodes share them.

    Example:
        >>> str(settings_but_policy(Episodes("tiny").settings)["backfill"])
        'easy'
    """
    return {key: value for key, value in vars(settings).items() if key != "policy"}
