"""`hpcgym train`: train a network by PPO; what `hpcgym tune` shares with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.cli.options import Force, On, Resume, group_of, with_options
from hpcgym.cli.seeds import has_seeds, make_seeds
from hpcgym.cli.show import complain, echo, echo_prose

if TYPE_CHECKING:
    from hpcgym.agent.learn.ppo import Trained
    from hpcgym.agent.learn.ppo.checkpoint import TrainingSettings
    from hpcgym.env.scenario.episodes import Episodes


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """Options of `hpcgym train` and `hpcgym tune`: what an agent is made of, and its files."""

    scenarios: Annotated[
        list[str],
        typer.Option(
            *("--scenario", "-s"),
            metavar="NAME",
            help="A name or a .toml; may be given for several logs.",
        ),
    ]
    weeks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="1-29",
            help="Weeks to train on, once for each --scenario; default all but the last of five "
            "blocks and the week before it.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of all chance.")] = 0
    name: Annotated[str, typer.Option(help="Name of the agent and of its files.")] = "TRAINED"
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write the card and the weights to.")
    ] = Path("runs/ppo")
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="0-15",
            help="Make one for each seed, in place of --seed, in folders seed-0 and so on.",
        ),
    ] = None
    executor: On = None
    resume: Resume = False
    force: Force = False
    shelf: Annotated[
        bool, typer.Option("--shelf", help="Put the agent on the shelf, too; in a clone only.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class TrainOptions(AgentOptions):
    """Options of `hpcgym train`."""

    validation_weeks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="31-36",
            help="Weeks that choose the network and are not played, once for each --scenario; "
            "default the last fifth.",
        ),
    ] = None
    action: Annotated[
        str, typer.Option(help="index, order, job, policy, weights, controls, trials or price.")
    ] = "index"
    steps: Annotated[
        int | None,
        typer.Option(help="Decisions to end after; alone, it lifts the limit of 9 minutes."),
    ] = None
    minutes: Annotated[
        float | None, typer.Option(help="Time to end after; alone, it lifts the limit of steps.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A hyper-parameter; may be repeated."),
    ] = None
    augment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A change of the weeks that are played; may be repeated."
        ),
    ] = None
    threads: Annotated[
        int, typer.Option(help="Threads of torch, and those that step environments.")
    ] = 1


@with_options(group_of(TrainOptions))
def train_agent(context: typer.Context, **given: Any) -> None:
    """Train a network by PPO; write its card, its weights, a checkpoint and TensorBoard's files.

    The agent is the best network on the validation weeks. `hpcgym evaluate --agents
    runs/ppo/NAME.toml` runs it, and never on a week of its training.

    Several --scenario make a mixture of logs. The same command with --resume goes on from the
    checkpoint; only --steps, --minutes and --threads may then change. Ctrl-C waits for the end of a
    rollout, so that nothing is lost; the second Ctrl-C does not. With --seeds, --on shares the
    trainings.
    """
    options = TrainOptions(**given)
    if has_seeds(context, options):
        for line in make_seeds(options, command_line(context), train_one):
            echo_prose(line)
        return
    trained, card = train_and_write(options, command_line(context))
    if trained.choice:
        echo(f"starts, of which it began at the first: {trained.choice} times SAF")
    for done, ratio, _ in trained.history:
        echo(f"{done:>10} steps: {ratio:.3f} times SAF on the validation weeks")
    rate = trained.steps / trained.seconds
    echo(f"{trained.seconds:.0f} s, {rate:.0f} steps/s, best {trained.ratio:.3f}; wrote {card}")
    if trained.ended_at_constant:
        echo_prose(
            f"{given['name']} takes one constant action, found by a search: {trained.steps:,} "
            "decisions of PPO gave nothing better on the validation weeks"
        )
    if trained.ended_at_start:
        is_stale = 0 < trained.config.patience < len(trained.history)
        longer = "--minutes or --steps" + (", --set patience=0" if is_stale else "")
        echo_prose(
            f"{given['name']} ended where it began, as {trained.start}: {trained.steps:,} "
            "decisions of PPO gave nothing better. On the validation weeks it has "
            f"{trained.found}. Try more {longer}, a higher --set learning_rate, or other weeks"
        )


def train_and_write(
    given: TrainOptions, command: str = "hpcgym train", *, progress: bool = True
) -> tuple[Trained, Path]:
    """Train, or go on with a training; return the result and the card, with the command."""
    from hpcgym.agent.card_writer import ensure_free, put_on_shelf, write_agent
    from hpcgym.agent.learn import ppo
    from hpcgym.agent.learn.ppo.checkpoint import CHECKPOINT, TrainingSettings
    from hpcgym.agent.learn.ppo.config import augmentation_of
    from hpcgym.agent.training_weeks import Training, digests_of_logs
    from hpcgym.base.output import locked, output_folder

    steps, minutes, force = given.steps, given.minutes, given.force
    limits: dict[str, float] = {"threads": given.threads}
    if minutes is not None and not minutes > 0:
        raise HpcgymError(f"--minutes must be above 0, got {minutes:g}")
    if (steps, minutes) != (None, None):  # what is given alone decides
        limits |= {"steps": 10**9 if steps is None else steps, "minutes": minutes or 0.0}
    config = ppo.overridden(ppo.preset(given.action, **limits), given.settings or ())
    augmentation = augmentation_of(given.augment or ())
    playing, kept = chosen_weeks(
        given.scenarios, given.weeks or (), given.validation_weeks or (), config.validation_share
    )
    asked = TrainingSettings.of(config, given.seed, playing, kept, augmentation)
    with output_folder(given.output) as folder, locked(folder / CHECKPOINT):
        is_kept = (folder / CHECKPOINT).exists()
        if is_kept and given.resume and not force:
            _clear_results(folder / f"{given.name.casefold()}.npz", asked)
        ensure_free(given.name, folder, shelf=given.shelf, force=force)
        logs = digests_of_logs(given.scenarios)
        if is_kept and not (given.resume or force):
            raise HpcgymError(
                f"{folder / CHECKPOINT}: a training is kept here; go on with it by --resume, "
                "replace it by --force, or name another folder by --output"
            )
        with _saying_how_to_go_on(folder, command):
            if is_kept and given.resume:
                trained = ppo.resume(folder, asked=asked, progress=progress)
            else:
                if given.resume:
                    complain(f"{folder}: has no checkpoint, so the training begins")
                trained = ppo.train(
                    config,
                    playing,
                    validation=kept,
                    augmentation=augmentation,
                    seed=given.seed,
                    output=folder,
                    progress=progress,
                )
            training = Training(
                trained.weeks, trained.seed, trained.seconds, version_of_code(), command, logs
            )
            card = write_agent(trained, given.name, folder, training, force=force)
    return trained, put_on_shelf(card, force=force) if given.shelf else card


def train_one(given: TrainOptions, command: str) -> str:
    """Train one of several seeds, and say what it came to."""
    trained, card = train_and_write(given, command, progress=False)
    start = ", ended where it began" if trained.ended_at_start else ""
    return (
        f"{trained.ratio:.3f} times SAF on the validation weeks{start}; "
        f"{trained.steps:,} decisions in {trained.seconds:.0f} s; wrote {card}"
    )


def _clear_results(weights: Path, asked: TrainingSettings) -> None:
    """Remove the weights that a training wrote when it was killed before it wrote the card."""
    from hpcgym.agent.learn.ppo.checkpoint import CHECKPOINT, read_checkpoint

    folder = weights.parent
    if not weights.exists():
        return
    checkpoint = read_checkpoint(folder / CHECKPOINT)
    checkpoint.settings.refuse_other(asked)
    if not checkpoint.has_written(weights):
        return
    if weights.with_suffix(".toml").exists():
        raise HpcgymError(
            f"{folder}: is finished, so there is nothing to resume; --force begins it anew, "
            "--resume --force goes on for more --steps or --minutes"
        )
    try:
        weights.unlink()
    except OSError as error:
        raise OutputError(f"{weights}: cannot be replaced: {error.strerror}") from error


@contextmanager
def _saying_how_to_go_on(folder: Path, command: str) -> Iterator[None]:
    """Add to an interruption, and to a failure to write, the command that goes on."""
    from hpcgym.agent.learn.ppo.checkpoint import CHECKPOINT

    def again() -> str:
        return f"{command} --resume" if (folder / CHECKPOINT).exists() else command

    try:
        yield
    except KeyboardInterrupt as error:
        what = str(error) or "no decision is lost"
        raise KeyboardInterrupt(f"{what}; go on with: {again()}") from None
    except OutputError as error:
        raise OutputError(f"{error}; once that is mended, go on with: {again()}") from error


def chosen_weeks(
    scenarios: Sequence[str], weeks: Sequence[str], validation_weeks: Sequence[str], share: float
) -> tuple[list[Episodes], list[Episodes]]:
    """Return the weeks to play and those to validate on, apart from all others of each log."""
    from hpcgym.agent.learn.ppo.validation_split import split_validation
    from hpcgym.evaluation.folds import left_of_each_log

    left = left_of_each_log(scenarios, weeks, validation_weeks)
    kept: Sequence[str | None] = validation_weeks or [None] * len(left)
    parts = [split_validation(log, share, held) for log, held in zip(left, kept, strict=True)]
    return [playing for playing, _ in parts], [held for _, held in parts]


def command_line(context: typer.Context) -> str:
    """Return the command with the options that were given but `--resume`, as a card records it."""
    words = ["hpcgym", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is None or source.name != "COMMANDLINE" or parameter.name == "resume":
            continue
        given = context.params[str(parameter.name)]
        for value in given if isinstance(given, list | tuple) else [given]:
            words += [parameter.opts[0]] if value is True else [parameter.opts[0], str(value)]
    return shlex.join(words)


def version_of_code() -> str:
    """Return the commit of the clone that runs, or the version of the installed package."""
    from hpcgym import __version__
    from hpcgym.agent.card_writer import commit_at
    from hpcgym.base.registry import clone

    folder = clone()
    return f"hpcgym {__version__}" if folder is None else commit_at(folder)
