"""The index of the shelf says what is on it."""

import pytest

from hpcgym.base.registry import shelf_folders
from hpcgym.env.scenario.load import parse_scenario, scenario_names
from hpcgym.env.scenario.spec import (
    RandomWindowEpisodes,
    ResampledEpisodes,
    WeekEpisodes,
    WholeEpisode,
    WindowEpisodes,
)
from update_scenarios import describe_episodes, describe_scheduler, scenarios_readme


def test_the_index_is_current():
    page = shelf_folders("scenarios")[0] / "README.md"
    assert page.read_text(encoding="utf-8") == scenarios_readme(), "run scripts/update_scenarios.py"


def test_the_index_names_every_scenario_and_labels_synthetic_requests():
    rows = {
        row.split("`")[1]: row for row in scenarios_readme().splitlines() if row.startswith("| [")
    }
    assert tuple(rows) == scenario_names()
    assert "SYNTHETIC" in rows["sdsc-par-weeks"]


@pytest.mark.parametrize(
    ("episode", "text"),
    [
        (WholeEpisode(), "the whole log"),
        (WeekEpisodes(), "every week"),
        (WeekEpisodes(weeks="2-3", offset_s=60), "weeks 2-3, from 60 s on"),
        (WindowEpisodes(n_jobs=256), "windows of 256 jobs"),
        (
            WindowEpisodes(n_jobs=2, train="1", validation="2", test="3-4"),
            "windows of 2 jobs, 1 (train), 2 (validation), 3-4 (test)",
        ),
        (RandomWindowEpisodes(n_jobs=9, episodes=3, seed=0), "3 random windows of 9 jobs"),
        (ResampledEpisodes(episodes=3, seed=0), "3 resampled logs (permute)"),
        (
            ResampledEpisodes(episodes=3, seed=0, part="week", mode="draw"),
            "3 weeks of resampled logs (draw)",
        ),
    ],
)
def test_episodes_are_described_in_one_line(episode, text):
    assert describe_episodes(episode) == text


def test_a_scheduler_s_description_names_all_that_is_unusual():
    scenario = parse_scenario(
        """
        description = "x"
        trace = { name = "tiny", missing_request = "drop" }
        machine = { processors = 4, largest_request_s = 120 }
        episode = { kind = "whole" }
        [scheduler]
        policy = "FCFS"
        backfill_order = "SPF"
        kill_at_limit = false
        estimates = "recent"
        correction = "reqtime"
        threshold_s = 72000
        """,
        name="x",
    )
    assert describe_scheduler(scenario) == (
        "FCFS, EASY in SPF order, threshold 72,000 s, no kill at the limit, recent estimates, "
        "correction reqtime"
    )
