"""What files, pictures and other workloads keep of jobs that wait for others or may be killed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import hpcgym
from hpcgym.base.errors import ScenarioError, TraceError, WorkloadError
from hpcgym.cli.plot import _read
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.load import load_scenario, parse_scenario
from hpcgym.evaluation.pictures.view import View
from hpcgym.schedule.moldable import simulate_moldable
from hpcgym.trace import join_weeks, load_workload

COLUMNS = ([0, 500], [50, 50], [60, 60], [1, 1])


@pytest.fixture
def follows():
    """Job 2 follows job 1, at second 50 where its user has seen it; the log has it at 500."""
    jobs = Workload.from_arrays(*COLUMNS, machine_processors=1, after=[-1, 0], name="follows")
    return hpcgym.simulate(jobs, dependencies="feedback")


def test_a_written_schedule_keeps_from_when_jobs_wait(follows, tmp_path):
    follows.write(tmp_path / "follows.csv")
    again = _read(tmp_path / "follows.csv", "follows", None)
    assert again.wait_time.tolist() == follows.wait_time.tolist() == [0, 0]
    assert again.metrics() == follows.metrics()


def test_a_schedule_without_a_needed_column_is_refused_by_its_name(tmp_path):
    path = tmp_path / "no.csv"
    path.write_text("job_id,submit_time\n1,2\n")
    with pytest.raises(
        hpcgym.base.errors.HpcgymError, match=r"no\.csv: is no schedule .* start_time"
    ):
        _read(path, "no", None)


def test_days_of_a_picture_are_those_at_which_jobs_come(follows):
    assert View.of({"one": follows}, (0, 0.003)).submitted(follows).tolist() == [True, True]


def test_ends_of_holds_are_on_the_clock_of_the_log(tmp_path):
    jobs = Workload.from_arrays(*COLUMNS, machine_processors=1, eligible=[300, -1], name="held")
    hpcgym.simulate(replace(jobs, time_offset=1000)).write(tmp_path / "a.csv", columns="all")
    frame = pd.read_csv(tmp_path / "a.csv")
    assert frame["eligible"].tolist() == [1300, -1]
    assert frame["eligible_time"].tolist() == [1300, 1500]


def test_jobs_of_several_shapes_keep_their_attempts():
    columns = ([0, 0, 0], [600, 60, 600], [600, 600, 1200], [2, 4, 2])
    jobs = Workload.from_arrays(*columns, machine_processors=4, name="tried")
    settings = hpcgym.core.settings.SchedulerSettings(backfill="easy+trial")
    shapes = [[one] for one in zip(*columns[:0:-1], strict=True)]
    made = simulate_moldable(jobs, shapes, settings=settings).schedule
    rigid = hpcgym.simulate(jobs, backfill="easy+trial")
    assert made.start_time.tolist() == rigid.start_time.tolist()
    assert made.attempts.job.tolist() == rigid.attempts.job.tolist() == [2]
    assert made.metrics()["waste"] == rigid.metrics()["waste"] > 0


@pytest.mark.parametrize("after", [[None, 1], ["", 1], ["a", 1], [1.5, 1]])
def test_ids_that_are_no_numbers_are_refused_and_none_is_none(after):
    frame = pd.DataFrame(dict(zip(("submit_time", "run_time"), COLUMNS[:2], strict=True)))
    frame = frame.assign(requested_time=60, processors=1, after=pd.Series(after, dtype=object))
    if after[0] is None:
        jobs = Workload.from_frame(frame, machine_processors=1)
        assert jobs.after.tolist() == [-1, 0]
        return
    with pytest.raises(WorkloadError, match=r"after (must be numbers|in row 0 is 1\.5)"):
        Workload.from_frame(frame, machine_processors=1)


def test_weeks_are_joined_where_only_some_state_a_column():
    jobs = Workload.from_arrays(*COLUMNS, machine_processors=1, name="week")
    killed = replace(jobs, requeue=np.array([False, True]), after=np.array([-1, 0]))
    for parts, requeue, after in (
        ([killed, jobs], [False, True, True, True], [-1, 0, -1, -1]),
        ([jobs, killed], [True, True, False, True], [-1, -1, -1, 2]),
    ):
        joined = join_weeks(parts)
        assert joined.requeue.tolist() == requeue
        assert joined.after.tolist() == after


def test_a_job_before_another_on_a_line_that_is_left_out_has_ended(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submit_time,run_time,requested_time,chunks,after\n1,0,x,9,1,\n2,5,1,9,1,1\n"
    )
    jobs = load_workload(path, on_bad_line="drop", machine_processors=1, dependencies=True)
    assert jobs.after.tolist() == [-1]
    path.write_text("job_id,submit_time,run_time,requested_time,chunks,after\n2,5,1,9,1,1\n")
    with pytest.raises(TraceError, match="after job 1, which is not there"):
        load_workload(path, machine_processors=1, dependencies=True)


def test_resampled_weeks_take_no_outages(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'description = "d"\n[trace]\nname = "synthetic-256"\nmissing_request = "max"\n'
        "[machine]\nprocessors = 256\n"
        'largest_request_s = 172800\n[episode]\nkind = "resampled"\nepisodes = 2\nseed = 0\n'
        "[[outage]]\nfrom = 0\nto = 9\nprocessors = 1\n"
    )
    with pytest.raises(ScenarioError, match="resampled weeks have no place"):
        load_scenario(path)


def test_resampled_weeks_take_no_machine_with_outages(tmp_path):
    (tmp_path / "machine.toml").write_text(
        "[[nodes]]\ncount = 4\ncpus = 1\n[[outage]]\nfrom = 0\nto = 9\nnodes = 1\n"
    )
    text = (
        'description = "Weeks."\nmachine = "machine.toml"\nepisode = { kind = "%s" }\n'
        'trace = { name = "tiny", missing_request = "drop", max_request_s = 100 }\n'
    )
    assert parse_scenario(text % "week", name="mine", folder=tmp_path).machine.nodes.outages
    with pytest.raises(ScenarioError, match="resampled weeks have no place"):
        parse_scenario(text % "resampled", name="mine", folder=tmp_path)
