"""`hpcgym agents` and `hpcgym scenarios`: lists of the shelves, and single entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.cli.show import show_pairs, show_table

if TYPE_CHECKING:
    from hpcgym.agent.result_table import Result
    from hpcgym.agent.training_weeks import Training

agents = typer.Typer(help="Agents to evaluate: rules and learned ones.", no_args_is_help=True)
scenarios = typer.Typer(help="Named settings to evaluate agents in.", no_args_is_help=True)


@agents.command("list")
def list_agents() -> None:
    """List the agents on the shelf."""
    from hpcgym.agent.shelf import load_cards

    cards = load_cards().values()
    rows = [(card.name, card.kind, card.title) for card in cards]
    show_table(["agent", "kind", "what it does"], rows, text_columns=3)


@agents.command("info")
def show_agent(
    name: Annotated[str, typer.Argument(help="An agent's name, or the path of a card.")],
) -> None:
    """Show an agent's card: what it is, where it comes from, how good it is."""
    from hpcgym.agent.shelf import load_card

    card = load_card(name)
    show_pairs(
        {
            "name": card.name,
            "title": card.title,
            "kind": card.kind,
            "description": card.description,
            "source": card.source,
            **{f"parameters.{key}": str(value) for key, value in card.parameters.items()},
            **{f"environment.{key}": str(value) for key, value in card.environment.items()},
            **(_training_pairs(card.training) if card.training else {}),
            "card": str(card.path),
        }
    )
    results = card.results
    if results:
        columns = ["scenario", "weeks", "mean bsld", "ratio to SAF", "pp-bsld", "max wait, s"]
        show_table(columns, [_result_row(result) for result in results], title="Results")


@scenarios.command("list")
def list_scenarios() -> None:
    """List the scenarios on the shelf."""
    from hpcgym.scenario.load import load_scenario, scenario_names

    rows = [
        (name, load_scenario(name).episode.kind, load_scenario(name).description)
        for name in scenario_names()
    ]
    show_table(["scenario", "episodes", "what it is"], rows, text_columns=3)


@scenarios.command("info")
def show_scenario(
    name: Annotated[str, typer.Argument(help="A scenario's name, or the path of its file.")],
) -> None:
    """Show everything a scenario states."""
    from dataclasses import fields

    from hpcgym.scenario.load import load_scenario
    from hpcgym.scenario.spec import NODE_KEYS

    scenario = load_scenario(name)
    pairs: dict[str, object] = {"name": scenario.name, "description": scenario.description}
    for table in ("trace", "machine", "episode", "scheduler"):
        part = getattr(scenario, table)
        for field in fields(part):
            if field.name in NODE_KEYS and scenario.machine.nodes is None:
                continue
            pairs[f"{table}.{field.name}"] = getattr(part, field.name)
    show_pairs(pairs)


def _training_pairs(training: Training) -> dict[str, str]:
    """Return what a card says of its agent's training."""
    from hpcgym.ranges import number_ranges

    stated = {key: str(value) for key, value in vars(training).items() if key != "weeks"}
    weeks = {f"weeks.{name}": number_ranges(weeks) for name, weeks in training.weeks.items()}
    return {f"training.{key}": value for key, value in (weeks | stated).items()}


def _result_row(result: Result) -> list[object]:
    """Return the cells of one of a card's results."""
    return [
        result.scenario,
        result.n_weeks,
        result.mean_bsld,
        result.ratio_text,
        result.mean_pp_bsld,
        result.max_wait_time,
    ]
