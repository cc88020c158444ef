"""The tables of docs/environment.md, on two weeks."""

import csv
from pathlib import Path

import pytest

from hpcgym.base.ranges import number_ranges
from hpcgym.env.scale import scale_of
from research.action_tables import (
    ACTIONS,
    CONSTANTS,
    made,
    play,
    row_of,
    row_of_constant,
    row_of_decisions,
)

TABLE = Path(__file__).parents[2] / "docs" / "datasets" / "environment" / "actions.csv"


@pytest.mark.long
def test_zeros_of_the_index_are_better_than_saf_and_the_rewards_say_so() -> None:
    row, static = row_of("index", 1), scale_of("many-weeks", "index").weeks[20_001].static
    assert row["weeks"] == "many-weeks 20001"
    assert row["zeros"] == f"{static:.3f}" != row["SAF"] == "1.000" != row["FCFS"]
    least, most = map(float, row["sum of rewards"].split(" to "))
    assert least <= -float(row["zeros"]) <= most < 0
    (fcfs,) = (action for action, rule in CONSTANTS.items() if rule == "FCFS")
    assert row_of_constant(fcfs, 1)["test weeks"] == row["FCFS"]


def test_each_week_pays_minus_its_score() -> None:
    played = play("index", 2)
    assert played["week"].tolist() == [20_001, 20_002]
    assert played["sum"].to_numpy() == pytest.approx(-played["ratio"].to_numpy())


def test_one_decision_in_some_changes_the_sum_of_a_week() -> None:
    row = row_of_decisions("index", 1)
    assert 0 < float(row["more wait"].rstrip("%")) < 100
    assert 0 < float(row["changes"].rstrip("%")) <= 100
    assert 0 < float(row["by"]) < 1


@pytest.mark.parametrize("kind", ACTIONS)
def test_page_shows_the_weeks_and_the_actions(kind: str) -> None:
    env = made(kind)
    weeks = number_ranges(env.unwrapped.episodes.numbers)
    space = f"{env.action_space}".replace(".0", "").replace(", float32", "")
    with TABLE.open(encoding="utf-8") as file:
        rows = {row["action"]: row for row in csv.DictReader(file)}
    shown = rows[f"`{kind}`"]
    assert (shown["weeks"], shown["space"]) == (f"many-weeks {weeks}", f"`{space}`")
