"""What docs/trials.md says of its example is what the scheduler does."""

import re
import runpy
from pathlib import Path

import pytest

from hpcgym.schedule.simulate import simulate

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "trials.md").read_text(encoding="utf-8").partition("## A worked")[2]


@pytest.fixture(scope="module")
def jobs():
    """The jobs of the page, by its own code."""
    made = {}
    exec(re.search(r"```python\n(.*?)for mode in", PAGE, re.DOTALL)[1], made)
    return made["jobs"]


def rows(pattern):
    """Return the numbers of the rows of a table, by the form of a row."""
    return re.findall(pattern, PAGE, re.MULTILINE)


@pytest.mark.parametrize(("mode", "numbers"), rows(r"^\| `([^`]+)` \|((?: [\d.]+ \|){9})$"))
def test_the_page_states_the_starts_of_each_mode(jobs, mode, numbers):
    schedule = simulate(jobs, backfill=mode)
    *starts, bsld = map(float, numbers.replace("|", " ").split())
    assert starts == (schedule.start_time / 60).tolist()
    assert bsld == pytest.approx(schedule.metrics()["mean_bsld"], abs=0.005)


def test_the_attempts_in_vain_are_those_of_the_page(jobs):
    schedule = simulate(jobs, backfill="easy+trial")
    frame = schedule.attempts_frame()
    vain = frame[frame["reason"].isin(["trial over", "evicted"])]
    minutes = zip(vain["job_id"], vain["taken_time"] // 60, vain["end_time"] // 60, strict=True)
    assert list(minutes) == [(5, 4, 9), (6, 12, 14)]
    assert round(schedule.metrics()["waste"], 2) == 0.03


def test_the_table_of_jobs_is_the_example_and_is_drawn(jobs):
    found = rows(r"^\| (\d) \| (\d+) \| (\d) \| (\d+) \| (\d+) \|$")
    columns = (jobs.job_id, jobs.submit_time, jobs.processors, jobs.requested_time, jobs.run_time)
    scale = (1, 60, 1, 60, 60)
    expected = [(column // one).tolist() for column, one in zip(columns, scale, strict=True)]
    assert [list(map(int, column)) for column in zip(*found, strict=True)] == expected
    drawn = runpy.run_path(str(ROOT / "scripts" / "make_pictures.py"))
    assert drawn["tried"]().to_frame().equals(jobs.to_frame())
