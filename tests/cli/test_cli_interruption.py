"""`hpcgym evaluate`, cut off: what is kept, what is said, and how it goes on."""

import os
import pkgutil
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hpcgym.base.output import locked
from hpcgym.cli import app
from hpcgym.cli.comparison import UNFINISHED
from hpcgym.cli.evaluate import FILES
from hpcgym.cli.interruption import raised_again
from stores import count_runs, keys_in

Command = Callable[..., str]

COMMAND = ("evaluate", "--scenario", "synthetic-256-weeks", "--weeks", "1-2", "--agents", "FCFS")


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def interrupt(*arguments: object, stop_at: int) -> str:
    """Run the command, press Ctrl-C in a simulation, and return the one line it says."""
    with pytest.MonkeyPatch.context() as patch:
        count_runs(patch, stop_at=stop_at, error=KeyboardInterrupt)
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 130
    assert result.stderr.startswith("hpcgym: interrupted; ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.long
def test_interrupted_run_keeps_its_finished_weeks_and_goes_on_from_them(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*COMMAND, "--output", tmp_path / "whole")
    cut_off = tmp_path / "cut-off"
    said = interrupt(*COMMAND, "--output", cut_off, stop_at=4)
    assert f"kept in {cut_off / UNFINISHED}: add --resume" in said
    assert names_in(cut_off) == [UNFINISHED]
    noted = count_runs(monkeypatch)
    run(*COMMAND, "--output", cut_off, "--resume")
    assert noted == ["SAF"]
    assert UNFINISHED not in names_in(cut_off)
    for name in FILES[:2]:
        assert (cut_off / name).read_text() == (tmp_path / "whole" / name).read_text()


@pytest.mark.long
def test_what_an_interrupted_run_kept_is_neither_lost_nor_used_unasked(
    run: Command, refuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(*COMMAND, "--output", tmp_path, stop_at=4)
    kept = (tmp_path / UNFINISHED).read_bytes()
    message = refuse(*COMMAND, "--output", tmp_path)
    assert all(word in message for word in (UNFINISHED, "--resume", "--force"))
    assert (tmp_path / UNFINISHED).read_bytes() == kept
    noted = count_runs(monkeypatch)
    run(*COMMAND, "--output", tmp_path, "--force")
    assert noted == ["FCFS", "SAF"] * 2
    assert UNFINISHED not in names_in(tmp_path)


@pytest.mark.long
def test_a_run_killed_while_it_writes_or_draws_goes_on_and_is_finished_then(
    run: Command, refuse: Command, tmp_path: Path
) -> None:
    interrupt(*COMMAND, "--output", tmp_path, stop_at=4)
    for name in ("runs.csv", "summary.csv"):
        (tmp_path / name).write_text("of the run that was killed")
    (tmp_path / ".0123abcd-comparison.png").write_text("half a picture")
    (tmp_path / f"{UNFINISHED}-journal").touch()
    run(*COMMAND, "--output", tmp_path, "--resume")
    assert names_in(tmp_path) == sorted(FILES)
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 4
    assert "is finished, so there is nothing" in refuse(*COMMAND, "--output", tmp_path, "--resume")


TUNED = "tune -s synthetic-256-weeks --weeks 1-2 --trainer tuned-weights --evaluations 4"


@pytest.mark.parametrize(
    ("command", "lock", "option"),
    [
        (" ".join(COMMAND), UNFINISHED, ""),
        (" ".join(COMMAND), UNFINISHED, "--force"),
        ("cross-validate FCFS --scenario synthetic-256-weeks --folds 2", UNFINISHED, "--resume"),
        (TUNED, "tuned.unfinished.sqlite", ""),
        ("train -s synthetic-256-weeks --steps 1", "checkpoint.pt", "--resume"),
    ],
)
def test_a_folder_that_another_process_writes_to_is_left_to_it(
    refuse: Command, tmp_path: Path, command: str, lock: str, option: str
) -> None:
    with locked(tmp_path / lock):
        (tmp_path / UNFINISHED).write_text("of the other process")
        said = refuse(*command.split(), "--output", tmp_path, *option.split())
        assert f"{tmp_path}: another process writes here at the moment" in said
        assert (tmp_path / UNFINISHED).read_text() == "of the other process"


EVALUATED = "evaluate --scenario synthetic-256-weeks --agents FCFS --weeks"
VALIDATED = "cross-validate --no-baselines --jitter 0 --replicas 0"


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "before", "after", "instant"),
    [
        (EVALUATED, "1-2", "3", "agent.shelf.load_agent"),
        (VALIDATED, "FCFS", "SPF", "evaluation.cross_validate"),
    ],
)
def test_a_run_that_replaces_another_and_is_killed_early_goes_on(
    run: Command, tmp_path: Path, command: str, before: str, after: str, instant: str
) -> None:
    folder, killed = tmp_path / "folder", tmp_path / "killed"
    run(*command.split(), before, "--output", folder)
    function = pkgutil.resolve_name(f"hpcgym.{instant}")

    def copied_before(*given: object, **options: object) -> object:
        if not killed.exists():
            shutil.copytree(folder, killed)
        return function(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"hpcgym.{instant}", copied_before)
        run(*command.split(), after, "--output", folder, "--force")
    run(*command.split(), after, "--output", killed, "--resume")
    assert names_in(killed) == names_in(folder)
    for name in names_in(folder):
        assert (killed / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_run_killed_at_any_instant_gives_the_same_files_when_resumed(
    run: Command, tmp_path: Path, seed: int
) -> None:
    run(*COMMAND, "--output", tmp_path / "whole")
    cut_off = tmp_path / "cut-off"
    command = [sys.executable, "-m", "hpcgym", *COMMAND, "--output", str(cut_off)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        time.sleep(random.Random(seed).uniform(1.0, 4.0))
        running.kill()
    subprocess.run([*command, "--resume"], check=False, capture_output=True)
    assert names_in(cut_off) == sorted(FILES)
    for name in FILES:
        assert (cut_off / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_interruption_before_anything_had_finished_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "results"
    assert "no week had finished" in interrupt(*COMMAND, "--output", folder, stop_at=1)
    assert names_in(tmp_path) == []


def test_interruption_without_an_output_folder_says_what_would_have_kept_the_weeks() -> None:
    said = interrupt(*COMMAND, stop_at=4)
    assert "lost" in said
    assert "--output" in said


def start_two_processes(folder: Path) -> subprocess.Popen[str]:
    """Start a long run in two processes, and return when some weeks have finished."""
    command = ["--agents", "FCFS", "--jitter", "600", "--replicas", "300", "--on", "local:2"]
    running = subprocess.Popen(
        [sys.executable, "-m", "hpcgym", "evaluate", *command, "--output", str(folder)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    store = folder / UNFINISHED
    deadline = time.monotonic() + 120
    while not (store.exists() and store.stat().st_size and len(keys_in(store)) >= 4):
        assert time.monotonic() < deadline
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.02)
    return running


@pytest.mark.long
def test_ctrl_c_ends_all_processes_in_one_line_and_keeps_what_had_finished(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches the command and the processes it has spawned alike."""
    running = start_two_processes(tmp_path)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    kept = tmp_path / UNFINISHED
    assert said == (
        f"hpcgym: interrupted; finished weeks are kept in {kept}: "
        "add --resume to go on from there\n"
    )
    assert running.returncode == 130
    assert names_in(tmp_path) == [UNFINISHED]


@pytest.mark.long
def test_processes_whose_command_is_killed_end_too(tmp_path: Path) -> None:
    running = start_two_processes(tmp_path)
    running.kill()
    try:
        running.communicate(timeout=30)  # until no process holds standard error
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        raise


PARALLEL = (
    "evaluate --agents FCFS --jitter 600 --replicas 300",
    "cross-validate tuned-weights --no-baselines --jitter 0 --replicas 0",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", PARALLEL)
@pytest.mark.parametrize("instant", [0.7 + 0.3 * place for place in range(24)])
def test_ctrl_c_at_any_instant_of_the_start_of_processes_prints_no_traceback(
    tmp_path: Path, command: str, instant: float
) -> None:
    words = [*command.split(), "--on", "local:2", "--output", str(tmp_path / "out")]
    running = subprocess.Popen(
        [sys.executable, "-m", "hpcgym", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(instant)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=5)  # until no process holds standard error
    assert said == "" or said.startswith("hpcgym: interrupted; ")
    assert said.count("\n") == min(len(said), 1)
    assert running.returncode in (130, -signal.SIGINT)


def test_ctrl_c_before_a_command_begins_ends_it_silently() -> None:
    press = "import signal; signal.raise_signal(signal.SIGINT)"
    code = f"""
from hpcgym.cli.interruption import ended_by_ctrl_c
with ended_by_ctrl_c():
    {press}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_callback_of_which_python_ignores_exceptions_is_not_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Deleted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), raised_again():
        Deleted()
        time.sleep(10)
    assert time.monotonic() - began < 5
    assert capfd.readouterr().err == ""
