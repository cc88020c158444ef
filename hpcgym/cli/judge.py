"""`hpcgym judge`: an agent, or a trainer, on weeks it has not been trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hpcgym.cli.results import UNFINISHED, draw, results_folder

FILES = ("runs.csv", "summary.csv", "trainings.csv", "comparison.png")
"""What stands in the output folder: every run, one line per agent, every training, the picture."""


def judge_agent(
    name: Annotated[
        str, typer.Argument(help="A trainer (weights), or an agent's name, card or weights.")
    ],
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", "-s", help="A name or a .toml, of weeks; default synthetic-256-weeks."
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Contiguous blocks of weeks, each held out of training once.")
    ] = 5,
    seeds: Annotated[int, typer.Option(help="Trainings of each fold.")] = 5,
    jitter: Annotated[
        int, typer.Option(metavar="SECONDS", help="Largest shift of submit times in the copies.")
    ] = 600,
    replicas: Annotated[int, typer.Option(help="Jittered copies of each week.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of copies, intervals and the search for w*.")] = 0,
    processes: Annotated[int, typer.Option(help="Processes to spread the runs over.")] = 1,
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
    """Judge an agent on weeks it has not been trained on, among lines of reference.

    A trainer is handed the weeks of a log without a block and its neighbours, and what it makes is
    run on the block; so with each of the blocks, and several seeds. An agent that was trained
    before is run on the weeks its card leaves open, a rule on all. Ratios are to SAF on the same
    weeks and jittered copies, in pairs; the lines of reference say what is achieved today, and
    what hindsight and clairvoyance would give.
    """
    from hpcgym.evaluation import judge
    from hpcgym.evaluation.held_out import load_contestant
    from hpcgym.evaluation.protocol import DEFAULT_SCENARIO
    from hpcgym.scenario.build import Episodes

    chosen = load_contestant(name)
    with results_folder(output, FILES, resume=resume, force=force) as folder:
        episodes = Episodes(scenario or DEFAULT_SCENARIO)
        journal = None if folder is None else folder / UNFINISHED
        if journal is not None and not resume:
            journal.unlink(missing_ok=True)
        result = judge(
            chosen,
            episodes,
            folds=folds,
            seeds=seeds,
            jitter=jitter,
            replicas=replicas,
            seed=seed,
            processes=processes,
            resume=journal,
        )
        Console().print(result.table())
        if folder is not None:
            result.to_csv(folder, force=force)
            for file in FILES[:-1]:
                typer.echo(f"wrote {folder / file}")
            draw(result.evaluation, folder / FILES[-1], force=force)
            (folder / UNFINISHED).unlink()
