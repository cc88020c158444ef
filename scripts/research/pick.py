"""The problem `pick`: agents and rules on the same windows, paired."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hpcgym import simulate_many
from hpcgym.agent.first_fit import FIRST_FITS, slots_of
from hpcgym.core.workload import Workload
from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes, settings_but_policy
from hpcgym.evaluation.gap import gap_text
from hpcgym.evaluation.statistics import mean_log_ratio, ratio_of_sums
from hpcgym.trace.resample import jitter
from papers.common.playing import METRICS, Chooses, Floats, Seen, played_once
from research.scales import closed_by

ID = "hpcgym/Windows-pick-{}-v0"
SCENARIO = "windows-256"

FIRST: dict[str, Chooses] = {
    name: lambda shown, agent=agent: agent.predict(shown)[0]  # type: ignore[misc]
    for name, agent in FIRST_FITS.items()
}

RULES = [("FCFS", "none"), ("SAF", "none"), ("SAF-REG", "none"), ("SAF", "easy")]
RULES += [("SAF-REG", "easy"), ("SAF-HISTORY", "easy"), ("SMITH-REG", "easy")]


def windows_of(part: str, n_windows: int | None = None, copies: int = 0) -> list[list[Workload]]:
    """Return the first windows of a part, each followed by jittered copies of it."""
    chosen = Episodes(SCENARIO).select(part)
    rows = []
    for number, place in list(zip(chosen.numbers, range(len(chosen)), strict=True))[:n_windows]:
        window, chance = chosen.workload(place), np.random.default_rng(number)
        rows.append([window, *(jitter(window, chance) for _ in range(copies))])
    return rows


def of_rule(policy: str, backfill: str, windows: Sequence[Sequence[Workload]]) -> Seen:
    """Return what is seen of a policy on windows and their copies."""
    settings = settings_but_policy(Episodes(SCENARIO).settings) | {"backfill": backfill}
    flat = [window for row in windows for window in row]
    known = simulate_many(flat, [policy], metrics=list(METRICS), **settings)
    return Seen(*(known[metric].reshape(len(windows), -1) for metric in METRICS))


def played(chooses: Chooses, windows: Sequence[Sequence[Workload]]) -> Seen:
    """Return what is seen of an agent on windows and their copies, all of them side by side."""
    flat = [window for row in windows for window in row]
    envs = gymnasium.make_vec(
        ID.format("test"), num_envs=len(flat), autoreset_mode=AutoresetMode.SAME_STEP, threads=1
    )
    return Seen(*(column.reshape(len(windows), -1) for column in played_once(chooses, envs, flat)))


def simple_agents() -> dict[str, Chooses]:
    """Return agents that need no learning, by name."""
    chance = np.random.default_rng(0)

    def random(shown: NDArray[np.float32]) -> NDArray[Any]:
        there, _ = slots_of(shown)
        return np.asarray((chance.random(there.shape) * there).argmax(axis=1))

    return {
        "random": random,
        "first slot": lambda shown: np.zeros(len(shown), dtype=np.int64),
        **FIRST,
    }


def shuffled(chooses: Chooses) -> Chooses:
    """Return an agent that takes in each window the slot that another takes in a drawn one."""
    chance = np.random.default_rng(0)
    return lambda shown: chance.permutation(chooses(shown))


def table_of(
    agents: dict[str, Chooses], part: str = "test", n_windows: int | None = None, copies: int = 0
) -> pd.DataFrame:
    """Compare agents and rules with SAF under EASY, and with SAF-REG; without, simple agents."""
    windows = windows_of(part, n_windows, copies)
    chosen = agents or simple_agents()
    seen = {name: played(chooses, windows) for name, chooses in chosen.items()}
    words = {"none": "without backfilling", "easy": "under EASY"}
    seen |= {f"{policy} {words[mode]}": of_rule(policy, mode, windows) for policy, mode in RULES}
    saf, reg = seen["SAF under EASY"].bsld, seen["SAF-REG under EASY"].bsld
    bare = seen["SAF-REG without backfilling"].bsld
    scale = scale_of(SCENARIO, "job", "none")
    assert scale is not None
    static = played(FIRST[scale.rule], windows).bsld
    jobs = [window for window, *_ in windows]
    numbers = Episodes(SCENARIO).select(part).numbers[: len(jobs)]
    light_first = np.argsort(saf[:, 0], kind="stable")
    half, tenth = -(-len(jobs) // 2), -(-len(jobs) // 10)

    def closed(ratio: Floats, places: NDArray[np.intp]) -> str:
        chosen = [(numbers[place], jobs[place]) for place in places]
        return gap_text(closed_by(ratio[places], scale, *zip(*chosen, strict=True)))

    rows = [
        {
            "agent": name,
            "ratio of sums": str(ratio_of_sums(bsld, saf)),
            "geometric mean": geometric(bsld, saf),
            f"to {scale.rule}": geometric(bsld, static),
            "to SAF-REG without": geometric(bsld, bare),
            "to SAF-REG under EASY": geometric(bsld, reg),
            "gap closed": closed((bsld / saf)[:, 0], light_first),
            "lighter half": closed((bsld / saf)[:, 0], light_first[:half]),
            "heaviest tenth": closed((bsld / saf)[:, 0], light_first[-tenth:]),
            "longest wait, h": f"{wait.mean() / 3600:.1f}",
        }
        for name, (bsld, wait) in seen.items()
    ]
    return pd.DataFrame(rows)


def geometric(values: Floats, base: Floats) -> str:
    """Return the geometric mean of ratios with its interval: the exponent of the mean log ratio."""
    estimate = mean_log_ratio(values, base)
    ends: Sequence[float] = (estimate.value, *(estimate.ends() or ()))
    value, *others = (f"{np.exp(end):.3f}" for end in ends)
    return f"{value} [{', '.join(others)}]" if others else value
