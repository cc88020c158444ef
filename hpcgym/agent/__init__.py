"""Agents: anything with SB3's `predict`, rules first, and the cards that name them."""

from hpcgym.agent.base import Agent, NamedAgent
from hpcgym.agent.card import Card
from hpcgym.agent.result_table import Result
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import agent_names, load_agent, load_card, load_cards

__all__ = [
    "Agent",
    "Card",
    "NamedAgent",
    "Result",
    "RuleAgent",
    "agent_names",
    "load_agent",
    "load_card",
    "load_cards",
]
