"""The formats of machines that are read, and which of them a file has: its content decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hpcgym.base.errors import MachineError
from hpcgym.machine import Machine
from hpcgym.machine.files import alea, scontrol, sinfo, slurm_conf
from hpcgym.machine.files.layout import as_machine
from hpcgym.machine.files.records import Records, text_of

SHOWN = 3  # names that a note lists


class Format(NamedTuple):
    """A format: its name, what recognises a text, and what reads it."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Records]


FORMATS = (
    Format("slurm.conf", slurm_conf.recognises, slurm_conf.read),
    Format("text of scontrol", scontrol.recognises, scontrol.read),
    Format("JSON of sinfo", sinfo.recognises, sinfo.read),
    Format("machines of Alea", alea.recognises, alea.read),
)
"""The first that recognises a file reads it; what none recognises is TOML."""


class MachineFile(NamedTuple):
    """A machine that was read from a file; it prints."""

    machine: Machine
    format: str  # what the file has: the name of a format, or "TOML"
    node_names: tuple[str, ...] = ()  # each node's name by its id; empty where nodes have none
    notes: tuple[str, ...] = ()  # what was left out or is not simulated, and of what

    def __str__(self) -> str:
        return "\n".join([f"{self.format}: {self.machine}", *self.notes])


def read_machine(path: str | Path) -> MachineFile:
    """Read a machine: TOML, or one of the formats, by its content."""
    text = text_of(path)
    known = next((form for form in FORMATS if form.recognises(text)), None)
    if known is None:
        return MachineFile(_from_toml(path), "TOML")
    records = known.read(text, str(path))
    machine, names = as_machine(records, str(path))
    notes = (_note(what, of) for what, of in records.notes.items())
    return MachineFile(machine, known.name, names, tuple(notes))


def _from_toml(path: str | Path) -> Machine:
    """Read a machine in TOML; what is no TOML may be in another format, cut short."""
    try:
        return Machine.from_toml(path)
    except MachineError as error:
        if "not valid TOML" not in str(error):
            raise
        known = ", ".join(form.name for form in FORMATS)
        raise MachineError(f"{error}. Nor is it {known}") from None


def _note(what: str, names: list[str]) -> str:
    more = ", ..." if len(names) > SHOWN else ""
    return f"{len(names)} {what}: {', '.join(names[:SHOWN])}{more}"
