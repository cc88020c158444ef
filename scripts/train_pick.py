"""Train the network shared over rows on the problem `pick`, by Stable-Baselines3's PPO.

    python scripts/train_pick.py --minutes 30 --output runs/pick
    python scripts/train_pick.py --judge runs/pick

Between rollouts it prints the geometric mean of ratios to SAF-REG under EASY, with its interval, on
the validation windows; the best average of networks by these is `best.zip`. Minutes are of
processor time. --resume goes on from `last.zip`. --defaults trains SB3's defaults, "MlpPolicy" and
all, in its stead. --judge prints the table of the test windows, with the best network in it, and
what it does where each window gets the slot that it takes in another: "shuffled".
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.agent.sb3 import HPCBatchVecEnv
from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import shown
from hpcgym.base.text_table import machine_text
from hpcgym.env.registration import PROBLEMS
from hpcgym.env.scenario.episodes import Episodes, settings_but_policy
from papers.common.expected_cost import expected_cost
from papers.common.playing import Chooses
from papers.common.rows_ppo import Judge, train, trained
from research.pick import SCENARIO, geometric, of_rule, played, shuffled, table_of, windows_of

ENVS = 512
"""Environments; 8 with SB3's defaults."""


def validation() -> Judge:
    """Return a function that judges agents on the validation windows."""
    windows = windows_of("validation")
    base = of_rule("SAF-REG", "easy", windows).bsld

    def judge(chooses: Chooses) -> tuple[float, str]:
        bsld = played(chooses, windows).bsld
        return float(np.log(bsld / base).mean()), f"{geometric(bsld, base)} of SAF-REG"

    return judge


def main(given: argparse.Namespace) -> None:
    """Train, or go on with a training."""
    keywords: Any = PROBLEMS["Windows-pick"].keywords | {"observation": "flat"}
    windows = Episodes(SCENARIO).select("train")
    if not given.defaults:
        jobs = [window for row in windows_of("train") for window in row]
        keywords["reward"] = expected_cost(jobs, "SAF-REG", **settings_but_policy(windows.settings))
        keywords["baseline"] = "SAF-REG"  # what all its actions have in common is taken off
    n_envs = 8 if given.defaults else ENVS
    train(
        given.output,
        HPCBatchVecEnv(windows, num_envs=n_envs, threads=1, **keywords),
        validation(),
        minutes=given.minutes,
        every=given.every,
        seed=given.seed,
        resume=given.resume,
        defaults=given.defaults,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/pick"), metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=30, help="of processor time")
    parser.add_argument("--every", type=int, default=25, help="rollouts between validations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="go on from the folder")
    parser.add_argument("--defaults", action="store_true", help="SB3's defaults in its stead")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="print the test windows")
    parser.add_argument("--copies", type=int, default=0, help="jittered, of each test window")
    given = parser.parse_args()
    if given.judge is None:
        main(given)
    else:
        try:
            best = trained(given.judge)
        except HpcgymError as error:
            sys.exit(f"train_pick: {error}")
        agents = {"trained": best, "trained, shuffled": shuffled(best)}
        with shown():
            print(machine_text(table_of(agents, copies=given.copies), "markdown"))
