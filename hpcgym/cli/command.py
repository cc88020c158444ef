"""What every subcommand does before it begins: words for what is wrong, inputs before outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from hpcgym.base.errors import HpcgymError, no_such_file
from hpcgym.base.output import keeping_inputs
from hpcgym.base.packages import RECORDING, TRAINING, missing_packages
from hpcgym.cli.options import STDIN

OUTPUTS = ("output", "folder")  # parameters of what commands write

LOGS = ("log", "logs", "file", "files")
"""Parameters of logs, by name or file, where they are texts; a path is a file of another kind."""

SCENARIOS = ("scenario", "scenarios")
AGENTS = ("agent", "agents", "names")
MODEL = ".zip"
AGENT_FILES = (".toml", ".py", MODEL)  # endings of files that agents are named by

NEEDED = {"plot": ("matplotlib",), "train": TRAINING, "record": RECORDING}
EXECUTORS = {"ray": ("ray",), "slurm": ("submitit",)}
"""Modules that commands, and kinds of `--on`, need."""


class HouseCommand(TyperCommand):
    """Writes over no file that its other options and arguments name, whatever is forced."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the arguments."""
        takes_on = any(parameter.name == "executor" for parameter in self.params)
        if takes_on and any(word.partition("=")[0] == "--processes" for word in args):
            raise HpcgymError("--processes is gone; --on local:8 stands for --processes 8")
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            said = _nothing_given(error, _typed(ctx)) or _no_number(error, words)
            if said is None:
                raise
            raise HpcgymError(said) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        if any(name in OUTPUTS for name in ctx.params):
            _refuse_missing(ctx.params)
        needed = missing_packages(_typed(ctx), _modules_of(str(self.name), ctx.params))
        if needed:
            raise HpcgymError(needed)
        with keeping_inputs(inputs_of(ctx.params)):
            return super().invoke(ctx)


class HouseTyper(typer.Typer):
    """Makes subcommands that are `HouseCommand`."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **rest: Any
    ) -> Callable[[Any], Any]:
        """Add a subcommand."""
        return super().command(name, cls=cls or HouseCommand, **rest)


def inputs_of(parameters: Mapping[str, object]) -> Iterator[str | int]:
    """Yield what may be the name of a file that a command reads; 0 is standard input.

    Example:
        >>> list(inputs_of({"log": "-", "agents": ["SAF,own.py:Mine"], "output": "b.csv"}))
        [0, 'SAF,own.py:Mine', 'SAF', 'own.py:Mine', 'SAF,own.py', 'own.py']
    """
    for name, given in _given(parameters):
        if name in OUTPUTS:
            continue
        for word in _words_of(given):
            yield 0 if word == STDIN else os.path.expanduser(word)


def _given(parameters: Mapping[str, object]) -> Iterator[tuple[str, str | Path]]:
    for name, value in parameters.items():
        for given in value if isinstance(value, list | tuple) else [value]:
            if isinstance(given, str | Path):
                yield name, given


def _words_of(given: str | Path) -> list[str]:
    """Return a text, its parts between commas, and all of these without what follows a colon."""
    words = [str(given), *str(given).split(",")]
    words += [word.rpartition(":")[0] for word in words]
    return list(filter(None, dict.fromkeys(words)))


def _modules_of(command: str, parameters: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a command needs for what it was given."""
    yield from NEEDED.get(command, ())
    for name, given in _given(parameters):
        text = str(given)
        if text.endswith(".parquet"):
            yield "pyarrow"
        elif name == "executor":
            yield from EXECUTORS.get(text.partition(":")[0], ())
        elif name in AGENTS and any(word.endswith(MODEL) for word in text.split(",")):
            yield from ("torch", "stable_baselines3")


def _refuse_missing(parameters: Mapping[str, object]) -> None:
    """Refuse files and logs that are not there, before any output is looked at."""
    for name, given in _given(parameters):
        if name in OUTPUTS or str(given) == STDIN:
            continue
        if name in SCENARIOS:
            from hpcgym.env.scenario.load import load_scenario

            load_scenario(given)
        elif os.path.exists(os.path.expanduser(given)):
            continue
        elif name in LOGS and isinstance(given, str):
            from hpcgym.trace.catalogue import find_trace

            find_trace(given)
        elif isinstance(given, Path):
            raise HpcgymError(no_such_file(given))
        elif name in AGENTS:
            parts = str(given).split(",")
            for word in [*parts, *(part.rpartition(":")[0] for part in parts)]:
                if word.endswith(AGENT_FILES) and not os.path.exists(os.path.expanduser(word)):
                    raise HpcgymError(no_such_file(word))


def _typed(ctx: Any) -> str:
    """Return what is typed to run a subcommand, such as "hpcgym traces import"."""
    return " ".join(["hpcgym", *ctx.command_path.split()[1:]])


def _nothing_given(error: Any, typed: str) -> str | None:
    """Return what a subcommand needs and did not get, and what for; None where it got all."""
    if type(error).__name__ != "MissingParameter":  # of click, or of the copy that typer has
        return None
    asked = error.param
    flags = " or ".join(flag for flag in asked.opts if flag.startswith("-"))
    what = (getattr(asked, "help", None) or "").rstrip(".")
    return (
        f"{typed} needs {flags or asked.metavar or asked.name}{f' ({what})' if what else ''}; "
        f"`{typed} --help` says more"
    )


def _no_number(error: Any, words: Sequence[str]) -> str | None:
    """Return what came in place of a number, and what is allowed; None where none is asked for."""
    message = str(error.message)
    kinds = {"integer": (int, "a whole number"), "number": (float, "a number")}
    kinds["float"] = kinds["number"]
    reads, allowed = next((kinds[word] for word in kinds if word in message), (None, ""))
    if reads is None or error.param is None:
        return None
    for number, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag not in error.param.opts:
            continue
        came = value if equals else "".join(words[number + 1 : number + 2])
        try:
            reads(came)
        except ValueError:
            return f"{flag} {came!r}: allowed: {allowed}"
    return None
