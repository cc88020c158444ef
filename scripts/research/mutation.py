"""Mutation tests: change one operator, run the tests of its line, and see whether one fails.

Everything happens in a copy of the tree. First each test file runs once with probes, uncompiled, to
learn which tests run which lines and how long they take. Then each mutant meets the tests of its
line, uncompiled and with few drawn examples: those that killed others of its file first, then the
quick ones, up to a budget. What survives meets them compiled, with all examples.

A store keeps each test file's lines and each verdict, so the same command goes on after any end.
A mutant that survived is judged again once a test changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import steps
from hpcgym.evaluation.store import Row, Store
from research.mutants import MUTATED, ROOT, Mutant, all_mutants, reason_of
from research.probes import probed

TESTS = (
    "core/test_*.py",
    "env/test_*.py",
    "machine/test_*.py",
    "schedule/**/test_*.py",
    "trace/test_[cs]*.py",
    "test_*.py",
)
"""Test files that may kill: those that run much of what is mutated."""

ABOUT_FILES = (
    "house",
    "install",
    "notebooks",
    "readme",
    "specification",
    "wheel",
    "real_logs",
    "long_logs",
)
"""Tests that read the project's files, run another process, or do what no mutant needs."""

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "runs", "build", "__pycache__", ".*_cache")
OWN_LIMIT_S = 2.0
FILE_LIMIT_S = 8.0
"""Time that a test, and all tests of a file, may take to learn their lines, s of the processor."""

RESTARTS = 4
"""A test that takes too long ends its process; so often a file goes on without its like."""

COMPILED_LIMIT_S = 900.0
STOPPED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
FIRST_FILES = 5
"""So many test files are collected first: collecting takes longer than most tests."""

UNCOMPILED = {"NUMBA_DISABLE_JIT": "1"}


class Verdict(NamedTuple):
    """How a mutant ended: `by` names the test that killed it, or why it is equivalent."""

    mutant: Mutant
    end: str
    by: str
    seconds: float


