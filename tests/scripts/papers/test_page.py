"""Tables and claims in Markdown."""

import pytest

from papers.common.claims import FAILS, HOLDS, IN_PART, counted, near
from papers.common.page import prose, table


@pytest.mark.parametrize(("held", "verdict"), [(4, HOLDS), (2, IN_PART), (1, FAILS)])
def test_claim_with_cases_goes_by_how_many_hold(held: int, verdict: str) -> None:
    assert counted("SAF is first", "Table 3", held, 4).verdict == verdict


@pytest.mark.parametrize(("measured", "verdict"), [(91, HOLDS), (75, IN_PART), (50, FAILS)])
def test_claimed_number_goes_by_how_near_ours_is(measured: float, verdict: str) -> None:
    claim = near("gain", "V-A", 100.0, measured, " %")
    assert claim.verdict == verdict
    assert claim.finding == f"{measured} %"


def test_columns_of_numbers_stand_to_the_right_and_are_readable() -> None:
    lines = table(["log", "jobs", "bsld"], [["KTH", 28475, 1234.5], ["CTC", 77222, 3.14159]])
    assert lines.splitlines()[1:] == [
        "|---|---:|---:|",
        "| KTH | 28,475 | 1,234.5 |",
        "| CTC | 77,222 | 3.14 |",
    ]


def test_paragraphs_lose_the_line_breaks_of_source_code() -> None:
    assert prose("    One\n    line.\n\n    Another.") == "One line.\n\nAnother."
    assert prose("    - One\n      line.\n    - Two") == "- One line.\n- Two"
