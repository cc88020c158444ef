"""Strict reading of scenario files: a key or value that is not understood is an error."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from hpcgym.base import plugins
from hpcgym.base.errors import MachineError, PolicyError, ScenarioError, unknown_name
from hpcgym.base.registry import find_entry, read_toml, shelf_entries
from hpcgym.core.events import as_event
from hpcgym.env.scenario.spec import (
    EPISODE_KINDS,
    EpisodeSpec,
    MachineSpec,
    Scenario,
    SchedulerSpec,
    TraceSpec,
)
from hpcgym.machine import Machine
from hpcgym.machine.downtime import names_of
from hpcgym.machine.files import read_machine

TableT = TypeVar("TableT")

TABLES: dict[str, tuple[type[Any], ...]] = {
    "trace": (TraceSpec,),
    "machine": (MachineSpec,),
    "episode": tuple(EPISODE_KINDS.values()),
    "scheduler": (SchedulerSpec,),
}
"""The tables of a scenario file and the classes that hold their keys."""

NODE_TABLES = ("file", "nodes", "partitions")  # keys of `[machine]` that state nodes


def scenario_names() -> tuple[str, ...]:
    """Return the name of every scenario on the shelf, sorted; a name is a file's stem."""
    return tuple(sorted(shelf_entries("scenarios")))


def load_scenario(scenario: str | Path | Scenario) -> Scenario:
    """Find and check a scenario by name or path, without opening its log.

    A text that ends in `.toml` is a path, any other a name on the shelf or one that an installed
    package offers; a `Scenario` is returned as it is. The path of the log becomes absolute.

    Raises:
        ScenarioError: No such scenario, or a file with an error; the message names the file, the
            table, the key and the nearest valid one.
    """
    if isinstance(scenario, Scenario):
        return scenario
    is_path = isinstance(scenario, Path) or str(scenario).endswith(".toml")
    path = Path(scenario) if is_path else _of_name(str(scenario))
    if isinstance(path, Scenario):
        return path
    document = read_toml(path, ScenarioError)
    try:
        return _scenario_of(document, path.stem, path.parent)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def _of_name(name: str) -> Path | Scenario:
    """Return the file of a scenario on the shelf, or the scenario that a package offers."""
    try:
        return find_entry("scenarios", name)
    except ScenarioError:
        entry = plugins.find_offered("scenarios", name)
        if entry is None:
            raise
    offered = plugins.make(plugins.load_offered(entry), entry.name)
    if not isinstance(offered, str | Path | Scenario):
        raise ScenarioError(
            f"{entry.name!r} of {plugins.package_of(entry)} is no scenario: allowed are a Scenario,"
            f" the path of its .toml file and a function that returns one, got {offered!r:.80}"
        )
    path = offered if isinstance(offered, Scenario) else Path(offered)
    return replace(load_scenario(path), name=entry.name)


def parse_scenario(text: str, *, name: str, folder: Path | None = None) -> Scenario:
    """Check the text of a scenario file.

    Args:
        text: TOML: a description and the tables trace, machine, episode and scheduler, and
            outage, of which there may be several. `machine` may also be the path of a file of
            nodes.
        name: Name of the scenario.
        folder: Where a relative path of a log or machine starts; None = the working directory.

    Raises:
        ScenarioError: As `load_scenario`, without the file's name.

    Example:
        >>> parse_scenario(
        ...     '''
        ...     description = "All of tiny."
        ...     trace = { name = "tiny", missing_request = "drop" }
        ...     machine = { processors = 4, largest_request_s = 100 }
        ...     episode = { kind = "week", week = 3 }
        ...     ''',
        ...     name="mine",
        ... )
        Traceback (most recent call last):
        hpcgym.base.errors.ScenarioError: [episode] unknown key 'week'; did you mean 'weeks'? \
Allowed: train, validation, test, kind, rule, offset_s, weeks, warm_history
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of 5,000 digits
        raise ScenarioError(f"not valid TOML: {error}") from None
    return _scenario_of(document, name, folder or Path())


def _scenario_of(document: dict[str, Any], name: str, folder: Path) -> Scenario:
    """Check a parsed scenario, table by table."""
    allowed = ("description", *TABLES, "outage")
    for key in document:
        if key not in allowed:
            raise ScenarioError(unknown_name("table or key", key, allowed) + _home_of(key, None))
    for key in ("description", "trace", "machine", "episode"):
        if key not in document:
            what = f"[{key}]" if key in TABLES else key
            raise ScenarioError(f"{what} is missing")
    if not isinstance(document["description"], str):
        raise ScenarioError(f"description must be a text, got {document['description']!r}")
    if isinstance(document["machine"], str):
        document["machine"] = {"file": document["machine"]}
    for key in TABLES.keys() & document.keys():
        if not isinstance(document[key], dict):
            raise ScenarioError(f"{key} must be a table, got {document[key]!r}")
    trace = _read_table(TraceSpec, "trace", document["trace"])
    if trace.file is not None:
        trace = replace(trace, file=str((folder / trace.file).absolute()))
    machine = _read_machine(document["machine"], trace.max_request_s, folder)
    if machine.nodes is not None and machine.nodes.outages:
        _refuse_resampled(document)
    return Scenario(
        name=name,
        description=document["description"],
        trace=trace,
        machine=machine,
        episode=_read_episode(document["episode"]),
        scheduler=_read_table(SchedulerSpec, "scheduler", _with_outages(document)),
    )


def _refuse_resampled(document: dict[str, Any]) -> None:
    """Refuse outages beside weeks that have no place on the log's clock."""
    episode = document.get("episode")
    if isinstance(episode, dict) and episode.get("kind") == "resampled":
        raise ScenarioError(
            "[[outage]]: its times are those of the log's clock, and resampled weeks have no place "
            'there; choose kind = "week", or leave the outages out'
        )


