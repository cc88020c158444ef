"""What every test of the command needs: run it, and see it refuse."""

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from hpcgym.cli import app


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that runs the command, expects success and returns what it printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def succeed(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    return succeed


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that runs the command, expects one line of error and returns it."""
    monkeypatch.setenv("COLUMNS", "200")

    def fail(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit)
        assert result.stderr.startswith("hpcgym: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return fail
