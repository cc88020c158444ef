"""What all pictures share: colours, marks, scales of time and of ratios, and how they are saved."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import writing
from hpcgym.base.packages import needing
from hpcgym.base.text_table import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.core.workload import Workload

FloatArray = NDArray[np.float64]

SUFFIXES = (".png", ".pdf", ".svg")  # endings of a picture's file name

LINES = ("#0f6fb4", "#e08214", "#1b9e77", "#c2468f")
"""Colours of lines, far apart for colour-blind readers as well."""

COLOURS = (*LINES, "#7f6bb3", "#8c564b", "#5b8c2a", "#444444")
"""Colours where lines are more than four; they begin again after the last."""

DASHES = ("-", "--", "-.", ":")  # strokes of lines, so that colour is not all that tells them apart

GRID, FAINT = "0.88", "0.4"

ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
"""Box behind a word that may be on a line."""

DPI = 160
TITLE_LETTERS = 84  # letters of a line of the title
WIDTH_IN = 9.5
"""Width of most pictures, inches: words of 9 points can be read at half of 990 pixels."""

_MINUTE, _HOUR, _DAY, _WEEK = 60, 3_600, 86_400, 604_800
UNITS = ((1, "seconds"), (_MINUTE, "minutes"), (_HOUR, "hours"), (_DAY, "days"), (_WEEK, "weeks"))
STEPS = (
    *(1, 2, 5, 10, 30),
    *(_MINUTE * n for n in (1, 2, 5, 10, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6)),
    *(_DAY * n for n in (1, 2)),
    *(_WEEK * n for n in (1, 2, 4, 8, 13, 26, 52, 104)),
)
"""Distances between marks on the axis of time, s."""

MOST_MARKS = 16


class TimeScale(NamedTuple):
    """How time is written: from first to last, s, in a unit, with a mark every so many of it."""

    first: int
    last: int
    unit: int
    name: str
    step: float

    def edges(self, n: int) -> FloatArray:
        """Cut the time into n stretches at most, whole seconds long at least, s."""
        n = min(n, self.last - self.first)
        return np.linspace(self.first, self.last, n + 1)


def time_scale(first: int, last: int) -> TimeScale:
    """Choose whole minutes, hours, days or weeks for the marks."""
    last = max(last, first + 1)
    step = next((step for step in STEPS if (last - first) / step <= MOST_MARKS), STEPS[-1])
    unit, name = next(pair for pair in reversed(UNITS) if pair[0] <= step)
    return TimeScale(first, last, unit, name, step / unit)


FIRST_EPOCH_S = 1_000_000_000
"""A log's own clock that shows this or more, 2001, is taken for Unix time."""


class Calendar(NamedTuple):
    """Which instant time 0 is, s since 1970, and by whose clock it is written."""

    start: int
    zone: str = "UTC"

    @classmethod
    def of(cls, workload: Workload) -> Calendar | None:
        """Return a log's calendar; None where it states no date."""
        import pandas as pd

        start = workload.unix_start
        if start is None and workload.time_offset >= FIRST_EPOCH_S:
            start = workload.time_offset
        if start is None:
            return None
        zone = workload.source.header_value("TimeZoneString") if workload.source else None
        try:
            pd.Timestamp(0, tz=zone or "UTC")
        except (KeyError, ValueError, OSError):  # a zone that this machine does not know
            zone = None
        return cls(start) if not zone or "UTC" in zone else cls(start, zone)

    @property
    def clock(self) -> str:
        """Whose clock."""
        return self.zone if self.zone == "UTC" else f"local time, {self.zone}"

    def instants(self, time: NDArray[np.int64]) -> pd.DatetimeIndex:
        """Return dates of instants, s, shape (n,)."""
        import pandas as pd

        return pd.to_datetime(time + self.start, unit="s", utc=True).tz_convert(self.zone)


def finish_time(axes: Axes, scale: TimeScale, calendar: Calendar | None = None) -> None:
    """Give the axis of time its marks and label: dates where the log has a calendar."""
    from matplotlib.ticker import MultipleLocator

    if calendar is not None:
        _mark_dates(axes, scale, calendar)
        return
    axes.xaxis.set_major_locator(MultipleLocator(scale.step))
    is_late = scale.last > _DAY > scale.unit
    if is_late:
        axes.xaxis.set_major_formatter(lambda value, _: _clock_text(round(value * scale.unit)))
    axes.set_xlim(scale.first / scale.unit, scale.last / scale.unit)
    name = "days and hours" if is_late else scale.name
    axes.set_xlabel(f"{name} since the start of the log")


