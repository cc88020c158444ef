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

from hpcgym.cli.show import echo, say
from hpcgym.errors import LARGEST_WHOLE, HpcgymError

if TYPE_CHECKING:
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.machine import Machine
    from hpcgym.trace.clean import CleaningReport

CommandT = TypeVar("CommandT", bound=Callable[..., None])

SCHEDULER, LOG = "Scheduler", "Log and machine"
"""Headings of the options in `--help`."""

Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on from what was cut off, if there is any.")
]
Force: TypeAlias = Annotated[
    bool,
    typer.Option("--force", help="Replace what is there and, without --resume, begin anew."),
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
        metavar="TOML",
        help="A machine of nodes, in place of --processors.",
    ),
]
Placement: TypeAlias = Annotated[
    str,
    typer.Option(
        rich_help_panel=SCHEDULER,
        metavar="RULE",
        help="With --machine: which nodes a job gets: lowest, tightest, fewest-groups, contiguous, "
        "local, best-effort-contiguous, best-effort-local.",
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
BACKFILL = typer.Option(
    rich_help_panel=SCHEDULER,
    metavar="MODE",
    help="Backfilling mode: none, easy, easy:cap=0.97, conservative, depth:k=3, multi-queue, "
    "look-ahead, relaxed, slack:c=1, cost-benefit, gang. Parameters follow a colon: "
    "multi-queue:delay=2500. In simulate and plot also file.py:Name or module:Name, one of your "
    "own.",
)
BACKFILL_ORDER = typer.Option(
    rich_help_panel=SCHEDULER, help="Order of backfill candidates; default as the policy's."
)
THRESHOLD = typer.Option(
    rich_help_panel=SCHEDULER,
    metavar="SECONDS|none",
    help="Wait beyond which a job goes first: by default none in simulate, 200000 with --log.",
)
ESTIMATES = typer.Option(
    rich_help_panel=SCHEDULER,
    metavar="KIND",
    help="Estimates of run times that the scheduler plans with: requested, exact, doubled, "
    "recent, f-model:f=3. In simulate and plot also file.py:Name or module:Name, one of your own.",
)
CORRECTION = typer.Option(
    rich_help_panel=SCHEDULER,
    metavar="KIND",
    help="New estimate of a job that runs longer than its estimate: none, reqtime, tsafrir, "
    "doubling.",
)
KILL = typer.Option(
    "--kill/--no-kill",
    rich_help_panel=SCHEDULER,
    help="Whether a job is killed at its requested time.",
)
EVENT_SEMANTICS = typer.Option(
    rich_help_panel=SCHEDULER,
    metavar="KIND",
    help="Order of events at one instant: batch, or pyss.",
)
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
    "backfill": (Annotated[str | None, BACKFILL], None),
    "backfill_order": (Annotated[str | None, BACKFILL_ORDER], None),
    "threshold": (Annotated[str | None, THRESHOLD], None),
    "estimates": (Annotated[str | None, ESTIMATES], None),
    "correction": (Annotated[str | None, CORRECTION], None),
    "kill_at_limit": (Annotated[bool | None, KILL], None),
    "event_semantics": (Annotated[str | None, EVENT_SEMANTICS], None),
    "placement": (Placement, "lowest"),
    "missing_request": (Annotated[str | None, MISSING_REQUEST], None),
    "max_request": (Annotated[int | None, MAX_REQUEST], None),
    "minimum_run_time": (Annotated[int | None, MINIMUM_RUN_TIME], None),
    "on_bad_line": (Annotated[str | None, ON_BAD_LINE], None),
}
"""Options that go with `--log`, since a scenario states its own: type and default of each."""


def with_options(
    group: Mapping[str, tuple[Any, Any]], **defaults: object
) -> Callable[[CommandT], CommandT]:
    """Give a subcommand the options of a group, of which it takes the values as `**given`."""

    def add(command: CommandT) -> CommandT:
        *own, _ = inspect.signature(command, eval_str=True).parameters.values()
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name, default),
                annotation=kind,
            )
            for name, (kind, default) in group.items()
        ]
        command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        return command

    return add


def group_of(declared: type) -> dict[str, tuple[Any, Any]]:
    """Return the options that the fields of a dataclass are, as a group for `with_options`."""
    kinds = get_type_hints(declared, include_extras=True)
    return {
        one.name: (
            kinds[one.name],
            inspect.Parameter.empty if one.default is MISSING else one.default,
        )
        for one in fields(declared)
    }


