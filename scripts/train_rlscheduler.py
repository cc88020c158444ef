"""Train the network shared over rows under RLScheduler's rules, and judge it on its windows.

    HPCGYM_TRACES=FOLDER python scripts/train_rlscheduler.py --minutes 4

For each log, without and with the paper's backfilling, one network is trained on the ten windows
that judge it, and one on windows that share no job with these. It prints the mean bounded slowdown
of the ten windows beside what the authors print. Minutes are of processor time, for each training.
Stopped, the same command goes on; --judge trains nothing.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.base.text_table import machine_text
from hpcgym.trace import find_trace, read_swf
from papers.common.playing import Chooses
from papers.common.rows_ppo import train, trained
from papers.rlscheduler.run import LOGS, PUBLISHED
from papers.rlscheduler.simulator import starts_of_windows
from papers.rlscheduler.training import Windows

KINDS = {"on the ten windows": True, "on windows apart": False}


def train_on(windows: Windows, on_theirs: bool, folder: Path, minutes: float) -> None:
    """Train until the minutes are over, those of earlier runs included."""

    def judge(chooses: Chooses) -> tuple[float, str]:
        bsld = windows.bsld(chooses, on_theirs)
        return float(bsld.mean()), f"mean bsld {bsld.mean():.2f}"

    envs = windows.envs_of(on_theirs)
    more: Any = {"every": 5, "n_steps": 128, "rate": 1e-3, "keeps": 0.95}
    train(folder, envs, judge, minutes=minutes, resume=True, **more)


def main(given: argparse.Namespace) -> None:
    """Train what is not trained yet, and print the table."""
    rows = []
    for backfill in given.halves:
        for title in given.logs:
            log = read_swf(find_trace(LOGS[title]))
            windows = Windows.of(log, backfill, starts_of_windows())
            half = "with backfilling" if backfill else "without backfilling"
            row = {"log": f"{title}, {half}", "RL, published": PUBLISHED[backfill, title][-1]}
            for kind, on_theirs in KINDS.items():
                folder = given.output / f"{title} {half} {kind}".replace(" ", "-").lower()
                if not given.judge:
                    print(f"{title}, {half}, {kind}", flush=True)
                    train_on(windows, on_theirs, folder, given.minutes)
                row[f"trained {kind}"] = np.round(windows.bsld(trained(folder), True).mean(), 2)
            rows.append(row)
    print(machine_text(pd.DataFrame(rows), "markdown"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/rlscheduler-trained"))
    parser.add_argument("--minutes", type=float, default=4, help="of processor time, each training")
    parser.add_argument("--logs", nargs="+", choices=LOGS, default=list(LOGS))
    parser.add_argument("--halves", nargs="+", type=int, choices=(0, 1), default=[0, 1])
    parser.add_argument("--judge", action="store_true", help="print the table of what is trained")
    main(parser.parse_args())
