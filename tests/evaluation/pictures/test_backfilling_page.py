"""What docs/backfilling.md says of its example is what the scheduler does."""

import re
import runpy
from pathlib import Path

import pytest

from hpcgym.core.backfill import MODES
from hpcgym.core.loaders import SIMULATORS
from hpcgym.schedule.simulate import simulate

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "backfilling.md").read_text(encoding="utf-8")
TABLE = ROOT / "docs" / "pictures" / "backfill-starts.csv"
ROWS = re.findall(r"^`([^`]+)`((?:,[\d.]+){10})$", TABLE.read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def jobs():
    """The jobs of the page, by its own code."""
    code = re.search(r"```python\n(.*?)for mode in", PAGE, re.DOTALL)
    made = {}
    exec(code[1], made)
    return made["jobs"]


@pytest.mark.long
@pytest.mark.parametrize(("mode", "numbers"), ROWS)
def test_the_page_states_the_starts_of_each_mode(jobs, mode, numbers):
    schedule = simulate(jobs, backfill=mode)
    metrics = schedule.metrics()
    *starts, wait, bsld = map(float, numbers.strip(",").split(","))
    assert starts == (schedule.start_time / 60).tolist()
    assert wait == pytest.approx(metrics["mean_wait_time"] / 60, rel=0.005)
    assert bsld == pytest.approx(metrics["mean_bsld"], abs=0.005)


def test_the_table_of_jobs_is_the_example(jobs):
    rows = re.findall(r"^\| (\d) \| (\d) \| (\d) \| (\d) \| \**(\d)\** \|$", PAGE, re.MULTILINE)
    columns = (jobs.job_id, jobs.submit_time, jobs.processors, jobs.requested_time, jobs.run_time)
    scale = (1, 60, 1, 60, 60)
    expected = [(column // one).tolist() for column, one in zip(columns, scale, strict=True)]
    assert [list(map(int, column)) for column in zip(*rows, strict=True)] == expected


def test_the_page_draws_the_example_it_states(jobs):
    drawn = runpy.run_path(str(ROOT / "scripts" / "make_pictures.py"))
    assert drawn["example"]().to_frame().equals(jobs.to_frame())
    assert [mode for mode, _ in ROWS] == drawn["MODES"]
    assert len({numbers for _, numbers in ROWS}) == len(ROWS)  # no two modes do the same


def test_every_mode_is_in_the_table_of_modes():
    table = PAGE.partition("## All modes")[2]
    named = set(re.findall(r"^\| `([\w-]+)", table, re.MULTILINE))
    assert named == {"backfill", *MODES, *SIMULATORS}


def test_pictures_of_the_documentation_are_there_and_small():
    for page in ("backfilling.md", "gallery.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for name in re.findall(r"\]\((pictures/[^)]+)\)", text):
            size = (ROOT / "docs" / name).stat().st_size
            assert 0 < size < (1_000_000 if name.endswith(".gif") else 200_000), name
