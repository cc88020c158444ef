"""`hpcgym record`: write episodes of agents as a Minari data set, for offline learning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hpcgym.base.text_table import Kind
from hpcgym.cli.options import Force, On, Resume, refuse_idle, with_options
from hpcgym.cli.show import Format, say, show_rows


@with_options({"executor": (On, None), "resume": (Resume, False), "force": (Force, False)})
def record_episodes(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the data set, with a version: busy-v0.")],
    agents: Annotated[
        list[str],
        typer.Option("--agents", "-a", help="As of `hpcgym evaluate`; all need one environment."),
    ],
    scenario: Annotated[str, typer.Option("--scenario", "-s", help="A name or a .toml.")],
    weeks: Annotated[
        str | None, typer.Option(help="Weeks to play, such as 1-8; default all.")
    ] = None,
    action: Annotated[
        str,
        typer.Option(
            metavar="own|policy|order|job",
            help="Kind of action in which rules are recorded; own: each agent's, policy for rules.",
        ),
    ] = "own",
    n_slots: Annotated[
        int | None,
        typer.Option("--slots", help="Visible jobs; default the agent's, or the environment's."),
    ] = None,
    observation: Annotated[
        str, typer.Option(metavar="dict|flat|small", help="Kind of observation.")
    ] = "dict",
    epsilon: Annotated[float, typer.Option(help="Share of decisions taken at random.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the first episode's random decisions.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of data sets; default Minari's own."),
    ] = None,
    how: Format = "table",
    **given: Any,
) -> None:
    """Play agents on weeks of a scenario, and write a Minari data set in Parquet.

    `minari.MinariDataset("FOLDER/NAME/data")` reads it, and so does `minari.load_dataset("NAME")`
    from Minari's own folder. Needs the extra `record`. A recording that is interrupted keeps its
    finished episodes; the same command with --resume goes on from there.
    """
    from hpcgym.cli.evaluate import split_agents
    from hpcgym.evaluation import record

    refuse_idle(context, {"seed": None if epsilon else "without --epsilon"})
    made = record(
        [agent for names in agents for agent in split_agents(names)],
        scenario,
        name,
        weeks=weeks,
        action=action,
        epsilon=epsilon,
        seed=seed,
        folder=output,
        n_slots=n_slots,
        observation=observation,
        **given,
    )
    kinds: dict[str, Kind] = {"agent": "name", "week": "word"}
    show_rows(made.frame.to_dict("records"), how, kinds=kinds)
    say(f"wrote {made.path}", how)