def _mark_dates(axes: Axes, scale: TimeScale, calendar: Calendar) -> None:
    """Mark midnights, or whole steps since one, and write date or time of the day."""
    import pandas as pd

    first, last, log = calendar.instants(np.array([scale.first, scale.last, 0]))
    step_s = round(scale.step * scale.unit)
    step = f"{step_s // _DAY}D" if step_s >= _DAY else f"{step_s}s"
    marks = pd.date_range(first.normalize(), last, freq=step)
    marks = marks[marks >= first]
    has_years = step_s >= 4 * _WEEK
    texts = [
        f"{mark.day} {mark:%b}" + (f"\n{mark.year}" if has_years else "")
        if mark == mark.normalize()
        else f"{mark.hour}:{mark:%M}" + (f":{mark:%S}" if mark.second else "")
        for mark in marks
    ]
    places = (marks - log).total_seconds() / scale.unit
    axes.set_xticks(places.to_numpy(), texts)
    axes.set_xlim(scale.first / scale.unit, scale.last / scale.unit)
    axes.set_xlabel(f"{calendar.clock}; day 0 of the log is {log.day} {log:%B %Y}")


def _clock_text(seconds: int) -> str:
    """Write an instant as a day, or as the time of a day."""
    day, time = divmod(seconds, _DAY)
    hour, rest = divmod(time, _HOUR)
    minute, second = divmod(rest, _MINUTE)
    if time == 0:
        return f"day {day}"
    return f"{hour}:{minute:02}" + (f":{second:02}" if second else "")


def finish_shares(axes: Axes, label: str) -> None:
    """Give an axis of shares its scale and label."""
    axes.set_ylim(0.0, 1.02)
    axes.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"], fontsize=9)
    axes.set_ylabel(label)
    plain_axes(axes)


def plain_axes(axes: Axes) -> None:
    """Draw a faint grid behind the data, and no frame above and to the right."""
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def whole_marks(axes: Axes, which: Literal["x", "y"]) -> None:
    """Mark whole numbers only on an axis."""
    from matplotlib.ticker import MaxNLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator("auto", integer=True, steps=(1, 2, 5, 10)))
    axis.set_major_formatter(lambda value, _: number_text(value))


def number_text(value: float) -> str:
    """Write a number without an exponent.

    Example:
        >>> number_text(0.5), number_text(20_000.0)
        ('0.5', '20,000')
    """
    return f"{value:,.10g}"


def plain_numbers(axes: Axes, which: str, write: Callable[[float], str] = number_text) -> None:
    """Label a logarithmic axis with 0.5, 1, 2, 5 ... rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if decades < 1 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps if decades < 3 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_formatter(NullFormatter())


def format_of(path: str | Path) -> str:
    """Return the format that the name of a picture ends in, such as "png".

    Raises:
        HpcgymError: It ends otherwise.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise HpcgymError(f"{path}: the name of a picture must end in {', '.join(SUFFIXES)}")
    return suffix.removeprefix(".")


def save(figure: Figure, path: str | Path, *, force: bool, dpi: int = DPI) -> None:
    """Write a figure to a file in the format of its name.

    Raises:
        HpcgymError: The name ends in no format.
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    with writing(path, force=force) as file:
        figure.savefig(file, dpi=dpi, format=format_of(path))


def blank_figure(width_in: float, height_in: float) -> Figure:
    """Return an empty figure, drawn into memory by matplotlib's object API: no global state.

    Raises:
        HpcgymError: matplotlib is not installed.
    """
    with needing("drawing", "matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_title(figure: Figure, title: str) -> None:
    """Write what a picture shows above it, to the left."""
    lines = textwrap.wrap(printable(title), TITLE_LETTERS)
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=12, fontweight="bold")


DURATIONS = (1, 10, _MINUTE, 10 * _MINUTE, _HOUR, 10 * _HOUR, 2 * _DAY, 14 * _DAY, 90 * _DAY)
"""Marks of a logarithmic axis of durations, s."""


def mark_durations(axes: Axes) -> None:
    """Label a logarithmic x axis with seconds, minutes, hours and days."""
    from matplotlib.ticker import NullLocator

    low, high = axes.get_xlim()
    marks = [seconds for seconds in DURATIONS if low <= seconds <= high]
    axes.set_xticks(marks, map(duration_text, marks))
    axes.xaxis.set_minor_locator(NullLocator())


def duration_text(seconds: float) -> str:
    """Write a duration in its own unit.

    Example:
        >>> duration_text(45), duration_text(5_400), duration_text(302_400)
        ('45 s', '1.5 h', '3.5 d')
    """
    sizes = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s"))
    size, unit = next((pair for pair in sizes if seconds >= pair[0]), sizes[-1])
    return f"{seconds / size:.3g} {unit}"


def shortened(label: str, most: int = 34) -> str:
    """Return a label with its middle left out where it is long.

    Example:
        >>> shortened("FCFS, backfill multi-queue:delay=2500", most=20)
        'FCFS, bac…delay=2500'
    """
    label = printable(label)
    if len(label) <= most:
        return label
    return f"{label[: (most - 1) // 2]}…{label[-(most // 2) :]}"
