"""What `--help` shows of a command: an example, and the options that people use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from hpcgym.cli.command import HouseCommand

HELP_ALL = "--help-all"  # shows every option of a command
MOST_SHOWN = 12  # a command of no more options shows them all


class ShortHelp(NamedTuple):
    """What the help of a command has."""

    example: str  # a line to type
    shown: str = ""  # the options that `--help` shows, where the command has more than `MOST_SHOWN`


_COMPARED = "--scenario --log --jitter --replicas --baseline --on --all --output"
_MADE = "--scenario --weeks --seed --seeds --on --name --output --resume"

SHORT_HELP = {
    "simulate": ShortHelp(
        "hpcgym simulate synthetic-256 --policy SAF --threshold 200000",
        "--policy --backfill --threshold --estimates --processors --machine --by --format --output "
        "--force",
    ),
    "plot": ShortHelp(
        "hpcgym plot synthetic-256 --policy FCFS --policy SAF --output saf.png",
        "--kind --policy --backfill --threshold --days --jobs --processors --machine --output "
        "--force",
    ),
    "evaluate": ShortHelp(
        "hpcgym evaluate --agents FCFS,SPF,SAF --scenario synthetic-busy-weeks",
        f"--agents --weeks {_COMPARED}",
    ),
    "cross-validate": ShortHelp(
        "hpcgym cross-validate weights SMITH --seeds 1 --replicas 2", f"--folds --seeds {_COMPARED}"
    ),
    "report": ShortHelp(
        "hpcgym report accounting.txt --machine nodes.txt",
        "--machine --processors --scheduler --shares --limits --outages --timezone --names "
        "--output --resume",
    ),
    "advise": ShortHelp(
        "hpcgym advise --policy SAF",
        "--policy --backfill --partition --top --squeue --sinfo --sacct --apply --job-points "
        "--restore",
    ),
    "train": ShortHelp(
        "hpcgym train --scenario synthetic-busy-weeks --minutes 3", f"--action --minutes {_MADE}"
    ),
    "tune": ShortHelp(
        "hpcgym tune --scenario synthetic-busy-weeks --trainer tuned-history",
        f"--trainer --evaluations {_MADE}",
    ),
    "record": ShortHelp(
        "hpcgym record --agents SAF,SMITH --scenario tiny --output runs/episodes",
        "--agents --scenario --weeks --action --observation --epsilon --seed --on --output "
        "--resume",
    ),
    "warm": ShortHelp("hpcgym warm"),
}
"""Short help by the name of the command."""


class HelpfulCommand(HouseCommand):
    """Shows the ten options that people use, and an example; `--help-all` shows the rest."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the arguments; `--help-all` is the help with every option."""
        if HELP_ALL in args:
            ctx.meta[HELP_ALL] = True
            args = ["--help"]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the options that are asked for."""
        short = SHORT_HELP[str(self.name)]
        options = [option for option in self.params if option.param_type_name == "option"]
        rest = [option for option in options if not set(option.opts) & set(short.shown.split())]
        is_short = len(options) > MOST_SHOWN and HELP_ALL not in ctx.meta
        more = f"\n\n{HELP_ALL} shows {len(rest)} more options." if is_short else ""
        self.epilog = f"Example: {short.example}{more}"
        with _hidden(rest if is_short else []):
            super().format_help(ctx, formatter)


@contextmanager
def _hidden(options: list[Any]) -> Iterator[None]:
    """Leave options out of what is printed meanwhile."""
    for option in options:
        option.hidden = True
    try:
        yield
    finally:
        for option in options:
            option.hidden = False
