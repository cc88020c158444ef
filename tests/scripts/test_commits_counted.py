"""Commits are counted by the modules of the package that they touched."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "commits_counted.py"

pytestmark = pytest.mark.long  # starts processes


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script in a folder, where there is a history or none."""
    (folder / "scripts").mkdir(exist_ok=True)
    script = shutil.copy(SCRIPT, folder / "scripts")
    return subprocess.run([sys.executable, script, *words], capture_output=True, text=True)


def commit(folder: Path, message: str, **files: str) -> None:
    """Write modules, and pages where a name begins with "page", and commit them."""
    for name, text in files.items():
        path = folder / ("docs" if name.startswith("page") else "hpcgym") / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    who = ("-c", "user.name=ann", "-c", "user.email=ann@localhost")
    subprocess.run(["git", "add", "hpcgym", "docs"], cwd=folder, check=True)
    subprocess.run(["git", *who, "commit", "-qm", message], cwd=folder, check=True)


def test_modules_that_are_new_or_changed_are_counted_apart_from_other_files(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path, "The first", mode="1", page_of_it="1")
    commit(tmp_path, "An event", mode="2", event="1", part="1", page_of_it="2", page_of_events="1")
    header, _, *rows = run(tmp_path, "--grep", "event").stdout.splitlines()
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert "modules" in header and len(rows) == 1
    assert (cells[0], *cells[2:]) == ("An event", "3", "2", "2")
    by_hash = run(tmp_path, cells[1].strip("`")).stdout
    assert by_hash.splitlines()[2:] == rows


def test_a_folder_without_history_is_said_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "this needs the repository with its history; fatal: not a git repo" in done.stderr
