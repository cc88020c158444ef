"""`hpcgym agents` and `hpcgym scenarios`: lists of the shelves, and single entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import Kind, duration
from hpcgym.cli.command import HouseTyper
from hpcgym.cli.options import warn
from hpcgym.cli.show import Format, show_pairs, show_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hpcgym.agent.base import NamedAgent
    from hpcgym.agent.result_table import Result
    from hpcgym.agent.rule import RuleAgent
    from hpcgym.agent.training_weeks import Training

agents = HouseTyper(
    help="Agents to evaluate: rules and learned ones.",
    epilog="Example: hpcgym agents info SAF",
    no_args_is_help=True,
)
scenarios = HouseTyper(
    help="Named settings to evaluate agents in.",
    epilog="Example: hpcgym scenarios info tiny",
    no_args_is_help=True,
)


@agents.command("list", epilog="Example: hpcgym agents list")
def list_agents(how: Format = "table") -> None:
    """List the agents on the shelf, and those that installed packages offer."""
    from hpcgym.agent.contest import UNKNOWN
    from hpcgym.agent.shelf import parse_cards
    from hpcgym.base import plugins

    rows = [
        {"agent": card.name, "kind": card.kind, "contest": card.contest, "what_it_does": card.title}
        for card in parse_cards()
    ]
    rows += [
        {
            "agent": entry.name,
            "kind": kind,
            "contest": UNKNOWN,
            "what_it_does": f"offered by the package {plugins.package_of(entry)}",
        }
        for shelf, kind in (("agents", "agent"), ("policies", "policy"))
        for entry in plugins.offered(shelf)
    ]
    kinds: dict[str, Kind] = {"agent": "name", "what_it_does": "prose"}
    kinds |= {"kind": "word", "contest": "word"}
    show_rows(rows, how, kinds=kinds, ranks={"kind": 1})


@agents.command("info", epilog="Example: hpcgym agents info SAF")
def show_agent(
    name: Annotated[
        str,
        typer.Argument(
            help="An agent's name, the path of a card; or file.py:Name, module:Name or a model's "
            ".zip, which runs what is in it."
        ),
    ],
    how: Format = "table",
) -> None:
    """Show an agent's card: what it is, where it comes from, how good it is."""
    from hpcgym.agent.own import is_own, offered_agent
    from hpcgym.agent.shelf import agent_names, load_agent, load_card

    on_shelf = name.endswith(".toml") or name.casefold() in map(str.casefold, agent_names())
    agent = load_agent(name) if is_own(name) else None if on_shelf else offered_agent(name)
    if agent is not None:
        show_pairs(_own_pairs(agent, name), how)
        return
    card = load_card(name)
    results = card.results
    result_pairs = {
        f"results.{result.scenario}.{key}": value
        for result in results
        for key, value in vars(result).items()
        if key != "scenario"
    }
    show_pairs(
        {
            "name": card.name,
            "title": card.title,
            "kind": card.kind,
            "contest": card.contest,
            "description": card.description,
            "source": card.source,
            **{f"parameters.{key}": str(value) for key, value in card.parameters.items()},
            **{f"environment.{key}": str(value) for key, value in card.environment.items()},
            **(_training_pairs(card.training) if card.training else {}),
            **_looks_pairs(results),
            "card": str(card.path),
            **({} if how == "table" else result_pairs),
        },
        how,
    )
    if results and how == "table":
        ranks = {"weeks": 2, "mean_bsld": 1, "pp-bsld": 3, "max_wait": 4}
        rows = [_result_row(result) for result in results]
        show_rows(rows, how, kinds={"scenario": "name"}, ranks=ranks, title="Results")
        waits = [_waits_row(result) for result in results]
        title = "Long waits, as ratios to SAF's"
        show_rows(waits, how, kinds={"scenario": "name"}, title=title)


