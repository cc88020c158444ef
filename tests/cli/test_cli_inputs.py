"""Files that a command reads: it writes over none of them, also with --force."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgym.base.errors import OutputError
from hpcgym.base.output import ensure_writable, keeping_inputs, note_input, writing
from hpcgym.trace import find_trace

Command = Callable[..., str]

MACHINE = "[[nodes]]\ncount = 4\ncpus = 1\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log in the folder of work, with a link of each kind to it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.swf"
    path.write_bytes(find_trace("tiny").read_bytes())
    (tmp_path / "link.swf").symlink_to(path)
    (tmp_path / "hard.swf").hardlink_to(path)
    return path


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("mine.swf", "mine.swf"),
        ("mine.swf", "link.swf"),
        ("link.swf", "mine.swf"),
        ("mine.swf", "hard.swf"),
        ("mine.swf", "sub/../mine.swf"),
    ],
)
def test_a_log_is_not_replaced_by_its_schedule(
    read: str, written: str, log: Path, refuse: Command
) -> None:
    Path("sub").mkdir()
    before = log.read_bytes()
    message = refuse("simulate", read, "-o", written, "--force")
    assert message == f"hpcgym: {written}: is {read}, which this command reads; name another file\n"
    assert log.read_bytes() == before


@pytest.mark.long
def test_no_other_input_is_replaced_either(log: Path, refuse: Command, run: Command) -> None:
    shutil.copy(log, "machine.csv")
    Path("machine.csv").write_text(MACHINE)
    given = ("--machine", "machine.csv", "-o", "machine.csv", "--force")
    assert "is machine.csv, which this command reads" in refuse("simulate", log, *given)
    assert Path("machine.csv").read_text() == MACHINE
    Path("rule.csv").write_text("def Mine(jobs):\n    return jobs.q\n")
    os.link("rule.csv", "rule.py")
    given = ("--policy", "rule.py:Mine", "-o", "rule.csv", "--force")
    assert "is rule.py, which this command reads" in refuse("simulate", log, *given)
    log.rename("log.svg")
    assert "log.svg, which" in refuse("plot", "log.svg", "-o", "log.svg", "--force")
    run("simulate", "log.svg", "-o", "new.csv")
    run("simulate", "log.svg", "-o", "new.csv", "--force")


def test_a_file_in_the_folder_of_results_is_an_input_too(log: Path, refuse: Command) -> None:
    Path("out").mkdir()
    log.rename("out/runs.csv")
    before = Path("out/runs.csv").read_bytes()
    for command in (("evaluate", "--agents", "FCFS"), ("cross-validate", "FCFS")):
        message = refuse(*command, "--log", "out/runs.csv", "-o", "out", "--force")
        assert "out/runs.csv: is out/runs.csv, which" in message
    assert Path("out/runs.csv").read_bytes() == before


def test_a_log_by_name_is_not_replaced(
    log: Path, refuse: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGYM_TRACES", str(log.parent))
    before = log.read_bytes()
    assert "mine.swf, which this command reads" in refuse(
        "simulate", "mine", "-o", "mine.swf", "--force"
    )
    assert log.read_bytes() == before


@pytest.mark.long
def test_standard_input_is_not_replaced(log: Path) -> None:
    command = [sys.executable, "-m", "hpcgym", "simulate", "-", "-o", "mine.swf", "--force"]
    before = log.read_bytes()
    with log.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("hpcgym: mine.swf: is standard input, which this command reads")
    assert log.read_bytes() == before


def test_inputs_are_kept_inside_the_block_only(tmp_path: Path) -> None:
    path, noted = tmp_path / "a", tmp_path / "b"
    path.write_text("precious")
    noted.write_text("precious")
    with keeping_inputs([path, tmp_path / "missing", tmp_path]):
        note_input(noted)
        for one in (path, noted):
            with pytest.raises(OutputError, match="which this command reads"):
                ensure_writable(one, force=True)
    note_input(noted)
    for one in (path, noted):
        with writing(one, force=True) as file:
            file.write_text("new")
        assert one.read_text() == "new"
