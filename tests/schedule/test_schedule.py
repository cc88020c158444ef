"""Schedules: one call from a workload to figures, frames and files."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.core.workload import WEEK_S, Workload
from hpcgym.schedule.export import CSV_COLUMNS
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.clean import clean
from hpcgym.trace.resample import resample
from hpcgym.trace.swf import read_swf

LOG = """\
; Version: 2.2
; MaxProcs: 4
; UnixStartTime: 1000000
;Note: kept as found
 1  500  7  12  2 -1 -1  2  10 -1  1  21 3 4 5 6 -1 -1
 2  500 -1   1 -1 -1 -1 -1  10 -1  5  21 3 4 5 6 -1 -1
 3  501  0  10  3 -1 -1  3  10 -1  1  22 3 4 5 6 -1 -1
 4  502  0   5  4 -1 -1  4   5 -1  1  23 3 4 5 6 -1 -1
 5  503  0 100  1 -1 -1  1 100 -1  1  24 3 4 5 6 -1 -1
"""


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    path.write_text(LOG)
    return path


@pytest.fixture
def schedule(log_path: Path) -> Schedule:
    """FCFS with EASY on 4 processors; job 2 has no processors and is dropped.

    Time 0 is 500 s. Job 1 runs 0-10 (killed at its request). Job 3 (3 processors, submitted 1) is
    the head until 10, with 1 processor extra. Job 4 (whole machine) waits behind it. Job 5
    (1 processor, 100 s) is backfilled at 3 on the extra processor, until 103, so job 4, which has
    no reservation, starts at 103.
    """
    return simulate(clean(read_swf(log_path))[0])


def test_every_start_is_the_one_worked_by_hand_and_is_explained(schedule: Schedule) -> None:
    frame = schedule.to_frame()
    assert frame["job_id"].tolist() == [1, 3, 4, 5]
    assert frame["submit_time"].tolist() == [500, 501, 502, 503]  # the log's clock, as in files
    assert frame["start_time"].tolist() == [500, 510, 603, 503]
    assert frame["run_time"].tolist() == [10, 10, 5, 100]
    assert frame["end_time"].tolist() == [510, 520, 608, 603]
    assert frame["wait_time"].tolist() == [0, 9, 101, 0]
    assert frame["started"].tolist() == ["in_order", "in_order", "in_order", "backfilled"]
    assert frame["backfilled"].tolist() == [False, False, False, True]
    assert frame["bsld"].tolist() == [1.0, 1.9, 10.6, 1.0]
    assert frame["pp_bsld"].tolist() == [1.0, 1.0, 2.65, 1.0]


def test_figures_are_those_of_the_schedule(schedule: Schedule) -> None:
    figures = schedule.metrics()
    assert figures["complete"] is True
    assert figures["mean_wait_time"] == 110 / 4
    assert figures["mean_bsld"] == pytest.approx(14.5 / 4)
    assert figures["mean_bsld"] == pytest.approx(schedule.bsld().mean())
    assert figures["mean_pp_bsld"] == pytest.approx(schedule.pp_bsld().mean())
    assert figures["n_backfilled"] == 1
    assert figures["makespan"] == 108
    assert figures["utilisation"] == (20 + 30 + 20 + 100) / (4 * 108)


def test_groups_are_frames_of_one_row_each(schedule: Schedule) -> None:
    by_class = schedule.metrics("class")
    assert by_class.index.name == "class"
    assert by_class["n_jobs"].to_dict() == {1: 4}
    by_user = schedule.metrics("user")
    assert by_user["n_jobs"].to_dict() == {21: 1, 22: 1, 23: 1, 24: 1}
    assert by_user["mean_wait_time"].tolist() == [0, 9, 101, 0]
    with pytest.raises(HpcgymError, match="did you mean 'user'"):
        schedule.metrics("usr")


def test_series_goes_week_by_week(schedule: Schedule) -> None:
    late = schedule.workload.resubmitted([0, 1, 2, WEEK_S + 3])
    series = simulate(late).series("wait_time", time="submit_time")
    assert series["n_jobs"].tolist() == [3, 1]
    assert series["mean"].tolist() == [(0 + 9 + 18) / 3, 0]
    assert series["cumulative_mean"].tolist() == [9, 27 / 4]
    with pytest.raises(HpcgymError, match="did you mean 'bsld'"):
        schedule.series("bsd")
    with pytest.raises(HpcgymError, match="did you mean 'end_time'"):
        schedule.series(time="endtime")


def test_csv_has_one_row_per_job_in_the_base_of_the_log(schedule: Schedule, tmp_path: Path) -> None:
    schedule.write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        "job_id,submit_time,start_time,run_time,requested_time,processors,backfilled\n"
        "1,500,500,10,10,2,0\n"
        "3,501,510,10,10,3,0\n"
        "4,502,603,5,5,4,0\n"
        "5,503,503,100,100,1,1\n"
    )


def test_rows_of_a_log_that_goes_backwards_come_by_submit_then_position(tmp_path: Path) -> None:
    lines = LOG.splitlines(keepends=True)
    (tmp_path / "a.swf").write_text("".join(lines[:4] + lines[:3:-1]))
    simulate(clean(read_swf(tmp_path / "a.swf"))[0]).to_csv(tmp_path / "a.csv")
    assert pd.read_csv(tmp_path / "a.csv")["job_id"].tolist() == [1, 3, 4, 5]


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_swf_keeps_header_and_fields_and_changes_wait_and_run_time(
    schedule: Schedule, log_path: Path, tmp_path: Path, name: str
) -> None:
    schedule.write(tmp_path / name)
    before, after = read_swf(log_path), read_swf(tmp_path / name)
    assert after.header == before.header
    expected = before.records.drop(index=1).reset_index(drop=True)
    expected["wait_time"] = [0, 9, 101, 0]
    expected["run_time"] = [10, 10, 5, 100]
    pd.testing.assert_frame_equal(after.records, expected)


def test_written_log_reads_back_as_the_same_jobs(schedule: Schedule, tmp_path: Path) -> None:
    schedule.to_swf(tmp_path / "out.swf")
    jobs = clean(read_swf(tmp_path / "out.swf"))[0]
    assert jobs.time_offset == 500
    np.testing.assert_array_equal(jobs.wait_time, schedule.wait_time)
    np.testing.assert_array_equal(simulate(jobs).start_time, schedule.start_time)


def test_workload_without_a_log_is_written_with_a_header_of_its_own(tmp_path: Path) -> None:
    jobs = Workload.from_arrays(
        [0, 3], [10, 20], [15, 15], [2, 4], machine_processors=4, name="mine", unix_start=70
    )
    simulate(jobs).to_swf(tmp_path / "mine.swf")
    log = read_swf(tmp_path / "mine.swf")
    assert log.header_number("MaxProcs") == 4
    assert log.header_number("UnixStartTime") == 70
    assert log.records["wait_time"].tolist() == [0, 7]
    assert log.records["run_time"].tolist() == [10, 15]
    again = clean(log)[0]
    assert again.machine_processors == 4
    np.testing.assert_array_equal(again.requested_time, jobs.requested_time)


def test_part_of_a_log_is_written_in_the_base_of_the_log(
    schedule: Schedule, tmp_path: Path
) -> None:
    part = schedule.workload.select([2, 3], start=2)
    simulate(part).write(tmp_path / "part.csv")
    frame = pd.read_csv(tmp_path / "part.csv")
    assert frame["submit_time"].tolist() == [502, 503]
    assert frame["start_time"].tolist() == [502, 507]
    simulate(part).write(tmp_path / "part.swf")
    assert read_swf(tmp_path / "part.swf").records["job_id"].tolist() == [4, 5]


def test_jobs_of_a_sample_are_written_under_their_new_numbers(
    schedule: Schedule, tmp_path: Path
) -> None:
    again = resample(schedule.workload, np.random.default_rng(1), "draw")
    simulate(again).write(tmp_path / "sample.swf")
    written = read_swf(tmp_path / "sample.swf").records["job_id"].tolist()
    assert written == again.job_id.tolist() == list(range(1, len(again) + 1))


def test_a_name_in_place_of_a_workload_is_refused_with_the_way_to_one() -> None:
    with pytest.raises(HpcgymError, match="a Workload is needed, got 'tiny'"):
        simulate("tiny")  # type: ignore[arg-type]


def test_existing_file_is_replaced_only_by_force(schedule: Schedule, tmp_path: Path) -> None:
    for name in ("out.csv", "out.swf", "out.swf.gz"):
        path = tmp_path / name
        path.write_text("old")
        with pytest.raises(OutputError, match="exists already"):
            schedule.write(path)
        assert path.read_text() == "old"
        schedule.write(path, force=True)
        assert path.stat().st_size > 50


@pytest.mark.parametrize("name", ["out", "out.txt", "out.csv.gz", "swf"])
def test_file_of_another_format_is_refused(schedule: Schedule, tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match=r"must end in \.batsim\.csv, \.csv, \.parquet, \.swf or"):
        schedule.write(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_unfinished_schedule_shows_what_has_not_started(schedule: Schedule, tmp_path: Path) -> None:
    cut = replace(schedule, start_time=np.array([0, 10, -1, 3]))
    assert not cut.complete
    assert cut.wait_time.tolist() == [0, 9, -1, 0]
    assert cut.end_time.tolist() == [10, 20, -1, 103]
    np.testing.assert_array_equal(cut.bsld(), [1, 1.9, np.nan, 1])
    assert cut.to_frame()["started"].tolist() == ["in_order", "in_order", "", "backfilled"]
    assert cut.metrics()["complete"] is False
    assert cut.metrics()["n_jobs"] == 3
    cut.to_csv(tmp_path / "cut.csv")
    assert pd.read_csv(tmp_path / "cut.csv")["start_time"].tolist() == [500, 510, -1, 503]
    for refused in (cut.series, lambda: cut.metrics("class")):
        with pytest.raises(HpcgymError, match="1 of 4 jobs have not started"):
            refused()


def test_schedule_survives_pickling(schedule: Schedule) -> None:
    again = pickle.loads(pickle.dumps(schedule))
    pd.testing.assert_frame_equal(again.to_frame(), schedule.to_frame())


def test_columns_of_the_file_are_fixed() -> None:
    assert ",".join(CSV_COLUMNS) == (
        "job_id,submit_time,start_time,run_time,requested_time,processors,backfilled"
    )
