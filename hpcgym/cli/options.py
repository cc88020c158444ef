"""Options of the scheduler and of the cleaning, under one name in every subcommand.

`hpcgym simulate` shows their defaults. In `hpcgym evaluate` and `hpcgym cross-validate` they go
with `--log`, and None stands for the default there (docs/commands.md).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_type_hints

import typer

from hpcgym.base.errors import LARGEST_WHOLE, HpcgymError
from hpcgym.cli.show import complain, echo_prose
from hpcgym.core.setting_list import SETTINGS

if TYPE_CHECKING:
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.machine import Machine
    from hpcgym.trace.cleaning_report import CleaningReport

CommandT = TypeVar("CommandT", bound=Callable[..., None])

SCHEDULER, LOG = "Scheduler", "Log and machine"  # headings of the options in `--help`

Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on from what was cut off, if there is any.")
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace what is there and, without --resume, begin anew.")
]
On: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="What shares the work: local:8, ray, ray:ADDRESS, slurm or slurm:jobs=8, with "
        "partition= and time= too; default this process. The result is the same.",
    ),
]
Processors: TypeAlias = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=LOG, help="Size of the machine; default as the log's header says."
    ),
]
MachineFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--machine",
        rich_help_panel=LOG,
        metavar="FILE",
        help="A machine of nodes, in place of --processors: TOML, a slurm.conf, what scontrol show "
        "node and show partition print, sinfo --json, or machines of Alea.",
    ),
]
Timezone: TypeAlias = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=LOG,
        metavar="NAME",
        help="Zone of local times in accounting; default this machine's.",
    ),
]
CountedFrom: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="eligible|submit", help="When a job enters the queue, and waits count from."
    ),
]
RequestedMemory: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--requested-memory",
        rich_help_panel=LOG,
        help="With --machine: jobs of an SWF log need the memory of its field 10.",
    ),
]
_OWN = ". In simulate and plot also file.py:Name or module:Name, one of your own"
_FURTHER = {
    "backfill": f". Parameters follow a colon: multi-queue:delay=2500{_OWN}",
    "backfill_order": "; default as the policy's",
    "threshold": ": by default none in simulate, 200000 with --log",
    "estimates": _OWN,
}
"""What the help of an option says besides what the setting is."""

_KEPT_BY_EVERY_MODE = ("policy", "backfill", "backfill_order", "kill_at_limit", "placement")
"""Settings that are not about passes, which modes with their own simulator do without."""

OF_SETTINGS: dict[str, Any] = {
    name: typer.Option(
        *(["--kill/--no-kill"] if name == "kill_at_limit" else []),
        rich_help_panel=SCHEDULER,
        metavar=(
            "SECONDS|none" if setting.unit else "KIND" if isinstance(setting.default, str) else None
        ),
        help=f"{setting.brief}{_FURTHER.get(name, '')}.",
    )
    for name, setting in SETTINGS.items()
    if name != "policy"
}
"""Option of each setting but the policy, which commands state in ways of their own."""

MISSING_REQUEST = typer.Option(
    rich_help_panel=LOG,
    metavar="KIND",
    help="What replaces requested times that the log lacks: run, max, tsafrir, drop; by default "
    "run in simulate, max with --log.",
)
MAX_REQUEST = typer.Option(
    rich_help_panel=LOG, metavar="SECONDS", help="Cut longer requests to this."
)
MINIMUM_RUN_TIME = typer.Option(
    rich_help_panel=LOG, metavar="SECONDS", help="Drop jobs that ran shorter."
)
ON_BAD_LINE = typer.Option(
    rich_help_panel=LOG, metavar="KIND", help="Malformed lines: raise, or drop."
)

OF_A_LOG: dict[str, tuple[Any, Any]] = {
    "processors": (Processors, None),
    "machine": (MachineFile, None),
    "requested_memory": (RequestedMemory, False),
    **{
        name: (
            Annotated[bool | None if SETTINGS[name].default is True else str | None, option],
            None,
        )
        for name, option in OF_SETTINGS.items()
    },
    "missing_request": (Annotated[str | None, MISSING_REQUEST], None),
    "max_request": (Annotated[int | None, MAX_REQUEST], None),
    "minimum_run_time": (Annotated[int | None, MINIMUM_RUN_TIME], None),
    "on_bad_line": (Annotated[str | None, ON_BAD_LINE], None),
    "timezone": (Timezone, None),
}
"""Options that go with `--log`, since a scenario states its own: type and default of each."""


def with_options(
    group: Mapping[str, tuple[Any, Any]], **defaults: object
) -> Callable[[CommandT], CommandT]:
    """Give a subcommand the options of a group, of which it takes the values as `**given`."""

    def add(command: CommandT) -> CommandT:
        *parameters, _ = inspect.signature(command, eval_str=True).parameters.values()
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name, default),
                annotation=kind,
            )
            for name, (kind, default) in group.items()
        ]
        command.__signature__ = inspect.Signature([*parameters, *shared])  # type: ignore[attr-defined]
        return command

    return add


def group_of(declared: type) -> dict[str, tuple[Any, Any]]:
    """Return the options that the fields of a dataclass are, as a group for `with_options`."""
    kinds = get_type_hints(declared, include_extras=True)
    return {
        field.name: (
            kinds[field.name],
            inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(declared)
    }


NO_THRESHOLD = "none"  # value of `--threshold` where no job goes first for its wait
SHOWN = 60  # characters of a wrong value that a message repeats
STDIN = "-"  # in place of a log's file: read it from standard input


def stated(context: typer.Context, name: str) -> bool:
    """Tell whether a parameter was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, idle: Mapping[str, str | None]) -> None:
    """Refuse options that are given, yet have no effect.

    Args:
        idle: Why a parameter has none, such as "without --output"; None where it has one.
    """
    flags = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name, why in idle.items():
        if why is not None and stated(context, name):
            raise HpcgymError(f"{flags[name]} has no effect {why}")


