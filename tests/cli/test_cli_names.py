"""Names from files that would steer a terminal: in what commands print, draw and write."""

import csv
import io
import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.base.progress import shown, steps
from hpcgym.cli import app

Command = Callable[..., str]

NAME = "a\x1b[2J|b\nc\u202e\r"
SHOWN = r"a\x1b[2J|b\nc\u202e\r"

MACHINE = r"""
[[nodes]]
count = 4
cpus = 8
group = "a\u001b[2J|b\nc\u202e\r"

[[partitions]]
name = "a\u001b[2J|b\nc\u202e\r"
nodes = "0-3"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A machine and a table of jobs, with such a name each."""
    machine, table = tmp_path / "machine.toml", tmp_path / f"{NAME}.csv"
    machine.write_text(MACHINE)
    table.write_text("job_id,submit_time,run_time,requested_time,chunks\n1,0,50,60,8\n2,1,5,9,32\n")
    return machine, table


def all_printed(*arguments: object) -> tuple[str, str]:
    """Return what a command prints on standard output and standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], color=True)
    return result.stdout, result.stderr


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_commands_print_names_as_escapes(files: tuple[Path, Path], tmp_path: Path) -> None:
    machine, table = files
    options = ("--machine", machine, "--by", "partition", "-o", tmp_path / f"{NAME}o.csv")
    for form in ("table", "markdown"):
        out, err = all_printed("simulate", table, *options, "--format", form, "--force")
        assert is_harmless(out) and is_harmless(err)
        assert SHOWN.replace("|", r"\|").replace(r"\n", " ") in out or SHOWN in out
        assert f"{SHOWN}: 2 of 2 jobs kept\n" in out + err
        assert f"{SHOWN}o.csv\n" in out + err


def test_programs_get_names_as_files_have_them(files: tuple[Path, Path]) -> None:
    machine, table = files
    command = ("simulate", table, "--machine", machine, "--by", "partition", "--format")
    rows = list(csv.reader(io.StringIO(all_printed(*command, "csv")[0], newline="")))
    assert [row[0] for row in rows] == ["partition", NAME]
    assert [row["partition"] for row in json.loads(all_printed(*command, "json")[0])] == [NAME]


def test_a_terminal_is_not_steered_by_csv_either(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpcgym.cli.show.sys", Terminal)
    machine, table = files
    options = ("--machine", machine, "--by", "partition", "--format", "csv")
    assert is_harmless(all_printed("simulate", table, *options)[0])


class Terminal:
    """Stands for `sys`, with a terminal for standard output."""

    class stdout:
        """Claims to be a terminal."""

        @staticmethod
        def isatty() -> bool:
            """Claim it."""
            return True


def test_errors_are_one_line_whatever_the_names(
    files: tuple[Path, Path], refuse: Command, tmp_path: Path
) -> None:
    machine, table = files
    assert SHOWN in refuse("simulate", f"{table}x", "--machine", machine)
    assert is_harmless(refuse("simulate", tmp_path / f"{NAME}.swf"))
    other = tmp_path / "other.csv"
    other.write_text(
        table.read_text().replace("chunks\n", "chunks,partition\n").replace("8\n", "8,x\n")
    )
    message = refuse("simulate", other, "--machine", machine)
    assert is_harmless(message) and f"Allowed: {SHOWN}" in message


def test_a_check_of_a_log_prints_comments_as_escapes(tmp_path: Path) -> None:
    log = tmp_path / f"{NAME}.swf"
    fields = "1 0 -1 10 4 -1 -1 4 20 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    log.write_bytes(b"; Computer: \x1b[31mred\x9b\n; MaxProcs: 4\n" + fields.encode())
    out, err = all_printed("traces", "check", log)
    assert is_harmless(out + err)
    assert r"\x1b[31mred\x9b" in out and SHOWN in out


def test_progress_prints_names_as_escapes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpcgym.base.progress.LINE_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with shown(), steps(1, f"reading {NAME}") as work:
        work.advance()
        from hpcgym.base import progress

        assert progress._display is not None
        progress._display.look()
    said = capsys.readouterr().err
    assert f"reading {SHOWN}" in said and is_harmless(said)


@pytest.mark.long
def test_pictures_and_text_of_a_machine_show_names_as_escapes(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    machine = hpcgym.Machine.from_toml(files[0])
    schedule = hpcgym.simulate(hpcgym.load_workload(files[1], machine=machine))
    for kind in ("gantt", "usage"):
        schedule.plot(kind, tmp_path / f"{kind}.svg")
        ElementTree.parse(tmp_path / f"{kind}.svg")
        assert r"\x1b[2J" in (tmp_path / f"{kind}.svg").read_text()
