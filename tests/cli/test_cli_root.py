"""The command as a whole: what starts it, what an error and an interruption look like."""

import csv
import errno
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import hpcgym
from hpcgym.base.errors import OutputError
from hpcgym.base.registry import has_room
from hpcgym.cli import app
from hpcgym.cli.root import ROOMS, HouseGroup
from hpcgym.cli.short_help import SHORT_HELP
from hpcgym.cli.show import complain

ROOT = typer.main.get_command(app).commands
GONE = {name for name, room in ROOMS.items() if not has_room(room)}
COMMANDS = [
    words
    for name, command in ROOT.items()
    for words in ([name], *([name, part] for part in getattr(command, "commands", ())))
]


def test_version_is_the_package_s() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"hpcgym {hpcgym.__version__}\n")


@pytest.mark.parametrize("word", ["--help", "--help-all"])
@pytest.mark.parametrize("name", sorted(SHORT_HELP.keys() - GONE))
def test_help_shows_options_of_every_command_and_cuts_no_word(
    name: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    command = ROOT[name]
    shown = CliRunner().invoke(app, [name, word], env={"COLUMNS": "80"}).stdout
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 80
    offered = {text for option in command.params for text in option.opts if text[:2] == "--"}
    assert len(offered & set(re.findall(r"--[a-z-]+", shown))) >= min(len(offered), 8)


def test_there_are_no_more_commands_than_a_person_can_look_through() -> None:
    assert len(ROOT) <= 14
    single = {name for name in ROOT if not hasattr(ROOT[name], "commands")}
    assert SHORT_HELP.keys() - GONE == single


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_whose_options_it_has(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "120"}).stdout
    (example,) = re.findall(r"Example: hpcgym (.+)", shown)
    words = shlex.split(example)
    assert words[: len(command)] == command
    every = CliRunner().invoke(app, [*command, "--help-all"], env={"COLUMNS": "120"}).stdout
    for word in words:
        assert not word.startswith("-") or word in (every or shown)


@pytest.mark.long
def test_help_shows_the_ten_options_that_people_use_and_all_where_asked() -> None:
    few, every = (
        set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["evaluate", word]).stdout))
        for word in ("--help", "--help-all")
    )
    assert {"--agents", "--weeks", "--on", "--all"} < few - {"--help-all"} < every
    assert {"--event-semantics", "--max-request"} < every - few
    for name, short in SHORT_HELP.items():
        shown = short.shown.split()
        assert len(shown) <= 10 and set(shown) <= options_of(name), name


def options_of(command: str) -> set[str]:
    """Return the options of a command."""
    every = CliRunner().invoke(app, [command, "--help-all"], env={"COLUMNS": "120"}).stdout
    return set(re.findall(r"--[a-z-]+", every))


def test_help_fills_the_lines_that_there_are(run: Callable[..., str]) -> None:
    assert "`hpcgym evaluate --agents runs/ppo/NAME.toml` runs it" in run("train", "--help")


def test_misspelt_command_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(app, ["simulat"])
    assert result.exit_code == 2
    assert "'simulate'" in result.stderr


def command_that_raises(error: BaseException) -> typer.Typer:
    broken = typer.Typer(cls=HouseGroup, pretty_exceptions_enable=False)

    @broken.command("run")
    def run() -> None:
        typer.echo("wrote a.csv")
        raise error

    @broken.callback()
    def root() -> None: ...

    return broken


def test_error_is_one_line_on_stderr_and_exit_code_2() -> None:
    broken = command_that_raises(OutputError("a.csv: exists already"))
    result = CliRunner().invoke(broken, ["run"])
    assert result.exit_code == 2
    assert result.stderr == "hpcgym: a.csv: exists already\n"


def test_a_terminal_gets_an_error_in_lines_that_end_between_words_and_not_in_quotes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/{'folder/' * 8}log.swf"
    text = f"{path}: users' jobs, got 'a b c d', 'e f': allowed\xa0are {', '.join(['SAF'] * 9)}"
    monkeypatch.setenv("COLUMNS", "30")
    complain(text)
    assert capsys.readouterr().err == f"hpcgym: {text}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    complain(text)
    lines = capsys.readouterr().err.splitlines()
    assert " ".join(lines) == f"hpcgym: {text}"
    assert f"{path}:" in lines and max(len(line) for line in lines if line[0] != "/") <= 30
    assert any("'a b c d'" in line for line in lines) and any("'e f'" in line for line in lines)


