"""Three rooms are each deleted with one folder and its tests, and what is left works."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import hpcgym
from hpcgym.base.registry import has_room
from hpcgym.cli.root import ROOMS, app

ROOT = Path(__file__).parents[1]
DELETED = [room for room in ("site", "agent/learn", "evaluation/suite") if has_room(room)]
EVERYDAY = ["pytest", "-q", "-m", "not slow and not long", "-n", "2", "--dist", "worksteal"]
PAGES = ["tests/test_readme.py", "tests/test_notebooks.py", "tests/test_moved.py"]
"""Tests of pages, which whoever deletes a room writes anew."""

MAY_NAME = re.compile(r"hpcgym/(?:cli/|agent/trainers\.py)")
"""Commands, which are not offered without their room, and the list that asks for one."""

IMPORT = re.compile(r"^ *(?:from|import) ([\w.]+)(?: import (\([^)]*\)|.*))?", re.MULTILINE)

PROGRAM = """
import importlib, json, os, sys
from pathlib import Path
import gymnasium, matplotlib, numba, pandas, typer.testing  # once for all copies

def try_out(copy):
    sys.path.insert(0, copy)
    sys.modules["torch"] = None  # it takes longer than all the rest
    import hpcgym
    assert Path(hpcgym.__file__).is_relative_to(copy)
    assert [getattr(hpcgym, name).__name__ for name in hpcgym.__all__] == hpcgym.__all__
    assert {*hpcgym.__all__} < {*dir(hpcgym)}
    for path in sorted(Path(copy).glob("hpcgym/**/*.py")):
        name = ".".join(path.relative_to(copy).with_suffix("").parts)
        if path.stem not in ("__main__", "sandbox_child"):
            try:
                importlib.import_module(name.removesuffix(".__init__"))
            except (ImportError, hpcgym.HpcgymError) as error:
                assert "torch" in str(error), f"{name}: {error}"
    app = hpcgym.cli.root.app
    commands = sorted(typer.main.get_command(app).commands)
    for words in ([], *([command] for command in commands)):
        done = typer.testing.CliRunner().invoke(app, [*words, "--help"])
        assert done.exit_code == 0, words
    env = gymnasium.make("HPCBatch-v0", scenario="tiny", action="order")
    env.reset(seed=0)
    assert len(env.step(env.action_space.sample())) == 5
    found = hpcgym.evaluate(["FCFS", "SAF"], "tiny", progress=False)
    print(json.dumps([commands, found.frame.to_json()]), flush=True)

for copy in sys.argv[1:]:
    if not os.fork():
        try_out(copy)
        os._exit(0)
    os.wait()
"""


@pytest.mark.long
def test_without_a_room_the_package_imports_offers_and_runs_the_rest(tmp_path: Path) -> None:
    for room in DELETED:
        copy = tmp_path / room
        shutil.copytree(ROOT / "hpcgym", copy / "hpcgym")
        shutil.rmtree(copy / "hpcgym" / room)
        for shelf in ("agents", "scenarios", "traces"):
            (copy / shelf).symlink_to(ROOT / shelf)
    copies = [str(tmp_path / room) for room in DELETED]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *copies],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert not done.stderr, done.stderr
    every = set(get_command(app).commands)
    expected = hpcgym.evaluate(["FCFS", "SAF"], "tiny", progress=False).frame.to_json()
    for room, line in zip(DELETED, done.stdout.splitlines(), strict=True):
        gone = {name for name, needs in ROOMS.items() if Path(needs).is_relative_to(room)}
        commands, found = json.loads(line)
        assert gone and set(commands) == every - gone
        assert found == expected


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, and what it imports of them, at once or later."""
    names = set()
    for module, listed in IMPORT.findall(path.read_text(encoding="utf-8")):
        names |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", listed))}
    return names


def importing(gone: set[str], *folders: str) -> set[Path]:
    """Return the files of some folders that import modules that are gone, or what is in these."""
    return {
        path.relative_to(ROOT)
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if any(f"{name}.".startswith(f"{module}.") for name in imports(path) for module in gone)
    }


def scripts_without(module: str) -> set[Path]:
    """Return the scripts that go with a room, and their tests: what imports it, and each other."""
    gone, files = {module}, set()
    while more := importing(gone, "scripts", "tests/scripts") - files:
        files |= more
        gone |= {".".join(path.with_suffix("").parts[1:]) for path in more}
    return files


@pytest.mark.parametrize("room", DELETED)
def test_nothing_else_imports_a_room_but_what_asks_whether_it_is_there(room: str) -> None:
    module = f"hpcgym.{room.replace('/', '.')}"
    inside = (Path("hpcgym") / room, Path("tests") / room, Path("tests/scripts"))
    others = {
        path
        for path in importing({module}, "hpcgym", "tests")
        if not any(path.is_relative_to(folder) for folder in inside)
    }
    assert not {path for path in others if not MAY_NAME.match(path.as_posix())}


@pytest.mark.slow
@pytest.mark.parametrize("room", DELETED)
def test_without_a_room_the_everyday_tests_of_what_is_left_pass(room: str, tmp_path: Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    gone = scripts_without(f"hpcgym.{room.replace('/', '.')}")
    for file in map(Path, filter(None, files.stdout.split("\0"))):
        is_of_room = any(file.is_relative_to(Path(top) / room) for top in ("hpcgym", "tests"))
        if not is_of_room and file not in gone:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, tmp_path / file)
    done = subprocess.run(
        [sys.executable, "-m", *EVERYDAY, *(f"--ignore={page}" for page in PAGES)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
