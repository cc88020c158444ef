"""Pages that `scripts/check.py --quick` runs: those that a change touches."""

import os
import subprocess
from pathlib import Path

import pytest

from changed import changed_files, pages_of

PAGES = {
    "README.md": "Type `python scripts/first.py`.",
    "docs/one.md": "Read [the code](../hpcgym/one.py), then [this](two.md#here).",
    "docs/two.md": "Names nothing.",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with pages, on a branch of its own."""
    files = {**PAGES, "scripts/first.py": "1", "hpcgym/one.py": "1", "hpcgym/two.py": "1"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "All")
    git(tmp_path, "checkout", "-q", "-b", "branch")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    """Run git as somebody."""
    who = {
        f"GIT_{role}_{key}": "a" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


@pytest.mark.parametrize(
    ("file", "pages"),
    [
        ("docs/two.md", {"docs/one.md", "docs/two.md"}),
        ("hpcgym/one.py", {"docs/one.md"}),
        ("scripts/first.py", {"README.md"}),
        ("hpcgym/two.py", set()),
        ("hpcgym/new file.py", set()),
    ],
)
def test_a_page_is_touched_by_its_text_and_by_files_that_it_names(
    project: Path, file: str, pages: set[str]
) -> None:
    (project / file).write_text("2")
    assert changed_files(project) == {file}
    assert pages_of({file}, PAGES, project) == pages
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "A change")
    assert changed_files(project) == {file}


def test_nothing_is_changed_on_a_new_branch_and_where_there_is_no_checkout(
    project: Path, tmp_path: Path
) -> None:
    assert changed_files(project) == set()
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / ".git").write_text("none")
    assert changed_files(bare) == set()