NO_THRESHOLD = "none"
"""Value of `--threshold` where no job goes first for its wait."""

SHOWN = 60
"""Characters of a wrong value that a message repeats."""

STDIN = "-"
"""In place of a log's file: read it from standard input."""


def stated(context: typer.Context, name: str) -> bool:
    """Tell whether a parameter was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, idle: Mapping[str, str | None]) -> None:
    """Refuse options that are given, yet have no effect.

    Args:
        idle: Why a parameter has none, such as "without --output"; None where it has one.

    Raises:
        HpcgymError: One of them is given.
    """
    flags = {one.name: one.opts[0] for one in context.command.params}
    for name, why in idle.items():
        if why is not None and stated(context, name):
            raise HpcgymError(f"{flags[name]} has no effect {why}")


def idle_options(settings: SchedulerSettings) -> dict[str, str | None]:
    """Return why options of the scheduler have no effect under some settings, see `refuse_idle`."""
    from hpcgym.core.backfill import OwnSimulator, as_mode

    mode, predictor = as_mode(settings.backfill), settings.predictor
    takes_turns = isinstance(mode, OwnSimulator)
    idle: dict[str, str | None] = dict.fromkeys(
        ("threshold", "estimates", "correction", "event_semantics"),
        f"with --backfill {mode}" if takes_turns else None,
    )
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


def read_machine(path: Path | None, placement: str = "lowest") -> Machine | None:
    """Return the machine of `--machine`, or None; refuse another placement without one.

    Raises:
        HpcgymError: The file has an error, or `--placement` is given without it.
    """
    if path is None and placement != "lowest":
        raise HpcgymError("--placement has no effect without --machine")
    if path is None:
        return None
    from hpcgym.machine import Machine

    return Machine.from_toml(path)


def parse_threshold(text: str) -> int | None:
    """Return the starvation threshold of `--threshold`, s; None = no threshold.

    Raises:
        HpcgymError: It is neither whole seconds nor "none".

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
    """Return a log's name or file; standard input is kept in a file until the command ends."""
    if log != STDIN:
        return log
    file = Path(context.with_resource(TemporaryDirectory(prefix="hpcgym-")), "stdin.swf")
    file.write_bytes(sys.stdin.buffer.read())
    return str(file)


def warn(text: str) -> None:
    """Print a warning, one line on standard error."""
    echo(f"hpcgym: warning: {text}", err=True)


def _say(context: typer.Context, text: object) -> None:
    """Print a line beside a table; on standard error where a program reads the table."""
    say(text, context.params.get("how", "table"))


def show_report(
    context: typer.Context, report: CleaningReport, *, kill: bool, brief: bool = False
) -> None:
    """Print what the cleaning did, or only what it ignored; warn of work that is lost by killing.

    `kill` tells whether jobs are killed at their requests.
    """
    if not brief:
        _say(context, report)
    for step in report.steps:
        if brief and step.jobs and step.action == "ignored":
            _say(context, f"{report.name}: ignored, of {step.jobs} jobs: {step.detail}")
    if kill and report.cut_warning:
        warn(report.cut_warning)


def named(part: object) -> object:
    """Return the name of a policy or function of one's own, and any other setting as it is."""
    return getattr(part, "name", getattr(part, "__name__", part))


_ONLY_IF_SET = {"correction": "none", "event_semantics": "batch", "placement": "lowest"}
"""Settings that a line leaves out where they are as usual."""


def show_settings(
    context: typer.Context, settings: SchedulerSettings, of: str, **further: Any
) -> None:
    """Print in one line under which settings `of` is run; what is None is left out."""
    words: dict[str, Any] = {
        "backfill": str(settings.backfill),
        "backfill order": named(settings.backfill_order),
        "threshold": NO_THRESHOLD if settings.threshold is None else settings.threshold,
        "kill": "yes" if settings.kill_at_limit else "no",
        "estimates": named(settings.estimates),
    }
    for key, usual in _ONLY_IF_SET.items():
        value = getattr(settings, key)
        words[key.replace("_", " ")] = None if value == usual else value
    words |= {key.replace("_", " "): value for key, value in further.items()}
    shown = (f"{key} {value}" for key, value in words.items() if value is not None)
    _say(context, f"settings: {', '.join([of, *shown])}")
