"""Mutants: the simulator with one operator changed, drawn evenly over the code that decides.

A mutant that no test kills shows a line that tests do not hold. `equivalent_mutants.toml` lists
those that no test can kill, each with its reason.
"""

from __future__ import annotations

import ast
import random
import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hpcgym.base.errors import HpcgymError

ROOT = Path(__file__).parents[2]
MUTATED = (
    "hpcgym/core/engine",
    "hpcgym/core/kernels",
    "hpcgym/core/parts",
    "hpcgym/core/metrics.py",
    "hpcgym/trace/clean.py",
)
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")

BOUNDARY = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
OPPOSITE = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "=="}
SIGN = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
TIES = {"min": "max", "max": "min", "argmin": "argmax", "argmax": "argmin"}
TIES |= {"minimum": "maximum", "maximum": "minimum", "left": "right", "right": "left"}
NOT_MUTATED = (ast.JoinedStr, ast.Raise, ast.AnnAssign)
"""Messages and annotations."""


class Mutant(NamedTuple):
    """One change: the bytes from `begin` to `end` of a file become `after`.

    `function` is the qualified name, and `line` the number of the changed line.
    """

    path: str
    function: str
    line: int
    kind: str
    begin: int
    end: int
    after: str

    def applied(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.begin] + self.after.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """Return what the change touches, whole lines without indent, before and after.

        Of a bare `continue` or `break` the line above says when it is reached.
        """
        first = source.rfind(b"\n", 0, self.begin) + 1
        if source[self.begin : self.end] in (b"continue", b"break"):
            first = source.rfind(b"\n", 0, first - 1) + 1
        last = source.find(b"\n", self.end)
        after = self.applied(source)
        rest = len(source) - last
        texts = source[first:last], after[first : len(after) - rest]
        return " ".join(texts[0].decode().split()), " ".join(texts[1].decode().split())