def _with_outages(document: dict[str, Any]) -> dict[str, Any]:
    """Return the scheduler's table with the outages of `[[outage]]` among its events."""
    scheduler: dict[str, Any] = document.get("scheduler", {})
    outages, events = document.get("outage", []), scheduler.get("events", "")
    if not isinstance(outages, list) or not all(isinstance(table, dict) for table in outages):
        raise ScenarioError(f"outage must be tables [[outage]], got {outages!r}")
    if not outages or not isinstance(events, str):
        return scheduler
    _refuse_resampled(document)
    texts = [_outage_of(f"[[outage]] {number}", table) for number, table in enumerate(outages, 1)]
    return scheduler | {"events": ";".join(filter(None, [events, *texts]))}


def _outage_of(name: str, table: dict[str, Any]) -> str:
    stated = dict(table)
    try:
        if "nodes" in stated:
            stated["nodes"] = "/".join(names_of(stated["nodes"], PolicyError))
        for key, value in stated.items():
            if key != "nodes" and (not isinstance(value, int) or isinstance(value, bool)):
                raise ScenarioError(f"{name}: {key} must be a whole number, got {value!r}")
        return str(as_event("outage:" + ",".join(f"{key}={stated[key]}" for key in stated)))
    except PolicyError as error:
        raise ScenarioError(f"{name}: {error}") from None


def _read_machine(table: dict[str, Any], max_request_s: int | None, folder: Path) -> MachineSpec:
    """Return the machine table, with the nodes that it holds or names.

    With nodes the largest request is by default the one that requests are cut to.
    """
    stated = [key for key in NODE_TABLES if key in table]
    if not stated:
        return _read_table(MachineSpec, "machine", table)
    if "processors" in table or ("file" in table and len(stated) > 1):
        came = ", ".join(key for key in table if key != "largest_request_s")
        raise ScenarioError(f"[machine] needs one of processors, file and nodes, got {came}")
    try:
        if "file" not in table:
            nodes = Machine.from_dict({key: table[key] for key in stated})
        elif isinstance(table["file"], str):
            nodes = read_machine(folder / table["file"]).machine
        else:
            raise ScenarioError(f"[machine] file must be a text, got {table['file']!r}")
    except MachineError as error:
        raise ScenarioError(f"[machine] {error}") from None
    rest = {key: value for key, value in table.items() if key not in NODE_TABLES}
    if max_request_s is not None:
        rest.setdefault("largest_request_s", max_request_s)
    return _read_table(MachineSpec, "machine", {"processors": nodes.cpus, **rest, "nodes": nodes})


def _read_episode(table: dict[str, Any]) -> EpisodeSpec:
    """Return the episode table as the class that its `kind` names."""
    if "kind" not in table:
        raise ScenarioError(f"[episode] kind is missing. Allowed: {', '.join(EPISODE_KINDS)}")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in EPISODE_KINDS:
        raise ScenarioError(f"[episode] {unknown_name('kind', kind, EPISODE_KINDS)}")
    return _read_table(EPISODE_KINDS[kind], "episode", table, kind=kind)


def _read_table(
    cls: type[TableT], name: str, table: dict[str, Any], *, kind: str | None = None
) -> TableT:
    """Return a table as the class that holds its keys; refuse unknown and missing ones."""
    allowed = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    for key in table:
        if key not in allowed:
            raise ScenarioError(
                f"[{name}] {unknown_name('key', key, allowed)}" + _home_of(key, kind)
            )
    for key, field in allowed.items():
        if key not in table and field.default is MISSING:
            raise ScenarioError(f"[{name}] {key} is missing")
    return cls(**table)


def _home_of(key: str, kind: str | None) -> str:
    """Return to which table, or to which kinds of episode, a misplaced key belongs."""
    if kind is not None:
        kinds = [
            other
            for other, cls in EPISODE_KINDS.items()
            if key in {field.name for field in fields(cls)}
        ]
        if kinds:
            return f'. In an episode of kind "{kind}" it has no meaning; it belongs to ' + (
                " and ".join(f'"{other}"' for other in kinds)
            )
    homes = [
        table
        for table, classes in TABLES.items()
        if any(key in {field.name for field in fields(cls)} for cls in classes)
    ]
    return f". The key belongs to [{'], ['.join(homes)}]" if homes else ""
