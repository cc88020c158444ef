"""What commands say of what is not there or is no number, and what their hints name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.packages import missing_packages, needing

Command = Callable[..., str]

READERS = {
    "simulate FILE -o OUT.csv": "nofile.txt",
    "simulate tiny --machine FILE -o OUT.csv": "nofile.toml",
    "simulate tiny --shapes FILE -o OUT.csv": "nofile.csv",
    "simulate tiny -p FILE:Name -o OUT.csv": "nofile.py",
    "plot FILE -o OUT.png": "nofile.txt",
    "report FILE -o OUT.html": "nofile.txt",
    "evaluate --log FILE -o OUT": "nofile.txt",
    "evaluate -s FILE -o OUT": "nofile.tml",
    "evaluate -a SAF,FILE -o OUT": "nofile.toml",
    "cross-validate SAF -s FILE -o OUT": "nofile.toml",
    "cross-validate FILE:Name -s tiny -o OUT": "nofile.py",
    "train -s FILE -o OUT": "nofile.toml",
    "tune -s FILE -o OUT": "nofile.toml",
    "record busy-v0 -a FILE -s tiny -o OUT": "nofile.toml",
    "suite run FILE -o OUT.json": "nofile.toml",
    "suite table FILE -o OUT.csv": "nofile.json",
    "suite verify FILE": "nofile.json",
    "traces import FILE -o OUT.swf": "nofile.txt",
    "traces check FILE": "nofile.txt",
    "traces statistics FILE": "nofile.txt",
    "traces machine FILE": "nofile.txt",
    "traces info FILE": "nofile.txt",
    "scenarios info FILE": "nofile.toml",
    "agents info FILE": "nofile.toml",
}
"""Commands that read a file, and the name of one that is not there."""


@pytest.mark.parametrize("command", READERS)
def test_a_file_that_is_not_there_is_said_before_all_else_with_the_nearest_name(
    refuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = READERS[command]
    near = name.replace("no", "No_")
    (tmp_path / near).touch()
    for taken in ("OUT.csv", "OUT.png", "OUT.html", "OUT.json", "OUT.swf"):
        (tmp_path / taken).touch()
    (tmp_path / "OUT").mkdir()
    (tmp_path / "OUT" / "runs.csv").touch()
    said = refuse(*command.replace("FILE", name).split())
    assert said == f"hpcgym: {name}: no such file; did you mean {near!r}?\n"
    said = refuse(*command.replace("FILE", f"sub/{name}").split())
    assert said == f"hpcgym: sub/{name}: no such file; there is no folder sub\n"


@pytest.mark.parametrize(
    ("command", "near", "listed_by"),
    [
        ("report KTHH -o OUT.html", "KTH-SP2-1996-2.1-cln", "hpcgym traces list"),
        ("evaluate -s synthetic-256-week -o OUT", "synthetic-256-weeks", "hpcgym scenarios list"),
        ("agents info SAFF", "SAF", "hpcgym agents list"),
        ("simulate tiny -p SFA", "SAF", "hpcgym agents list"),
        ("cross-validate tuned-netwrk", "tuned-network", "hpcgym cross-validate --help"),
    ],
)
def test_of_many_names_the_nearest_are_said_and_the_command_that_lists_all(
    refuse: Command, tmp_path: Path, command: str, near: str, listed_by: str
) -> None:
    (tmp_path / "OUT.html").touch()
    command = command.replace("OUT", str(tmp_path / "OUT"))
    said = refuse(*command.split())
    assert near in said and f"`{listed_by}`" in said
    assert len(said) < 320
    words = listed_by.split()[1:]
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("simulate tiny --processors 4k", "a whole number"),
        ("simulate tiny --processors=4k", "a whole number"),
        ("simulate tiny --alpha x", "a number"),
        ("simulate tiny --seed 1.5", "a whole number"),
        ("evaluate --jitter 1e3", "a whole number"),
        ("train -s tiny --minutes ten", "a number"),
        ("traces check tiny --processors 4k", "a whole number"),
        ("suite verify saf.json --weeks all", "a whole number"),
        ("advise --hold soon", "a whole number"),
        ("advise --apply --hold 0", "--hold must be a whole number from 1"),
    ],
)
def test_a_number_that_is_none_is_answered_in_one_line_with_what_came(
    refuse: Command, words: str, allowed: str
) -> None:
    said = refuse(*words.split())
    if "must" not in allowed:
        flag, came = words.replace("=", " ").split()[-2:]
        assert said == f"hpcgym: {flag} {came!r}: allowed: {allowed}\n"
    assert allowed in said


def test_all_missing_packages_are_named_at_once_with_the_extras_that_have_them(
    refuse: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("torch", "sb3_contrib", "minari", "PIL", "pyarrow", "ray"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "hpcgym train needs torch and sb3-contrib, which are not installed" in refuse(
        "train", "-s", "tiny"
    )
    said = refuse("record", "a-v0", "-a", "SAF", "-s", "tiny", "--on", "ray")
    assert "needs minari, pyarrow, pillow and ray, which are not installed" in said
    assert "pip install 'hpcgym[record,cluster]'" in said
    assert "python3 scripts/install.py record,cluster" in said
    said = refuse("simulate", "tiny", "-o", "x.parquet")
    assert "pip install 'hpcgym[tables]', in a checkout: python3 scripts/install.py tables" in said


def test_a_package_that_is_there_and_cannot_be_imported_is_said() -> None:
    assert missing_packages("this", ["math"]) == ""
    words = r"this needs math, which cannot be imported \(broken\)"
    with pytest.raises(ValueError, match=words), needing("this", "math", error=ValueError):
        raise ImportError("broken")
