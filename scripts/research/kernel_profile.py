"""Profile the compiled steps of a vector by perf, a sampling profiler of Linux, by part of a step.

    PYTHONPATH=scripts python -m research.kernel_profile

perf names compiled code by a map among temporary files, in which a process writes where its kernels
lie. The kernels come from the disk cache: run it twice if they were compiled first.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.core import codegen
from rich import print
from rich.table import Table

SCENARIO = "synthetic-busy-weeks"

PROBLEMS: dict[str, dict[str, Any]] = {
    "`index`, random": {"action": "index"},
    "`index`, zeros": {"action": "index"},
    "`index`, random, small": {"action": "index", "observation": "small"},
    "`policy` SAF": {"action": "policy", "policies": ["SAF"], "decide": 14_400},
}
"""What is stepped, each four hours at a step."""

PARTS = {
    "expected run times, logarithms": r"user_estimates|online_regression|ieee754|sincos",
    "users' records": r"user_history",
    "scores": r"scoring\.score|orders\.",
    "passes": r"cost_benefit|passes\.|schedule_pass|selection",
    "queue": r"queue\.",
    "clock, starts, ends": r"engine\.|parts\.",
    "observation": r"env\.observation",
    "reward and step": r"env\.",
}
"""Patterns of the names of functions; the first that fits is the part."""

_made: list[tuple[Any, bytes]] = []
"""Libraries of compiled kernels that this process has loaded, and their object code."""


def functions_in(code: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, section, offset and bytes of each function in an object file (ELF, 64 bits)."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, n_sections = struct.unpack_from("<HH", code, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(n_sections)
    ]
    for section in sections:
        if section[1] != 2:  # no table of symbols
            continue
        names = sections[section[6]][4]
        for k in range(section[5] // 24):
            name, kind, _, where, at, length = struct.unpack_from(
                "<IBBHQQ", code, section[4] + 24 * k
            )
            if kind & 15 == 2 and length > 0:
                first = names + name
                yield code[first : code.index(b"\0", first)].decode(), where, at, length


def short_name(mangled: str) -> str:
    """Return the last three names of a mangled one: folder, file, function.

    Example:
        >>> short_name("_ZN6hpcgym4core6engine5clock3runB2v1E")
        'engine.clock.run'
    """
    if not mangled.startswith("_ZN"):
        return mangled
    names, rest = [], mangled[3:]
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found[0])
        names.append(rest[found.end() : end])
        rest = rest[end:]
    return ".".join(names[-3:])


def write_map() -> None:
    """Write where this process has its kernels to where perf looks for it."""
    file = Path(tempfile.gettempdir()) / f"perf-{os.getpid()}.map"
    with file.open("w", encoding="utf-8") as map_of_process:
        for library, code in _made:
            functions, engine = [*functions_in(code)], library.codegen._engine._ee
            bases = {}
            for name, where, at, _ in functions:
                if where not in bases and (address := engine.get_function_address(name)):
                    bases[where] = address - at
            for name, where, at, length in functions:
                if where in bases:
                    line = f"{bases[where] + at:x} {length:x} {short_name(name)}\n"
                    map_of_process.write(line)


def step(name: str, calls: int) -> None:
    """Step a vector of 64 environments, in the process that perf watches."""
    load = codegen.JITCodeLibrary._unserialize.__func__  # type: ignore[attr-defined]

    def loaded(cls: Any, generator: Any, state: Any) -> Any:
        library = load(cls, generator, state)
        if state[1] == "object":
            _made.append((library, state[2][0]))
        return library

    codegen.JITCodeLibrary._unserialize = classmethod(loaded)  # type: ignore[assignment]
    from research.learning_rates import stepped

    envs, actions = stepped(name, PROBLEMS[name], 64)
    for call in range(calls):
        envs.step(actions[call % len(actions)])
    write_map()


def shares(name: str, calls: int) -> dict[str, float]:
    """Return the share of each part in the samples that lie in compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        child = [sys.executable, "-m", "research.kernel_profile", json.dumps([name, calls])]
        subprocess.run(["perf", "record", "-q", "-F", "999", "-o", str(data), *child], check=True)
        report = [
            "perf",
            "report",
            "-i",
            str(data),
            "--stdio",
            "--no-children",
            "-F",
            "overhead,dso,sym",
        ]
        told = subprocess.run(report, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = defaultdict(float)
    for percent, where, symbol in re.findall(r"^ *([\d.]+)% +(\S.*?) +\[.\] (\S+)", told, re.M):
        if "JIT" in where or "libm" in where or ".map" in where:
            part = next((part for part, like in PARTS.items() if re.search(like, symbol)), "others")
            found[part] += float(percent)
    return {part: found[part] / sum(found.values()) for part in (*PARTS, "others")}


def profile(calls: int = 600) -> Table:
    """Profile each problem."""
    found = {name: shares(name, calls) for name in PROBLEMS}
    table = Table("part of compiled steps", *found, title=f"64 environments, {SCENARIO}")
    for part in next(iter(found.values())):
        table.add_row(part, *(f"{spent[part]:.0%}" for spent in found.values()))
    return table


if __name__ == "__main__":
    if sys.argv[1:]:
        step(*json.loads(sys.argv[1]))
    else:
        print(profile())
