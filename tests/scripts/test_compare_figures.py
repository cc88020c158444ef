"""Figures of one name on several pages are compared."""

from pathlib import Path

import pytest

import compare_figures
from research.figures import Figure, contradictions, figures

README = """# A page

| what | agent | old logs | logs of today | longest wait |
|---|---|---|---|---|
| the best | `URGENT-YOUNG` | 0.513 [0.448, 0.589] | 0.609 [0.533, 0.696] | 0.983 |

They are of the suite. URGENT-YOUNG has 0.558 [0.476, 0.655] on KTH-SP2. It
wastes 0.51 %.

## Speed

64 environments make 1.36 million steps a second. The gap is 0.466 [0.425, 0.507].
"""
OTHER = """# The suite

:::{figures} suite.csv
:::

## One log

| log | URGENT-YOUNG |
|---|---|
| KTH-SP2 | 0.558 [0.476, 0.655] |

64 environments make 1,357,000 steps/s, and the gap is 0.466 [0.425, 0.507] there.
"""
TABLE = """agent,contest,old,today,longest wait,"wasted, %"
URGENT-YOUNG,requeue,"0.513 [0.448, 0.589]","0.609 [0.533, 0.696]",0.98,0.51
"""


def pairs(folder: Path, readme: str = README, other: str = OTHER) -> list[tuple[Figure, Figure]]:
    """Return what contradicts on two pages and in a table."""
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "README.md").write_text(readme)
    (folder / "docs" / "suite.md").write_text(other)
    (folder / "docs" / "suite.csv").write_text(TABLE)
    return list(contradictions(figures(folder)))


def test_pages_that_agree_but_for_rounding_have_none(tmp_path: Path) -> None:
    assert pairs(tmp_path) == []


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("0.448", "0.449", "docs/suite.csv:2"),
        ("0.696", "0.690", "docs/suite.csv:2"),
        ("0.983", "0.973", "docs/suite.csv:2"),
        ("0.51 %", "0.57 %", "docs/suite.csv:2"),
        ("0.655", "0.665", "docs/suite.md:10"),
        ("1.36", "1.46", "docs/suite.md:12"),
        ("0.425", "0.435", "docs/suite.md:12"),
    ],
)
def test_a_changed_digit_is_found(tmp_path: Path, before: str, after: str, line: str) -> None:
    ((first, other),) = pairs(tmp_path, README.replace(before, after))
    assert first.path == "README.md" and after.rstrip(" %") in str(first)
    assert str(other).startswith(f"{line}: ")


def test_another_condition_is_another_figure(tmp_path: Path) -> None:
    other = OTHER.replace("0.558", "0.999")
    assert len(pairs(tmp_path, other=other)) == 1
    assert pairs(tmp_path, other=other.replace("| log |", "On the last blocks:\n\n| log |")) == []


def test_intervals_of_the_older_bootstrap_may_differ(tmp_path: Path) -> None:
    other = OTHER.replace("| log |", "Intervals are of the older bootstrap.\n\n| log |")
    assert pairs(tmp_path, other=other.replace("0.476, 0.655", "0.480, 0.643")) == []
    assert len(pairs(tmp_path, other=other.replace("0.558", "0.559"))) == 1


def test_the_pages_have_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["compare_figures"])
    status = compare_figures.main()
    assert (status, capsys.readouterr().out) == (0, "none\n")
