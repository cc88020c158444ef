"""`hpcgym tune`: search the numbers of an order, by evolution or by a trainer of your own."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.cli.comparison import results_folder, store_in
from hpcgym.cli.options import group_of, with_options
from hpcgym.cli.seeds import has_seeds, make_seeds
from hpcgym.cli.show import echo_prose
from hpcgym.cli.train import AgentOptions, command_line, version_of_code

if TYPE_CHECKING:
    from hpcgym.agent.own import Trainer

UNFINISHED = ".unfinished.sqlite"
"""What the name of the file ends in that keeps a search until its card is written."""

KEYS = ("strategy", "evaluations")  # fields of a trainer that options set


@dataclass(frozen=True, kw_only=True)
class TuneOptions(AgentOptions):
    """Options of `hpcgym tune`."""

    trainer: Annotated[
        str,
        typer.Option(
            help="As of `hpcgym cross-validate`, but ppo; or file.py:Name or module:Name, which "
            "runs that file."
        ),
    ] = "tuned-network"
    strategy: Annotated[str | None, typer.Option(help="cma or xnes.")] = None
    evaluations: Annotated[int | None, typer.Option(help="Vectors of weights that are tried.")] = (
        None
    )


@with_options(group_of(TuneOptions), name="TUNED", output=Path("runs/tuned"))
def tune_agent(context: typer.Context, **given: Any) -> None:
    """Search the weights of an order on weeks of one or more logs; write the agent's card.

    A search that is cut off keeps the values of its vectors; the same command with --resume goes on
    from there. A trainer of your own class begins anew. With --seeds, --on shares the searches.

    `hpcgym evaluate --agents runs/tuned/NAME.toml` runs the agent, and never on a week of its
    training. A trainer of your own may make a rule, weights, an index or a network; cards
    state no others.
    """
    options, command = TuneOptions(**given), command_line(context)
    if has_seeds(context, options):
        for line in make_seeds(options, command, tune_one):
            echo_prose(line)
        return
    for line in tune_and_write(options, command):
        echo_prose(line)


def tune_one(given: TuneOptions, command: str) -> str:
    """Search for one of several seeds, and say what it came to."""
    return "; ".join(tune_and_write(given, command))


def tune_and_write(given: TuneOptions, command: str) -> list[str]:
    """Search, or go on with a search; return what there is to say of it.

    The card records the command, and the trainer's settings that it leaves open.
    """
    from hpcgym.agent.card_writer import ensure_free, put_on_shelf, refuse_name, write_agent
    from hpcgym.agent.search import SearchTrainer
    from hpcgym.agent.training_weeks import Training, digests_of_logs
    from hpcgym.evaluation.folds import left_of_each_log
    from hpcgym.evaluation.kept_values import KeptValues

    name, seed, force, shelf = given.name, given.seed, given.force, given.shelf
    refuse_name(name)
    asked = {key: getattr(given, key) for key in KEYS}
    trainer = chosen_trainer(
        given.trainer, {key: value for key, value in asked.items() if value is not None}
    )
    unset = [key for key in _settable(trainer, given.trainer) if asked[key] is None]
    words = [word for key in unset for word in (f"--{key}", str(getattr(trainer, key)))]
    weeks = left_of_each_log(given.scenarios, given.weeks or [])
    stem = name.casefold()
    unfinished = f"{stem}{UNFINISHED}"
    with results_folder(
        given.output,
        [f"{stem}.toml"],
        resume=given.resume,
        force=force,
        unfinished=unfinished,
        part="generation",
    ) as folder:
        assert folder is not None
        replaced = force or (given.resume and (folder / unfinished).exists())
        ensure_free(name, folder, shelf=shelf, force=force, resumed=replaced)
        logs = digests_of_logs(given.scenarios)
        path = store_in(folder, resume=given.resume, unfinished=unfinished)
        began, seconds = time.monotonic(), 0.0
        if type(trainer) is SearchTrainer:  # what a class of one's own computes, no key would tell
            kept = KeptValues(path, trainer, weeks, seed)
            agent = trainer.train(weeks, seed, kept=kept)
            seconds = kept.seconds
        else:
            agent = trainer.train(weeks, seed)
        training = Training(
            {log.scenario.name: log.numbers for log in weeks},
            seed,
            seconds + time.monotonic() - began,
            version_of_code(),
            shlex.join([*shlex.split(command), *words]),
            logs,
        )
        card = write_agent(agent, name, folder, training, force=replaced)
    lines = [f"{name}: {training.seconds:.0f} s; wrote {card}"]
    if agent.ended_at_start:
        lines.append(
            f"{name} ended where it began: no other vector that was tried was better on the "
            "training weeks. Try more --evaluations, or other weeks"
        )
    return [*lines, f"wrote {put_on_shelf(card, force=force)}"] if shelf else lines


def chosen_trainer(name: str, given: dict[str, object]) -> Trainer:
    """Return the trainer with the given settings."""
    from hpcgym.agent.trainers import load_trainer

    if name.casefold().startswith("ppo"):
        raise HpcgymError(f"{name} tunes no weights of an order: `hpcgym train` trains networks")
    trainer: Any = load_trainer(name)
    for key in given.keys() - set(_settable(trainer, name)):
        raise HpcgymError(f"the trainer {name} has no --{key}; leave it out")
    chosen: Trainer = replace(trainer, **given) if given else trainer
    return chosen


def _settable(trainer: Any, name: str) -> tuple[str, ...]:
    """Return the fields that may be set; w*train is by definition searched by XNES."""
    if name.casefold() == "weights":
        return ("evaluations",)
    stated = {field.name for field in fields(trainer)} if is_dataclass(trainer) else set()
    return tuple(key for key in KEYS if key in stated)
