"""What commands say of what is not there or is no number, and what their hints name."""

from __future__ import annotations

import ast
import gzip
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import hpcgym
from hpcgym.base.packages import missing_packages, needing
from hpcgym.base.registry import has_room
from hpcgym.cli import app
from hpcgym.cli.root import ROOMS

Command = Callable[..., str]
SLURM = Path(__file__).parents[1] / "data" / "slurm"

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


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("plot tiny", "hpcgym plot needs --output or -o (The picture: .png, .svg or .pdf)"),
        ("traces import a.txt", "hpcgym traces import needs --output or -o (Where to: .csv or"),
        ("train", "hpcgym train needs --scenario or -s (A name or a .toml"),
        ("simulate", "hpcgym simulate needs LOG (A file in SWF"),
    ],
)
def test_what_a_command_needs_and_did_not_get_is_said_in_one_line(
    refuse: Command, words: str, needs: str
) -> None:
    said = refuse(*words.split())
    command = needs.partition(" needs ")[0]
    assert said.startswith(f"hpcgym: {needs}") and f"; `{command} --help` says more" in said
    assert said.count("\n") == 1


def test_a_file_that_is_not_there_is_said_before_a_package(
    refuse: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refuse("simulate", "no.parquet") == "hpcgym: no.parquet: no such file\n"


def test_what_a_search_needs_is_named_at_once_before_it_begins(
    refuse: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("torch", "cma"):
        monkeypatch.setitem(sys.modules, module, None)
    said = refuse("tune", "-s", "synthetic-256-weeks", "-o", tmp_path / "out")
    assert "the trainer TUNED-NET needs torch and cma, which are not installed" in said
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.txt").touch()
    said = refuse("traces", "import", tmp_path / "a.txt", "-o", tmp_path / "a.parquet")
    assert said.startswith("hpcgym: hpcgym traces import needs pyarrow, which is not installed")


def test_a_hint_names_a_file_as_a_shell_takes_it(refuse: Command) -> None:
    said = refuse("simulate", "tiny", "-p", "my model.zip")
    assert "`hpcgym evaluate --agents 'my model.zip'` runs it" in said


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


LINES = "".join(
    f"{n} {60 * n} {5 * n} {100 + n} 2 -1 -1 2 900 -1 1 7 1 -1 -1 -1 -1 -1\n" for n in range(1, 101)
)
LOG = f"; MaxProcs: 4\n{LINES}"


@pytest.mark.parametrize("words", ["simulate FILE", "report FILE -o OUT.html"])
def test_a_log_that_is_cut_in_the_middle_of_a_line_is_refused_by_every_command(
    refuse: Command, tmp_path: Path, words: str
) -> None:
    log = tmp_path / "cut.swf"
    log.write_text(LOG[:-24])
    said = refuse(*words.replace("FILE", str(log)).replace("OUT", str(tmp_path / "out")).split())
    assert re.fullmatch(rf"hpcgym: {log}:101: \d+ fields where the format has 18\n", said)
    assert [file.name for file in tmp_path.iterdir()] == ["cut.swf"]


@pytest.mark.parametrize("name", ["cut.swf.gz", "cut.txt.gz"])
@pytest.mark.parametrize(
    "words", ["simulate FILE", "report FILE -o OUT.html", "traces check FILE", "traces import FILE"]
)
def test_a_packed_log_that_is_cut_is_refused_with_its_line_by_every_command(
    refuse: Command, tmp_path: Path, words: str, name: str
) -> None:
    text = LOG if ".swf" in name else (SLURM / "sacct-allocations.txt").read_text()
    log = tmp_path / name
    log.write_bytes(gzip.compress(text.encode())[:-30])
    words += " -o OUT.csv" if "import" in words else ""
    zone = [] if ".swf" in name else ["--timezone", "UTC"]
    said = refuse(
        *words.replace("FILE", str(log)).replace("OUT", str(tmp_path / "o")).split(), *zone
    )
    assert re.fullmatch(rf"hpcgym: {log}:\d+: the gzip stream ends early here\n", said)


def test_statistics_say_how_jobs_were_cleaned_and_requests_replaced(
    run: Command, tmp_path: Path
) -> None:
    log = tmp_path / "mine.swf"
    log.write_text(LOG.replace(" 900 ", " -1 ", 3))
    assert "no requested time: replaced by the run time" in run("traces", "statistics", log)


def test_counts_of_jobs_that_met_nothing_are_not_printed(run: Command, tmp_path: Path) -> None:
    log = tmp_path / "mine.swf"
    log.write_text(LOG)
    assert "zero run time" not in run("simulate", log)
    log.write_text(LOG.replace(" 101 2 ", " 0 2 ", 1))
    assert "zero run time  1 (these have no slowdown)" in run("simulate", log)


WRITERS = {
    "simulate FILE -o OUT/a.csv": "OUT/a.csv: writing failed",
    "simulate FILE -o OUT/a.parquet": "OUT/a.parquet: writing failed",
    "simulate FILE -o OUT/a.swf.gz": "OUT/a.swf.gz: writing failed",
    "plot FILE -o OUT/a.png": "OUT/a.png: writing failed",
    "traces import FILE -o OUT/a.csv": "OUT/a.csv: writing failed",
    "report FILE -o OUT/a.html": "OUT/a.unfinished.sqlite",
    "evaluate -s tiny -a FCFS -o OUT": "OUT/unfinished.sqlite",
    "cross-validate SPF -s tiny --replicas 1 --no-baselines -o OUT": "OUT/unfinished.sqlite",
    "tune -s synthetic-256-weeks --weeks 1 --trainer tuned-weights --evaluations 2 -o OUT": "OUT/",
    "suite run SAF --part bundled -o OUT/a.json": "OUT/a.json.unfinished.sqlite",
    "record busy-v0 -a SAF -s tiny -o OUT": "OUT/",
    "train -s tiny --steps 10 -o OUT": "OUT",
}
"""Commands that write, and what they say where the disk is full."""

NO_SPACE = r"No space left on device|database or disk is full|errno 28"


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system that takes names, and no byte more."""
    folder = tmp_path_factory.mktemp("full")
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no file system can be mounted")
    (folder / "fill").write_bytes(bytes(64 * 1024))
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("words", WRITERS)
def test_a_full_disk_is_one_line_that_names_the_file(
    refuse: Command, tmp_path: Path, full_disk: Path, words: str
) -> None:
    if words.startswith("train"):
        pytest.importorskip("torch")
    log = tmp_path / "mine.swf"
    log.write_text(LOG)
    said = refuse(*words.replace("FILE", str(log)).replace("OUT", str(full_disk)).split())
    assert WRITERS[words].replace("OUT", str(full_disk)) in said
    assert re.search(NO_SPACE, said)


def options_by_command() -> dict[str, dict[str, bool]]:
    """Return the options of each command, and whether each takes a value."""
    found = {}
    for name, command in get_command(app).commands.items():
        for leaf, one in getattr(command, "commands", {"": command}).items():
            found[f"{name} {leaf}".strip()] = {
                flag: not getattr(option, "is_flag", False)
                for option in one.params
                for flag in (*option.opts, *option.secondary_opts)
            }
    return found


OPTIONS = options_by_command()
OTHERS = {"sinfo", "sacct", "scontrol", "squeue", "install.py", "git"}
"""Programs whose options messages name too."""

OF_ALL = ("--help", "--processes", "--version", "--verbose")
"""Options of hpcgym itself, and of scripts."""

HINT = re.compile(r"(?:(?<![\w-])([\w.-]+(?: [a-z]+)?) )?(--[a-z][a-z-]+)(?:[ =]([\w.:'{<]+))?")


def wrong_hints(text: str, own: str | None) -> list[str]:
    """Return the options in a text that the command named before them, or else `own`, lacks.

    One that takes a value must have one where a command is named with it.
    """
    wrong = []
    for before, flag, value in HINT.findall(text):
        words = before.split()
        if OTHERS & set(re.findall(r"[\w.]+", text)) or flag in OF_ALL:
            continue
        named = next((one for one in (before, *words[::-1]) if one in OPTIONS), None)
        among = [OPTIONS[named]] if named else [OPTIONS[own]] if own else list(OPTIONS.values())
        having = [options for options in among if flag in options]
        is_cut = text.rstrip().endswith(flag)  # of a text with a value to be filled in
        if not having or (named and having[0][flag] and not value and not (own is None and is_cut)):
            wrong.append(f"{before} {flag} {value}")
    return wrong


def messages() -> Iterator[tuple[str, str]]:
    """Yield every text of the package that names an option and is no documentation."""
    for path in sorted((Path(hpcgym.__file__).parent).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in alone and " --" in text:
                yield f"{path.name}:{node.lineno}", text


@pytest.mark.long
def test_options_that_messages_name_exist_in_the_command_that_is_named_with_them() -> None:
    if not all(map(has_room, ROOMS.values())):
        pytest.skip("a folder of the package is deleted, and messages name its command")
    wrong = {where: found for where, text in messages() if (found := wrong_hints(text, None))}
    assert wrong == {}


ODD = (
    "1 0 -1 100 4 -1 -1 4 20 64 1 1 -1 -1 -1 1 -1 -1\n"
    "2 5 -1 90 4 -1 -1 4 20 64 1 1 -1 -1 -1 2 1 -1\n"
)
"""Jobs beyond their request, in partitions, after another."""


@pytest.mark.parametrize("head", ["", "; MaxProcs: 4\n"])
@pytest.mark.parametrize(
    "words",
    [
        *("simulate FILE", "simulate FILE --dependencies start", "plot FILE -o OUT.png"),
        *("report FILE -o OUT.html", "evaluate --log FILE -a FCFS", "traces check FILE"),
        *("traces statistics FILE", "traces import FILE -o OUT.csv"),
    ],
)
def test_options_that_a_command_prints_are_its_own_or_named_with_theirs(
    tmp_path: Path, words: str, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    log = tmp_path / "mine.swf"
    log.write_text(head + ODD)
    given = words.replace("FILE", str(log)).replace("OUT", str(tmp_path / "out")).split()
    result = CliRunner().invoke(app, given)
    assert result.exit_code in (0, 2)
    own = " ".join(given[:2]) if given[0] == "traces" else given[0]
    assert wrong_hints(result.output, own) == []