def test_interruption_exits_with_130_and_keeps_what_was_said() -> None:
    result = CliRunner().invoke(command_that_raises(KeyboardInterrupt()), ["run"])
    assert result.exit_code == 130
    assert result.stdout == "wrote a.csv\n"
    assert "interrupted" in result.stderr


def test_bug_is_not_dressed_up_as_an_error_of_the_user() -> None:
    result = CliRunner().invoke(command_that_raises(ZeroDivisionError("bug")), ["run"])
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.long
def test_command_starts_without_loading_what_only_some_commands_need() -> None:
    heavy = ["numba", "pandas", "matplotlib", "torch", "stable_baselines3", "pygame"]
    code = f"""
import sys
from collections.abc import Callable
from pathlib import Path
from typer.testing import CliRunner
from hpcgym.cli import app
assert CliRunner().invoke(app, ["simulate", "--help"]).exit_code == 0
print([name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.long
def test_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hpcgym", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"hpcgym {hpcgym.__version__}\n"


TABLES = [
    ["simulate", "tiny"],
    ["evaluate", "-s", "tiny", "-a", "FCFS"],
    ["cross-validate", "SPF", "-s", "tiny", "--replicas", "1", "--no-baselines"],
    ["agents", "list"],
    ["agents", "info", "SAF"],
    ["scenarios", "list"],
    ["scenarios", "info", "tiny"],
    ["traces", "list"],
    ["traces", "info", "tiny"],
    ["traces", "verify", "tiny"],
    ["traces", "check", "tiny"],
]


@pytest.mark.long
@pytest.mark.parametrize("command", TABLES, ids=" ".join)
def test_every_table_can_be_read_by_programs(command: list[str]) -> None:
    as_json = CliRunner().invoke(app, [*command, "--format", "json"])
    found = json.loads(as_json.stdout)
    as_csv = CliRunner().invoke(app, [*command, "--format", "csv"])
    lines = list(csv.reader(as_csv.stdout.splitlines()))
    assert len({len(line) for line in lines}) == 1
    if isinstance(found, list):
        assert lines[0] == list(found[0])
        assert len(lines) == 1 + len(found)
    else:
        assert [line[0] for line in lines] == ["key", *found]
    markdown = CliRunner().invoke(app, [*command, "--format", "markdown"]).stdout.splitlines()
    assert len(markdown) == len(lines) + 1
    assert markdown[1] == "|" + "---|" * len(lines[0])


REPORTS = (["simulate", "tiny"], ["traces", "check", "tiny"])
"""What prints a report of the log besides."""


@pytest.mark.long
@pytest.mark.parametrize("command", [one for one in TABLES if one not in REPORTS], ids=" ".join)
@pytest.mark.parametrize("columns", [40, 80])
def test_no_table_is_wider_than_the_terminal(
    command: list[str], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    printed = CliRunner().invoke(app, command).stdout.splitlines()
    whole = ("/", "settings: ")  # a path is never broken in a name, settings are in one line
    tables = [line for line in printed if not any(one in line for one in whole)]
    assert max(map(len, tables)) <= columns


def test_a_full_disk_elsewhere_is_not_blamed_on_standard_output() -> None:
    own = typer.Typer(cls=HouseGroup)

    @own.command("fill")
    def fill() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    own.callback()(lambda: None)
    said = CliRunner().invoke(own, ["fill"])
    assert (said.exit_code, said.stderr) == (2, "hpcgym: No space left on device\n")


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device on this system")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hpcgym", "agents", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "hpcgym: standard output: No space left on device\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "closed", "said"),
    [
        ("agents list", ">&-", ""),
        ("simulate - --format csv", "<&-", "hpcgym: standard input is closed"),
    ],
)
def test_closed_streams_cost_no_traceback(words: str, closed: str, said: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m hpcgym {words} {closed}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert done.returncode == (2 if said else 0)
    assert done.stderr.startswith(said) and "Traceback" not in done.stderr
