"""Schedules in the formats of other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import hpcgym
from hpcgym.schedule.export import CSV_COLUMNS, batsim_frame

BATSIM = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources"),
    *("requested_time", "success", "final_state", "starting_time", "execution_time"),
    *("finish_time", "waiting_time", "turnaround_time", "stretch", "allocated_resources"),
    "consumed_energy",
)


@pytest.fixture
def schedule() -> hpcgym.Schedule:
    """Two jobs and one of no second; the second is cut at its request; the log begins at 100 s."""
    jobs = hpcgym.Workload.from_arrays(
        *([0, 0, 7], [10, 9, 0], [20, 5, 1], [2, 1, 3]),
        machine_processors=3,
        name="mine",
        time_offset=100,
    )
    return hpcgym.simulate(jobs)


def test_batsim_reads_times_of_the_log_and_who_holds_what(
    schedule: hpcgym.Schedule, tmp_path: Path
) -> None:
    schedule.write(tmp_path / "jobs.batsim.csv")
    found = pd.read_csv(tmp_path / "jobs.batsim.csv", dtype={"allocated_resources": str})
    assert tuple(found.columns) == BATSIM
    first, second, third = found.itertuples()
    assert (first.submission_time, first.starting_time, first.finish_time) == (100, 100, 110)
    assert (first.allocated_resources, second.allocated_resources) == ("0-1", "2")
    assert (second.success, second.final_state) == (0, "COMPLETED_WALLTIME_REACHED")
    assert (first.success, second.execution_time, first.stretch) == (1, 5, 1.0)
    assert pd.isna(third.stretch) and pd.isna(third.allocated_resources)
    assert (third.waiting_time, third.turnaround_time) == (3, 3)


def test_an_unfinished_schedule_is_no_table_of_batsim(schedule: hpcgym.Schedule) -> None:
    schedule.start_time[1] = -1
    with pytest.raises(hpcgym.HpcgymError, match="Batsim needs a finished schedule; 1 of 3"):
        batsim_frame(schedule)


def test_a_job_set_gets_the_whole_machine(
    schedule: hpcgym.Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(JobSet=lambda frame, resource_bounds: (frame, resource_bounds))
    sets = SimpleNamespace(ProcSet=SimpleNamespace(from_str=str.split))
    monkeypatch.setitem(sys.modules, "evalys", SimpleNamespace(jobset=made))
    monkeypatch.setitem(sys.modules, "evalys.jobset", made)
    monkeypatch.setitem(sys.modules, "procset", sets)
    frame, bounds = schedule.to_evalys()
    assert bounds == (0, 2)
    assert frame["allocated_resources"].tolist() == [["0-1"], ["2"], []]


def test_without_evalys_the_message_says_what_to_install(
    schedule: hpcgym.Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "evalys", None)
    with pytest.raises(hpcgym.HpcgymError, match=r"a job set needs evalys.*pip install evalys"):
        schedule.to_evalys()


def test_parquet_has_the_columns_of_the_csv_file(schedule: hpcgym.Schedule, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for name in ("jobs.csv", "jobs.parquet"):
        schedule.write(tmp_path / name)
    plain, packed = pd.read_csv(tmp_path / "jobs.csv"), pd.read_parquet(tmp_path / "jobs.parquet")
    assert tuple(packed.columns) == CSV_COLUMNS
    pd.testing.assert_frame_equal(plain.astype({"backfilled": bool}), packed)


def test_without_pyarrow_nothing_is_simulated_for_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hpcgym.schedule.export import check_suffix

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(hpcgym.HpcgymError, match=r"pip install 'hpcgym\[tables\]'"):
        check_suffix(tmp_path / "jobs.parquet")
