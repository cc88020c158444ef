"""Notebooks run from their first cell to the last, and print what they show."""

import importlib.util
from pathlib import Path

import pytest

from changed import changed_files

NEEDED = ("ipykernel", "matplotlib", "nbclient", "stable_baselines3")
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, NEEDED)), reason="needs the extras docs, report, train"
)

WHOLE = "model.learn(200_000)"
ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def shown(cell):
    """Return what a cell prints, without standard error, and which kinds of results it shows."""
    printed = [one for one in cell["outputs"] if one.get("name") == "stdout"]
    results = [sorted(one["data"]) for one in cell["outputs"] if "data" in one]
    return "".join(one["text"] for one in printed), results


def is_slow(path, training):
    """Tell whether a notebook runs in slow tests only, as pages that train do."""
    touched = path.relative_to(ROOT).as_posix() in changed_files(ROOT)
    return training == WHOLE or (WHOLE in path.read_text(encoding="utf-8") and not touched)


CASES = [
    pytest.param(path, training, marks=[pytest.mark.slow] if is_slow(path, training) else [])
    for path in NOTEBOOKS
    for training in ("model.learn(1_000)", WHOLE)
]


@pytest.mark.parametrize(("path", "training"), CASES)
def test_notebook_runs_and_prints_what_it_shows(path, training, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    kept, run = (nbformat.read(path, as_version=4) for _ in range(2))
    trained = [cell for cell in run.cells if WHOLE in cell.source]
    assert all("varies" in cell.metadata.tags for cell in trained)
    for cell in trained:
        cell.source = cell.source.replace(WHOLE, training)
    at = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(run, timeout=600, kernel_name="python3", resources=at).execute()
    compared = 0
    for old, new in zip(kept.cells, run.cells, strict=True):
        if new.cell_type != "code":
            continue
        assert bool(old.outputs) == any(shown(new)), f"shown without its output: {old.source}"
        if "varies" not in old.metadata.get("tags", ()):
            assert shown(new) == shown(old), old.source
            compared += 1
    assert compared