class Mutation:
    """Mutants of a copy of the tree, and what tests say of them.

    Args:
        folder: Keeps the store, and the copy, which is made anew.
        budget: Tests of a mutant are taken up to so many seconds, uncompiled.
    """

    def __init__(self, folder: Path, budget: float = 40.0) -> None:
        self.budget = budget
        self.store = Store(folder / "kept.sqlite")
        self.tree = (folder / "tree").resolve()
        self.report = self.tree.with_name("report.jsonl")
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(ROOT, self.tree, ignore=LEFT_OUT)
        self.sources = {one.path: (ROOT / one.path).read_bytes() for one in all_mutants()}
        self.statements = {path: statements_of(text) for path, text in self.sources.items()}
        self.tests = _digest(*(one.read_bytes() for one in sorted((ROOT / "tests").rglob("*.py"))))
        self.kills: dict[str, Counter[str]] = {}

    def learn(self) -> None:
        """Run each test file once with probes, and keep what its tests run."""
        files = [path for some in TESTS for path in sorted((self.tree / "tests").glob(some))]
        files = [one for one in files if not one.stem.removeprefix("test_").startswith(ABOUT_FILES)]
        for path, source in self.sources.items():
            (self.tree / path).write_text(probed(path, source.decode()))
        self.covering: dict[tuple[str, str, int], dict[str, float]] = {}
        # What is kept says nothing of a function that is new.
        functions = {
            path: sorted({f for f, _ in of.values()}) for path, of in self.statements.items()
        }
        with steps(len(files), "lines of tests", "test files") as work:
            for file in files:
                key = _digest("lines", file.read_bytes(), repr(functions))
                rows = self.store.find(key)
                if rows is None:
                    rows = self._lines_of(file.relative_to(self.tree).as_posix())
                    self.store.keep(key, rows)
                for row in rows:
                    for path, name, line in row["lines"]:
                        place = path, name, line
                        self.covering.setdefault(place, {})[row["test"]] = row["seconds"]
                work.advance()
        for path, source in self.sources.items():
            self._write(path, source)

    def _lines_of(self, file: str) -> list[Row]:
        """Return the tests of a file that pass, each with its time and the lines that it ran."""
        rows: dict[str, Row] = {}
        shared: list[Any] = []
        done: list[str] = []
        slow: list[str] = []
        task = {"limit": OWN_LIMIT_S, "whole": FILE_LIMIT_S, "done": done, "slow": slow}
        while True:
            told, code = self._pytest([file], task, UNCOMPILED)
            begun = [one["begun"] for one in told if "begun" in one]
            for one in told:
                seen = one.get("lines", {})
                places = [
                    [path, *self.statements[path][line]] for path in seen for line in seen[path]
                ]
                shared = places if "collected" in one else shared
                if "test" in one:
                    rows[one["test"]] = {
                        "test": one["test"],
                        "seconds": one["seconds"],
                        "lines": places + shared,
                    }
            for one in told:
                rows.pop(one.get("failed", one.get("skipped", "")), None)
            done += begun
            if code != -signal.SIGPROF or len(slow) == RESTARTS:
                return list(rows.values())
            slow.append(_function(done[-1]))

    def judge(self, mutant: Mutant, *, compiled: bool) -> Verdict:
        """Return how a mutant ends, from the store where it is known."""
        reason = reason_of(mutant)
        if reason:
            return Verdict(mutant, "equivalent", reason, 0.0)
        source = self.sources[mutant.path]
        begun = time.monotonic()
        stages = [UNCOMPILED, {}] if compiled else [UNCOMPILED]
        for stage in stages:
            key = _digest(repr(mutant), source, repr(stage))
            kept = (self.store.find(key) or [{}])[0]
            if not kept or (kept["by"] == "" and kept["tests"] != self.tests):
                by = self._killer(mutant, stage)
                seconds = round(time.monotonic() - begun, 1)
                kept = {"by": by, "seconds": seconds, "tests": self.tests}
                self.store.keep(key, [kept])
            if kept["by"]:
                self.kills.setdefault(mutant.path, Counter())[_function(kept["by"])] += 1
                return Verdict(mutant, "killed", kept["by"], kept["seconds"])
        return Verdict(mutant, "survived", "", kept["seconds"])

    def _killer(self, mutant: Mutant, stage: dict[str, str]) -> str:
        """Return the test that fails with a mutant; "" if none does."""
        chosen = self._chosen(mutant, self.budget if stage else float("inf"))
        limits = {name: 5 * seconds + 10 for name, seconds in chosen.items()}
        files = list(dict.fromkeys(map(_file, chosen)))
        self._write(mutant.path, mutant.applied(self.sources[mutant.path]))
        try:
            for some in (files[:FIRST_FILES], files[FIRST_FILES:]):
                tests = {name: limit for name, limit in limits.items() if _file(name) in some}
                task = {"tests": tests} if stage else {"limit": COMPILED_LIMIT_S}
                by = self._failing(some, task, stage) if some else ""
                if by:
                    return by
        finally:
            self._write(mutant.path, self.sources[mutant.path])
        return ""

    def _failing(self, files: list[str], task: dict[str, Any], stage: dict[str, str]) -> str:
        """Return the first test that fails; "" if none does."""
        told, code = self._pytest(["-x", *files], task, stage)
        if code == 0:
            return ""
        failed = [one["failed"] for one in told if "failed" in one]
        begun = [one["begun"] for one in told if "begun" in one]
        if code in (*STOPPED, 5) or (code == 4 and not failed):
            raise HpcgymError(f"pytest ended with {code} on {', '.join(files)}")
        return str((failed or begun[-1:] or [f"{files[0]}::import"])[0])

    def _chosen(self, mutant: Mutant, budget: float) -> dict[str, float]:
        """Return tests that run the mutant's line, the likeliest killers first."""
        places = self.statements[mutant.path]
        name, line = places[max(begin for begin in places if begin <= mutant.line)]
        known = self.covering.get((mutant.path, name, line), {})
        kills = self.kills.get(mutant.path, Counter())
        seen: Counter[str] = Counter()
        ranked = []
        for name, seconds in sorted(known.items(), key=lambda pair: pair[1]):
            rank = seen[_function(name)]
            seen[_function(name)] += 1
            ranked.append((rank > 0, -kills[_function(name)], rank, seconds, name))
        chosen: dict[str, float] = {}
        for *_, seconds, name in sorted(ranked):
            if sum(chosen.values()) + seconds <= budget:
                chosen[name] = seconds
        return chosen

    def _pytest(
        self, arguments: Sequence[str], task: dict[str, Any], variables: dict[str, str]
    ) -> tuple[list[dict[str, Any]], int]:
        """Run pytest in the copy; return what the plugin told, and the exit code."""
        self.report.unlink(missing_ok=True)
        given = self.tree.with_name("task.json")
        given.write_text(json.dumps({"report": str(self.report), **task}))
        path = os.pathsep.join((str(self.tree), str(self.tree / "scripts")))
        own = {"PYTHONPATH": path, "MUTATION_TASK": str(given), "OMP_NUM_THREADS": "1"}
        own |= {"HPCGYM_TRACES": "", "NUMBA_CACHE_DIR": str(self.tree.with_name("cache"))}
        options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "--no-header"]
        plugin = ["-p", "research.mutation_plugin"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *plugin, *arguments],
            cwd=self.tree,
            env=os.environ | own | variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            code = process.wait()
        finally:
            process.kill()
        told = self.report.read_text().splitlines() if self.report.exists() else []
        return [json.loads(line) for line in told], code

    def _write(self, path: str, source: bytes) -> None:
        """Write a file of the copy, and forget what Python compiled of it."""
        place = self.tree / path
        place.write_bytes(source)
        Path(cache_from_source(str(place))).unlink(missing_ok=True)


