"""Measure what a decision costs, by problem and by part of a training by Stable-Baselines3's PPO.

    PYTHONPATH=.:scripts taskset -c 1 python -m research.learning_rates problems sb3 judged

CPU time of one thread. Machines are shared, so compare what was measured in one run.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich import print
from rich.table import Table

from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation.statistics import ratio_of_sums
from research.curves import Judge
from research.step_benchmark import prepare
from research.tables import Tables, csv_option
from research.training_benchmark import timer

SCENARIO = "synthetic-busy-weeks"
"""Few weeks, all of which are prepared before anything is measured, as in a long training."""

PROBLEMS: dict[str, dict[str, Any]] = {
    "`weights`, SDSC-SP2": {"scenario": "sdsc-sp2-weeks", "action": "weights"},
    "`order`": {"action": "order"},
    "`job`": {"action": "job"},
    "`trials`": {"action": "trials"},
    "`index`, every 4 h": {"action": "index"},
    "`index`, small": {"action": "index", "observation": "small"},
    "`index`, small, many-weeks": {"scenario": "many-weeks", "observation": "small"},
}
"""What is stepped; the scenario is `SCENARIO`, where none is named, and its weeks `train`."""


def stepped(
    name: str, keywords: dict[str, Any], num_envs: int
) -> tuple[SchedulingVectorEnv, list[Any]]:
    """Return a vector of a problem, begun, and the actions that it is stepped by in turn."""
    common: dict[str, Any] = {"scenario": SCENARIO, "weeks": "train", "threads": 1}
    envs = SchedulingVectorEnv(num_envs=num_envs, **common | keywords)
    prepare(envs.configs[0])
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(32)]
    return envs, [np.zeros_like(actions[0])] if "zeros" in name else actions


def problems(num_envs: int = 64, calls: int = 150, repeats: int = 3) -> Table:
    """Step vectors under random actions, and tell what a decision and what a job cost."""
    columns = "jobs/decision", "decisions/CPU s", "us/decision", "us/job"
    title = f"{num_envs} environments in a vector, one thread, random actions"
    table = Table("problem", *columns, title=title)
    for name, keywords in PROBLEMS.items():
        envs, actions = stepped(name, {"reward": "ratio"} | keywords, num_envs)
        before, moved, least = _counted(envs), 0, np.inf
        for call in range(calls):
            envs.step(actions[call % len(actions)])
            after = _counted(envs)
            began = after < before  # another episode
            moved += np.where(began, after, after - before).sum()
            before = after
        jobs = moved / calls / num_envs
        for _ in range(repeats):
            begun = time.process_time()
            for call in range(calls):
                envs.step(actions[call % len(actions)])
            least = min(least, (time.process_time() - begun) / calls / num_envs)
        micro = 1e6 * least
        numbers = f"{jobs:.1f}", f"{1 / least:,.0f}", f"{micro:.1f}"
        table.add_row(name, *numbers, f"{micro / jobs:.2f}")
    return table


def _counted(envs: SchedulingVectorEnv) -> np.ndarray:
    """Return the jobs of each environment's episode so far."""
    places = [envs.buffers.place_of(env) for env in range(envs.num_envs)]
    return np.array([state.next_job[row] for state, row in places])


class Setting(NamedTuple):
    """A training: its observation, environments, steps of each, minibatch, epochs, networks."""

    observation: str
    num_envs: int
    n_steps: int
    batch_size: int
    n_epochs: int
    net_arch: tuple[int, ...]
    scenario: str = SCENARIO


TRAININGS = (
    Setting("flat", 8, 256, 64, 10, (64, 64)),  # what Stable-Baselines3 begins with
    Setting("small", 8, 256, 64, 10, (64, 64)),
    Setting("flat", 8, 256, 256, 5, (32, 32)),  # near to RL Baselines3 Zoo's
    Setting("flat", 256, 32, 2_048, 4, (32, 32)),
    Setting("small", 256, 32, 2_048, 4, (32, 32)),
    Setting("small", 256, 32, 2_048, 4, (32, 32), "many-weeks"),
)
"""What a user begins with, and batches."""

COLUMNS = (
    *("environments, minibatch, epochs, networks", "observation"),
    *("simulation", "updates", "all", "decisions/CPU s"),
)
"""Columns of their table that are written."""


