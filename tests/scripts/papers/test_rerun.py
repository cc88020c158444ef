"""The command of a rerun: what it writes and says, and how it ends when it is cut off."""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from hpcgym.base.errors import TraceError
from papers.common.rerun import Output, parser_for, reproduce, run_script
from papers.common.resume import Part, run_parts

SCRIPTS = sorted(Path(__file__).parents[3].glob("scripts/reproduce_*.py"))

INTERRUPTED = "interrupted: finished parts are kept; the same command goes on from there"


class Demo(NamedTuple):
    """What a small rerun gave."""

    runs: pd.DataFrame
    facts: pd.DataFrame
    seconds: float


def demo_of(*parts: Part) -> Callable[..., Demo]:
    """Return a rerun of these parts."""

    def rerun(store: Path, executor: str | None = None) -> Demo:
        done = run_parts(parts, store, "demo", executor=executor)
        rows = [row for part in done.rows for row in part]
        return Demo(pd.DataFrame(rows), pd.DataFrame({"parts": [len(rows)]}), 7.0)

    return rerun


def part(name: str, work: Callable[[], object] = lambda: None) -> Part:
    """Return a part of one row, which does some work first."""

    def made() -> list[dict[str, str]]:
        work()
        return [{"part": name}]

    return Part(name, name, made)


def draw(figures: Demo, folder: Path) -> list[Path]:
    """Draw a picture of as many letters as there are rows."""
    path = folder / "figure.png"
    path.write_text("x" * len(figures.runs))
    return [path]


def script(rerun: Callable[[Path], Demo]) -> None:
    """Stand for a script."""
    reproduce(
        "demo_paper",
        "What it reruns.",
        rerun=rerun,
        tables=("runs", "facts"),
        draw=draw,
        page=lambda figures, command, seconds: f"{len(figures.runs)} rows, by {command}\n",
        beside=lambda figures: {"beside": figures.runs},
    )


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Return a function that says what the command line is, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *options: monkeypatch.setattr(sys, "argv", ["script", *options])


def test_all_is_written_and_named_and_nothing_unfinished_is_left(
    call: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    call("--page", "page-beside.md")
    script(demo_of(part("a"), part("b")))
    names = ("runs.csv", "facts.csv", "figure.png", "page.md", "beside.csv")
    folder = Path("runs/demo-paper")
    written = [*(folder / name for name in names), Path("page-beside.md"), Path("beside.csv")]
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [f"wrote {path}" for path in written]
    assert re.fullmatch(r"\d+ s; 7 s for all simulations, earlier runs included", last)
    assert {path.name for path in folder.iterdir()} == set(names)
    assert Path(folder, "runs.csv").read_text() == "part\na\nb\n"
    page = "2 rows, by python scripts/reproduce_demo_paper.py\n"
    table = Path(folder, "runs.csv").read_text()
    assert [path.read_text() for path in written[-4:]] == 2 * [page, table]


def test_interrupted_run_is_taken_up_where_it_was_cut_off(call: Callable[..., None]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    call("--output", "here")
    worked: list[str] = []
    first = part("a", lambda: worked.append("a"))
    with pytest.raises(SystemExit) as ended:
        script(demo_of(first, part("b", interrupt)))
    assert ended.value.code == INTERRUPTED
    assert [path.name for path in Path("here").iterdir()] == ["unfinished.sqlite"]
    script(demo_of(first, part("b", lambda: worked.append("b"))))
    assert worked == ["a", "b"]
    assert Path("here/runs.csv").read_text() == "part\na\nb\n"
    assert not Path("here/unfinished.sqlite").exists()


def test_failure_is_said_in_a_line_and_keeps_what_is_finished(call: Callable[..., None]) -> None:
    def fail() -> None:
        raise TraceError("no such log")

    call("--output", "here")
    with pytest.raises(SystemExit, match=r"^no such log$"):
        script(demo_of(part("a"), part("b", fail)))
    assert Path("here/unfinished.sqlite").exists()
    Path("file").touch()
    call("--output", "file")
    with pytest.raises(SystemExit, match=r"^file: cannot make this folder"):
        script(demo_of(part("a")))


def test_page_that_cannot_be_written_is_refused_before_the_work(call: Callable[..., None]) -> None:
    def refuse() -> None:
        raise AssertionError

    Path("file").touch()
    call("--page", "file/page.md")
    with pytest.raises(SystemExit, match=r"file: cannot make this folder"):
        script(demo_of(part("a", refuse)))


def test_script_in_stages_keeps_all_its_stores_until_the_last_is_done(
    call: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[list[str]] = []

    def work(output: Output, options: argparse.Namespace) -> str:
        for number in range(options.stages):
            output.store(f"unfinished-{number}").touch()
        output.write_tables(best=pd.DataFrame({"week": [1]}))
        kept.append(sorted(path.name for path in output.folder.iterdir()))
        return "the end"

    parser = parser_for("demo", None)
    parser.add_argument("--stages", type=int)
    call("--output", "here", "--stages", "2")
    run_script("demo", parser, work)
    assert kept == [["best.csv", "unfinished-0.sqlite", "unfinished-1.sqlite"]]
    assert [path.name for path in Path("here").iterdir()] == ["best.csv"]
    assert capsys.readouterr().out == "wrote here/best.csv\nthe end\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_what_it_reruns_and_where_it_writes(
    path: Path, call: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    call("--help")
    with pytest.raises(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    assert f"python scripts/{path.name} --output runs/" in shown
    assert "--page PAGE" in shown
