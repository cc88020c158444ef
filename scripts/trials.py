"""Print what trials bring where starting again costs time, or must wait, or few users take part.

    python scripts/trials.py [overhead] [users] [restart] [--scenario NAME]...

Ratios to SAF's, geometric means over the logs with 95 % intervals, and means of what is wasted.
Finished runs are kept in the folder, so that the same command goes on from there.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.agent import RuleAgent, load_card
from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.base.text_table import machine_text
from hpcgym.evaluation import cross_validate
from hpcgym.evaluation.aggregate import aggregate_logs
from hpcgym.evaluation.waste import means_of_waste
from hpcgym.trace.resample import JITTER_S
from research.ladder import FIVE, GUARDED

AGENTS = ("SAF-TRIAL", "URGENT-TRIAL", "URGENT-YOUNG", "SAF-CAP-YOUNG")
FCFS = "FCFS-TRIAL"
PARTS = {
    "overhead": (GUARDED, AGENTS, ("overhead=30", "overhead=120")),
    "users": (GUARDED, AGENTS, ("users=0.5", "users=0.25")),
    "restart": ("FCFS", (FCFS, "SAF-TRIAL"), ("restart=10", "restart=121")),
}
"""Of each part the agent without trials, those with, and how their trials are changed."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=[*PARTS])
    parser.add_argument("--scenario", action="append", metavar="NAME", help="default: five logs")
    parser.add_argument("--replicas", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("runs/trials"))
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(PARTS)}")
    try:
        kept = make_folder(options.output) / "kept.sqlite"
        for part in options.parts:
            table = compare(*PARTS[part], options.scenario or FIVE, options.replicas, kept)
            print(f"\n{part}\n\n{machine_text(table, 'markdown')}", flush=True)
    except HpcgymError as error:
        sys.exit(f"trials: {error}")
    return 0


def changed(agent: str, change: str) -> RuleAgent:
    """Return an agent whose trials have a parameter more, or none where it is ""."""
    if agent == FCFS:
        policy, backfill = "FCFS", "easy+trial"
    else:
        card = load_card(agent)
        policy, backfill = card.parameters["policy"], str(card.environment["backfill"])
    joint = "," if "+trial:" in backfill else ":"
    name = f"{agent}, {change}" if change else agent
    backfill = f"{backfill}{joint}{change}" if change else backfill
    return RuleAgent(policy, backfill=backfill, name=name)


def compare(
    plain: str,
    tried: Sequence[str],
    changes: Sequence[str],
    scenarios: Sequence[str],
    replicas: int,
    kept: Path,
) -> pd.DataFrame:
    """Return a row for each agent as it is, and under each change."""
    agents = [plain, *(changed(agent, change) for agent in tried for change in ("", *changes))]
    found = cross_validate(
        agents,
        scenarios,
        jitter=JITTER_S if replicas else 0,
        replicas=replicas,
        baselines=(),
        resume=kept,
    )
    means = {one.agent: one for one in aggregate_logs(found.evaluations)}
    wasted = [means_of_waste(one.frame) for one in found.evaluations]
    names = [plain, *(name for agent in tried for name in means if name.split(",")[0] == agent)]
    rows = []
    for name in names:
        row = {"agent": name, "ratio to SAF": str(means[name].ratio)}
        row |= {"longest wait": f"{means[name].waits[1]:.3f}"}
        for column, head in (("waste", "wasted, %"), ("share_killed", "jobs killed, %")):
            row[head] = f"{100 * np.mean([one[column][name] for one in wasted]):.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    sys.exit(main())
