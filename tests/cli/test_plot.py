"""`hpcgym plot`: a log under some policies, or schedules from files, as one picture."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hpcgym
from hpcgym.cli.plot import parse_days

pytest.importorskip("matplotlib")

Command = Callable[..., str]


@pytest.fixture
def schedules(run: Command, tmp_path: Path) -> list[Path]:
    """Schedules of the bundled log under two policies."""
    paths = [tmp_path / "fcfs.csv", tmp_path / "saf.csv"]
    for path in paths:
        run("simulate", "tiny", "--policy", path.stem, "--output", path)
    return paths


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_policies_and_modes_of_a_log_come_into_one_picture(
    run: Command, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"picture{suffix}"
    options = ("--policy", "FCFS,SAF", "--backfill", "easy", "--backfill", "none")
    printed = run("plot", "tiny", "--kind", "distribution", *options, "--output", out)
    assert "8 of 8 jobs kept" in printed
    assert f"wrote {out}" in printed
    assert out.stat().st_size > 0


@pytest.mark.long
def test_labels_say_what_differs(run: Command, tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    shown = {
        ("-p", "FCFS,SAF"): ["FCFS: mean", "SAF: mean"],
        ("--backfill", "easy", "--backfill", "none"): ["easy: mean", "none: mean"],
        ("-p", "SAF"): ["SAF, backfill easy: mean"],
    }
    for options, words in shown.items():
        run("plot", "tiny", "-k", "distribution", *options, "-o", out, "--force")
        text = out.read_text()
        assert all(f"<!-- {word}" in text for word in words)


@pytest.mark.long
def test_schedules_are_drawn_as_they_are(
    run: Command, refuse: Command, schedules: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "picture.svg"
    printed = run("plot", *schedules, "--kind", "usage", "--output", out)
    assert "4 processors, the most held at once" in printed
    assert all(f"<!-- {path.stem} -->" in out.read_text() for path in schedules)
    assert "most held" not in run("plot", schedules[0], "--processors", 4, "-o", out, "--force")
    options = ("--output", out, "--force")
    assert "not 3 at most" in refuse("plot", *schedules, "--processors", 3, *options)
    assert "--policy has no effect on a schedule" in refuse(
        "plot", *schedules, "-p", "SAF", *options
    )
    assert "not drawn together: tiny" in refuse("plot", *schedules, "tiny", *options)


def test_a_broken_schedule_is_refused_by_name(refuse: Command, schedules: list[Path]) -> None:
    text = schedules[0].read_text()
    schedules[0].write_text(text.replace(",60,120", ",sixty,120"))
    out = schedules[0].with_name("picture.png")
    assert f"{schedules[0]}: is no schedule" in refuse("plot", schedules[0], "-o", out)
    schedules[0].write_text(text.replace("requested_time", "request"))
    assert f"{schedules[0]}: is no schedule" in refuse("plot", schedules[0], "-o", out)


def test_output_is_checked_before_the_log_is_read(refuse: Command, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text("no log")
    log, out = tmp_path / "log.swf", tmp_path / "picture.png"
    assert "must end in .png" in refuse("plot", log, "-o", tmp_path / "picture.gif")
    out.touch()
    assert "exists already" in refuse("plot", log, "-o", out)
    assert "no such file" in refuse("plot", tmp_path / "lag.swf", "-o", out)
    assert "one is scheduled" in refuse("plot", "tiny", "tiny", "-o", tmp_path / "new.png")


def test_days_may_be_parts_of_days() -> None:
    assert parse_days("0.5-1.25") == (0.5, 1.25)


def test_a_missing_library_is_named_before_the_log_is_read_and_after_a_missing_log(
    refuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "no such file" in refuse("plot", "no-such-log", "-o", tmp_path / "new.png")
    log = tmp_path / "unread.parquet"
    log.touch()
    said = refuse("plot", "tiny", "-o", tmp_path / "new.png")
    assert "pip install 'hpcgym[report]'" in said
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refuse("plot", log, "-o", tmp_path / "new.png")
    assert "hpcgym plot needs matplotlib and pyarrow, which are not installed: " in said
    assert "pip install 'hpcgym[report,tables]'" in said


@pytest.mark.parametrize("kind", ["gantt", "usage", "distribution"])
def test_jobs_without_a_start_are_left_out_and_counted(
    run: Command, tmp_path: Path, kind: str
) -> None:
    columns = [0, 0, 20], [100, 100, 5], [100, 100, 5], [2, 2, 1]
    jobs = hpcgym.Workload.from_arrays(*columns, machine_processors=4, requeue=[True, False, True])
    made = hpcgym.simulate(jobs, events="outage:from=20,to=30,processors=1,announced=20")
    assert made.lost.tolist() == [False, True, False]
    written, out = tmp_path / "made.csv", tmp_path / "picture.png"
    made.to_csv(written)
    printed = run("plot", written, "--kind", kind, "--output", out)
    assert "1 of 3 jobs have no start, and are left out" in printed
    assert "3 processors, the most held at once" in printed
    assert out.stat().st_size > 0
