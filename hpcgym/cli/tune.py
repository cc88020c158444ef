"""`hpcgym tune`: search the numbers of an order, by evolution or by a trainer of your own."""

from __future__ import annotations

import shlex
import time
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli.comparison import results_folder, store_in
from hpcgym.cli.options import group_of, with_options
from hpcgym.cli.show import echo
from hpcgym.cli.train import AgentOptions, command_line, version_of_code
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.agent.own import Trainer

UNFINISHED = ".unfinished.sqlite"
"""What the name of the file ends in that keeps a search until its card is written."""

KEYS = ("strategy", "evaluations")
"""Fields of a trainer that options set."""


@with_options(group_of(AgentOptions), name="TUNED", output=Path("runs/tuned"))
def tune_agent(
    context: typer.Context,
    trainer: Annotated[
        str,
        typer.Option(
            help="As of `hpcgym cross-validate`, but ppo; or file.py:Name or module:Name, which "
            "runs that file."
        ),
    ] = "tuned-network",
    strategy: Annotated[str | None, typer.Option(help="cma or xnes.")] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Vectors of weights that are tried.")
    ] = None,
    **given: Any,
) -> None:
    """Search the weights of an order on weeks of one or more logs; write the agent's card.

    A search that is cut off keeps the values of its vectors; the same command with --resume goes on
    from there. A trainer of your own class begins anew.

    `hpcgym evaluate --agents runs/tuned/NAME.toml` runs the agent, and never on a week of its
    training. A trainer of your own may make a rule, weights of the features or an index; cards
    state no others.
    """
    from hpcgym.agent.card_writer import ensure_free, put_on_shelf, refuse_name, write_agent
    from hpcgym.agent.search import SearchTrainer
    from hpcgym.agent.training_weeks import Training, digests_of_logs
    from hpcgym.evaluation.folds import left_of_each_log
    from hpcgym.evaluation.kept_values import KeptValues

    asked = AgentOptions(**given)
    name, seed, force, shelf = asked.name, asked.seed, asked.force, asked.shelf
    refuse_name(name)
    changes = {"strategy": strategy, "evaluations": evaluations}
    chosen = chosen_trainer(trainer, {key: one for key, one in changes.items() if one is not None})
    unset = [key for key in _settable(chosen, trainer) if changes[key] is None]
    words = [word for key in unset for word in (f"--{key}", str(getattr(chosen, key)))]
    sets = left_of_each_log(asked.scenarios, asked.weeks or [])
    stem = name.casefold()
    unfinished = f"{stem}{UNFINISHED}"
    with results_folder(
        asked.output,
        [f"{stem}.toml"],
        resume=asked.resume,
        force=force,
        unfinished=unfinished,
        part="generation",
    ) as folder:
        assert folder is not None
        replaced = force or (asked.resume and (folder / unfinished).exists())
        ensure_free(name, folder, shelf=shelf, force=force, resumed=replaced)
        logs = digests_of_logs(asked.scenarios)
        path = store_in(folder, resume=asked.resume, unfinished=unfinished)
        began, seconds = time.monotonic(), 0.0
        if type(chosen) is SearchTrainer:  # what a class of one's own computes, no key would tell
            kept = KeptValues(path, chosen, sets, seed)
            agent = chosen.train(sets, seed, kept=kept)
            seconds = kept.seconds
        else:
            agent = chosen.train(sets, seed)
        training = Training(
            {one.scenario.name: one.numbers for one in sets},
            seed,
            seconds + time.monotonic() - began,
            version_of_code(),
            shlex.join([*shlex.split(command_line(context)), *words]),
            logs,
        )
        card = write_agent(agent, name, folder, training, force=replaced)
    echo(f"{name}: {training.seconds:.0f} s; wrote {card}")
    if agent.ended_at_start:
        echo(
            f"{name} ended where it began: no other vector that was tried was better on the "
            "training weeks. Try more --evaluations, or other weeks"
        )
    if shelf:
        echo(f"wrote {put_on_shelf(card, force=force)}")


def chosen_trainer(name: str, given: dict[str, object]) -> Trainer:
    """Return the trainer with the given settings.

    Raises:
        HpcgymError: It does not have one of them, or trains no weights of an order.
    """
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
    own = {field.name for field in fields(trainer)} if is_dataclass(trainer) else set()
    return tuple(key for key in KEYS if key in own)
