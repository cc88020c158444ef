"""Evaluate the agents of the shelf on every weekly scenario; write results.csv and the README.

    python scripts/update_agents.py [--scenario NAME]... [--agent NAME]... [--resume FILE]
    python scripts/update_agents.py --scenario price-weeks --replicas 0 --agent PRICE-NET

Scenarios whose log is not at hand (set HPCGYM_TRACES, or `hpcgym traces download`) keep their
rows. An agent given as the path of a card gets a results.csv beside that card.
"""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from hpcgym.agent.card import Card
from hpcgym.agent.result_table import write_results
from hpcgym.agent.shelf import load_card, load_cards
from hpcgym.base.errors import HpcgymError, TraceError
from hpcgym.base.output import writing
from hpcgym.base.registry import shelf_folders
from hpcgym.env.scenario.load import scenario_names
from hpcgym.evaluation.cross_validation import REPLICAS
from research.shelf_results import shelf_results

PREFACE = """\
# Agents

One `.toml` card per agent. `python scripts/update_agents.py` writes `results.csv`, their results on
weeks of nine logs and ten copies of each, and this page; of PRICE agents on `price-weeks`, without
copies. `hpcgym agents info NAME` shows both: ratios to SAF's mean bounded slowdown, with 95 %
intervals over weeks.

The [contest](../docs/evaluation.md#two-contests) is *guarded* where none is stated.

A card's `score` sorts jobs, lowest first: q processors, e request (s), w wait (s), r submit time (s
from the episode's start), p run time (s), M the machine's processors. Ties go by submit time, then
by position in the log.

| agent | what it does | contest |
|---|---|---|
"""


def main() -> int:
    """Update what can be, and say what was left."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--scenario", action="append", metavar="NAME")
    arguments.add_argument("--agent", action="append", metavar="NAME")
    arguments.add_argument("--replicas", type=int, default=REPLICAS, metavar="N", help="copies")
    arguments.add_argument("--on", metavar="WHERE", help="as of `hpcgym evaluate`")
    arguments.add_argument("--resume", metavar="FILE", help="keeps finished weeks, to go on from")
    options = arguments.parse_args()
    weekly = [name for name in scenario_names() if name.endswith("-weeks")]
    try:
        for scenario in options.scenario or weekly:
            how = {"replicas": options.replicas, "executor": options.on, "resume": options.resume}
            update(scenario, options.agent, **how)
        folder = shelf_folders("agents")[0]
        with writing(folder / "README.md", force=True) as file:
            file.write_text(index_markdown(load_cards()), encoding="utf-8")
    except HpcgymError as error:
        sys.exit(f"update_agents: {error}")
    return 0


def update(scenario: str, agents: list[str] | None, **how: Any) -> None:
    """Evaluate every agent, or those named, on one scenario and write their rows."""
    chosen = load_cards().values() if agents is None else map(load_card, agents)
    cards = {card.name: card for card in chosen}
    try:
        results = shelf_results(cards, scenario, **how)
    except TraceError as error:
        print(f"{scenario}: left as it was; {error}")
        return
    for folder in {card.path.parent for card in cards.values()}:
        own = {name: one for name, one in results.items() if cards[name].path.parent == folder}
        write_results(folder, own)
    print(f"{scenario}: {len(results)} results written")


def index_markdown(cards: Mapping[str, Card]) -> str:
    """Compose the README of the shelf: one row per agent, which is guarded if it says nothing."""
    rows = [
        f"| [`{card.name}`]({card.path.name}) | {card.title} |{contest} |\n"
        for card in cards.values()
        for contest in ["" if card.contest == "guarded" else f" {card.contest}"]
    ]
    return PREFACE + "".join(rows)


if __name__ == "__main__":
    sys.exit(main())
