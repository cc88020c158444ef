"""`hpcgym --version --verbose`: what a report of a bug needs."""

from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app, versions
from hpcgym.core.compiler.jit import CACHE_FOLDER

FORM = Path(__file__).parents[2] / ".github" / "ISSUE_TEMPLATE" / "bug.yml"


def printed(*words: str) -> str:
    """Return what the command prints, without the ends of its lines."""
    done = CliRunner().invoke(app, words or ["--verbose", "--version"])
    assert done.exit_code == 0
    return " ".join(done.stdout.split())


def test_it_prints_versions_folders_threads_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCGYM_TRACES", "mine")
    said = printed()
    assert said == printed("--version", "--verbose")
    for name in ("numpy", "numba", "gymnasium"):
        assert f"{name} {metadata.version(name)}" in said
    assert f"hpcgym {hpcgym.__version__} in" in said
    assert "HPCGYM_TRACES mine" in said
    for name in ("Python", "system", "compiled kernels", "downloaded logs", "cores", "threads"):
        assert f" {name} " in said
    assert CACHE_FOLDER is not None and CACHE_FOLDER.name in said


def test_what_is_not_installed_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", missing)
    assert "torch not installed stable-baselines3 not installed" in printed()


def test_the_form_for_bugs_asks_for_what_it_prints() -> None:
    assert "`hpcgym --version --verbose`" in FORM.read_text(encoding="utf-8")


def test_it_is_asked_for_with_the_version_alone() -> None:
    assert printed("--version") == f"hpcgym {hpcgym.__version__}"
    done = CliRunner().invoke(app, ["--verbose", "agents", "list"])
    assert done.exit_code == 2
    assert "--verbose has no effect without --version" in done.stderr
