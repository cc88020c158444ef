"""Schedules that were written as tables, read back as logs: the same jobs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.base.errors import TraceError
from hpcgym.cli import app
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes

FORMATS = [("a.csv", "default"), ("a.csv", "all"), ("a.parquet", "default"), ("a.parquet", "all")]


@pytest.fixture(scope="module")
def counted() -> Workload:
    """Jobs on counted processors, none beyond its request."""
    return hpcgym.load_workload("synthetic-256").select(range(300))


@pytest.mark.parametrize(("name", "columns"), FORMATS)
def test_a_schedule_read_back_has_the_same_jobs_and_its_starts_as_recorded(
    counted: Workload, tmp_path: Path, name: str, columns: str
) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    schedule = hpcgym.simulate(counted, "SAF", backfill="conservative")
    schedule.write(tmp_path / name, columns=columns)
    read, report = hpcgym.trace.load_with_report(tmp_path / name, machine_processors=256)
    for key, values in counted.columns().items():
        if key not in ("wait_time", "user") or (key, columns) == ("user", "all"):
            assert np.array_equal(read.columns()[key], values), key
    assert np.array_equal(read.wait_time, schedule.wait_time)
    assert "run times as executed" in report.reading
    assert ("simulate --columns all" in report.reading) == (columns == "default")
    again = hpcgym.simulate(read, "SAF", backfill="conservative")
    assert np.array_equal(again.start_time, schedule.start_time)


def test_a_killed_job_is_read_as_long_as_it_ran_and_a_lost_one_is_dropped_as_of_swf(
    tmp_path: Path,
) -> None:
    jobs = Workload.from_arrays(
        [0, 5, 9], [50, 30, 5], [20, 40, 5], [1, 2, 2], machine_processors=2
    )
    schedule = hpcgym.simulate(jobs, events=["outage:from=25,to=90,processors=1"], backfill="easy")
    for name in ("a.csv", "a.swf"):
        schedule.write(tmp_path / name)
    table, log = (
        hpcgym.load_workload(tmp_path / name, machine_processors=2) for name in ("a.csv", "a.swf")
    )
    for key in ("job_id", "run_time", "requested_time", "processors"):
        assert np.array_equal(table.columns()[key], log.columns()[key])
    assert table.run_time[0] == 20


def test_a_schedule_on_nodes_is_read_with_all_columns_and_else_refused(tmp_path: Path) -> None:
    jobs = Episodes("hetero-64-weeks").workload(0)
    schedule = hpcgym.simulate(jobs, "SAF")
    schedule.write(tmp_path / "all.csv", columns="all")
    read = hpcgym.load_workload(tmp_path / "all.csv", machine=jobs.machine)
    for key, values in jobs.columns().items():
        if key not in ("wait_time", "submit_time"):
            assert np.array_equal(read.columns()[key], values), key
    assert np.array_equal(read.submit_time, jobs.submit_time - jobs.submit_time[0])
    schedule.write(tmp_path / "few.csv")
    with pytest.raises(TraceError, match="write it by simulate --columns all"):
        hpcgym.load_workload(tmp_path / "few.csv", machine=jobs.machine)


def test_what_a_job_waits_for_comes_back_with_all_columns(
    counted: Workload, tmp_path: Path
) -> None:
    after = np.full(len(counted), -1)
    after[10::10] = np.arange(9, len(counted) - 1, 10)
    jobs = replace(counted, after=after, think_time=np.where(after >= 0, 60, 0))
    schedule = hpcgym.simulate(jobs, dependencies="start")
    schedule.write(tmp_path / "a.csv", columns="all")
    read = hpcgym.load_workload(tmp_path / "a.csv", machine_processors=256)
    assert np.array_equal(read.after, after)
    again = hpcgym.simulate(read, dependencies="start")
    assert np.array_equal(again.start_time, schedule.start_time)


def test_other_tables_say_how_they_are_read(tmp_path: Path) -> None:
    hpcgym.simulate(hpcgym.load_workload("tiny")).write(tmp_path / "tiny.batsim.csv")
    with pytest.raises(TraceError, match=r"a table of Batsim.*\.csv, \.parquet or \.swf"):
        hpcgym.load_workload(tmp_path / "tiny.batsim.csv")
    (tmp_path / "own.csv").write_text("job_id,submit_time,run_time,processors\n1,0,5,2\n")
    with pytest.raises(TraceError, match=r"unknown column 'processors'.*chunks, of one cpu each"):
        hpcgym.load_workload(tmp_path / "own.csv")


@pytest.mark.long
def test_commands_read_what_simulate_wrote(tmp_path: Path) -> None:
    def ran(*words: object) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    first = ran("simulate", "synthetic-256", "-o", tmp_path / "a.csv")
    machine = ("--processors", 256)
    again = ran("simulate", tmp_path / "a.csv", *machine, "--policy", "recorded")
    waits = [[line for line in text.splitlines() if "wait, s" in line] for text in (first, again)]
    assert len(waits[0]) == 1 and waits[0] == waits[1]
    assert "10000 of 10000 jobs kept" in ran("traces", "check", tmp_path / "a.csv", *machine)
