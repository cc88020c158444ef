"""Slurm's limits as `sacctmgr show assoc tree -P` and `sacctmgr show qos -P` print them.

What is read are limits of running and submitted jobs. A limit of one job is left aside, as jobs of
a log kept it; all others are refused.

Source: Specification, section 16, "Limits".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.base.errors import MachineError
from hpcgym.machine.files.priorities import accounts_of_tree, read_cell, rows_of
from hpcgym.machine.files.records import NO_LIMIT, count_of, text_of

COMMANDS = "sacctmgr show assoc tree -P; sacctmgr show qos -P"

JOBS, SUBMITTED, TRES, RUN_MINUTES = "jobs", "submitted", "tres", "minutes"
RESOURCES = {TRES: {"cpu": "cpus", "gres/gpu": "gpus"}, RUN_MINUTES: {"cpu": "minutes"}}
"""What of a list of resources is a limit here, and its name."""

GROUP = {"GrpJobs": JOBS, "GrpSubmit": SUBMITTED, "GrpTRES": TRES, "GrpTRESRunMins": RUN_MINUTES}
ALONE = {"MaxJobs": JOBS, "MaxSubmit": SUBMITTED}
PER_USER, PER_ACCOUNT = (
    {f"MaxJobs{of}": JOBS, f"MaxSubmit{of}": SUBMITTED, f"MaxTRES{of}": TRES}
    | {f"MaxTRESRunMins{of}": RUN_MINUTES}
    for of in ("PU", "PA")
)
"""Fields, and what they limit."""

KINDS = {"group": GROUP, "alone": ALONE, "user": PER_USER, "account": PER_ACCOUNT}
OF_FIELD = {field: (kind, what) for kind, fields in KINDS.items() for field, what in fields.items()}

OF_ONE_JOB = ("MaxTRES", "MaxTRESPerNode", "MaxTRESMins", "MaxWall", "MinTRES")
NO_LIMITS = (
    *("Cluster", "Account", "User", "Partition", "Share", "RawShares", "Priority", "QOS"),
    *("Def QOS", "ParentName", "Par Name", "Name", "Descr", "ID", "GraceTime", "PreemptMode"),
    *("PreemptExemptTime", "UsageFactor"),
)
HARMLESS = {"Flags": ("DenyOnLimit",), "LimitFactor": ("1.000000", "1")}
"""Fields that may have one of these values."""

OF_QOS, OF_QOS_USER, OF_QOS_ACCOUNT, OF_USER, OF_USER_GROUP, OF_ACCOUNT = 0, 1, 2, 3, 4, 2**20
"""Levels, in the order in which Slurm asks them; of accounts less the accounts above."""

Keys = dict[str, Any]


class StatedLimits(NamedTuple):
    """What files state."""

    levels: list[list[Keys]]  # keywords of limits; those of a level never count one job twice
    accounts: dict[str, tuple[str, ...]]  # accounts of each user


class _Row(NamedTuple):
    """A row with limits: where it is, its names, and the limits of each group of fields."""

    where: str
    account: str
    user: str
    parent: str
    limits: dict[str, dict[str, int]]


def read_limits(*paths: str | Path) -> StatedLimits:
    """Read limits of associations and of qualities of service."""
    associations: list[_Row] = []
    qualities: list[_Row] = []
    for path in paths:
        text = text_of(path)
        columns = [name.strip() for name in text.lstrip("\n").partition("\n")[0].split("|")]
        if "RawShares" in columns:
            raise MachineError(
                f"{path}: of sshare, which prints no limits; it belongs to --shares of hpcgym "
                f"report. Limits are printed by: {COMMANDS}"
            )
        if "Account" in columns and "User" in columns:
            associations += _associations(text, str(path))
        elif "Name" in columns:
            qualities += [
                _Row(f"{path}:{line}", cells["Name"].strip(), "", "", _limits(cells, path, line))
                for line, cells in rows_of(text, str(path))
            ]
        else:
            raise MachineError(f"{path}: nothing about limits; print them by: {COMMANDS}")
    if not associations and not qualities:
        raise MachineError(f"limits: name files, as these commands print them: {COMMANDS}")
    _refuse_twice([*associations, *qualities])
    levels: dict[Any, list[Keys]] = defaultdict(list)
    for row in qualities:
        name = row.account
        _add(levels, OF_QOS, {"per": "qos", "name": name}, row.limits["group"])
        _add(levels, OF_QOS_USER, {"per": "user", "qos": name}, row.limits["user"])
        _add(levels, OF_QOS_ACCOUNT, {"per": "account", "qos": name}, row.limits["account"])
    _add_associations(levels, associations, _spared(qualities, associations))
    accounts: dict[str, tuple[str, ...]] = {}
    for row in associations:
        if row.user:
            accounts[row.user] = (*accounts.get(row.user, ()), row.account)
    return StatedLimits([levels[key] for key in sorted(levels)], accounts)


def _associations(text: str, path: str) -> list[_Row]:
    """Read associations; a limit of an account needs the accounts below it."""
    rows = [
        _Row(f"{path}:{line}", account, user, parent, _limits(cells, path, line))
        for line, cells, account, user, parent in accounts_of_tree(text, path)
    ]
    accounts = [row for row in rows if not row.user]
    if len(accounts) > 1 and not any(row.parent for row in accounts):
        for row in accounts:
            if any(row.limits.values()):
                raise MachineError(
                    f"{row.where}: limits of account {row.account!r} hold for those below it, and "
                    "no line says which these are; print it by: sacctmgr show assoc tree -P"
                )
    return rows


def _limits(cells: dict[str, str], path: str | Path, line: int) -> dict[str, dict[str, int]]:
    """Return the limits of a row: "group", "alone", "user" and "account", by what they limit."""
    limits: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
    for field, cell in cells.items():
        value, where = cell.strip(), f"{path}:{line}: {field}"
        if not value or field in (*OF_ONE_JOB, *NO_LIMITS) or value in HARMLESS.get(field, ()):
            continue
        if field not in OF_FIELD:
            raise MachineError(
                f"{where} is {value[:60]!r}, which is not modelled; leave the field out if nothing "
                f"hangs on it. Read are {', '.join(OF_FIELD)}"
            )
        kind, what = OF_FIELD[field]
        stated = _resources(value, where, RESOURCES[what]) if what in RESOURCES else {what: value}
        for key, text in stated.items():
            if not text.startswith("-") and text not in NO_LIMIT:
                limits[kind][key] = read_cell(count_of, text, where)
                if limits[kind][key] == 0:
                    raise MachineError(f"{where} is 0, so that no job ever starts; leave it out")
    return limits


def _resources(value: str, where: str, known: dict[str, str]) -> dict[str, str]:
    parts = dict(part.partition("=")[::2] for part in value.split(","))
    for name in parts:
        if name not in known:
            raise MachineError(
                f"{where} has {name!r}, which is not modelled; allowed: {', '.join(known)}"
            )
    return {known[name]: text for name, text in parts.items()}


def _refuse_twice(rows: Iterable[_Row]) -> None:
    """Refuse an association or a quality of service that is there twice."""
    seen: dict[tuple[str, ...], str] = {}
    for row in rows:
        name = (row.where.rpartition(":")[0], row.account, row.user)
        if name in seen:
            raise MachineError(f"{row.where}: it is there twice, first at {seen[name]}")
        seen[name] = row.where


def _spared(qualities: Sequence[_Row], associations: Sequence[_Row]) -> dict[str, dict[str, Any]]:
    """Return which qualities of service take the place of limits of associations, by kind."""
    spared: dict[str, dict[str, Any]] = {}
    for kind, theirs in (("group", "group"), ("user", "alone")):
        names: dict[str, Any] = defaultdict(tuple)
        for row in qualities:
            for what in row.limits[kind]:
                names[what] += (row.account,)
            if SUBMITTED in row.limits[kind]:
                for other in associations:
                    if SUBMITTED in other.limits[theirs]:
                        raise MachineError(
                            f"{row.where} and {other.where} both limit submitted jobs; leave one "
                            "out, since which of them counts a job is not modelled"
                        )
        spared[theirs] = dict(names)
    return spared


def _add_associations(
    levels: dict[Any, list[Keys]], rows: Sequence[_Row], spared: dict[str, dict[str, Any]]
) -> None:
    """Add the limits of associations; those of users alone are inherited from accounts above."""
    accounts = {row.account: row for row in rows if not row.user}

    def above(row: _Row) -> list[_Row]:
        """Return the accounts above, the nearest first."""
        chain, name = [], row.account if row.user else row.parent
        while name in accounts and accounts[name] not in chain:
            chain.append(accounts[name])
            name = accounts[name].parent
        return chain

    chains = {row.account: [row.account, *(each.account for each in above(row))] for row in rows}
    for row in rows:
        if row.user:
            alone: dict[str, int] = {}
            for each in reversed([row, *above(row)]):
                alone |= each.limits["alone"]
            whose: Keys = {"per": "user", "name": row.user, "account": row.account}
            _add(levels, OF_USER, whose, alone, spared["alone"])
            _add(levels, OF_USER_GROUP, whose, row.limits["group"], spared["group"])
        else:
            below = tuple(a for a in accounts if row.account in chains[a] and a != row.account)
            whose = {"per": "account", "name": row.account, "below": below}
            level = OF_ACCOUNT - len(above(row))  # the lowest accounts first
            _add(levels, level, whose, row.limits["group"], spared["group"])


def _add(
    levels: dict[Any, list[Keys]],
    level: int,
    whose: Keys,
    limits: dict[str, int],
    spared: dict[str, Any] | None = None,
) -> None:
    """Add limits of somebody to a level, those apart that spare other qualities of service."""
    by_spared: dict[Any, Keys] = defaultdict(dict)
    for what, most in limits.items():
        by_spared[(spared or {}).get(what, ())][what] = most
    for spares, stated in by_spared.items():
        levels[level, spares].append(whose | stated | ({"spares": spares} if spares else {}))
