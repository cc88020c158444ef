"""The shelf of agents: cards by name, agents by name, and the parts of it that are generated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card import Card, Result, read_card
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.policy import as_policy, policy_names
from hpcgym.errors import CardError, PolicyError, unknown_name
from hpcgym.output import writing
from hpcgym.registry import shelf_entries

RESULTS_MARK = "# Results: written by `python scripts/update_agents.py`, never by hand."
"""Line of a card below which everything is generated."""


def load_cards() -> dict[str, Card]:
    """Read every card on the shelf.

    Returns:
        Cards by their names, in the order of policies, then of names.

    Raises:
        CardError: A card is not understood.

    Source:
        House rule: `agents/` says which agents exist, how each was made and how good it is.

    Example:
        >>> load_cards()["SAF"].title
        'Smallest estimated area first'
    """
    rank = {name: place for place, name in enumerate(policy_names())}
    cards = [read_card(path) for path in shelf_entries("agents").values()]
    cards.sort(key=lambda card: (rank.get(card.name, len(rank)), card.name))
    return {card.name: card for card in cards}


def agent_names() -> tuple[str, ...]:
    """Return the name of every agent on the shelf.

    Returns:
        Names that `load_agent` takes, in any case.

    Source:
        House rule: an entry's name is its file's stem.
    """
    return tuple(load_cards())


def load_card(name: str) -> Card:
    """Find and check one card.

    Args:
        name: The agent's name in any case, or the path of a card that ends in `.toml`.

    Returns:
        The card.

    Raises:
        CardError: No such card, or it is not understood; the message names the nearest one.

    Source:
        House rule: one name space for agents.

    Example:
        >>> load_card("easy-sjbf").environment["backfill_order"]
        'SPF'
    """
    if name.endswith(".toml"):
        return read_card(Path(name))
    entries = shelf_entries("agents")
    if name.casefold() not in entries:
        raise CardError(unknown_name("agent", name, agent_names()))
    return read_card(entries[name.casefold()])


def load_agent(name: str) -> RuleAgent | NamedAgent:
    """Make an agent of a card, or of a policy that has none.

    Args:
        name: Name of an agent on the shelf, path of a card, name of a policy of the user's own,
            or weights such as "e=1,wait=-0.5".

    Returns:
        The agent.

    Raises:
        CardError: There is no such agent or policy, or its card is not understood.
        PolicyError: Weights that are not understood.

    Source:
        House rule: a policy is an agent that makes one choice.

    Example:
        >>> load_agent("saf").name, load_agent("area=1").name
        ('SAF', 'area=1')
    """
    if "=" in name:
        return RuleAgent(name)
    if not name.endswith(".toml") and name.casefold() not in shelf_entries("agents"):
        try:
            return RuleAgent(as_policy(name))
        except PolicyError:
            known = dict.fromkeys((*agent_names(), *policy_names()))
            raise CardError(unknown_name("agent", name, known)) from None
    return load_card(name).agent()


def write_results(card: Card, results: Sequence[Result]) -> None:
    """Replace the generated part of a card.

    Args:
        card: The card; what a person wrote in it stays as it is.
        results: Its figures, one per scenario.

    Raises:
        OutputError: The file cannot be written.

    Source:
        House rule: results are figures printed by a command named beside them.
    """
    written, _, _ = card.path.read_text(encoding="utf-8").partition(RESULTS_MARK)
    tables = "".join(f"\n[[results]]\n{_toml(result)}" for result in results)
    with writing(card.path, force=True) as file:
        file.write_text(f"{written.rstrip()}\n\n{RESULTS_MARK}\n{tables}", encoding="utf-8")


def index_markdown(cards: Mapping[str, Card]) -> str:
    """Compose the README of the shelf.

    Args:
        cards: The cards, by name.

    Returns:
        Markdown: what the shelf is, and one row per agent with its ratio to SAF on each scenario.

    Source:
        House rule: the index of a shelf is generated, and tested to be current.
    """
    scenarios = list(
        dict.fromkeys(result.scenario for card in cards.values() for result in card.results)
    )
    lines = [
        "The code of these agents is in `hpcgym/agent/`; here stands which there are, how each was",
        "made and how good it is. This page is written by `python scripts/update_agents.py`.",
        "",
        "# Agents",
        "",
        "One `.toml` card per agent. `hpcgym agents info NAME` shows a card, and",
        "`hpcgym evaluate --agents NAME,NAME --scenario SCENARIO` compares agents.",
        "",
        "Columns: the sum over a scenario's weeks of the mean bounded slowdown as a ratio to",
        "SAF's, lower is better, with its 95 % paired bootstrap interval over weeks. Each week",
        "counts as it is and in ten copies whose submit times are shaken by up to 600 s; a card's",
        "`command` prints its figures. An agent that was trained on weeks of a scenario is run on",
        "those alone that its training leaves open; their number stands with the ratio, which is",
        "then not to be compared with others of its column: `hpcgym cross-validate NAME NAME`",
        "runs all of its agents on the weeks that are open to each.",
        "",
        "In a card's `score`, lowest first: q is a job's processors, e its request (s), w its wait",
        "so far (s), r its submit time (s from the episode's start), p a run time (s), and M the",
        "machine's processors. Ties go by submit time, then by position in the log.",
        "",
        "| agent | what it does | " + " | ".join(scenarios) + " |",
        "|---|---|" + "---:|" * len(scenarios),
    ]
    for card in cards.values():
        trained_on = () if card.training is None else card.training.weeks
        ratios = {
            result.scenario: _ratio(result, counts_weeks=result.scenario in trained_on)
            for result in card.results
        }
        cells = [ratios.get(scenario, "") for scenario in scenarios]
        link = f"[`{card.name}`]({card.path.name})"
        lines.append(f"| {link} | {card.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _ratio(result: Result, *, counts_weeks: bool) -> str:
    """Write a ratio with its interval, if it has one, and of how many weeks it is."""
    text = f"{result.ratio_to_saf:.3f}"
    if result.interval is not None:
        low, high = result.interval
        text += f" [{low:.3f}, {high:.3f}]"
    return f"{text}, {result.n_weeks} weeks" if counts_weeks else text


def _toml(result: Result) -> str:
    """Write a result as TOML."""
    lines = []
    for one in fields(result):
        value = getattr(result, one.name)
        if value is not None:
            lines.append(f"{one.name} = {_toml_value(value)}\n")
    return "".join(lines)


def _toml_value(value: object) -> str:
    """Write a text, a number or a pair of numbers as TOML."""
    if isinstance(value, str):
        return json.dumps(value)  # quotes as TOML does
    return str(list(value) if isinstance(value, tuple) else value)
