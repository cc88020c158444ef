"""Heat maps of schedules: by hour and weekday of the submission, and by size and run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.workload import Workload
from hpcgym.evaluation.pictures import style
from hpcgym.evaluation.pictures.view import Labelled, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IntArray = NDArray[np.int64]

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAYS_OF_LOG = tuple(f"day {day}" for day in range(1, 8))

RUN_TIMES = (0, 10, 60, 600, 3_600, 4 * 3_600, 12 * 3_600, 36 * 3_600)
"""Where the classes of run time begin, s."""

RUN_TIME_NAMES = ("0 s", "10 s", "1 min", "10 min", "1 h", "4 h", "12 h", "36 h")

NO_JOB = "0.93"


class Hours(NamedTuple):
    """Weekday, 0 = Monday, and hour of instants, shape (n,); names of the days, and whose clock."""

    weekday: IntArray
    hour: IntArray
    names: tuple[str, ...]
    clock: str


def draw_hours(schedules: Labelled, view: View) -> Figure:
    """Draw submissions, and the mean bounded slowdown of each schedule, by hour and weekday."""
    first = next(iter(schedules.values()))
    figure, charts = _panels(1 + len(schedules), view.title(schedules), (5.5, 2.3))
    hours = hours_of(first.workload, first.jobs.submit_time)
    jobs = view.submitted(first)
    counts = _counted(hours.weekday[jobs], hours.hour[jobs], (7, 24))
    image = _draw_cells(charts[0], np.where(counts, counts, np.nan), "Blues", None)
    image.set_clim(vmin=0)
    bar = figure.colorbar(image, ax=charts[0], pad=0.01)
    style.whole_marks(bar.ax, "y")
    charts[0].set_title(f"submissions, {int(counts.sum()):,} jobs", loc="left", fontsize=9)
    means = {}
    for label, schedule in schedules.items():
        calendar, chosen = (
            hours_of(schedule.workload, schedule.jobs.submit_time),
            view.submitted(schedule),
        )
        means[label] = _mean(
            calendar.weekday[chosen], calendar.hour[chosen], schedule.bsld()[chosen], (7, 24)
        )
    _draw_means(figure, charts[1:], means)
    for axes in charts:
        axes.set_xticks(np.arange(0, 25, 3) - 0.5, [str(hour) for hour in range(0, 25, 3)])
        axes.set_yticks(range(7), hours.names)
    for axes in charts[-2:]:
        axes.set_xlabel(f"hour, {hours.clock}")
    return figure


def draw_sizes(schedules: Labelled, view: View) -> Figure:
    """Draw the mean bounded slowdown of each schedule by processors and run time."""
    figure, charts = _panels(len(schedules), view.title(schedules), (5.5, 3.4))
    names = _size_names(
        max(int(schedule.workload.processors.max()) for schedule in schedules.values())
    )
    shape = (len(names), len(RUN_TIMES))
    means, counts = {}, {}
    for label, schedule in schedules.items():
        chosen = view.submitted(schedule)
        size = np.ceil(np.log2(schedule.workload.processors[chosen])).astype(np.int64)
        length = np.searchsorted(RUN_TIMES, schedule.run_time[chosen], side="right") - 1
        means[label] = _mean(size, length, schedule.bsld()[chosen], shape)
        counts[label] = _counted(size, length, shape)
    _draw_means(figure, charts, means)
    for axes, label in zip(charts, means, strict=True):
        axes.invert_yaxis()
        _write_cells(axes, means[label], counts[label])
        axes.set_xticks(np.arange(len(RUN_TIMES)) - 0.5, RUN_TIME_NAMES, fontsize=8)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylabel("processors")
    for axes in charts[-2:]:
        axes.set_xlabel("run time, from; in each cell the mean and the number of jobs")
    return figure


def hours_of(workload: Workload, time: IntArray) -> Hours:
    """Return weekday and hour of instants, s, by the clock of the log's place where it says so."""
    calendar = style.Calendar.of(workload)
    if calendar is None:
        day, hour = time // 86_400 % 7, time // 3_600 % 24
        return Hours(day, hour, DAYS_OF_LOG, "since the start of the log, which states no date")
    instants = calendar.instants(time)
    weekday, hour = instants.day_of_week.to_numpy(np.int64), instants.hour.to_numpy(np.int64)
    return Hours(weekday, hour, WEEKDAYS, calendar.clock)


def _panels(n: int, title: str, size_in: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure of n panels, two beside each other, the first as wide as two if n is odd."""
    columns, n_wide = min(n, 2), n % 2 if n > 1 else 0
    rows = (n + n_wide) // columns
    figure = style.blank_figure(style.WIDTH_IN if n > 1 else 8.0, rows * size_in[1] + 0.7)
    style.write_title(figure, title)
    grid = figure.add_gridspec(rows, columns)
    charts = [figure.add_subplot(grid[0, :])] if n_wide else []
    for cell in range(2 * n_wide, rows * columns):
        charts.append(figure.add_subplot(grid[divmod(cell, columns)]))
    return figure, charts


def _counted(row: IntArray, column: IntArray, shape: tuple[int, int]) -> style.FloatArray:
    cell = row * shape[1] + column
    return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _mean(
    row: IntArray, column: IntArray, values: style.FloatArray, shape: tuple[int, int]
) -> style.FloatArray:
    """Average values by row and column, NaN where there is none."""
    cell = row * shape[1] + column
    total = np.bincount(cell, values, minlength=shape[0] * shape[1]).reshape(shape)
    with np.errstate(invalid="ignore"):
        mean: style.FloatArray = total / _counted(row, column, shape)
    return mean


def _draw_means(figure: Figure, charts: list[Axes], means: dict[str, style.FloatArray]) -> None:
    """Draw mean bounded slowdowns by one logarithmic scale of colours."""
    from matplotlib.colors import LogNorm

    largest = max(float(np.nanmax(values)) for values in means.values())
    norm = LogNorm(1.0, max(largest, 2.0))
    for axes, (label, values) in zip(charts, means.items(), strict=True):
        image = _draw_cells(axes, values, "YlOrRd", norm)
        axes.set_title(style.shortened(label), loc="left", fontsize=9)
    bar = figure.colorbar(image, ax=charts, pad=0.01, label="mean bounded slowdown")
    style.plain_numbers(bar.ax, "y")


def _draw_cells(axes: Axes, values: style.FloatArray, colours: str, norm: Any) -> Any:
    """Draw a table as colours, NaN in grey."""
    axes.set_facecolor(NO_JOB)
    if np.isnan(values).any():
        axes.set_title("grey: no job", loc="right", fontsize=9, color=style.FAINT)
    return axes.imshow(values, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")


def _write_cells(axes: Axes, means: style.FloatArray, counts: style.FloatArray) -> None:
    """Write the mean into each cell, and below the number of jobs."""
    middle = np.sqrt(np.nanmax(means))
    for row, column in zip(*np.nonzero(counts), strict=True):
        mean = means[row, column]
        colour = "white" if mean > middle * 2 else "black"
        text = f"{_short(mean)}\n{_short(counts[row, column])}"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def _short(value: float) -> str:
    """Write a number in few letters."""
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _size_names(largest: int) -> list[str]:
    """Return the names of classes of processors."""
    tops = [2**n for n in range((largest - 1).bit_length() + 1)]
    ends = [(top // 2 + 1, min(top, largest)) for top in tops]
    return [str(high) if low == high else f"{low}-{high}" for low, high in ends]
