"""The tables of docs/environment.md, on one week of one id."""

from pathlib import Path

import pytest

from research.id_tables import CONSTANTS, IDS, play, row_of, row_of_constant, row_of_decisions

PAGE = (Path(__file__).parents[2] / "docs" / "environment.md").read_text(encoding="utf-8")


def test_zeros_of_the_index_score_as_saf_and_the_rewards_say_so() -> None:
    row = row_of(IDS[1], 1)
    assert row["weeks"] == "synthetic-busy-weeks 15"
    assert row["zeros"] == row["SAF"] == "1.000" != row["FCFS"]
    least, most = map(float, row["sum of rewards"].split(" to "))
    assert least <= -1 <= most < 0


def test_each_week_pays_minus_its_score() -> None:
    played = play(IDS[1], 2, times=2)
    assert played["week"].tolist() == [15, 16, 15, 16]
    assert played["sum"].to_numpy() == pytest.approx(-played["ratio"].to_numpy())


def test_constant_that_is_fcfs_scores_as_fcfs() -> None:
    (fcfs,) = (action for action, rule in CONSTANTS.items() if rule == "FCFS")
    assert row_of_constant(fcfs, 1)["test weeks"] == row_of(IDS[1], 1)["FCFS"]


def test_page_shows_the_row_that_the_script_prints() -> None:
    assert f"| {' | '.join(row_of(IDS[1], None).values())} |" in PAGE


def test_page_shows_how_much_hangs_on_a_decision() -> None:
    """A random action among zeros changes the sum of the week, or not."""
    assert f"| {' | '.join(row_of_decisions(IDS[1], None).values())} |" in PAGE
