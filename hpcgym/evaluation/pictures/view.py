"""What part of some schedules a picture shows, and how the picture is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError
from hpcgym.evaluation.pictures.style import Calendar, TimeScale, time_scale
from hpcgym.schedule.schedule import Schedule

BoolArray = NDArray[np.bool_]

Labelled = Mapping[str, Schedule]  # schedules by what the picture calls them

DAY_S = 86_400


def common_calendar(schedules: Iterable[Schedule]) -> Calendar | None:
    """Return the calendar of some schedules; None where they have none, or differ."""
    calendars = {Calendar.of(schedule.workload) for schedule in schedules}
    return calendars.pop() if len(calendars) == 1 else None


class View(NamedTuple):
    """A stretch of time, s from the start of the log, and the jobs of a Gantt chart at most."""

    first: int
    last: int
    is_part: bool  # whether the stretch was asked for
    jobs: int | None

    @classmethod
    def of(
        cls, schedules: Labelled, days: tuple[float, float] | None, jobs: int | None = None
    ) -> View:
        """Return the days asked for, or the time from the first submission to the last end.

        Raises:
            HpcgymError: The days are none, or no schedule has a job in them.
        """
        first = min(int(schedule.jobs.submit_time.min()) for schedule in schedules.values())
        last = max(int(schedule.end_time.max()) for schedule in schedules.values())
        if days is None:
            return cls(first, max(last, first + 1), False, jobs)
        low, high = (round(day * DAY_S) for day in days)
        if not 0 <= low < high:
            raise HpcgymError(f"days must be two, the first below the second, got {days}")
        if low >= last or high <= first:
            raise HpcgymError(
                f"days {days[0]:g} to {days[1]:g}: nothing is there; the schedule reaches from day "
                f"{first / DAY_S:.1f} to {last / DAY_S:.1f}"
            )
        return cls(low, high, True, jobs)

    @property
    def scale(self) -> TimeScale:
        """Marks of the axis of time."""
        return time_scale(self.first, self.last)

    def submitted(self, schedule: Schedule) -> BoolArray:
        """Tell which jobs were submitted in the stretch, shape (n_jobs,). HpcgymError: none was."""
        time = schedule.jobs.submit_time
        chosen: BoolArray = (time >= self.first) & (time < self.last)
        if not chosen.any():
            raise HpcgymError(f"{schedule.workload.name}: no job was submitted in {self._days}")
        return chosen

    def title(self, schedules: Labelled) -> str:
        """Return the names of the workloads, the label of a single schedule, and the days."""
        names = ", ".join(dict.fromkeys(schedule.workload.name for schedule in schedules.values()))
        alone = len(schedules) == 1 and names not in schedules
        label = "".join(f": {label}" for label in schedules) if alone else ""
        days = f", {self._days}" if self.is_part else ""
        return f"{names}{label}{days}{thresholds_of(schedules)}"

    @property
    def _days(self) -> str:
        return f"days {self.first / DAY_S:g} to {self.last / DAY_S:g}"


def thresholds_of(schedules: Labelled) -> str:
    """Say which threshold schedules were made with; nothing where a schedule does not know."""
    known = {
        label: schedule.settings.threshold
        for label, schedule in schedules.items()
        if schedule.settings is not None
    }
    if not known or len(known) < len(schedules):
        return ""
    words = {
        label: "no threshold" if seconds is None else f"threshold {seconds:,.0f} s"
        for label, seconds in known.items()
    }
    if len(set(words.values())) == 1:
        return f", {next(iter(words.values()))}"
    return "".join(f", {label} {word}" for label, word in words.items())


def label_of(schedule: Schedule) -> str:
    """Return what scheduled: the policy and the backfilling mode."""
    settings = schedule.settings
    if settings is None:
        return "schedule"
    return f"{settings.policy}, backfill {settings.backfill}"