def idle_options(settings: SchedulerSettings) -> dict[str, str | None]:
    """Return why options of the scheduler have no effect under some settings, see `refuse_idle`."""
    from hpcgym.core.backfill import OwnSimulator, as_mode

    mode, predictor = as_mode(settings.backfill), settings.predictor
    takes_turns = isinstance(mode, OwnSimulator)
    why = f"with --backfill {mode}" if takes_turns else None
    idle = {name: why for name in SETTINGS if name not in _KEPT_BY_EVERY_MODE}
    requests = predictor is not None and predictor.kind in ("requested", "doubled")
    outlives = predictor is None or predictor.online or (requests and not settings.kill_at_limit)
    if settings.correction != "none" and not outlives:
        idle["correction"] = f"with --estimates {settings.estimates}: no job outlives its estimate"
    return idle


def idle_on_machine(machine: Path | None) -> dict[str, str | None]:
    """Return why options of the machine have no effect, see `refuse_idle`."""
    without = "without --machine" if machine is None else None
    return {
        "placement": without,
        "requested_memory": without,
        "processors": None if machine is None else "beside --machine",
    }


def read_machine(path: Path | None) -> Machine | None:
    """Return the machine of `--machine`, or None; say on standard error what a site's file had."""
    if path is None:
        return None
    from hpcgym.machine import files as machine_files

    read = machine_files.read_machine(path)
    if read.format != "TOML":
        for line in str(read).split("\n"):
            complain(f"machine {path}: {line}")
    return read.machine


def names_of_nodes(machine: Path | None) -> tuple[str, ...]:
    """Return the name of each node of `--machine` by its id."""
    from hpcgym.machine import files as machine_files

    return () if machine is None else machine_files.read_machine(machine).node_names


