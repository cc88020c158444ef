"""The shelf of agents: cards by name, agents by name, and the README of the folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hpcgym import plugins
from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card import Card, parse_card, read_card
from hpcgym.agent.own import is_own, offered_agent, own_agent
from hpcgym.agent.result_table import WAIT_RATIOS, Result
from hpcgym.agent.rule import RuleAgent
from hpcgym.core.policy import policy_names
from hpcgym.errors import CardError, unknown_name
from hpcgym.registry import shelf_entries

PREFACE = """\
# Agents

The code of these agents is in `hpcgym/agent/`. This folder holds one `.toml` card per agent, and
the results of them all in `results.csv`. `python scripts/update_agents.py` writes that table and
this page.

`hpcgym agents info NAME` shows a card, and `hpcgym evaluate --agents NAME,NAME --scenario SCENARIO`
compares agents.

A column holds the sum over a scenario's weeks of the mean bounded slowdown, as a ratio to SAF's,
with its 95 % paired bootstrap interval over weeks; lower is better. Each week counts as it is and
in ten copies with submit times shifted by up to 600 s. The `command` of a row of `results.csv`
prints its metrics. An agent that was trained on weeks of a scenario is run only on the weeks that
its training leaves open. Their number follows the ratio, which is then not comparable with others
of its column. `hpcgym cross-validate NAME NAME` runs all of its agents on the weeks that are open
to each.

A *guarded* agent lets jobs beyond the threshold go first and lets nothing delay them further; an
*open* one may. Tables further down have the price in long waits.

A card's `score` is the value that its agent sorts jobs by, lowest first. In it, q is a job's
processors, e its request (s), w its wait so far (s), r its submit time (s from the episode's
start), p a run time (s), and M the machine's processors. Ties go by submit time, then by position
in the log.
"""


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
    rank = {name: place for place, name in enumerate(policy_names())}
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
        raise CardError(unknown_name("agent", name, agent_names()))
    return read_card(entries[name.casefold()])


def load_agent(name: str) -> RuleAgent | NamedAgent:
    """Make an agent of a card, or of a policy that has none.

    Args:
        name: Name of an agent on the shelf, path of a card, name of a policy of the user's own,
            or weights such as "e=1,wait=-0.5". Or what runs code when it is loaded: a name that
            an installed package offers, `path/to/file.py:Name`, `module:Name`, or the `.zip` of a
            model of Stable-Baselines3.

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
    if "=" in name:
        return RuleAgent(name)
    if name.endswith(".toml") or name.casefold() in shelf_entries("agents"):
        return load_card(name).agent
    if name.casefold() in map(str.casefold, policy_names()):
        return RuleAgent(name)
    found = offered_agent(name)
    if found is None:
        raise CardError(unknown_name("agent", name, known_agents()))
    return found


def known_agents() -> tuple[str, ...]:
    """Return every name that `load_agent` takes: of the shelf, of policies, and of packages."""
    offered = (*plugins.offered_names("agents"), *plugins.offered_names("policies"))
    return tuple(dict.fromkeys((*agent_names(), *policy_names(), *offered)))


def index_markdown(cards: Mapping[str, Card]) -> str:
    """Compose the README of the shelf: one row per agent, its ratio to SAF on each scenario.

    Below, a table of each ratio of long waits has the agents with results.
    """
    results = {name: card.results for name, card in cards.items()}
    scenarios = list(dict.fromkeys(one.scenario for own in results.values() for one in own))
    head = "| agent | what it does | contest | " + " | ".join(scenarios) + " |"
    lines = [PREFACE, head, "|---|---|---|" + "---:|" * len(scenarios)]
    for card in cards.values():
        trained_on = () if card.training is None else card.training.weeks
        ratios = {
            one.scenario: one.ratio_text
            + (f", {one.n_weeks} weeks" if one.scenario in trained_on else "")
            for one in results[card.name]
        }
        cells = [ratios.get(scenario, "") for scenario in scenarios]
        link = f"[`{card.name}`]({card.path.name})"
        lines.append(f"| {link} | {card.title} | {card.contest} | " + " | ".join(cells) + " |")
    for ratio, title in WAIT_RATIOS.items():
        lines += _waits_markdown(results, scenarios, ratio, title)
    return "\n".join(lines) + "\n"


def _waits_markdown(
    results: Mapping[str, Sequence[Result]], scenarios: Sequence[str], ratio: str, title: str
) -> list[str]:
    """Return the lines of a section with one ratio of long waits to SAF's."""
    head = "| agent | " + " | ".join(scenarios) + " |"
    lines = ["", f"## Ratio to SAF: {title}", "", head, "|---|" + "---:|" * len(scenarios)]
    for name, own in results.items():
        texts = {one.scenario: one.wait_ratio_text(ratio) for one in own}
        if texts:
            cells = [texts.get(scenario, "") for scenario in scenarios]
            lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines
