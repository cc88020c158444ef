"""The shelf of agents: cards by name, agents by name."""

from __future__ import annotations

from pathlib import Path

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card import Card, parse_card, read_card
from hpcgym.agent.own import is_own, offered_agent, own_agent
from hpcgym.agent.rule import RuleAgent
from hpcgym.base import plugins
from hpcgym.base.errors import CardError, unknown_name
from hpcgym.base.registry import shelf_entries
from hpcgym.core.loaders import FAMILIES, SIMULATORS
from hpcgym.core.policy import policy_names

LISTED_BY = "hpcgym agents list"


def load_cards() -> dict[str, Card]:
    """Read every card on the shelf, by name: first those of policies in their order, then the rest.

    Raises:
        CardError: A card is not understood.

    Example:
        >>> load_cards()["SAF"].title
        'Smallest estimated area first'
    """
    cards = parse_cards()
    for card in cards:
        _ = card.agent  # refuses what cannot be honoured
    return {card.name: card for card in cards}


def parse_cards() -> list[Card]:
    """Read every card as `load_cards` does, but make no agent; a tenth of the time.

    Raises:
        CardError: A card lacks a key, or has one too many.
    """
    rank = {name: position for position, name in enumerate(policy_names())}
    cards = [parse_card(path) for path in shelf_entries("agents").values()]
    return sorted(cards, key=lambda card: (rank.get(card.name, len(rank)), card.name))


def agent_names() -> tuple[str, ...]:
    """Return the name of every agent on the shelf; `load_agent` takes them in any case."""
    return tuple(card.name for card in parse_cards())


def load_card(name: str) -> Card:
    """Find and check one card, by its agent's name in any case or by a path that ends in `.toml`.

    Raises:
        CardError: No such card, or it is not understood; the message names the nearest one.

    Example:
        >>> load_card("easy-sjbf").environment["backfill_order"]
        'SPF'
    """
    if name.endswith(".toml"):
        return read_card(Path(name))
    entries = shelf_entries("agents")
    if name.casefold() not in entries:
        raise CardError(unknown_name("agent", name, agent_names(), LISTED_BY))
    return read_card(entries[name.casefold()])


def load_agent(name: str) -> RuleAgent | NamedAgent:
    """Make an agent of a card, or of a policy that has none.

    Args:
        name: Name of an agent on the shelf, path of a card, name of a policy of the user's own,
            "recorded", a policy with parameters such as "fair-share", or weights such as
            "e=1,wait=-0.5". Or what runs code when it is loaded: a
            name that an installed package offers, `path/to/file.py:Name`, `module:Name`, or the
            `.zip` of a model of Stable-Baselines3.

    Raises:
        CardError: There is no such agent or policy, or its card is not understood.
        PolicyError: Weights that are not understood.
        HpcgymError: A file, module or package cannot be imported.

    Example:
        >>> load_agent("saf").name, load_agent("area=1").name
        ('SAF', 'area=1')
    """
    if is_own(name):
        return own_agent(name)
    if name.endswith(".toml") or name.casefold() in shelf_entries("agents"):
        return load_card(name).agent
    if name.partition(":")[0].lower() in SIMULATORS:
        return RuleAgent("FCFS", backfill=name.lower(), name=name.upper())
    if "=" in name or name.partition(":")[0] in FAMILIES:
        return RuleAgent(name)
    if name.casefold() in map(str.casefold, policy_names()):
        return RuleAgent(name)
    agent = offered_agent(name)
    if agent is None:
        raise CardError(unknown_name("agent", name, known_agents(), LISTED_BY))
    return agent


def known_agents() -> tuple[str, ...]:
    """Return every name that `load_agent` takes: of the shelf, of policies, and of packages."""
    offered = (*plugins.offered_names("agents"), *plugins.offered_names("policies"))
    return tuple(dict.fromkeys((*agent_names(), *policy_names(), *offered)))
