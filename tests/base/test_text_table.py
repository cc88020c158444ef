"""Tables that fit a width: what goes, what is shortened, and what never breaks."""

import csv
import io
import json

import pandas as pd
import pytest
from rich.console import Console

from hpcgym.base.text_table import Column, TextTable, fixed, machine_text, printable, shortened

NAMES = ["clairvoyant SPF", "clairvoyant SAF", "MULTI-DELAY", "SAF"]
HEAVY = [1_375_419.25, 3_141_592.65, 2.5, 12_345_678.9]


def heavy() -> TextTable:
    """A table of a log on which slowdowns are in the millions."""
    return TextTable(
        [
            Column("agent", NAMES, "name"),
            Column("mean\nbsld", fixed(HEAVY, 2), rank=2),
            Column("ratio", fixed([1.0, 2.0, 3.0, 4.0], 3)),
            Column("sum\nbsld", fixed([100 * one for one in HEAVY], 2), rank=3),
            Column("utili-\nsation", fixed([0.1, 0.2, 0.3, 0.4], 3), rank=9),
        ],
        title="a heavy log",
        notes=["ratio: of sums, lower is better"],
    )


@pytest.mark.parametrize("width", range(24, 120, 4))
def test_at_any_width_each_row_is_one_line_with_its_numbers_whole(width: int) -> None:
    lines = [line for line, _ in heavy().lines(width)]
    rows = [line for line in lines if line.startswith(("clair", "MULTI", "SAF"))]
    assert len(rows) == len(NAMES)
    assert all(len(line) <= width for line in lines)
    for row, ratio, mean in zip(rows, ("1.000", "2.000", "3.000", "4.000"), HEAVY, strict=True):
        assert ratio in row.split()
        assert (f"{mean:,.0f}" in row.split()) is ("mean" in lines[1])
    left_out = {"mean bsld", "sum bsld", "utilisation"} - {
        name
        for name, head in (("mean bsld", "mean"), ("sum bsld", "sum"), ("utilisation", "utili-"))
        if head in lines[1]
    }
    said = " ".join(lines[lines.index(rows[-1]) :])
    assert (f"{len(left_out)} column" in said) is bool(left_out)
    assert all(name in said for name in left_out)


def test_the_least_important_columns_go_first() -> None:
    shown = [
        next(line for line, _ in heavy().lines(width) if "ratio" in line) for width in (48, 36)
    ]
    assert "utili" not in shown[0] + shown[1]
    assert [("bsld" in one, one.count("bsld")) for one in shown] == [(True, 2), (True, 1)]


def test_long_names_are_shortened_in_the_middle_and_stay_apart() -> None:
    assert shortened("clairvoyant SPF", 10) == "clairv…SPF"
    alike = [f"q=0.61597,e=-0.076{n}452,wait=0.307985" for n in range(3)]
    table = TextTable([Column("agent", alike, "name"), Column("ratio", ["1.000"] * 3)])
    names = [line.split()[0] for line, _ in table.lines(20)][1:]
    assert len(set(names)) == 3


def test_prose_is_wrapped_beside_its_name() -> None:
    columns = [
        Column("agent", ["SAF"], "name"),
        Column("what", ["smallest area first " * 3], "prose"),
    ]
    lines = [line for line, _ in TextTable(columns).lines(36)]
    assert lines[1].startswith("SAF")
    assert all(line.startswith("   ") for line in lines[2:])
    assert " ".join(lines[1:]).split() == ["SAF", *["smallest", "area", "first"] * 3]


def test_text_in_brackets_is_no_markup() -> None:
    console = Console(width=80, file=io.StringIO())
    console.print(TextTable([Column("agent", ["[bold]x[/bold]"], "name")]))
    assert isinstance(console.file, io.StringIO)
    assert "[bold]x[/bold]" in console.file.getvalue()


def test_programs_get_every_value_to_the_last_digit() -> None:
    frame = pd.DataFrame({"agent": ["a|b", "c,d"], "bsld": [0.1 + 0.2, 12_345_678.901234567]})
    rows = list(csv.DictReader(io.StringIO(machine_text(frame, "csv"))))
    assert [float(row["bsld"]) for row in rows] == frame["bsld"].tolist()
    assert [row["agent"] for row in json.loads(machine_text(frame, "json"))] == ["a|b", "c,d"]
    assert machine_text(frame, "markdown").splitlines()[2] == r"| a\|b | 0.3 |"


HOSTILE = ["a\x1b[2J|b\nc\td", "x\ry", "\u202ezw\u200bi\x9b", 'q"\\|\x07\U000e0041', "plain, ü"]
"""Names that clear the screen, end lines, go back, turn letters round and hide some."""


def test_names_neither_steer_a_terminal_nor_break_a_table() -> None:
    numbers = [str(place) for place in range(len(HOSTILE))]
    table = TextTable([Column("name", HOSTILE, "name"), Column("n", numbers)], title=HOSTILE[0])
    for width in (24, 80):
        lines = [line for line, _ in table.lines(width)]
        assert [line.split()[-1] for line in lines[-len(HOSTILE) :]] == numbers
        assert all(line.isprintable() for line in lines)
    assert r"a\x1b[2J|b\nc\td" in str(table)
    rows = machine_text(pd.DataFrame({HOSTILE[0]: HOSTILE}), "markdown").split("\n")
    assert len(rows) == len(HOSTILE) + 2
    assert all(row.isprintable() and row.replace(r"\|", "").count("|") == 2 for row in rows)


def test_spaces_and_letters_of_any_script_are_printed_as_they_are() -> None:
    assert printable("zwei\u00a0Jäger 日本\n", "\n") == "zwei\u00a0Jäger 日本\n"


def test_programs_get_names_as_they_are() -> None:
    frame = pd.DataFrame({"name": HOSTILE, "n": range(len(HOSTILE))})
    rows = list(csv.reader(io.StringIO(machine_text(frame, "csv"), newline="")))
    assert rows == [["name", "n"], *([name, str(n)] for n, name in enumerate(HOSTILE))]
    text = machine_text(frame, "json")
    assert all(line.isprintable() for line in text.split("\n"))
    assert [row["name"] for row in json.loads(text)] == HOSTILE
