"""Slurm's priorities as a site has them: weights, factors of partitions, accounts with shares.

They are in `slurm.conf` or what `scontrol show config` prints, `scontrol show partition`, `sshare
-l -a -P`, `sacctmgr show assoc tree -P` and `sacctmgr show qos -P`. A file's content says what it
has; several files add to each other.

Source: Specification, section 16, "Slurm's files".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hpcgym.base.errors import MachineError, PolicyError
from hpcgym.machine.accounts import Accounts, Association
from hpcgym.machine.files.records import count_of, seconds_of, text_of

COMMANDS = (
    "scontrol show config; scontrol show partition; sshare -l -a -P; sacctmgr show qos -P "
    "format=name,priority"
)

_PAIR = re.compile(
    r"^[ \t]*(Priority\w+|FairShareDampeningFactor)[ \t]*=[ \t]*([^\s#]*)", re.I | re.M
)
_PARTITION = re.compile(r"^[ \t]*PartitionName=(\S+)((?:.|\n(?![ \t]*\n|[ \t]*\w+Name=))*)", re.M)
_FACTOR = re.compile(r"\bPriorityJobFactor=(\S+)")

WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fairshare",
    "priorityweightjobsize": "jobsize",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
    "fairsharedampeningfactor": "dampening",
}
SPANS = {
    "prioritymaxage": "max_age",
    "prioritydecayhalflife": "half_life",
    "prioritycalcperiod": "period",
}
FLAGS = {"SMALL_RELATIVE_TO_TIME": ("relative_to_time", 1), "NO_FAIR_TREE": ("fair_tree", 0)}
OF_RUNNING_JOBS = ("", "(NULL)", "FAIR_TREE", "CALCULATE_RUNNING")
"""Flags that change no order of waiting jobs."""

UNUSED = {
    "priorityweightassoc": ("0",),
    "priorityweighttres": ("", "(null)"),
    "priorityusageresetperiod": ("NONE",),
    "prioritysitefactorplugin": ("", "(null)"),
    "prioritytype": ("priority/multifactor",),
}
"""Keys that change priorities here unless they have one of these values; others are refused."""


def read_priorities(*paths: str | Path) -> dict[str, Any]:
    """Read Slurm's priorities, as keywords of the policy `multifactor`."""
    stated: dict[str, Any] = {}
    for path in paths:
        text = text_of(path)
        first = text.lstrip("\n").partition("\n")[0]
        columns = [name.strip() for name in first.split("|")]
        if "Account" in columns and "User" in columns:
            stated["accounts"] = _accounts(text, str(path))
        elif "Name" in columns and "Priority" in columns:
            stated["qoses"] = {
                cells["Name"].strip(): read_cell(
                    count_of, cells["Priority"], f"{path}:{line}: Priority"
                )
                for line, cells in rows_of(text, str(path))
            }
        elif _PAIR.search(text) or _PARTITION.search(text):
            stated |= _config(text, str(path))
        else:
            raise MachineError(f"{path}: nothing about priorities; print them by: {COMMANDS}")
    return stated


def _config(text: str, path: str) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    for pair in _PAIR.finditer(text):
        key, value = pair[1], pair[2]
        if key.casefold() in ("priorityjobfactor", "prioritytier"):
            continue
        where = f"{path}:{text.count(chr(10), 0, pair.start()) + 1}: {key}"
        stated |= _stated(key.casefold(), value, where)
    factors = {
        partition[1]: read_cell(count_of, factor[1], f"{path}: PriorityJobFactor of {partition[1]}")
        for partition in _PARTITION.finditer(text)
        if (factor := _FACTOR.search(partition[2])) is not None
    }
    return stated | ({"partitions": factors} if factors else {})


def _stated(key: str, value: str, where: str) -> dict[str, Any]:
    if key in WEIGHTS:
        return {WEIGHTS[key]: read_cell(count_of, value, where)}
    if key in SPANS:
        return {SPANS[key]: read_cell(seconds_of, value, where)}
    if key == "priorityfavorsmall":
        return {"favor_small": int(value.upper() in ("YES", "1", "TRUE"))}
    if key == "priorityflags":
        return _flags([flag.strip().upper() for flag in value.split(",")], where)
    if key in UNUSED and value not in UNUSED[key]:
        raise MachineError(
            f"{where} is {value!r}, which is not modelled; allowed: "
            f"{' or '.join(repr(plain) for plain in UNUSED[key])}"
        )
    return {}