def judged(
    mutation: Mutation, mutants: Sequence[Mutant], *, compiled: bool = True
) -> Iterator[Verdict]:
    """Judge mutants one after the other."""
    with steps(len(mutants), "mutants", "mutants") as work:
        for mutant in mutants:
            yield mutation.judge(mutant, compiled=compiled)
            work.advance()


def table_of(verdicts: Sequence[Verdict]) -> str:
    """Return how many were killed, by part of the code, and the time that each took."""
    counts: dict[str, Counter[str]] = {}
    for one in verdicts:
        part = next(name for name in MUTATED if one.mutant.path.startswith(name))
        for name in (part, "all"):
            counts.setdefault(name, Counter())[one.end] += 1
    rows = [f"{'':24} {'mutants':>8} {'killed':>8} {'equivalent':>11} {'survived':>9}"]
    for name in sorted(counts, key=lambda name: (name == "all", name)):
        ends = counts[name]
        rows.append(
            f"{name:24} {ends.total():>8} {ends['killed']:>8} {ends['equivalent']:>11} "
            f"{ends['survived']:>9}"
        )
    times = sorted(one.seconds for one in verdicts if one.end != "equivalent") or [0.0]
    good = sum(one.end != "survived" for one in verdicts)
    return "\n".join(rows) + (
        f"\nkilled or equivalent: {100 * good / max(len(verdicts), 1):.1f} %"
        f"\ntime per mutant: mean {sum(times) / len(times):.1f} s, "
        f"median {times[len(times) // 2]:.1f} s, longest {times[-1]:.1f} s"
    )


def statements_of(source: bytes) -> dict[int, tuple[str, int]]:
    """Return where statements begin: by line, the innermost function and the line in it.

    So what is known of a function stays, where another one above it changes.

    Example:
        >>> statements_of(b"def f() -> int:\\n    x = 1\\n    return x\\n")[3]
        ('f', 2)
    """
    found: dict[int, tuple[str, int]] = {}
    for function in ast.walk(ast.parse(source)):  # outer functions come before inner ones
        if isinstance(function, ast.FunctionDef):
            for one in ast.walk(function):
                if isinstance(one, ast.stmt):
                    found[one.lineno] = (function.name, one.lineno - function.lineno)
    return found


def _file(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def _function(test: str) -> str:
    """Return a test without its parameters."""
    return test.partition("[")[0]


def _digest(*parts: str | bytes) -> str:
    """Digest some texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()