def training(rollouts: int = 1, repeats: int = 2) -> Table:
    """Train with action `index`, and tell how the CPU time of a decision is divided."""
    found = [_parts(setting, rollouts, repeats) for setting in TRAININGS]
    heads = "environments, minibatch, epochs, networks", "observation", *found[0], "all"
    title = f"PPO of SB3, `index`, {SCENARIO}, one thread, us/decision"
    table = Table(*heads, "decisions/CPU s", title=title)
    for setting, spent in zip(TRAININGS, found, strict=True):
        sizes = setting.num_envs, setting.batch_size, setting.n_epochs
        name = ", ".join([*map("{:,}".format, sizes), "-".join(map(str, setting.net_arch))])
        whole = sum(spent.values())
        name += f", {setting.scenario}" if setting.scenario != SCENARIO else ""
        cells = [*(f"{taken:.1f}" for taken in spent.values()), f"{whole:.1f}"]
        table.add_row(name, setting.observation, *cells, f"{1e6 / whole:,.0f}")
    return table


def _parts(setting: Setting, rollouts: int, repeats: int) -> dict[str, float]:
    """Train for some rollouts; return the least CPU time of each part, us per decision."""
    model, envs = _learner(setting, setting.scenario, 0)
    prepare(envs.envs.configs[0])
    size = setting.num_envs * setting.n_steps
    model.learn(size)
    spent: dict[str, float] = defaultdict(float)
    timed = timer(spent)
    timed(envs.envs.buffers, "step", "simulation")
    timed(envs, "step_wait", "vector and infos")
    timed(model.policy, "forward", "networks, in rollouts")
    timed(model.rollout_buffer, "add", "buffers")
    timed(model.rollout_buffer, "compute_returns_and_advantage", "buffers")
    timed(model, "train", "updates")
    least: dict[str, float] = {}
    for _ in range(repeats):
        spent.clear()
        begun = time.process_time()
        model.learn(rollouts * size, reset_num_timesteps=False)
        whole = time.process_time() - begun
        spent["vector and infos"] -= spent["simulation"]
        spent["SB3, the rest"] = whole - sum(spent.values())
        if not least or whole < sum(least.values()):
            least = dict(spent)
    order = ("simulation", "vector and infos", "networks, in rollouts", "buffers", "updates")
    return {part: 1e6 * least[part] / rollouts / size for part in (*order, "SB3, the rest")}


def _learner(setting: Setting, scenario: str, seed: int, **keywords: Any) -> tuple[Any, Any]:
    """Return a learner, and the vector that it learns on."""
    import torch
    from stable_baselines3 import PPO

    from hpcgym.agent.sb3 import HPCBatchVecEnv

    torch.set_num_threads(1)
    envs = HPCBatchVecEnv(
        scenario,
        num_envs=setting.num_envs,
        threads=1,
        weeks="train",
        action="index",
        observation=setting.observation,  # type: ignore[arg-type]
    )
    given = dict(zip(Setting._fields[2:5], setting[2:5], strict=True)) | keywords
    net = {"net_arch": list(setting.net_arch)}
    model = PPO("MlpPolicy", envs, gamma=1.0, policy_kwargs=net, device="cpu", seed=seed, **given)
    return model, envs


def _chosen(model: Any, shown: Any) -> Any:
    """Return what a model chooses, without chance."""
    return model.predict(shown, deterministic=True)[0]


def judged(seeds: int = 3, decisions: int = 200_000, scenario: str = "many-weeks") -> Table:
    """Train with either observation, and tell what is reached on the test weeks, and the ratio."""
    columns = "flat, of SAF", "small, of SAF", "small, of flat", "CPU s, flat", "small"
    table = Table("seed", *columns, title=f"{scenario}, {decisions:,} decisions")
    judges = {
        kind: Judge(scenario, "test", 0, action="index", observation=kind)
        for kind in ("flat", "small")
    }
    for seed in range(seeds):
        reached, spent = [], []
        for kind, judge in judges.items():
            setting = Setting(kind, 256, 32, 2_048, 4, (32, 32))
            model, _ = _learner(setting, scenario, seed, learning_rate=1e-3)
            begun = time.process_time()
            model.learn(decisions)
            spent.append(f"{time.process_time() - begun:.0f}")
            reached.append(judge(partial(_chosen, model)))
        flat, small = reached
        ratios = (flat.ratio, small.ratio, ratio_of_sums(small.bsld, flat.bsld))
        table.add_row(str(seed), *map(str, ratios), *spent)
        print(table)
    return table


if __name__ == "__main__":
    tables: dict[str, Callable[[], Table]] = {
        "problems": problems,
        "sb3": training,
        "judged": judged,
    }
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", default=["problems", "sb3"])
    csv_option(parser)
    asked = parser.parse_args()
    for name in asked.parts:
        Tables(asked.csv).show(name, tables[name](), columns=COLUMNS if name == "sb3" else ())
