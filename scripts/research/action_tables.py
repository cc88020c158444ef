"""What scores by kind of action on many-weeks, and how much hangs on a decision."""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

import hpcgym
from hpcgym.base.ranges import number_ranges

ACTIONS = ("index", "trials")
RULES = ("FCFS", "SAF", "URGENT-BENEFIT", "URGENT-YOUNG")
CONSTANTS: dict[tuple[float, ...], str] = {
    (0, 0, 0, 0, 0): "expected run time times the root of processors, kappa 1",
    (0.5, 0, -1, 0, -1): "SAF",
    (-0.5, -1, -1, 0, -1): "FCFS",
    (-0.5, 0, -1, 0, -1): "SPF, by the request alone",
    (0.5, 0, 0, 0, -1): "SAF-REG, by the expected area",
    (0.5, 1, 0, 1, -1): "SMITH-REG",
    (0.5, 0, -1, 0, -0.5): "SAF under `cost-benefit:kappa=0.25`",
    (0.5, 1, 0, 1, -0.5): "SMITH-REG under the same",
}


def made(kind: str, part: str = "test") -> Any:
    """Return the environment of a kind of action, whose own draws are seeded."""
    env = gymnasium.make("HPCBatch-v0", action=kind, weeks=part)
    env.action_space.seed(0)
    return env


def play(kind: str, n_weeks: int | None, action: object = None, part: str = "test") -> pd.DataFrame:
    """Play weeks by one action of a kind, random ones by default; return what each came to."""
    env: Any = gymnasium.wrappers.RecordEpisodeStatistics(made(kind, part))
    rows = []
    for week in env.unwrapped.episodes.numbers[:n_weeks]:
        info, is_over = env.reset(options={"episode": week})[1], False
        while not is_over:
            chosen = env.action_space.sample() if action is None else action
            _, _, is_over, _, info = env.step(chosen)
        rows.append((week, info["episode"]["r"], info["episode"]["l"], info["ratio"], env))
    return pd.DataFrame(rows, columns=["week", "sum", "steps", "ratio", "env"])


TRIED = 48
"""Decisions of a week at which a random action is tried."""

EVERY = 60
"""Of test weeks the first of so many is looked at."""


def episode(env: Any, week: int, zeros: Any, changed: int = -1) -> Iterator[float]:
    """Play a week by zeros, but for a random action at one step; yield what waits, then the sum."""
    info, is_over, step, total = env.reset(options={"episode": week})[1], False, 0, 0.0
    while not is_over:
        if changed < 0:
            start, submit = env.unwrapped.schedule().start_time, env.unwrapped.workload.submit_time
            yield int(((start < 0) & (submit <= env.unwrapped.now)).sum())
        mask = {"mask": info["action_mask"]} if "action_mask" in info else {}
        action = env.action_space.sample(**mask) if step == changed else zeros
        _, reward, terminated, truncated, info = env.step(action)
        is_over, step, total = terminated or truncated, step + 1, total + reward
    yield total


def what_matters(kind: str, n_weeks: int | None) -> dict[str, str]:
    """Return how often more jobs wait than are shown, and how often an action changes a week."""
    env = made(kind)
    zeros = np.zeros(env.action_space.shape, env.action_space.dtype)
    waiting, sizes = [], []
    for week in env.unwrapped.episodes.numbers[:n_weeks:EVERY]:
        *waits, base = episode(env, week, zeros)
        waiting += waits
        for step in np.unique(np.linspace(0, len(waits) - 1, TRIED).astype(int)):
            *_, total = episode(env, week, zeros, step)
            sizes.append(abs(total - base))
    changes = np.array(sizes) > 1e-12
    return {
        "more wait": f"{np.mean(np.array(waiting) > env.unwrapped.n_slots):.1%}",
        "changes": f"{changes.mean():.0%}",
        "by": f"{np.median(np.array(sizes)[changes]):.4f}" if changes.any() else "",
    }


def row_of(kind: str, n_weeks: int | None) -> dict[str, str]:
    """Return what the first table says of a kind of action."""
    random = play(kind, n_weeks)
    env = random["env"][0].unwrapped
    shown, chosen = env.observation_space, env.action_space
    zeros = play(kind, n_weeks, np.zeros(chosen.shape, chosen.dtype))
    frame = hpcgym.evaluate(list(RULES), env.episodes, progress=False).frame
    bsld = frame.pivot(index="week", columns="agent", values="mean_bsld").loc[zeros["week"]]
    sums = pd.concat([random["sum"], zeros["sum"]])
    scores = {"random": random["ratio"], "zeros": zeros["ratio"]}
    scores |= {rule: bsld[rule] / bsld["SAF"] for rule in RULES}
    return {
        "action": f"`{kind}`",
        "weeks": f"{env.episodes.scenario.name} {number_ranges(zeros['week'].tolist())}",
        "space": f"`{chosen}`".replace(".0", "").replace(", float32", ""),
        "observations": ", ".join(f"{part} {space.shape}" for part, space in shown.items()),
        "sum of rewards": f"{sums.min():.2f} to {sums.max():.2f}",
        "steps": f"{random['steps'].mean():,.0f}",
    } | {head: f"{values.mean():.3f}" for head, values in scores.items()}


def row_of_decisions(kind: str, n_weeks: int | None) -> dict[str, str]:
    """Return what the second table says of a kind of action."""
    return {"action": f"`{kind}`"} | what_matters(kind, n_weeks)


def row_of_constant(action: tuple[float, ...], n_weeks: int | None) -> dict[str, str]:
    """Return what the third table says of an action of kind `index`."""
    found = {part: play("index", n_weeks, action, part) for part in ("train", "test")}
    scores = {f"{part} weeks": f"{played['ratio'].mean():.3f}" for part, played in found.items()}
    return {"action": f"{action}", "what it is": CONSTANTS[action]} | scores
