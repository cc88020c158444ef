"""Pictures of schedules by kind: what they show, what they say is left out, what is refused."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.core.workload import Workload
from hpcgym.evaluation.pictures import plot_schedules
from hpcgym.evaluation.pictures.heat_maps import hours_of
from hpcgym.evaluation.pictures.lines import mean_waiting
from hpcgym.evaluation.pictures.plots import KINDS
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate
from hpcgym.trace import load_workload

pytest.importorskip("matplotlib")

MINUTE_S = 60


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    """Jobs 1 and 2 run at once, job 3 waits for both, on 4 processors."""
    columns = ([0, 0, 0], [60, 120, 60], [60, 120, 60], [2, 2, 4])
    return simulate(Workload.from_arrays(*columns, machine_processors=4, name="three"))


@pytest.fixture(scope="module")
def pair() -> dict[str, Schedule]:
    """Two policies on the bundled log."""
    workload = load_workload("tiny")
    return {policy: simulate(workload, policy) for policy in ("FCFS", "SAF")}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_of_one_schedule_and_of_two(
    kind: str, pair: dict[str, Schedule], tmp_path: Path
) -> None:
    for number, given in enumerate((pair["FCFS"], pair)):
        plot_schedules(given, kind, tmp_path / f"{number}.png", dpi=40)
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_vector_formats_are_written(
    suffix: str, magic: bytes, schedule: Schedule, tmp_path: Path
) -> None:
    schedule.plot("gantt", tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").read_bytes().startswith(magic)


def boxes_of(figure):
    """Return left, right, bottom and top of the boxes of the first chart."""
    corners = [path.vertices for shape in figure.axes[0].collections for path in shape.get_paths()]
    return sorted((*box.min(axis=0), *box.max(axis=0)) for box in corners)


def test_boxes_of_a_gantt_chart_are_times_and_processors(schedule: Schedule) -> None:
    figure = schedule.plot("gantt")
    assert figure.axes[0].get_xlabel() == "seconds since the start of the log"
    assert boxes_of(figure) == [(0, 0, 60, 2), (0, 2, 120, 4), (120, 0, 180, 4)]
    assert {text.get_text() for text in figure.axes[0].texts} == {"1", "2", "3"}


def test_attempts_in_vain_are_hatched_where_they_held_processors() -> None:
    columns = ([0, 0, 0], [600, 60, 600], [600, 600, 1200], [2, 4, 2])
    jobs = Workload.from_arrays(*columns, machine_processors=4, name="tried")
    figure = simulate(jobs, backfill="easy+trial").plot("gantt")
    assert boxes_of(figure) == [(0, 0, 10, 2), (0, 2, 5, 4), (10, 0, 11, 4), (11, 0, 21, 2)]
    (vain,) = [one for one in figure.axes[0].collections if one.get_label() == "in vain (1)"]
    assert vain.get_hatch() == "xxxx"


def test_gantt_chart_says_what_it_leaves_out_and_ends_where_the_next_job_starts(
    schedule: Schedule,
) -> None:
    axes = schedule.plot("gantt", jobs=2).axes[0]
    assert axes.get_title("left") == "first 2 of 3 jobs drawn, 4 processors"
    assert axes.get_xlim() == (0, 120)


def test_jobs_that_take_turns_have_rows_from_start_to_end() -> None:
    columns = ([0, 0], [60, 60], [60, 60], [4, 4])
    jobs = Workload.from_arrays(*columns, machine_processors=4, name="gang")
    axes = simulate(jobs, backfill="gang").plot("gantt").axes[0]
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(0, 120), (0, 120)]
    assert "take turns" in axes.get_title("right")


def test_gantt_chart_of_nodes_is_the_picture_of_nodes() -> None:
    from hpcgym.machine import Machine, NodeType

    columns = ([0], [60], [60], [2])
    jobs = Workload.from_arrays(*columns, machine=Machine((NodeType(2, cpus=2),)), name="nodes")
    made = simulate(jobs)
    assert made.plot("gantt").axes[0].get_ylabel() == "nodes by group"
    with pytest.raises(HpcgymError, match="of nodes shows one schedule"):
        made.plot("gantt", against={"again": made})
    with pytest.raises(HpcgymError, match="shows all jobs"):
        made.plot("gantt", jobs=1)


def test_usage_shows_waiting_jobs_and_the_share_held(schedule: Schedule) -> None:
    queue, held = schedule.plot("usage").axes
    times = np.array([30.5, 90.5, 150.5])
    for axes, expected in ((queue, [1, 1, 0]), (held, [1.0, 0.5, 1.0])):
        values, edges, _ = axes.patches[0].get_data()
        assert values[np.searchsorted(edges, times) - 1].tolist() == expected


def test_waiting_jobs_add_up_to_the_waits(schedule: Schedule) -> None:
    edges = np.arange(0.0, 200.0, 40.0)  # job 3 waits from 0 to 120 s
    assert mean_waiting(schedule, edges).tolist() == [1, 1, 1, 0]
    waits = schedule.per_job()["wait_time"].sum()
    assert mean_waiting(schedule, np.array([0.0, 250.0])) == pytest.approx(waits / 250)


def test_distribution_is_the_share_of_jobs_above_each_value(schedule: Schedule) -> None:
    _, wait = schedule.plot("distribution").axes
    x, share = wait.get_lines()[0].get_data()
    assert share[np.searchsorted(x, 119, side="right") - 1] == pytest.approx(1 / 3)
    assert "33.3 % wait" in wait.get_legend().get_texts()[0].get_text()
    assert (wait.get_xscale(), wait.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("kind", ["usage", "distribution"])
def test_a_schedule_has_one_colour_and_one_stroke_in_all_panels(
    kind: str, pair: dict[str, Schedule]
) -> None:
    styles = []
    for axes in plot_schedules(pair, kind).axes:
        lines = axes.patches if kind == "usage" else axes.get_lines()
        styles.append(
            [
                (
                    line.get_edgecolor() if kind == "usage" else line.get_color(),
                    line.get_linestyle(),
                )
                for line in lines
            ]
        )
    assert styles[0] == styles[1]
    assert len({colour for colour, _ in styles[0]}) == len({stroke for _, stroke in styles[0]}) == 2


def test_hours_are_those_of_the_place_of_the_log(pair: dict[str, Schedule]) -> None:
    tiny = pair["FCFS"].workload  # begins on a Monday at midnight, UTC
    header = ("; TimeZoneString: Europe/Stockholm",)
    moved = replace(tiny, source=replace(tiny.source, header=header))
    found = hours_of(moved, np.array([0, 23 * 3_600]))
    assert found.clock == "local time, Europe/Stockholm"
    assert (found.weekday.tolist(), found.hour.tolist()) == ([0, 1], [1, 0])
    odd = replace(tiny, source=replace(tiny.source, header=("; TimeZoneString: Mars/Olympus",)))
    assert hours_of(odd, np.array([0])).clock == "UTC"
    assert "states no date" in hours_of(replace(tiny, unix_start=None), np.array([0])).clock


def test_a_picture_says_which_threshold_its_schedules_had(schedule: Schedule) -> None:
    jobs = schedule.workload
    late = simulate(jobs, threshold=1_000)
    assert schedule.plot("distribution").get_suptitle().endswith(", no threshold")
    both = plot_schedules({"A": late, "B": schedule}, "distribution")
    assert both.get_suptitle() == "three, A threshold 1,000 s, B no threshold"
    wait = late.plot("distribution").axes[1]
    assert [line.get_xdata()[0] for line in wait.get_lines()[1:]] == [1_000]
    unknown = plot_schedules({"A": late, "B": replace(schedule, settings=None)}, "usage")
    assert unknown.get_suptitle() == "three"


def test_time_is_written_as_dates_where_the_log_states_one(pair: dict[str, Schedule]) -> None:
    tiny = pair["FCFS"].workload  # begins on a Monday at midnight, UTC
    header = ("; TimeZoneString: Europe/Stockholm",)
    times = ([0, 86_400 * 100], [60, 60], [60, 60], [1, 1])
    half = 86_400 * 4 + 43_200  # a Friday noon in UTC, from where half a year crosses summer time
    start = tiny.unix_start + half
    jobs = Workload.from_arrays(
        *times, machine_processors=1, unix_start=start, source=replace(tiny.source, header=header)
    )
    axes = simulate(jobs).plot("usage").axes[1]
    days = pd.to_datetime(start, unit="s", utc=True).tz_convert("Europe/Stockholm")
    assert axes.get_xlabel().startswith("local time, Europe/Stockholm; day 0 of the log is ")
    unit = 100 * 86_400 / axes.get_xlim()[1] * (1 + 60 / 8_640_000)
    shown = [
        (label.get_text(), days + pd.Timedelta(seconds=round(place * unit)))
        for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    ]
    assert len(shown) > 5
    for text, instant in shown:
        assert text == f"{instant.day} {instant:%b}" and instant == instant.normalize()


def test_times_of_a_log_that_counts_from_1970_are_dates(schedule: Schedule) -> None:
    epoch = 1_700_000_000  # 14 November 2023, 22:13:20 UTC
    jobs = replace(schedule.workload, time_offset=epoch)
    axes = simulate(jobs).plot("usage").axes[1]
    assert axes.get_xlabel() == "UTC; day 0 of the log is 14 November 2023"
    assert axes.get_xticklabels()[0].get_text() == "22:13:30"
    other = simulate(replace(jobs, time_offset=epoch + 1))
    mixed = plot_schedules({"A": simulate(jobs), "B": other}, "usage").axes[1]
    assert mixed.get_xlabel() == "seconds since the start of the log"


@pytest.mark.parametrize(("n", "wide"), [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_heat_maps_leave_no_place_empty(n: int, wide: int, schedule: Schedule) -> None:
    made = {str(number): schedule for number in range(n)}
    charts = [axes for axes in plot_schedules(made, "hours").axes if axes.get_images()]
    places = [axes.get_subplotspec() for axes in charts]
    assert sum(len(place.colspan) for place in places) == 2 * max(
        place.rowspan.stop for place in places
    )
    assert [len(place.colspan) for place in places].count(2) == wide


def test_heat_maps_hold_counts_and_means(schedule: Schedule) -> None:
    submissions, means = schedule.plot("hours").axes[:2]
    assert np.nansum(submissions.get_images()[0].get_array()) == 3
    assert means.get_images()[0].get_array()[0, 0] == pytest.approx(schedule.bsld().mean())
    sizes = schedule.plot("sizes").axes[0]
    assert {text.get_text() for text in sizes.texts} == {"1\n2", "3\n1"}
    assert [label.get_text() for label in sizes.get_yticklabels()] == ["1", "2", "3-4"]


def test_days_choose_what_ran_then_and_what_was_submitted_then(schedule: Schedule) -> None:
    minute = 1 / 1_440
    chart = schedule.plot("gantt", days=(2 * minute, 3 * minute)).axes[0]
    assert chart.get_title("left") == "1 job, 4 processors"
    with pytest.raises(HpcgymError, match=r"no job was submitted in days 0\.00138"):
        schedule.plot("sizes", days=(2 * minute, 3 * minute))
    with pytest.raises(HpcgymError, match=r"the schedule reaches from day 0\.0 to 0\.0"):
        schedule.plot("usage", days=(7, 8))
    with pytest.raises(HpcgymError, match="the first below the second"):
        schedule.plot("usage", days=(8, 7))


def test_what_cannot_be_drawn_is_refused(schedule: Schedule, tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=r"unknown kind of picture 'gnatt'; .* 'gantt'"):
        schedule.plot("gnatt")
    with pytest.raises(HpcgymError, match="1 to 50,000 jobs, got 60,000"):
        schedule.plot("gantt", jobs=60_000)
    with pytest.raises(HpcgymError, match="'hours' shows all jobs"):
        schedule.plot("hours", jobs=5)
    with pytest.raises(HpcgymError, match="1 to 8 schedules, got 10"):
        schedule.plot("usage", against={str(n): schedule for n in range(9)})
    with pytest.raises(HpcgymError, match="1 of 3 jobs have not started"):
        replace(schedule, start_time=np.array([0, 0, -1])).plot()
    with pytest.raises(HpcgymError, match=r"must end in \.png, \.pdf, \.svg"):
        schedule.plot("usage", tmp_path / "figure.gif")
    (tmp_path / "figure.png").write_bytes(b"precious")
    with pytest.raises(OutputError, match="exists already"):
        schedule.plot("usage", tmp_path / "figure.png")


def test_missing_matplotlib_says_what_to_install(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(HpcgymError, match=r"pip install 'hpcgym\[report\]'"):
        schedule.plot("usage")


def test_usage_shows_the_price_where_there_is_one():
    jobs = load_workload("tiny")
    charged = simulate(jobs, events="price:seed=1")
    *_, price = charged.plot("usage", against={"SAF": simulate(jobs)}).axes
    assert price.get_ylabel() == "price"
    (line,) = price.patches
    values, edges, _ = line.get_data()
    _, expected = charged.events[0].calendar(jobs)
    assert values == pytest.approx(expected / 1e6)
    assert len(edges) == len(expected) + 1
