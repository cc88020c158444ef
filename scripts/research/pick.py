"""The problem `pick`: agents and rules on the same windows, paired."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import pandas as pd
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym import simulate_many
from hpcgym.core.observation_fields import JobField
from hpcgym.evaluation.statistics import mean_log_ratio, ratio_of_sums
from hpcgym.scenario.episodes import Episodes, settings_but_policy

ID = "hpcgym/Windows-pick-{}-v0"
SCENARIO = "windows-256"

Floats: TypeAlias = NDArray[np.float64]
Chooses: TypeAlias = Callable[[NDArray[np.float32]], NDArray[Any]]
"""Slots, one per observation, of observations in one array each."""

RULES = [("FCFS", "none"), ("SAF", "none"), ("SAF-REG", "none"), ("SAF", "easy")]
RULES += [("SAF-REG", "easy"), ("SAF-HISTORY", "easy"), ("SMITH-REG", "easy")]


def of_rule(policy: str, backfill: str, part: str, n_windows: int | None = None) -> Floats:
    """Return the mean bsld of a policy on the first windows of a part."""
    chosen = Episodes(SCENARIO).select(part)
    windows = [chosen.workload(place) for place in range(len(chosen))][:n_windows]
    settings = settings_but_policy(chosen.settings) | {"backfill": backfill}
    return simulate_many(windows, [policy], metrics=["mean_bsld"], **settings)["mean_bsld"].ravel()


def played(chooses: Chooses, part: str, n_windows: int | None = None) -> Floats:
    """Return the mean bsld of an agent on the first windows of a part, all of them side by side."""
    numbers = Episodes(SCENARIO).select(part).numbers[:n_windows]
    envs: Any = gymnasium.make_vec(
        ID.format(part),
        num_envs=len(numbers),
        autoreset_mode=AutoresetMode.SAME_STEP,
        threads=1,
    )
    shown, _ = envs.reset(seed=0, options={"episode": list(numbers)})
    bsld = np.full(len(numbers), np.nan)
    while np.isnan(bsld).any():
        shown, _, ended, _, info = envs.step(chooses(shown))
        if ended.any():
            ended &= np.isnan(bsld)
            bsld[ended] = info["final_info"]["mean_bsld"][ended]
    return bsld


def parts_of(shown: NDArray[np.float32], n_slots: int = 32) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return which slots hold a job, and which of these fit now, both (n, n_slots)."""
    n_fields = len(JobField)
    jobs = shown[:, : n_slots * n_fields].reshape(len(shown), n_slots, n_fields)
    there = shown[:, -n_slots:] > 0
    return there, there & (jobs[:, :, JobField.FITS_NOW] > 0)


def simple_agents() -> dict[str, Chooses]:
    """Return agents that need no learning, by name."""
    chance = np.random.default_rng(0)

    def random(shown: NDArray[np.float32]) -> NDArray[Any]:
        there, _ = parts_of(shown)
        return np.asarray((chance.random(there.shape) * there).argmax(axis=1))

    def fitting(shown: NDArray[np.float32]) -> NDArray[Any]:
        return np.asarray(parts_of(shown)[1].argmax(axis=1))

    return {
        "random": random,
        "first slot": lambda shown: np.zeros(len(shown), dtype=np.int64),
        "first slot that fits": fitting,
    }


def table_of(
    agents: dict[str, Chooses], part: str = "test", n_windows: int | None = None
) -> pd.DataFrame:
    """Compare simple agents, rules, and further agents with SAF under EASY, and with SAF-REG."""
    bsld = {
        name: played(chooses, part, n_windows)
        for name, chooses in (simple_agents() | agents).items()
    }
    words = {"none": "without backfilling", "easy": "under EASY"}
    bsld |= {
        f"{policy} {words[mode]}": of_rule(policy, mode, part, n_windows) for policy, mode in RULES
    }
    saf, reg = bsld["SAF under EASY"], bsld["SAF-REG under EASY"]
    rows = [
        {
            "agent": name,
            "mean ratio": f"{np.mean(values / saf):.3f}",
            "ratio of sums": str(ratio_of_sums(values[:, None], saf[:, None])),
            "geometric mean": geometric(values, saf),
            "to SAF-REG under EASY": geometric(values, reg),
        }
        for name, values in bsld.items()
    ]
    return pd.DataFrame(rows)


def geometric(values: Floats, base: Floats) -> str:
    """Return the geometric mean of ratios with its interval: the exponent of the mean log ratio."""
    estimate = mean_log_ratio(values[:, None], base[:, None])
    ends: Sequence[float] = (estimate.value, *(estimate.ends() or ()))
    value, *others = (f"{np.exp(end):.3f}" for end in ends)
    return f"{value} [{', '.join(others)}]" if others else value
