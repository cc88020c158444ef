"""The root of the command: subcommands, `--version`, and how errors are shown."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

from hpcgym.cli.interruption import ended_by_ctrl_c, raised_again
from hpcgym.cli.start import collect_late

collect_late()
with ended_by_ctrl_c():  # these take most of the time until a command begins
    import typer
    from typer.core import TyperGroup

    from hpcgym.base.errors import HpcgymError
    from hpcgym.base.plugins import failure
    from hpcgym.base.progress import shown
    from hpcgym.base.registry import has_room
    from hpcgym.cli import (
        advise,
        cross_validate,
        evaluate,
        plot,
        record,
        report,
        shelves,
        simulate,
        suite,
        traces,
        train,
        tune,
        versions,
        warm,
    )
    from hpcgym.cli.short_help import HelpfulCommand
    from hpcgym.cli.show import complain, echo

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class HouseGroup(TyperGroup):
    """Shows an `HpcgymError` as one line and exit code 2, Ctrl-C as one line and 130.

    Any other error of a part of one's own, which the command has loaded, is one line, too.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command; show a full disk, behind standard output too, as one line."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by what started the command
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        try:
            with raised_again():
                return super().main(*args, **kwargs)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            where = "standard output" if _is_from_printing(error) else error.filename
            complain(f"{f'{where}: ' if where else ''}{error.strerror}")
            sys.exit(EXIT_ERROR)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a subcommand; its help has paragraphs of one line."""
        command = super().get_command(ctx, cmd_name)
        if command and command.help:  # rich would keep the docstring's ends of lines
            parts = command.help.split("\n\n")
            command.help = "\n\n".join(" ".join(part.split()) for part in parts)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand, and show progress of what lasts."""
        try:
            with shown():
                return super().invoke(ctx)
        except HpcgymError as error:
            complain(f"{error}{_task(error)}")
            raise typer.Exit(EXIT_ERROR) from error
        except KeyboardInterrupt as error:
            what = str(error) or "files named as written are whole"
            complain(f"interrupted; {what}")
            raise typer.Exit(EXIT_INTERRUPTED) from error
        except Exception as error:
            text = failure(error)
            if text is None:
                raise
            complain(f"{text}{_task(error)}")
            raise typer.Exit(EXIT_ERROR) from error


def _task(error: Exception) -> str:
    """Return which task of many ended in an error, where it says so."""
    return "".join(f" ({note})" for note in getattr(error, "__notes__", ())[:1])


def _is_from_printing(error: OSError) -> bool:
    """Return whether an error was raised in the libraries that print."""
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return str(last.f_globals.get("__name__")).split(".")[0] in ("rich", "typer")


class HouseApp(typer.Typer):
    """Makes the command of its functions, and runs it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command."""
        with ended_by_ctrl_c():
            command = typer.main.get_command(self)
        return command(*args, **kwargs)


app = HouseApp(cls=HouseGroup, name="hpcgym", no_args_is_help=True, pretty_exceptions_enable=False)
PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Schedule a log, or a live queue": {
        "simulate": simulate.simulate_log,
        "plot": plot.plot_log,
        "report": report.write_report,
        "advise": advise.advise_queue,
    },
    "Compare agents": {
        "evaluate": evaluate.evaluate_agents,
        "cross-validate": cross_validate.cross_validate_agents,
    },
    "Make agents": {
        "train": train.train_agent,
        "tune": tune.tune_agent,
        "record": record.record_episodes,
    },
}
"""Commands by what `--help` puts above them."""

ROOMS = {
    "report": "site",
    "advise": "site/live",
    "suite": "evaluation/suite",
    "train": "agent/learn",
}
"""Folders of the package without which a command is not offered."""

for _panel, _commands in PANELS.items():
    for _name, _command in _commands.items():
        if has_room(ROOMS.get(_name, "")):
            app.command(_name, cls=HelpfulCommand, rich_help_panel=_panel)(_command)
if has_room(ROOMS["suite"]):
    app.add_typer(suite.app, name="suite", rich_help_panel="Compare agents")
app.command("warm", cls=HelpfulCommand, rich_help_panel="Look up and set up")(warm.warm)
app.add_typer(traces.app, name="traces", rich_help_panel="Look up and set up")
app.add_typer(shelves.agents, name="agents", rich_help_panel="Look up and set up")
app.add_typer(shelves.scenarios, name="scenarios", rich_help_panel="Look up and set up")


def show_version(context: typer.Context, asked: bool) -> None:
    """Print the version, or all versions, and exit, where it is asked for."""
    if asked and context.params.get("verbose"):
        versions.show_versions()
        raise typer.Exit
    if asked:
        import hpcgym

        echo(f"hpcgym {hpcgym.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", is_eager=True, help="With --version: all that a report of a bug needs."
        ),
    ] = False,
) -> None:
    """Simulate HPC batch schedulers on real logs, and compare agents that schedule."""
    if verbose:
        raise HpcgymError("--verbose has no effect without --version")
