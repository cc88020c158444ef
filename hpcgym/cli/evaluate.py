"""`hpcgym evaluate`: compare agents on the weeks of a scenario, or of a log of your own."""

from __future__ import annotations

from typing import Annotated

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.cli import comparison, options

FILES = ("runs.csv", "summary.csv", "comparison.png")
"""Files in the output folder: every run, one line per agent, the picture."""


@options.with_options(comparison.OPTIONS)
def evaluate_agents(
    context: typer.Context,
    agents: Annotated[
        list[str],
        typer.Option(
            "--agents",
            "-a",
            help="Names, cards (.toml) or weights, separated by commas; may be given repeatedly. "
            "Or your own: file.py:Name, module:Name or a model's .zip, which runs what is in it.",
        ),
    ] = ["FCFS,SPF,SAF,SMITH"],  # noqa: B006 - read by typer, never changed
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", "-s", help="A name or a .toml; default synthetic-256-weeks."),
    ] = None,
    weeks: Annotated[
        str | None, typer.Option(help="Weeks to run, such as 65-100 or 1,3,5.")
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls",
            help="Set beside each learned agent two that look at nothing: its mean action, and its "
            "actions shuffled.",
        ),
    ] = False,
    **_: object,
) -> None:
    """Run agents on the same weeks and compare each with SAF, in pairs.

    Results are per week: mean and sum of the bounded slowdown, and its ratio to SAF with a 95 %
    interval over weeks. With --output an interrupted run keeps its finished weeks; the same command
    with --resume goes on from there.
    """
    from hpcgym.agent.shelf import load_agent
    from hpcgym.evaluation import evaluate
    from hpcgym.evaluation.cross_validation import DEFAULT_SCENARIO

    given = comparison.refuse_idle_options(context)
    with comparison.results_folder(
        given.output, FILES, resume=given.resume, force=given.force
    ) as folder:
        chosen = [load_agent(name) for some in agents for name in split_agents(some)]
        (episodes,) = comparison.weeks_of(context, [scenario or DEFAULT_SCENARIO])
        comparison.show_conditions(context, episodes, weeks=weeks or "all", **given.copies)
        result = evaluate(
            chosen,
            episodes,
            weeks=weeks,
            baseline=given.baseline,
            controls=controls,
            executor=given.executor,
            resume=folder and comparison.store_in(folder, resume=given.resume),
            **given.copies,
        )
        frames = {"runs.csv": result.frame, "summary.csv": result.summary()}
        comparison.show_and_write(result, folder, frames, {"comparison.png": result}, given)


def split_agents(text: str) -> list[str]:
    """Split a list of agents at its commas, but not at those inside weights."""
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            raise HpcgymError(f"--agents {text!r}: an agent is missing at a comma")
        if "=" in part and names and "=" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names
