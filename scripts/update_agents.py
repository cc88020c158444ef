"""Evaluate the agents of the shelf on every weekly scenario; write results.csv and the README.

    python scripts/update_agents.py [--scenario NAME]... [--agent NAME]... [--resume FILE]

Scenarios whose log is not at hand (set HPCGYM_TRACES, or `hpcgym traces download`) keep their
rows. An agent given as the path of a card gets a results.csv beside that card.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from hpcgym.agent.card import Card
from hpcgym.agent.result_table import WAIT_RATIOS, Result, write_results
from hpcgym.agent.shelf import load_card, load_cards
from hpcgym.base.errors import HpcgymError, TraceError
from hpcgym.base.output import writing
from hpcgym.base.registry import shelf_folders
from hpcgym.env.scenario.load import scenario_names
from research.shelf_results import shelf_results

PREFACE = """\
# Agents

The code of these agents is in `hpcgym/agent/`. This folder holds one `.toml` card per agent, and
the results of them all in `results.csv`. `python scripts/update_agents.py` writes that table and
this page.

`hpcgym agents info NAME` shows a card, and `hpcgym evaluate --agents NAME,NAME --scenario SCENARIO`
compares agents.

A column holds the sum over a scenario's weeks of the mean bounded slowdown, as a ratio to SAF's,
with its 95 % interval over weeks, of each agent alone; lower is better. Each week counts as it is
and in ten copies with submit times shifted by up to 600 s. The `command` of a row of `results.csv`
prints its metrics. An agent that was trained on weeks of a scenario is run only on the weeks that
its training leaves open. Their number follows the ratio; `hpcgym cross-validate` compares on these.

A *guarded* agent lets jobs beyond the threshold go first and lets nothing delay them further; an
*open* one may. One in the contest *requeue* may kill jobs that run.

A card's `score` is the value that its agent sorts jobs by, lowest first. In it, q is a job's
processors, e its request (s), w its wait so far (s), r its submit time (s from the episode's
start), p a run time (s), and M the machine's processors. Ties go by submit time, then by position
in the log.
"""


def main() -> int:
    """Update what can be, and say what was left."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--scenario", action="append", metavar="NAME")
    arguments.add_argument("--agent", action="append", metavar="NAME")
    arguments.add_argument("--on", metavar="WHERE", help="as of `hpcgym evaluate`")
    arguments.add_argument("--resume", metavar="FILE", help="keeps finished weeks, to go on from")
    options = arguments.parse_args()
    weekly = [name for name in scenario_names() if name.endswith("-weeks")]
    try:
        for scenario in options.scenario or weekly:
            update(scenario, options.agent, options.on, options.resume)
        folder = shelf_folders("agents")[0]
        with writing(folder / "README.md", force=True) as file:
            file.write_text(index_markdown(load_cards()), encoding="utf-8")
    except HpcgymError as error:
        sys.exit(f"update_agents: {error}")
    return 0


def update(
    scenario: str, agents: list[str] | None, executor: str | None, resume: str | None
) -> None:
    """Evaluate every agent, or those named, on one scenario and write their rows."""
    chosen = load_cards().values() if agents is None else map(load_card, agents)
    cards = {card.name: card for card in chosen}
    try:
        results = shelf_results(cards, scenario, executor=executor, resume=resume)
    except TraceError as error:
        print(f"{scenario}: left as it was; {error}")
        return
    for folder in {card.path.parent for card in cards.values()}:
        own = {name: one for name, one in results.items() if cards[name].path.parent == folder}
        write_results(folder, own)
    print(f"{scenario}: {len(results)} results written")


def index_markdown(cards: Mapping[str, Card]) -> str:
    """Compose the README of the shelf: one row per agent, and a table of each ratio to SAF."""
    results = {name: card.results for name, card in cards.items()}
    scenarios = list(dict.fromkeys(one.scenario for own in results.values() for one in own))
    head = f"| agent | what it does | contest | {' | '.join(scenarios)} |"
    lines = [PREFACE, head, "|---|---|---|" + "---:|" * len(scenarios)]
    for card in cards.values():
        trained_on = () if card.training is None else card.training.weeks
        ratios = {one.scenario: one.ratio_text for one in results[card.name]}
        for one in results[card.name]:
            if one.scenario in trained_on:
                ratios[one.scenario] += f", {one.n_weeks} weeks"
        link = f"[`{card.name}`]({card.path.name})"
        cells = [link, card.title, card.contest, *(ratios.get(one, "") for one in scenarios)]
        lines.append("| " + " | ".join(cells) + " |")
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
            cells = [f"`{name}`", *(texts.get(scenario, "") for scenario in scenarios)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
