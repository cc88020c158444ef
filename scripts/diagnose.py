"""Diagnose a rule by counterfactuals: what knowing more would be worth, and what can be learnt.

    python scripts/diagnose.py SMITH-REG --scenario synthetic-busy-weeks

Two weeks are planned by branches of contested passes, with more or less knowledge of what is
to come. Nine weeks are labelled and learnt from, out of fold. docs/counterfactuals.md explains
the tables.
"""

import argparse
import sys

import numpy as np

from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import machine_text
from hpcgym.env.scenario.episodes import Episodes
from research.diagnosis import controls, ladder, weeks_of
from research.ladder import GUARDED


def main() -> int:
    """Print the ladder, what decisions matter, and the controls."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agent", help="name of a rule, or path of its card")
    parser.add_argument("--scenario", required=True, metavar="NAME")
    parser.add_argument("--weeks", type=int, default=2, help="weeks that are planned")
    parser.add_argument("--learning-weeks", type=int, default=9, help="weeks that are learnt from")
    parser.add_argument("--samples", type=int, default=2, help="futures at each decision")
    options = parser.parse_args()
    try:
        diagnose(options)
    except HpcgymError as error:
        sys.exit(f"diagnose: {error}")
    return 0


def diagnose(options: argparse.Namespace) -> None:
    """Run the parts and print each as it is ready."""
    agent, rules = rule(options.agent), (rule("SMITH-REG"), rule(GUARDED))
    episodes = Episodes(options.scenario)
    for name in ("weeks", "learning_weeks", "samples"):
        least = 3 if name == "learning_weeks" else 1
        if not least <= getattr(options, name):
            raise HpcgymError(f"--{name.replace('_', '-')} must be at least {least}")
    planned = [episodes.workload(place) for place in spread(len(episodes), options.weeks)]
    table = ladder(weeks_of(planned, agent, episodes.settings), options.samples)
    print(f"What a planner would reach, as a ratio to {agent.name}, {len(planned)} weeks\n")
    print(machine_text(table, "markdown") + "\n", flush=True)
    learning = [episodes.workload(place) for place in spread(len(episodes), options.learning_weeks)]
    table = controls(
        learning, episodes.settings, agent, rules, lambda text: print(text, flush=True)
    )
    print(f"\nWhat learners reach out of fold, {len(learning)} weeks\n")
    print(machine_text(table, "markdown"))


def rule(name: str) -> RuleAgent:
    """Load an agent that is a rule."""
    agent = load_agent(name)
    if not isinstance(agent, RuleAgent):
        raise HpcgymError(
            f"{name} is no rule, and only rules are branched; name one such as {GUARDED}"
        )
    return agent


def spread(n: int, most: int) -> list[int]:
    """Return positions of some weeks, spread over all."""
    most = min(most, n)
    return [int(place) for place in (np.arange(most) + 0.5) * n / most]


if __name__ == "__main__":
    sys.exit(main())
