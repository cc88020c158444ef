"""Measure where the CPU time of a decision goes in a training by PPO, beside other checkouts.

    python scripts/research/training_benchmark.py SCENARIO ...

prints the CPU seconds of each part as JSON. Tables run it once per checkout and repeat, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = tuple(
    f"{log}-weeks" for log in ("kth-sp2", "ctc-sp2", "sdsc-sp2", "sdsc-blue", "hpc2n")
)
"""What PPO-ORDER was trained on."""

WEEKS = "1-10"
"""Few enough that all have been played before anything is measured, as in a long training."""

ROLLOUTS = 4
"""Rollouts measured, of 15,360 decisions each with the preset, after as many unmeasured."""


def training(
    scenarios: Sequence[str], checkouts: Sequence[Path], repeats: int, threads: int = 1
) -> Table:
    """Measure the preset of `order` on these scenarios, in this checkout and in others.

    Returns:
        Of each part the least CPU time of several runs, us per decision, and its share; with other
        checkouts the ratio of the rates to that of the last.
    """
    places = [ROOT, *checkouts]
    least: list[dict[str, float]] = [{} for _ in places]
    for _ in range(repeats):
        for place, found in zip(places, least, strict=True):
            for part, spent in _measured(place, scenarios, threads).items():
                found[part] = min(spent, found.get(part, spent))
    wholes = [sum(found.values()) for found in least]
    title = f"a decision of a training by PPO, {len(scenarios)} scenarios, {threads} threads"
    heads = ["", *(f"{place.name}, " for place in checkouts)]
    columns = [f"{head}{what}" for head in heads for what in ("us", "share")]
    table = Table("part", *columns, title=title)
    for part in least[0]:
        cells = [
            (f"{found[part]:.1f}", f"{found[part] / whole:.0%}")
            for found, whole in zip(least, wholes, strict=True)
        ]
        table.add_row(part, *(cell for both in cells for cell in both))
    table.add_row("all", *(cell for one in wholes for cell in (f"{one:.1f}", "100%")))
    if checkouts:
        table.add_row("ratio", *(c for one in wholes for c in (f"{wholes[-1] / one:.2f}", "")))
    return table


def _measured(place: Path, scenarios: Sequence[str], threads: int) -> dict[str, float]:
    """Measure a checkout in a process of its own."""
    variables = {"PYTHONPATH": str(place), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, __file__, *scenarios],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def parts(scenarios: Sequence[str], threads: int) -> dict[str, float]:
    """Train for some rollouts; return the CPU time of each part, us per decision."""
    import torch
    from stable_baselines3.common.callbacks import ConvertCallback

    from hpcgym.agent.learn.ppo import build, preset
    from hpcgym.env.scenario.episodes import Episodes

    torch.set_num_threads(threads)
    config = preset("order", device="cpu", threads=threads)
    env = build.env_of(config, [Episodes(name).select(WEEKS) for name in scenarios])
    model = build.model_of(config, env, 0, None)
    build.seed_groups(env, config, 0)
    callback, size = ConvertCallback(lambda *_: True), config.n_steps * config.n_envs
    model.learn(ROLLOUTS * size, callback=callback, log_interval=None)
    spent: dict[str, float] = defaultdict(float)
    timed = timer(spent)
    timed(env, "step_wait", "environment")
    timed(model.policy, "forward", "networks, in rollouts")
    timed(model.policy, "evaluate_actions", "networks, in updates")
    timed(torch.Tensor, "backward", "gradients")
    timed(torch.nn.utils, "clip_grad_norm_", "optimiser")
    timed(model.policy.optimizer, "step", "optimiser")
    timed(model.rollout_buffer, "add", "buffers")
    timed(model.rollout_buffer, "compute_returns_and_advantage", "buffers")
    timed(model.rollout_buffer, "_get_samples", "buffers")
    begun = time.process_time()
    model.learn(ROLLOUTS * size, callback=callback, log_interval=None, reset_num_timesteps=False)
    whole = time.process_time() - begun
    spent["Stable-Baselines3, the rest"] = whole - sum(spent.values())
    return {part: 1e6 * seconds / (ROLLOUTS * size) for part, seconds in spent.items()}


def timer(spent: dict[str, float]) -> Callable[[Any, str, str], None]:
    """Return a function that adds the CPU time of a method to a part from then on."""

    def timed(owner: Any, name: str, part: str) -> None:
        inner = getattr(owner, name)

        def outer(*arguments: Any, **keywords: Any) -> Any:
            begun = time.process_time()
            result = inner(*arguments, **keywords)
            spent[part] += time.process_time() - begun
            return result

        setattr(owner, name, outer)

    return timed


if __name__ == "__main__":
    json.dump(parts(sys.argv[1:], int(os.environ["OMP_NUM_THREADS"])), sys.stdout)