class _Finder(ast.NodeVisitor):
    """Finds the mutants of one file."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.names: list[str] = []
        self.depth = 0
        self.found: list[Mutant] = []

    def at(self, node: ast.AST, *, end: bool = False) -> int:
        """Return where a node begins or ends in the file."""
        line = node.end_lineno if end else node.lineno  # type: ignore[attr-defined]
        column = node.end_col_offset if end else node.col_offset  # type: ignore[attr-defined]
        return int(self.starts[line - 1] + column)

    def note(self, kind: str, begin: int, end: int, after: str) -> None:
        """Keep a mutant of the function that is visited."""
        line = self.source.count(b"\n", 0, begin) + 1
        name = ".".join(self.names)
        self.found.append(Mutant(self.path, name, line, kind, begin, end, after))

    def between(self, kind: str, left: ast.AST, right: ast.AST, before: str, after: str) -> None:
        """Change the operator between two nodes; brackets and comments may stand there too."""
        begin, end = self.at(left, end=True), self.at(right)
        place = self.source.find(before.encode(), begin, end)
        if place >= 0 and b"#" not in self.source[begin:end]:
            self.note(kind, place, place + len(before), after)

    def visit(self, node: ast.AST) -> None:
        """Visit a node, unless it is outside functions or only speaks."""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.names.append(node.name)
            self.depth += isinstance(node, ast.FunctionDef)
            for child in node.body:
                self.visit(child)
            self.depth -= isinstance(node, ast.FunctionDef)
            self.names.pop()
        elif not isinstance(node, NOT_MUTATED):
            if self.depth:
                getattr(self, f"visit_{type(node).__name__}", bool)(node)
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move the boundary, and turn the comparison round."""
        sides = [node.left, *node.comparators]
        for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
            before = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">"}
            text = before.get(type(operator), ">=")
            for kind, table in (("boundary", BOUNDARY), ("comparison", OPPOSITE)):
                if type(operator) in table:
                    self.between(kind, left, right, text, table[type(operator)])

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change a sign."""
        if type(node.op) in SIGN:
            self.between("sign", node.left, node.right, *SIGN[type(node.op)])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Take `and` for `or`."""
        for left, right in pairwise(node.values):
            self.between("comparison", left, right, *LOGIC[type(node.op)])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out a sign, or `not`."""
        begin = self.at(node)
        for operator, kind, text in ((ast.USub, "sign", "-"), (ast.Not, "comparison", "not ")):
            if isinstance(node.op, operator):
                self.note(kind, begin, begin + len(text), "")

    def visit_Constant(self, node: ast.Constant) -> None:
        """Count one more, or take the other side of ties."""
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            self.note("boundary", self.at(node), self.at(node, end=True), repr(node.value + 1))
        elif node.value in ("left", "right"):
            after = f'"{TIES[node.value]}"'
            self.note("ties", self.at(node), self.at(node, end=True), after)

    def visit_Call(self, node: ast.Call) -> None:
        """Take the other extreme, or sort by the keys the other way round."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        name = node.func.id if isinstance(node.func, ast.Name) else name
        end = self.at(node.func, end=True)
        if name in TIES:
            self.note("ties", end - len(name), end, TIES[name])
        elif name == "lexsort" and isinstance(node.args[0], ast.Tuple):
            end = self.at(node.args[0], end=True)
            self.note("ties", end, end, "[::-1]")

    def drop(self, node: ast.stmt) -> None:
        """Leave out a statement."""
        self.note("drop", self.at(node), self.at(node, end=True), "pass")

    visit_AugAssign = visit_Continue = visit_Break = drop

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call."""
        if isinstance(node.value, ast.Call):
            self.drop(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave out what a statement writes into something that others see."""
        if isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
            self.drop(node)


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file, in order of place.

    Example:
        >>> source = b"def is_late(wait: int) -> bool:\\n    return wait > 5\\n"
        >>> [one.lines(source)[1] for one in mutants_of("x.py", source)]
        ['return wait >= 5', 'return wait <= 5', 'return wait > 6']
    """
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda one: (one.begin, one.end))


def all_mutants(root: Path = ROOT) -> Iterator[Mutant]:
    """Yield every mutant of the code that is mutated."""
    for name in MUTATED:
        place = root / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield from mutants_of(path.relative_to(root).as_posix(), path.read_bytes())


def draw(n: int, seed: int, found: Sequence[Mutant]) -> list[Mutant]:
    """Draw one mutant from each of `n` equal parts of those found, and shuffle them."""
    generator = random.Random(seed)
    n = min(n, len(found))
    bounds = [len(found) * part // n for part in range(n + 1)]
    drawn = [generator.choice(found[a:b]) for a, b in pairwise(bounds)]
    generator.shuffle(drawn)
    return drawn


def reasons(path: Path = EQUIVALENT) -> dict[tuple[str, str, str, str], str]:
    """Return why a mutant is equivalent, by path, function, and its lines before and after."""
    with path.open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    keys = ("path", "function", "before", "after")
    return {tuple(entry[key] for key in keys): entry["reason"] for entry in entries}


def reason_of(mutant: Mutant, root: Path = ROOT) -> str:
    """Return why a mutant is equivalent; "" if it is not known to be."""
    source = (root / mutant.path).read_bytes()
    return reasons().get((mutant.path, mutant.function, *mutant.lines(source)), "")


def named(text: str, root: Path = ROOT) -> list[Mutant]:
    """Return the mutants of `PATH:LINE`, or of a function `PATH:NAME`.

    Raises:
        HpcgymError: There are none.
    """
    path, _, place = text.partition(":")
    found = [one for one in all_mutants(root) if one.path.endswith(path)]
    found = [one for one in found if place in ("", str(one.line), one.function.split(".")[-1])]
    if not found:
        raise HpcgymError(f"{text}: no mutants there; write FILE, FILE:LINE or FILE:FUNCTION")
    return found
