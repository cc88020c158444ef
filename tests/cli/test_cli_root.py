"""The command as a whole: what starts it, what an error and an interruption look like."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.cli.root import HouseGroup
from hpcgym.errors import OutputError

COMMANDS = [
    ["simulate"],
    ["evaluate"],
    ["cross-validate"],
    ["train"],
    ["tune"],
    ["traces"],
    ["traces", "list"],
    ["traces", "info"],
    ["traces", "download"],
    ["traces", "verify"],
    ["traces", "check"],
    ["agents"],
    ["agents", "list"],
    ["agents", "info"],
    ["scenarios"],
    ["scenarios", "list"],
    ["scenarios", "info"],
]


def test_version_is_the_package_s() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"hpcgym {hpcgym.__version__}\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_misspelt_command_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(app, ["simulat"])
    assert result.exit_code == 2
    assert "'simulate'" in result.stderr


@pytest.mark.parametrize("options", [[], ["weights", "--folds", "2"], ["--help"]])
def test_command_under_its_old_name_is_answered_with_the_new_one(options: list[str]) -> None:
    result = CliRunner().invoke(app, ["judge", *options])
    assert result.exit_code == 2
    assert result.stderr == "hpcgym: `hpcgym judge` is now called `hpcgym cross-validate`\n"


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


def test_interruption_exits_with_130_and_keeps_what_was_said() -> None:
    result = CliRunner().invoke(command_that_raises(KeyboardInterrupt()), ["run"])
    assert result.exit_code == 130
    assert result.stdout == "wrote a.csv\n"
    assert "interrupted" in result.stderr


def test_bug_is_not_dressed_up_as_an_error_of_the_user() -> None:
    result = CliRunner().invoke(command_that_raises(ZeroDivisionError("bug")), ["run"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_command_starts_without_loading_what_only_some_commands_need() -> None:
    heavy = ["numba", "pandas", "matplotlib", "torch", "stable_baselines3", "pygame"]
    code = f"""
import sys
from typer.testing import CliRunner
from hpcgym.cli import app
assert CliRunner().invoke(app, ["simulate", "--help"]).exit_code == 0
print([name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hpcgym", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"hpcgym {hpcgym.__version__}\n"
