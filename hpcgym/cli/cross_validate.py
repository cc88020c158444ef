"""`hpcgym cross-validate`: agents and trainers on weeks they have not been trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hpcgym.cli.comparison import draw, results_folder, run_cache_in
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.evaluation import CrossValidationResult

FILES = ("runs.csv", "summary.csv", "trainings.csv", "comparison.png")
"""What stands in the output folder: every run, one line per agent, every training, the picture; of
several logs a picture each, such as comparison-tiny.png."""


def refuse_references(given: bool | None) -> None:
    """Refuse the name that `--baselines` had before.

    Raises:
        HpcgymError: It is given.
    """
    if given is not None:
        raise HpcgymError(
            "--references and --no-references are now called --baselines and --no-baselines"
        )


def cross_validate_agents(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Trainers (weights, tuned-weights, network, tuned-history, tuned-network, "
            "evolved-score, ppo), or agents' names, cards or weights.",
            show_default=False,
        ),
    ],
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            "-s",
            help="A name or a .toml, of weeks; default synthetic-256-weeks. May be given for "
            "several logs: trainers then train on all at once.",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Contiguous blocks of weeks, each held out of training once.")
    ] = 5,
    baselines: Annotated[
        bool, typer.Option(help="Whether to add the baselines; SAF is always there.")
    ] = True,
    references: Annotated[
        bool | None,
        typer.Option("--references/--no-references", hidden=True, callback=refuse_references),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trainings of each fold.")] = 5,
    jitter: Annotated[
        int, typer.Option(metavar="SECONDS", help="Largest shift of submit times in the copies.")
    ] = 600,
    replicas: Annotated[int, typer.Option(help="Jittered copies of each week.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of copies, intervals and the search for w*.")] = 0,
    processes: Annotated[
        int, typer.Option(help="Processes to spread trainings and runs over.")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Folder to write {', '.join(FILES)} to."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="With --output: go on from what an interrupted run kept there."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Run agents on weeks they have not been trained on, and compare them with baselines.

    A trainer is handed the weeks of a log without a block and its neighbours, and what it makes is
    run on the block; so with each of the blocks, and several seeds. Over several logs a block of
    each is held out at once, and a last table has the geometric mean of the ratios. An agent that
    was trained before is run on the weeks its card leaves open, a rule on all. Ratios are to SAF on
    the same weeks and jittered copies, in pairs; the baselines say what is achieved today,
    and what hindsight and clairvoyance would give.
    """
    from hpcgym.evaluation import cross_validate
    from hpcgym.evaluation.baselines import BASELINES
    from hpcgym.evaluation.cross_validation import load_agent_or_trainer
    from hpcgym.evaluation.runner import DEFAULT_SCENARIO
    from hpcgym.scenario.episodes import Episodes
    from hpcgym.scenario.load import load_scenario

    chosen = [load_agent_or_trainer(name) for name in names]
    logs = [load_scenario(name) for name in scenarios or [DEFAULT_SCENARIO]]
    files = (*FILES[:-1], *_pictures([log.name for log in logs]))
    with results_folder(output, files, resume=resume, force=force) as folder:
        result = cross_validate(
            chosen,
            [Episodes(log) for log in logs],
            folds=folds,
            seeds=seeds,
            jitter=jitter,
            replicas=replicas,
            seed=seed,
            processes=processes,
            baselines=BASELINES if baselines else (),
            resume=run_cache_in(folder, resume=resume),
        )
        Console().print(result.table())
        if folder is not None:
            _write(result, folder, files, force=force)


def _pictures(scenarios: Sequence[str]) -> list[str]:
    """Name the picture of each log."""
    picture = Path(FILES[-1])
    if len(scenarios) == 1:
        return [picture.name]
    return [f"{picture.stem}-{name}{picture.suffix}" for name in scenarios]


def _write(
    result: CrossValidationResult, folder: Path, files: Sequence[str], *, force: bool
) -> None:
    """Write the tables and the pictures, and say where."""
    n_tables = len(FILES) - 1
    result.to_csv(folder, force=force)
    for file in files[:n_tables]:
        typer.echo(f"wrote {folder / file}")
    for evaluation, picture in zip(result.evaluations, files[n_tables:], strict=True):
        draw(evaluation, folder / picture, force=force)
