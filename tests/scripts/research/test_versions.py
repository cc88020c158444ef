"""The table of versions that were run: its columns, and that pyproject.toml allows no others."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from research import versions

TABLE = versions.TABLE.read_text(encoding="utf-8")
LOWEST = f"{versions.PYTHONS[0]} lowest"


def test_lower_bounds_are_versions_that_were_run() -> None:
    run = versions.columns_of(TABLE)[LOWEST]
    bounds = versions.requirements()
    wrong = {
        name: f"pyproject.toml says {bound or 'no bound'}, {run.get(name) or 'none'} was run"
        for name, bound in bounds.items()
        if not bound or not run.get(name) or Version(bound) != Version(run[name])
    }
    assert not wrong, "run `python scripts/check_versions.py`, or raise the bound"


@pytest.mark.parametrize("which", versions.WHICH)
@pytest.mark.parametrize("python", versions.PYTHONS)
def test_each_python_that_is_named_has_passed(python: str, which: str) -> None:
    column = versions.columns_of(TABLE)[f"{python} {which}"]
    assert column["tests"].partition(" ")[2].startswith("passed"), column["tests"]


def test_a_column_is_written_anew_beside_the_others() -> None:
    cells = {**dict.fromkeys(versions.requirements(), "9"), "tests": "1 passed", "seconds": "2"}
    text = versions.with_column(TABLE, f"{versions.PYTHONS[1]} newest", cells)
    old, new = versions.columns_of(TABLE), versions.columns_of(text)
    assert new == old | {f"{versions.PYTHONS[1]} newest": cells}
    assert list(new) == [f"{p} {which}" for p in versions.PYTHONS for which in versions.WHICH]


def test_a_python_that_is_not_found_is_named_and_a_failure_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tests, written = {"lowest": "FAILED: 1 failed, 2 passed", "newest": "3 passed"}, []
    monkeypatch.setattr(versions, "need", lambda *command: "")
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(
        versions,
        "call",
        lambda *command: (2, "no such Python") if "3.99" in command else (0, "/a/python\n"),
    )
    monkeypatch.setattr(
        versions, "tested", lambda uv, python, which: (f"{python} {which}", {"tests": tests[which]})
    )
    monkeypatch.setattr(versions, "write", lambda title, column: written.append(title))
    monkeypatch.setattr(sys, "argv", ["check_versions.py", "3.99", "3.11"])
    check_versions = importlib.import_module("check_versions")
    assert check_versions.main() == 1
    assert written == ["/a/python lowest", "/a/python newest"]
    assert "3.99: untested. no such Python" in capsys.readouterr().out
    tests["lowest"] = "3 passed"
    assert check_versions.main() == 0


@pytest.mark.parametrize(
    ("code", "printed", "result"),
    [
        (0, "...\n3 passed, 1 skipped in 2.00s", "3 passed, 1 skipped"),
        (1, "F..\n1 failed, 2 passed in 2.00s", "FAILED: 1 failed, 2 passed"),
        (4, "ERROR: file or directory not found", "FAILED: no test ran"),
    ],
)
def test_a_column_has_what_was_installed_and_what_came_of_it(
    code: int, printed: str, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*command: str | Path, **variables: Path) -> tuple[int, str]:
        """Pin 7 of everything, or run the tests."""
        if "compile" in command:
            lines = [f"{name}==7.1  # via hpcgym" for name in versions.requirements()]
            Path(command[command.index("-o") + 1]).write_text("\n".join(lines))
        return (code, printed) if "pytest" in command else (0, "3.12\n")

    monkeypatch.setattr(versions, "call", call)
    title, column = versions.tested(Path("uv"), "python3", "newest")
    assert title == "3.12 newest"
    assert column["tests"] == result
    assert {column[name] for name in versions.requirements()} == {"7.1"}
