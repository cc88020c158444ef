"""Options that commands share: one name, one effect, and no option that has none."""

from __future__ import annotations

import bz2
import lzma
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hpcgym import load_workload, simulate
from hpcgym.base.errors import TraceError
from hpcgym.cli import app
from hpcgym.core.backfill import MODES
from hpcgym.trace import find_trace

Command = Callable[..., str]

HEADER = "; MaxProcs: 4\n"
JOBS = """\
 1 100 -1  10  4 -1 -1  4  20 -1  1  1 -1 -1 -1  1 -1 -1
 2 105 -1  30  4 -1 -1  4  20 64  1  1 -1 -1 -1  2  1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "mine.swf"
    path.write_text(HEADER + JOBS)
    return path


@pytest.fixture
def weeks(tmp_path: Path) -> Path:
    """A log of three whole weeks after its first, two jobs at once every day."""
    lines = [HEADER.strip()]
    for day in range(30):
        for job in (1, 2):
            lines.append(f"{2 * day + job} {86400 * day} -1 {99 * job} 3 -1 -1 3 900 " + "-1 " * 9)
    path = tmp_path / "weeks.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def stderr(*arguments: object, given: bytes = b"") -> str:
    """Run the command, expect success and return what it printed on standard error."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], input=given)
    assert result.exit_code == 0, result.output
    return result.stderr


def test_a_correction_counts_where_jobs_may_outlive_their_requests(run: Command) -> None:
    words = ("--correction", "reqtime", "--no-kill")
    assert "kill no, estimates requested, correction reqtime" in run("simulate", "tiny", *words)


SCHEDULER = ("--no-kill", "--backfill", "conservative", "--estimates", "doubled")
SAME = "backfill conservative, threshold 60, kill no, estimates doubled"


@pytest.mark.long
def test_commands_share_options_and_say_what_they_ran_under(run: Command, weeks: Path) -> None:
    words = (*SCHEDULER, "--threshold", 60)
    assert f"settings: policy SAF, {SAME}" in run("simulate", weeks, "-p", "SAF", *words)
    assert f"settings: log weeks, {SAME}" in run("evaluate", "--log", weeks, "-a", "SAF", *words)
    quick = ("--no-baselines", "--jitter", 0, "--replicas", 0)
    judged = run("cross-validate", "SAF", "--log", weeks, *quick, *words)
    assert f"settings: log weeks, {SAME}" in judged
    assert "weeks: 3 weeks" in judged


def test_a_scenario_says_its_settings(run: Command) -> None:
    shown = run("evaluate", "-s", "tiny", "-a", "FCFS")
    assert re.search(r"settings: scenario tiny, backfill easy, threshold none, .*seed 0\n", shown)


@pytest.mark.long
def test_the_scheduler_of_an_own_log_reaches_the_runs(
    run: Command, weeks: Path, tmp_path: Path
) -> None:
    found = []
    for folder, words in (("killed", ()), ("alive", ("--no-kill", "--max-request", 100))):
        capped = ("--max-request", 100, "--weeks", 1, "-o", tmp_path / folder)
        run("evaluate", "--log", weeks, "-a", "SAF", *capped, *words)
        found.append(pd.read_csv(tmp_path / folder / "runs.csv")["mean_turnaround_time"].mean())
    assert found[0] == (99 + 199) / 2
    assert found[1] == (99 + 297) / 2


@pytest.mark.long
def test_work_lost_by_killing_is_a_warning_and_not_kept(run: Command, log: Path) -> None:
    """Job 2 loses 10 s of the 40 s of both, on as many processors."""
    said = "1 jobs ran longer than they requested; killing them at the request takes 25.0%"
    for command in (("simulate", log), ("evaluate", "--log", log, "-a", "SAF")):
        (warning,) = stderr(*command).splitlines()
        assert warning.startswith("hpcgym: warning: mine: ") and said in warning
        assert "--no-kill" in warning
        assert stderr(*command, "--no-kill") == ""
    assert "run over request" not in run("simulate", log)
    assert f"warning: mine: {said}" in run("traces", "check", log)


def test_what_a_log_states_and_no_simulation_uses_is_one_line(run: Command, log: Path) -> None:
    (line,) = re.findall("ignored .*", run("simulate", log))
    assert "partitions (2), requested memory (1), dependencies (1)" in line
    assert "--machine" in line


@pytest.mark.parametrize("pack", [bytes, bz2.compress, lzma.compress])
def test_a_log_comes_from_standard_input(pack: Callable[[bytes], bytes]) -> None:
    for command in (
        ("simulate", "-"),
        ("evaluate", "-a", "SAF", "--log", "-"),
        ("traces", "check", "-"),
    ):
        words = [str(word) for word in command]
        result = CliRunner().invoke(app, words, input=pack((HEADER + JOBS).encode()))
        assert result.exit_code == 0 and "stdin: 2 of 2 jobs kept" in result.stdout


@pytest.mark.long
def test_a_log_comes_through_a_pipe(tmp_path: Path) -> None:
    rows = ["JobID|State|Submit|Start|End|NCPUS", "1|COMPLETED|10|20|90|4"]
    for words in (
        ["simulate"],
        ["traces", "check"],
        ["traces", "import", "-o", tmp_path / "a.csv"],
    ):
        pipe = tmp_path / f"{words[-1]}.fifo" if len(words) < 3 else tmp_path / "b.fifo"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=["\n".join(rows)], daemon=True)
        writer.start()
        result = CliRunner().invoke(app, [*map(str, words), str(pipe)])
        assert result.exit_code == 0, result.stderr
        with pytest.raises(TraceError, match="is no file that can be read again"):
            find_trace(pipe)
    result = CliRunner().invoke(
        app, ["traces", "import", "-", "-o", str(tmp_path / "c.csv")], input="\n".join(rows)
    )
    assert result.exit_code == 0
    assert (tmp_path / "c.csv").read_text() == (tmp_path / "a.csv").read_text()


@pytest.mark.parametrize("command", ["simulate", "evaluate", "cross-validate"])
def test_help_names_every_backfilling_mode_and_cuts_no_word(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    shown = CliRunner().invoke(app, [command, "--help-all"]).stdout
    assert "…" not in shown
    assert {*MODES, "gang"} <= set(re.findall(r"[a-z-]+", shown))


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_all_columns_are_written_where_asked_for(run: Command, tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    run("simulate", "tiny", "-p", "SAF", "--columns", "all", "-o", tmp_path / name)
    read = pd.read_parquet if name.endswith(".parquet") else pd.read_csv
    expected = simulate(load_workload("tiny"), "SAF").to_frame()
    pd.testing.assert_frame_equal(read(tmp_path / name), expected, check_dtype=False)


def test_resume_and_force_mean_the_same_in_every_command_that_goes_on() -> None:
    commands = {name: one.params for name, one in get_command(app).commands.items()}
    told = {
        name: [getattr(one, "help", "") for one in params if one.name in ("resume", "force")]
        for name, params in commands.items()
        if "resume" in [one.name for one in params]
    }
    every = {"evaluate", "cross-validate", "train", "tune", "record", "report"}
    assert set(told) == every & set(commands)
    assert len({tuple(texts) for texts in told.values()}) == 1
