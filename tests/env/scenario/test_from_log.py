"""A person's own log becomes episodes without a scenario file."""

import pickle
from pathlib import Path

import pytest

from hpcgym.base.errors import ScenarioError, TraceError
from hpcgym.env.scenario.from_log import episodes_of_log
from hpcgym.env.scenario.spec import MachineSpec

LINE = "1 0 0 5000 2 -1 -1 2 6000 -1 1 1 -1 -1 -1 -1 -1 -1\n"


def write_log(path: Path, n_days: int) -> Path:
    lines = [
        f"{n + 1} {n * 86_400} 0 50 2 -1 -1 2 {100 + n} -1 1 1 -1 -1 -1 -1 -1 -1\n"
        for n in range(n_days)
    ]
    path.write_text("".join(lines))
    return path


def test_a_log_is_cut_into_weeks_as_the_shelf_s_scenarios_are(tmp_path: Path):
    path = write_log(tmp_path / "own.swf", 30)
    episodes, report = episodes_of_log(path, processors=8)
    scenario = episodes.scenario
    assert scenario.name == "own"
    assert scenario.machine == MachineSpec(processors=8, largest_request_s=129)
    assert scenario.scheduler.threshold_s == 200_000
    assert episodes.labels == ("week 1", "week 2", "week 3")
    assert report.jobs == 30


def test_a_log_without_a_whole_week_after_its_first_is_one_episode(tmp_path: Path):
    episodes, _ = episodes_of_log(write_log(tmp_path / "own.swf", 14), processors=8)
    assert episodes.labels == ("whole",)
    assert len(episodes.workload(0)) == 14


def test_the_machine_s_size_is_asked_for_where_the_header_lacks_it(tmp_path: Path):
    with pytest.raises(TraceError, match="processors"):
        episodes_of_log(write_log(tmp_path / "own.swf", 3))


def test_jobs_wider_than_the_machine_are_dropped_and_counted(tmp_path: Path):
    path = write_log(tmp_path / "own.swf", 3)
    path.write_text(path.read_text() + LINE.replace(" 2 ", " 9 "))
    episodes, report = episodes_of_log(path, processors=8)
    assert len(episodes.workload(0)) == 3
    assert report.count("larger than the machine") == 1


def test_synthetic_requests_are_labelled(tmp_path: Path):
    path = tmp_path / "own.swf"
    path.write_text("; MaxProcs: 8\n" + LINE.replace("6000", "-1"))
    with pytest.raises(TraceError, match="tsafrir"):
        episodes_of_log(path)
    episodes, _ = episodes_of_log(path, missing_request="tsafrir", seed=3)
    assert episodes.scenario.trace.tsafrir_seed == 3
    assert "SYNTHETIC" in episodes.scenario.description


def test_run_times_never_stand_in_for_requests(tmp_path: Path):
    with pytest.raises(ScenarioError, match="shows true run times"):
        episodes_of_log(write_log(tmp_path / "own.swf", 3), processors=8, missing_request="run")


def test_a_changed_log_is_read_again(tmp_path: Path):
    path = tmp_path / "own.swf"
    path.write_text("; MaxProcs: 8\n" + LINE)
    assert len(episodes_of_log(path)[0].workload(0)) == 1
    path.write_text("; MaxProcs: 8\n" + LINE + LINE.replace("1 0", "2 9", 1))
    assert len(episodes_of_log(path)[0].workload(0)) == 2


def test_episodes_carried_to_another_process_find_the_log_again(tmp_path: Path, monkeypatch):
    write_log(tmp_path / "own.swf", 30)
    monkeypatch.chdir(tmp_path)
    carried = pickle.dumps(episodes_of_log("own.swf", processors=8)[0])
    monkeypatch.chdir("/")
    assert pickle.loads(carried).numbers == (1, 2, 3)
