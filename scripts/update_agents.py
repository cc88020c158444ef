"""Evaluate the agents of the shelf on every weekly scenario; write results.csv and the README.

    python scripts/update_agents.py [--scenario NAME]... [--agent NAME]... [--processes N]

Scenarios whose log is not at hand (set HPCGYM_TRACES, or `hpcgym traces download`) keep their
rows. An agent given as the path of a card gets a results.csv beside that card.
"""

import argparse
import sys

from hpcgym.agent.result_table import write_results
from hpcgym.agent.shelf import index_markdown, load_card, load_cards
from hpcgym.errors import HpcgymError, TraceError
from hpcgym.output import writing
from hpcgym.registry import shelf_folders
from hpcgym.scenario.load import scenario_names
from research.shelf_results import shelf_results


def main() -> int:
    """Update what can be, and say what was left."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--scenario", action="append", metavar="NAME")
    arguments.add_argument("--agent", action="append", metavar="NAME")
    arguments.add_argument("--processes", type=int, default=1, metavar="N")
    options = arguments.parse_args()
    weekly = [name for name in scenario_names() if name.endswith("-weeks")]
    try:
        for scenario in options.scenario or weekly:
            update(scenario, options.agent, options.processes)
        folder = shelf_folders("agents")[0]
        with writing(folder / "README.md", force=True) as file:
            file.write_text(index_markdown(load_cards()), encoding="utf-8")
    except HpcgymError as error:
        sys.exit(f"update_agents: {error}")
    return 0


def update(scenario: str, agents: list[str] | None, processes: int) -> None:
    """Evaluate every agent, or those named, on one scenario and write their rows."""
    chosen = load_cards().values() if agents is None else map(load_card, agents)
    cards = {card.name: card for card in chosen}
    try:
        results = shelf_results(cards, scenario, processes=processes)
    except TraceError as error:
        print(f"{scenario}: left as it was; {error}")
        return
    for folder in {card.path.parent for card in cards.values()}:
        own = {name: one for name, one in results.items() if cards[name].path.parent == folder}
        write_results(folder, own)
    print(f"{scenario}: {len(results)} results written")


if __name__ == "__main__":
    sys.exit(main())
