"""What is installed from a wheel: the package with its shelves, and nothing else."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hpcgym.base.registry import SHELVES, shelf_entries

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds what the wheel of this checkout unpacks to."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_wheel_puts_one_package_and_its_metadata_into_site_packages(installed):
    names = sorted(path.name for path in installed.iterdir())
    assert [name.partition("-")[0] for name in names] == ["hpcgym", "hpcgym"]
    assert (installed / "hpcgym" / "py.typed").is_file()


def test_wheel_carries_neither_reruns_of_papers_nor_studies_nor_tests(installed):
    folders = {path.name for path in installed.rglob("*") if path.is_dir()}
    assert not folders & {"docs", "papers", "research", "scripts", "tests"}
    assert not (installed / "hpcgym" / "README.md").exists()  # its links lead to docs/


def files_in(folder):
    """Return the files of the package in a folder, but for shelves and what Python keeps."""
    paths = [path.relative_to(folder) for path in (folder / "hpcgym").rglob("*") if path.is_file()]
    return {str(path) for path in paths if not {"_data", "__pycache__"} & {*path.parts}}


def test_wheel_carries_every_file_of_the_package_but_its_plan(installed):
    """Among them what a report's page is made of, and units of systemd."""
    assert files_in(installed) == files_in(ROOT) - {"hpcgym/README.md"}


def test_package_page_has_no_links_into_the_checkout(installed):
    (metadata,) = installed.glob("*.dist-info/METADATA")
    page = metadata.read_text(encoding="utf-8")
    assert "## What it does not model" in page
    assert "](" in page and "](docs/" not in page
    assert all(target.startswith("http") for target in re.findall(r"\]\(([^)]+)\)", page))


def test_shelves_are_found_inside_the_installed_package(installed):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from hpcgym.base import registry\n"
        "for shelf in registry.SHELVES:\n"
        "    print(registry.shelf_folders(shelf)[0], *registry.shelf_entries(shelf))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(installed)],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    for shelf, line in zip(SHELVES, done.stdout.splitlines(), strict=True):
        folder, *entries = line.split()
        assert Path(folder) == installed / "hpcgym" / "_data" / shelf
        assert entries == list(shelf_entries(shelf))
