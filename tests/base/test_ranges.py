"""Selections of episodes: what is chosen, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import ScenarioError
from hpcgym.base.ranges import number_ranges, parse_numbers


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        *(("3", (3,)), ("65-67", (65, 66, 67)), ("1,3,5-7", (1, 3, 5, 6, 7))),
        *((" 7 , 1 - 2 ", (1, 2, 7)), ("2,2,1-2", (1, 2))),
    ],
)
def test_a_selection_is_ascending_and_counts_each_number_once(text, chosen):
    assert parse_numbers(text, range(1, 101)) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is neither a number nor a range"),
        ("1,", "'' is neither"),
        ("1-", "'1-' is neither"),
        ("one", "'one' is neither"),
        ("-3", "'-3' is neither"),
        ("1.5", "'1.5' is neither"),
        ("9-4", "the range 9-4 runs backwards; did you mean 4-9"),
        ("5-12", "there is no 11-12; allowed are 1-10"),
        ("0", "there is no 0; allowed are 1-10"),
        ("1-99999999999", "allowed are 1-10"),
    ],
)
def test_a_selection_that_cannot_be_met_is_refused(text, message):
    with pytest.raises(ScenarioError, match=message):
        parse_numbers(text, range(1, 11))


def test_a_gap_in_the_numbers_is_respected():
    with pytest.raises(ScenarioError, match="there is no 4; allowed are 1-3,5"):
        parse_numbers("2-5", (1, 2, 3, 5))


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranges_read_back_as_the_numbers_they_were_written_from(numbers):
    ordered = sorted(numbers)
    assert parse_numbers(number_ranges(ordered), ordered) == tuple(ordered)


def test_no_numbers_are_written_as_none():
    assert number_ranges([]) == "(none)"