@scenarios.command("list", epilog="Example: hpcgym scenarios list")
def list_scenarios(how: Format = "table") -> None:
    """List the scenarios on the shelf, and those that installed packages offer."""
    from hpcgym.base import plugins
    from hpcgym.env.scenario.load import load_scenario, scenario_names

    rows = []
    offered = plugins.offered_names("scenarios")
    for name in dict.fromkeys((*scenario_names(), *offered)):
        try:
            scenario = load_scenario(name)
        except HpcgymError as error:
            if name not in offered:
                raise
            warn(f"left out: {error}")
            continue
        rows.append(
            {
                "scenario": name,
                "episodes": scenario.episode.kind,
                "what_it_is": scenario.description,
            }
        )
    kinds: dict[str, Kind] = {"scenario": "name", "episodes": "word", "what_it_is": "prose"}
    show_rows(rows, how, kinds=kinds, ranks={"episodes": 1})


@scenarios.command("info", epilog="Example: hpcgym scenarios info tiny")
def show_scenario(
    name: Annotated[str, typer.Argument(help="A scenario's name, or the path of its file.")],
    how: Format = "table",
) -> None:
    """Show everything a scenario states."""
    from dataclasses import fields

    from hpcgym.env.scenario.load import load_scenario
    from hpcgym.env.scenario.spec import NODE_KEYS

    scenario = load_scenario(name)
    pairs: dict[str, object] = {"name": scenario.name, "description": scenario.description}
    for table in ("trace", "machine", "episode", "scheduler"):
        part = getattr(scenario, table)
        for field in fields(part):
            if field.name in NODE_KEYS and scenario.machine.nodes is None:
                continue
            pairs[f"{table}.{field.name}"] = getattr(part, field.name)
    show_pairs(pairs, how)


def _own_pairs(agent: RuleAgent | NamedAgent, name: str) -> dict[str, object]:
    """Return what is known of an agent without a card."""
    from hpcgym.agent.rule import RuleAgent
    from hpcgym.base import plugins

    entry = plugins.find_offered("agents", name) or plugins.find_offered("policies", name)
    made: object
    if isinstance(agent, RuleAgent):
        kind, keywords = "policy", {}
        made = agent.policy.formula or agent.policy.chooser
    else:
        kind, keywords, made = "agent", dict(agent.env_keywords), agent.agent
    return {
        "name": agent.name,
        "kind": kind,
        "description": " ".join((made.__doc__ or "").partition("\n\n")[0].split()),
        **{f"environment.{key}": str(value) for key, value in keywords.items()},
        "from": name if entry is None else f"{entry.value}, package {plugins.package_of(entry)}",
    }


def _training_pairs(training: Training) -> dict[str, str]:
    """Return what a card says of its agent's training."""
    from hpcgym.base.ranges import number_ranges

    stated = {key: str(value) for key, value in vars(training).items() if key != "weeks"}
    weeks = {f"weeks.{name}": number_ranges(weeks) for name, weeks in training.weeks.items()}
    return {f"training.{key}": value for key, value in (weeks | stated).items()}


def _looks_pairs(results: Sequence[Result]) -> dict[str, str]:
    """Return whether an agent is seen to look at anything, by scenario where that was tried."""
    return {
        f"looks.{result.scenario}": f"{'yes' if result.looks else 'not seen'}: "
        f"{result.control_text('to_mean')} of its mean action, "
        f"{result.control_text('to_shuffled')} of its actions shuffled"
        for result in results
        if result.looks is not None
    }


def _result_row(result: Result) -> dict[str, object]:
    """Return the cells of one of a card's results."""
    return {
        "scenario": result.scenario,
        "weeks": result.n_weeks,
        "mean_bsld": result.mean_bsld,
        "ratio_to_SAF": result.ratio_text,
        "pp-bsld": result.mean_pp_bsld,
        "max_wait": duration(result.max_wait_time),
    }


def _waits_row(result: Result) -> dict[str, object]:
    """Return the cells of the long waits of one of a card's results."""
    from hpcgym.agent.result_table import WAIT_RATIOS

    named = zip(("p99.9", "longest", "beyond"), WAIT_RATIOS, strict=True)
    ratios = {title: result.wait_ratio_text(name) for title, name in named}
    return {"scenario": result.scenario, **ratios}