def _flags(flags: list[str], where: str) -> dict[str, Any]:
    for flag in flags:
        if flag not in (*FLAGS, *OF_RUNNING_JOBS):
            raise MachineError(
                f"{where} has {flag}, which is not modelled; allowed: {', '.join(FLAGS)}, "
                f"{', '.join(OF_RUNNING_JOBS[2:])}"
            )
    return dict(FLAGS[flag] for flag in flags if flag in FLAGS)


def read_cell(read: Callable[[str], int], text: str, where: str) -> int:
    """Read a value; an error says where it is."""
    try:
        return read(text.strip())
    except ValueError as error:
        raise MachineError(f"{where} is {text[:60]!r}; {error}") from None


def rows_of(text: str, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of each row of a table parted by "|"."""
    lines = [
        (number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()
    ]
    names = [name.strip() for name in lines[0][1].split("|")]
    for number, line in lines[1:]:
        cells = line.split("|")
        if len(cells) != len(names):
            raise MachineError(
                f"{path}:{number}: {len(cells)} cells, and the first line names {len(names)}"
            )
        yield number, dict(zip(names, cells, strict=True))


def accounts_of_tree(text: str, path: str) -> Iterator[tuple[int, dict[str, str], str, str, str]]:
    """Yield line, cells, account, user and parent of each row; accounts are indented, or named."""
    above: list[tuple[int, str]] = []  # the accounts above the line at hand, and their indents
    for number, cells in rows_of(text, path):
        if cells.get("Partition", "").strip():
            raise MachineError(f"{path}:{number}: associations of a partition are not modelled")
        account, user = cells["Account"].strip(), cells["User"].strip()
        indent = len(cells["Account"]) - len(cells["Account"].lstrip())
        parent = ""
        if not user:
            while above and above[-1][0] >= indent:
                above.pop()
            parent = cells.get("ParentName", cells.get("Par Name", "")).strip()
            if not parent and above:
                parent = above[-1][1]
            above.append((indent, account))
        yield number, cells, account, user, parent


def _accounts(text: str, path: str) -> Accounts:
    """Read a tree of accounts, indented or by names, past those with shares "parent"."""
    made: list[Association] = []
    passed: dict[str, str] = {}  # the account above each account with such shares
    for number, cells, account, user, parent in accounts_of_tree(text, path):
        where = f"{path}:{number}"
        if not user and parent and _stated_shares(cells, where).casefold() == "parent":
            passed[account] = parent
            continue
        shares = _shares(cells, where)
        usage = float(read_cell(count_of, cells.get("RawUsage") or "0", f"{where}: RawUsage"))
        made.append(Association(account, user, parent, shares, usage if user else 0.0))
    for row, line in enumerate(made):
        above = line.above
        while above in passed:
            above = passed[above]
        if above != line.above:
            made[row] = line._replace(parent=above)
    try:
        return Accounts(tuple(_parents_first(made)))
    except PolicyError as error:
        raise MachineError(f"{path}: {error}; print it by: sshare -l -a -P") from None


def _parents_first(lines: Iterable[Association]) -> list[Association]:
    """Put each account behind its parent, and each user behind its account, as far as these are."""
    rest, done = list(lines), set()
    placed: list[Association] = []
    while rest:
        ready = [line for line in rest if line.above in done or not line.above]
        if not ready:
            return [*placed, *rest]
        placed += ready
        done |= {line.account for line in ready if not line.user}
        rest = [line for line in rest if line not in ready]
    return placed


def _stated_shares(cells: dict[str, str], where: str) -> str:
    text = next((cells[key] for key in ("RawShares", "Share") if key in cells), None)
    if text is None:
        raise MachineError(f"{where}: no column RawShares or Share; print it by: sshare -l -a -P")
    return text.strip()


def _shares(cells: dict[str, str], where: str) -> int:
    """Read the shares of a line; the root has none."""
    text = _stated_shares(cells, where)
    if text.casefold() == "parent":
        who = cells["User"].strip() or cells["Account"].strip()
        raise MachineError(
            f"{where}: shares 'parent' of {who!r} are not modelled, but of accounts below others; "
            "give a number"
        )
    return read_cell(count_of, text or "1", f"{where}: shares")