def lists_nodes(scheduler: str | None) -> bool:
    """Tell whether a configuration of Slurm has its nodes, too."""
    return (
        scheduler is not None
        and Path(scheduler).is_file()
        and ("NodeName=" in Path(scheduler).read_text(errors="replace"))
    )


def parse_threshold(text: str) -> int | None:
    """Return the threshold of `--threshold`, s; None = no threshold.

    Example:
        >>> parse_threshold("0"), parse_threshold("200000"), parse_threshold("none")
        (0, 200000, None)
    """
    if text.strip().casefold() == NO_THRESHOLD:
        return None
    digits = text.strip()
    if not digits.isdecimal() or len(digits) > len(str(LARGEST_WHOLE)):
        raise HpcgymError(
            f"--threshold {text[:SHOWN]!r}: allowed are whole seconds, 0 to {LARGEST_WHOLE}, and "
            f"{NO_THRESHOLD!r}"
        )
    return int(digits)


def log_at(context: typer.Context, log: str) -> str:
    """Return a log's name or file; what can be read once is kept in a file until the command ends.

    That is standard input, and a pipe, such as the shell makes of `<(zcat log)`.
    """
    if log != STDIN and not Path(log).is_fifo():
        return log
    if log == STDIN and sys.stdin is None:
        raise HpcgymError("standard input is closed; name a log or a file in place of -")
    content = sys.stdin.buffer.read() if log == STDIN else Path(log).read_bytes()
    name = "stdin.swf" if log == STDIN else f"{Path(log).name}.swf"
    file = Path(context.with_resource(TemporaryDirectory(prefix="hpcgym-")), name)
    file.write_bytes(content)
    return str(file)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    complain(f"warning: {text}")


def _say(context: typer.Context, text: object) -> None:
    """Print lines beside a table; on standard error where a program reads the table."""
    echo_prose(text, err=context.params.get("how", "table") != "table")


def show_report(
    context: typer.Context, report: CleaningReport, *, kill: bool, brief: bool = False
) -> None:
    """Print what the cleaning did, or only what it ignored; warn of work that is lost by killing.

    `kill` tells whether jobs are killed at their requests.
    """
    say_reading(report.name, report.reading)
    if not brief:
        _say(context, report)
    for step in report.steps:
        if brief and step.jobs and step.action == "ignored":
            _say(context, f"{report.name}: ignored, of {step.jobs} jobs: {step.detail}")
    if kill and report.cut_warning:
        warn(report.cut_warning)


def say_reading(name: str, reading: str) -> None:
    """Print on standard error what was read of a log that is accounting, and left out."""
    if reading:
        echo_prose(f"hpcgym: {name}: {reading}", err=True)


def named(part: object) -> object:
    """Return the name of a policy or function of one's own, and any other setting as it is."""
    return getattr(part, "name", getattr(part, "__name__", part))


_ALWAYS_SHOWN = ("backfill", "threshold", "kill_at_limit", "estimates")
"""Settings that a line states though they are as usual."""


def _shown(value: object) -> str:
    """Return a value of a setting as a line states it."""
    words = {None: "none", True: "yes", False: "no"}
    if isinstance(value, tuple):
        return "; ".join(map(str, value))
    return words[value] if isinstance(value, bool | None) else str(named(value))


def show_settings(
    context: typer.Context, settings: SchedulerSettings, of: str, **further: Any
) -> None:
    """Print in one line under which settings `of` is run; what is None is left out."""
    words: dict[str, Any] = {}
    for name in OF_SETTINGS:
        value = _shown(getattr(settings, name))
        if name in _ALWAYS_SHOWN or value != _shown(SETTINGS[name].default):
            words[name.replace("_", " ").removesuffix(" at limit")] = value
    words |= {key.replace("_", " "): value for key, value in further.items()}
    shown = (f"{key} {value}" for key, value in words.items() if value is not None)
    _say(context, f"settings: {', '.join([of, *shown])}")
