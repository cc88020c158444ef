"""Mutants: each is one change that compiles, drawn evenly; those said to be equivalent exist."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from hpcgym.base.errors import HpcgymError
from research import mutants
from research.mutants import ROOT, all_mutants, draw, mutants_of, named
from research.mutation import statements_of

SOURCE = b"""
def charge(free: int, wanted: int) -> int:
    \"\"\"Say a > b.\"\"\"
    left = free - wanted
    if left < 0 or not wanted:
        raise ValueError(f"{free - 1}")
    total = [0]
    total[0] += max(left, -1)
    note(total)
    return sorted(total, key=lambda one: one == 2)[0]
"""


def test_every_operator_of_a_function_is_changed_and_no_message() -> None:
    found = [(one.kind, one.lines(SOURCE)[1]) for one in mutants_of("a.py", SOURCE)]
    assert found == [
        ("sign", "left = free + wanted"),
        ("boundary", "if left <= 0 or not wanted:"),
        ("comparison", "if left >= 0 or not wanted:"),
        ("boundary", "if left < 1 or not wanted:"),
        ("comparison", "if left < 0 and not wanted:"),
        ("comparison", "if left < 0 or wanted:"),
        ("boundary", "total = [1]"),
        ("drop", "pass"),
        ("boundary", "total[1] += max(left, -1)"),
        ("ties", "total[0] += min(left, -1)"),
        ("sign", "total[0] += max(left, 1)"),
        ("boundary", "total[0] += max(left, -2)"),
        ("drop", "pass"),
        ("comparison", "return sorted(total, key=lambda one: one != 2)[0]"),
        ("boundary", "return sorted(total, key=lambda one: one == 3)[0]"),
        ("boundary", "return sorted(total, key=lambda one: one == 2)[1]"),
    ]


@pytest.mark.long
def test_mutants_compile_and_are_all_different() -> None:
    found = draw(90, 4, list(all_mutants()))
    assert len(set(found)) == 90
    for one in found:
        source = (ROOT / one.path).read_bytes()
        assert ast.dump(ast.parse(one.applied(source))) != ast.dump(ast.parse(source)), one


def test_mutants_are_drawn_evenly_and_alike_from_a_seed() -> None:
    found = list(all_mutants())
    assert draw(200, 0, found) == draw(200, 0, found) != draw(200, 1, found)
    every = Counter(one.path for one in found)
    some = Counter(one.path for one in draw(200, 0, found))
    total = every.total()
    assert all(abs(some[path] - 200 * n / total) < 2 for path, n in every.items())


@pytest.mark.long
def test_what_is_said_to_be_equivalent_is_a_mutant_with_a_reason() -> None:
    sources = {one.path: (ROOT / one.path).read_bytes() for one in all_mutants()}
    known = {(one.path, one.function, *one.lines(sources[one.path])) for one in all_mutants()}
    for key, reason in mutants.reasons().items():
        assert key in known, key
        assert reason.endswith(".")


@pytest.mark.long
def test_mutants_are_named_by_line_and_by_function() -> None:
    found = named("passes/easy.py:charge_extra")
    assert {one.function for one in found} == {"charge_extra"}
    assert set(named(f"passes/easy.py:{found[0].line}")) <= set(found)
    with pytest.raises(HpcgymError, match="no mutants there"):
        named("passes/easy.py:nothing")


def test_statements_are_found_by_their_place_in_the_innermost_function() -> None:
    nested = b"def f():\n    def g():\n        return 1\n    return g\n"
    assert statements_of(nested) == {1: ("f", 0), 2: ("g", 0), 3: ("g", 1), 4: ("f", 3)}
