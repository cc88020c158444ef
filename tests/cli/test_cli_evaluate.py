"""`hpcgym evaluate`: agents on a scenario or on a log of one's own, and what it writes."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym.base.errors import HpcgymError
from hpcgym.cli.evaluate import FILES, split_agents
from hpcgym.core.workload import WEEK_S, Workload
from hpcgym.schedule.simulate import simulate

Command = Callable[..., str]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of four weeks, busy enough that policies differ, as a person might hold it."""
    generator = np.random.default_rng(5)
    n_jobs = 400
    run_time = generator.integers(1, 40_000, n_jobs)
    jobs = Workload.from_arrays(
        np.sort(generator.integers(0, 4 * WEEK_S, n_jobs)),
        run_time,
        run_time * generator.integers(1, 4, n_jobs),
        generator.integers(1, 7, n_jobs),
        user=generator.integers(0, 9, n_jobs),
        machine_processors=8,
    )
    path = tmp_path_factory.mktemp("log") / "mine.swf"
    simulate(jobs).to_swf(path)
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.long
def test_agents_stand_side_by_side_with_saf_among_them(run: Command) -> None:
    printed = run("evaluate", "--scenario", "tiny", "--agents", "FCFS,EASY-SJBF")
    assert all(name in printed for name in ("FCFS", "EASY-SJBF", "SAF"))
    assert "1.961" in printed
    assert "SAF has the least bounded slowdown, but one episode tells nothing of others." in printed
    assert "4.68" in run("evaluate", "--all", "--scenario", "tiny", "--agents", "FCFS,EASY-SJBF")


@pytest.mark.long
def test_a_machine_of_nodes_has_a_second_table(run: Command, tmp_path: Path) -> None:
    command = ("evaluate", "-s", "hetero-64-weeks", "--weeks", "4", "-a", "FCFS", "-o", tmp_path)
    printed = run(*command, "--all")
    assert "on nodes: mean over weeks" in printed
    runs = pd.read_csv(tmp_path / "runs.csv").set_index("agent")
    second = printed[printed.index("on nodes") :]
    for column, digits in (("utilisation_gpus", 3), ("fragmentation", 3), ("mean_bsld_in_gpu", 2)):
        assert f" {runs.loc['FCFS', column]:.{digits}f} " in second
    assert "on nodes" not in run("evaluate", "--all", "-s", "tiny", "-a", "FCFS")


def test_weights_are_agents(run: Command) -> None:
    printed = run("evaluate", "-s", "tiny", "-a", "FCFS,q=1,e=2", "-a", "area=1,wait=-1")
    assert "q=0.333333,e=0.666667" in printed or "q=1,e=2" in printed
    assert "wait=-" in printed


@pytest.mark.long
def test_runs_and_summary_and_figure_are_written(
    run: Command, refuse: Command, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new" / "results"
    command = ("evaluate", "-s", "tiny", "-a", "FCFS,SAF", "--output", folder)
    printed = run(*command)
    assert names_in(folder) == sorted(FILES)
    assert all(f"wrote {folder / name}" in printed for name in FILES)
    runs = pd.read_csv(folder / "runs.csv")
    assert runs["agent"].tolist() == ["FCFS", "SAF"]
    assert runs["mean_bsld"].round(4).tolist() == [4.6771, 2.3854]
    summary = pd.read_csv(folder / "summary.csv").set_index("agent")
    assert summary.loc["FCFS", "ratio"] == pytest.approx(4.6771 / 2.3854, rel=1e-4)
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")

    before = (folder / "runs.csv").stat().st_mtime_ns
    assert "exists already" in refuse(*command)
    assert (folder / "runs.csv").stat().st_mtime_ns == before
    run(*command, "--force")


def test_missing_matplotlib_costs_the_figure_only(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *rest: None if name == "matplotlib" else find_spec(name, *rest),
    )
    printed = run("evaluate", "-s", "tiny", "-a", "FCFS", "-o", tmp_path)
    assert names_in(tmp_path) == ["runs.csv", "summary.csv"]
    assert "pip install 'hpcgym[report]'" in printed


@pytest.mark.long
def test_own_log_is_cut_into_weeks(run: Command, log: Path, tmp_path: Path) -> None:
    printed = run(
        *("evaluate", "--log", log, "--processors", 10, "--agents", "FCFS", "--weeks", "1-2"),
        *("--jitter", 600, "--replicas", 2, "--seed", 3, "--output", tmp_path),
    )
    assert "400 of 400 jobs kept" in printed
    assert "10 processors" in printed
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert sorted(runs["week"].unique()) == [1, 2]
    assert sorted(runs["replica"].unique()) == [0, 1, 2]
    assert set(runs["agent"]) == {"FCFS", "SAF"}


def test_own_log_of_less_than_two_weeks_is_one_episode(run: Command) -> None:
    assert "tiny: 1 episode" in run("evaluate", "--log", "tiny", "--agents", "FCFS")


@pytest.mark.long
def test_scenario_whose_log_loses_jobs_says_which(
    run: Command, refuse: Command, tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(
        'description = "A machine too small for half of the jobs."\n'
        '[trace]\nname = "tiny"\nmissing_request = "drop"\n'
        "[machine]\nprocessors = 2\nlargest_request_s = 120\n"
        '[episode]\nkind = "whole"\n'
    )
    command = ("evaluate", "--scenario", path, "--agents", "FCFS")
    assert "4 of 8 jobs of tiny ask for more" in refuse(*command)
    path.write_text(path.read_text().replace('= "drop"\n', '= "drop"\non_wide_job = "drop"\n'))
    printed = run(*command)
    assert "tiny: 4 of 8 jobs kept" in printed
    assert "larger than the machine" in printed
    assert "jobs kept" not in run("evaluate", "--scenario", "tiny", "--agents", "FCFS")


def test_output_that_cannot_be_is_refused_before_any_work(refuse: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "folder", "/proc/folder"):
        message = refuse("evaluate", "-s", "tiny", "--weeks", "99", "--output", folder)
        assert str(folder) in message
    assert names_in(tmp_path) == ["file"]


def test_list_of_agents_is_parted_at_commas_outside_weights() -> None:
    assert split_agents("FCFS, SAF") == ["FCFS", "SAF"]
    assert split_agents("q=1,e=2,SAF,wait=-1") == ["q=1,e=2", "SAF", "wait=-1"]
    with pytest.raises(HpcgymError):
        split_agents("FCFS,")
