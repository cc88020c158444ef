"""The figures of RR-9212, drawn from our runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.common.figures import BLACK, LINES, figure_of, finish, panels, save
from papers.rr9212.claims import MAP_WEEKS, ratios, sums, weekly
from papers.rr9212.run import LOGS, PLAIN, SIMULATOR, THRESHOLDS_S, Tables
from papers.rr9212.search import MONTHS, Search, cover


def draw_tables(tables: Tables, folder: Path) -> list[Path]:
    """Draw the results of the pure policies into a folder.

    Returns:
        The pictures: `readings.png`, `figure-1.png` and `figures-2-6-9-12.png`.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.

    Source: RR-9212, figures 1, 2, 6, 9, 12.
    """
    return [
        _draw_readings(tables, folder / "readings.png"),
        _draw_boxes(tables, folder / "figure-1.png"),
        _draw_best(tables, folder / "figures-2-6-9-12.png"),
    ]


def draw_search(tables: Tables, search: Search, folder: Path) -> list[Path]:
    """Draw the results of weights into a folder; pictures have the names of the report's figures.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: A picture cannot be written.

    Source: RR-9212, figures 3-5, 7, 8, 10, 11, 13-15.
    """
    return [
        _draw_weekly(tables, search, folder / "figures-3-7-10-13.png"),
        _draw_maps(search, folder / "figure-4.png"),
        _draw_xnes(search, folder / "figures-5-8-11-14.png"),
        _draw_months(search, folder / "figure-15.png"),
    ]


def _draw_readings(tables: Tables, path: Path) -> Path:
    """Draw our sums over the printed ones, in both readings."""
    figure = figure_of(7.0, 3.2, "Sums of RR-9212, ours over the printed ones")
    logs = list(sums(tables, PLAIN.name))
    for one, reading in zip(figure.subplots(1, 2, sharey=True), (PLAIN, SIMULATOR), strict=True):
        for colour, log in zip((BLACK, *LINES), logs, strict=False):
            for threshold in THRESHOLDS_S:
                ratio = ratios(tables, reading.name, threshold)[log]
                printed = sums(tables, reading.name, threshold)[log] / ratio
                label = log if threshold is None else None
                one.plot(printed, ratio, ".", color=colour, markersize=4, label=label)
        one.axhline(1.0, color="0.6", linewidth=0.8)
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_yticks((0.5, 0.7, 1.0, 1.4, 2.0), ("0.5", "0.7", "1", "1.4", "2"))
        one.set_xticks((200, 500, 1000, 2000, 5000), ("200", "500", "1000", "2000", "5000"))
        one.minorticks_off()
        finish(one, f"{reading.name} reading")
        one.set_xlabel("printed sum", fontsize=9)
    one.legend(frameon=False, fontsize=9)
    return save(figure, path, dpi=100)


def _draw_boxes(tables: Tables, path: Path) -> Path:
    """Draw the weeks of each policy as a box, best policy first."""
    logs = list(sums(tables, SIMULATOR.name))
    figure = figure_of(11.0, 3.0 * ((len(logs) + 1) // 2), "Fig. 1, weekly mean bounded slowdown")
    for one, log in zip(panels(figure, (len(logs) + 1) // 2, 2), logs, strict=False):
        frame = weekly(tables, SIMULATOR.name, log)
        order = frame.mean().sort_values().index
        one.boxplot(frame[order].to_numpy(), tick_labels=list(order), flierprops={"markersize": 2})
        finish(one, log)
    return save(figure, path)


def _draw_best(tables: Tables, path: Path) -> Path:
    """Draw SAF beside the best pure policy of each week."""
    logs = list(sums(tables, SIMULATOR.name))
    title = "Figs. 2, 6, 9, 12, SAF and the best pure policy of each week"
    figure = figure_of(11.0, 2.2 * len(logs), title)
    for one, log in zip(panels(figure, len(logs), 1), logs, strict=True):
        frame = weekly(tables, SIMULATOR.name, log)
        one.bar(frame.index - 0.2, frame["SAF"], width=0.4, color=LINES[0], label="SAF")
        one.bar(frame.index + 0.2, frame.min(axis=1), width=0.4, color=LINES[1], label="best")
        finish(one, log)
    one.legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_weekly(tables: Tables, search: Search, path: Path) -> Path:
    """Draw w*, w*train, wgreedy, SAF and FCFS week by week."""
    keys = [(SIMULATOR.name, "SDSC-SP2"), *((PLAIN.name, log) for log in LOGS)]
    keys = [key for key in keys if key in search.covers]
    title = "Figs. 3, 7, 10, 13, weekly mean bounded slowdown"
    figure = figure_of(11.0, 2.2 * len(keys), title)
    for one, (reading, log) in zip(panels(figure, len(keys), 1), keys, strict=True):
        values = search.covers[reading, log]
        pure = weekly(tables, reading, log)
        at = np.arange(len(values))
        before = values.argmin(axis=1)[np.maximum(at - 1, 0)]
        half = int(values[: len(values) // 2].sum(axis=0).argmin())
        lines = {
            "FCFS": pure["FCFS"],
            "SAF": pure["SAF"],
            "w*train (first half)": values[:, half],
            "wgreedy": values[at, before],
            "w*": values.min(axis=1),
        }
        colours = (BLACK, *LINES)
        for (name, line), colour in zip(lines.items(), colours, strict=True):
            one.plot(at + 1, line, color=colour, linewidth=1.0, label=name)
        one.set_yscale("log")
        finish(one, f"{log}, {reading} reading")
    one.legend(frameon=False, fontsize=9, ncols=5)
    return save(figure, path)


def _draw_maps(search: Search, path: Path) -> Path:
    """Draw the space of weights of four weeks: e against wait, q <= 0 left and q >= 0 right."""
    values = search.covers[SIMULATOR.name, "SDSC-SP2"]
    points = cover(round(float(np.sqrt((values.shape[1] - 2) / 4))))
    weeks = [week for week in MAP_WEEKS if week <= len(values)]
    figure = figure_of(
        5.0 * 2, 2.6 * max(len(weeks), 1), "Fig. 4, mean bounded slowdown by weights"
    )
    axes = figure.subplots(max(len(weeks), 1), 2, squeeze=False)
    for row, week in zip(axes, weeks, strict=False):
        level = np.log10(values[week - 1])
        best = points[values[week - 1].argmin()]
        for one, side in zip(row, (-1, 1), strict=True):
            shown = side * points[:, 0] >= 0
            e, wait = points[shown, 1], points[shown, 2]
            picture = one.tripcolor(
                wait - e, wait + e, level[shown], vmin=level.min(), vmax=level.max(), cmap="YlOrRd"
            )
            if side * best[0] >= 0:
                one.plot(best[2] - best[1], best[2] + best[1], "o", color="blue", markersize=4)
            one.set_aspect("equal")
            finish(one, f"week {week}, q {'<=' if side < 0 else '>='} 0")
            one.set_xlabel("wait - e", fontsize=9)
            one.set_ylabel("wait + e", fontsize=9)
        figure.colorbar(picture, ax=list(row), label="log10 bsld", shrink=0.8)
    return save(figure, path, dpi=80)


def _draw_xnes(search: Search, path: Path) -> Path:
    """Draw the best that XNES found in each week, over w*."""
    logs = [log for log in LOGS if (PLAIN.name, log) in search.covers]
    figure = figure_of(11.0, 2.0 * len(logs), "Figs. 5, 8, 11, 14, XNES over w*, plain reading")
    for one, log in zip(panels(figure, len(logs), 1), logs, strict=True):
        best = search.covers[PLAIN.name, log].min(axis=1)
        rows = search.xnes[search.xnes["log"] == log]
        for name, colour in (("xnes3", LINES[0]), ("xnes6", LINES[1])):
            one.plot(rows["week"], rows[name] / best, ".-", color=colour, linewidth=0.8, label=name)
        one.axhline(1.0, color=BLACK, linewidth=0.8)
        finish(one, log)
    one.legend(frameon=False, fontsize=9)
    return save(figure, path)


def _draw_months(search: Search, path: Path) -> Path:
    """Draw the months of SDSC-SP2."""
    figure = figure_of(8.0, 2.8, "Fig. 15, months of SDSC-SP2, plain reading")
    one = figure.subplots()
    at = np.arange(1, len(search.months) + 1)
    for name, colour in (("FCFS", BLACK), ("SAF", LINES[0])):
        one.plot(at, search.months[name], ".-", color=colour, linewidth=1.0, label=name)
    one.plot(at, search.covers[PLAIN.name, MONTHS].min(axis=1), ".-", color=LINES[3], label="w*")
    one.set_yscale("log")
    one.legend(frameon=False, fontsize=9)
    finish(one, "", "mean bounded slowdown")
    return save(figure, path)
