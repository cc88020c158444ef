"""Measure the speed of the environment, alone and in vectors, as tables.

Wall time, the best of several runs, because threads are measured and machines are shared. Compare
ratios taken in one run, not rates.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rich.table import Table

from hpcgym.core.threads import cores
from hpcgym.env.config import EnvConfig
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WholeEpisode
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from research.benchmark import saturated

MEASURED: dict[str, Any] = {"action": "weights", "reward": "bsld", "n_slots": 128}
"""The keywords under which rates have been published."""

FIRST_STEP = (
    "import hpcgym, gymnasium as g; "
    f"e = g.make('HPCBatch-v0', **{MEASURED}); e.reset(); e.step([0.0] * 6)"
)
"""A new process, up to its first step."""

EPISODE_STEPS = 1_200
"""Steps taken before a measurement, some three weeks of SDSC-SP2.

All environments begin with an empty machine, so their first steps are cheap.
"""

N_ACTIONS = 64
"""Batches of actions drawn beforehand and taken in turn."""


def stepping(scenario: str, episodes: int) -> Table:
    """Measure steps and resets of the environment, unwrapped, and a new process.

    Args:
        scenario: Name of a scenario.
        episodes: Episodes measured, after as many unmeasured.

    Returns:
        Steps per CPU second, resets, and the wall time of a new process up to its first step.
    """
    env: Any = SchedulingEnv(scenario, **MEASURED)
    saf = np.array([0, 0, 0, 0, 0, 1], dtype=np.float32)
    for _ in range(2):  # the second round finds its episodes prepared
        env.reset(seed=0)
        n_steps, resetting, stepped = 0, 0.0, 0.0
        for _ in range(episodes):
            start = time.process_time()
            env.reset()
            resetting += time.process_time() - start
            start, over = time.process_time(), False
            while not over:
                over = env.step(saf)[2]
                n_steps += 1
            stepped += time.process_time() - start
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST_STEP], check=True, env=os.environ)
    first = time.perf_counter() - start
    table = Table("figure", "value", title=f"HPCBatch-v0, {scenario}, weights, 128 slots")
    table.add_row("steps/s, unwrapped", f"{n_steps / stepped:,.0f}")
    table.add_row("steps/s with resets", f"{n_steps / (stepped + resetting):,.0f}")
    table.add_row("reset of a prepared episode, ms", f"{resetting / episodes * 1e3:.2f}")
    table.add_row("new process to its first step, s (wall)", f"{first:.2f}")
    return table


def random_actions(envs: gymnasium.vector.VectorEnv[Any, Any, Any]) -> list[Any]:
    """Draw `N_ACTIONS` batches of actions, so that drawing them is not measured."""
    envs.action_space.seed(0)
    return [envs.action_space.sample() for _ in range(N_ACTIONS)]


def quickest(envs: Any, actions: Sequence[Any], n_calls: int, repeats: int) -> float:
    """Step a vector environment and time the quickest of several rounds.

    Args:
        envs: The vector environment, reset.
        actions: Batches of actions, taken in turn.
        n_calls: Calls of a round.
        repeats: Rounds.

    Returns:
        Wall time per call, s.
    """
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        for call in range(n_calls):
            envs.step(actions[call % len(actions)])
        taken.append((time.perf_counter() - start) / n_calls)
    return min(taken)


ACTIONS: dict[str, dict[str, Any]] = {
    "controls": {"action": "controls", "backfill": "cost-benefit:cap=0.97,widest=0.2"},
    "trials": {"action": "trials"},
    "index, every 4 h": {"action": "index"},
}
"""Kinds of action whose rates are compared with the first, which is the second without trials."""


def over_actions(scenarios: Sequence[str], num_envs: int, repeats: int) -> Table:
    """Measure kinds of random action in turn, as medians of ratios to the first."""
    vectors: dict[tuple[str, str], tuple[Any, list[Any]]] = {}
    for name, keywords in ACTIONS.items():
        for scenario in scenarios:
            envs = SchedulingVectorEnv(scenario, num_envs=num_envs, **keywords)
            envs.reset(seed=0)
            actions = random_actions(envs)
            vectors[name, scenario] = envs, actions
            quickest(envs, actions, EPISODE_STEPS, 1)
    rates: dict[tuple[str, str], list[float]] = {kind: [] for kind in vectors}
    for _ in range(2 * repeats + 1):
        for kind, (envs, actions) in vectors.items():
            rates[kind].append(num_envs / quickest(envs, actions, 300, 1))
    first = next(iter(ACTIONS))
    columns = [head for name in scenarios for head in (f"steps/s, {name}", f"of {first}")]
    table = Table("action", *columns, title=f"{num_envs} environments")
    for name in ACTIONS:
        cells = []
        for scenario in scenarios:
            found = np.array(rates[name, scenario])
            ratios = found / np.array(rates[first, scenario])
            cells += [f"{np.median(found):,.0f}", f"{np.median(ratios):.2f}"]
        table.add_row(name, *cells)
    return table


class _Clock:
    """Times the compiled part of each call of a vector environment.

    Args:
        envs: The vector environment.
    """

    def __init__(self, envs: SchedulingVectorEnv) -> None:
        self.seconds = 0.0
        self._step = envs.buffers.step
        envs.buffers.step = self.step  # type: ignore[method-assign]

    def step(self) -> int:
        """Step, and add the time it took."""
        start = time.perf_counter()
        ended = self._step()
        self.seconds += time.perf_counter() - start
        return ended


def prepared_vector(
    scenario: str | Episodes, num_envs: int, switched_off: Sequence[str] = (), **keywords: Any
) -> Any:
    """Return a vector environment, reset, whose episodes are all prepared, as in later training.

    Args:
        scenario: A scenario.
        num_envs: Environments.
        switched_off: Settings of `Sim` to set to 0, to see what they cost.
        **keywords: Others of `SchedulingVectorEnv`, in place of `MEASURED`.
    """
    envs = SchedulingVectorEnv(scenario, num_envs=num_envs, **MEASURED | keywords)
    prepare(envs.configs[0], switched_off)
    envs.reset(seed=0)
    return envs


def prepare(config: EnvConfig, switched_off: Sequence[str] = ()) -> None:
    """Prepare all episodes of an environment; arguments as of `prepared_vector`."""
    for position in range(len(config.episodes)):
        episode = config.episode_of(config.episodes.workload(position))
        for name in switched_off:
            setattr(episode.prepared.setting, name, 0)
        _ = episode.reward_plan, episode.saf.value


def over_numbers(scenario: str, most: int, repeats: int) -> Table:
    """Measure the vector environment while the number of environments grows fourfold.

    Args:
        scenario: Name of a scenario.
        most: Most environments.
        repeats: Rounds of each.

    Returns:
        Steps per second on all cores, without and with copies, and on one; and the memory of an
        environment, beside its observation and 32 B for each job of its week.
    """
    columns = ("envs", f"steps/s, {cores()} threads", "with copies", "1 thread", "kB/env")
    title = f"Vector environment, {scenario}, random weights, copy=False"
    table = Table(*columns, title=title)
    num_envs = 1
    while num_envs <= most:
        n_calls = max(80_000 // num_envs, 100)
        rates = []
        for threads, is_copied in ((cores(), False), (cores(), True), (1, False)):
            envs = prepared_vector(scenario, num_envs, threads=threads, copy=is_copied)
            actions = random_actions(envs)
            quickest(envs, actions, EPISODE_STEPS, 1)
            rates.append(num_envs / quickest(envs, actions, n_calls, repeats))
        memory = f"{held(envs) / num_envs / 1e3:,.1f}"
        table.add_row(f"{num_envs:,}", *(f"{rate:,.0f}" for rate in rates), memory)
        num_envs *= 4
    return table


def over_parts(scenario: str, num_envs: int, repeats: int) -> Table:
    """Measure the compiled step, and what is saved by leaving parts out; no start of a job changes.

    Args:
        scenario: Name of a scenario.
        num_envs: Environments, on one thread.
        repeats: Rounds of each.
    """
    parts: dict[str, dict[str, Any]] = {
        "as it is": {},
        "one slot, not 128": {"n_slots": 1},
        "no users' records": {"switched_off": ["keep_history"]},
        "no rewards": {"switched_off": ["keep_reward"]},
    }
    table = Table("compiled step", "us", "saved", title=f"{num_envs} environments, {scenario}")
    whole = 0.0
    for part, keywords in parts.items():
        envs = prepared_vector(scenario, num_envs, threads=1, copy=False, **keywords)
        actions = random_actions(envs)
        quickest(envs, actions, 500, 1)
        clock, taken = _Clock(envs), []
        for _ in range(repeats):
            before = clock.seconds
            quickest(envs, actions, 1_000, 1)
            taken.append((clock.seconds - before) / 1_000 / num_envs * 1e6)
        whole = whole or min(taken)
        table.add_row(part, f"{min(taken):.2f}", f"{whole - min(taken):.2f}")
    return table


def over_bytes(scenario: str, num_envs: int) -> Table:
    """Measure what an environment holds, and how much of that a step writes, without copies.

    Args:
        scenario: Name of a scenario.
        num_envs: Environments.
    """
    envs = prepared_vector(scenario, num_envs, threads=1, copy=False)
    actions = random_actions(envs)
    quickest(envs, actions, 200, 1)
    state, batch = envs.buffers.state, envs.buffers.batch
    parts = {
        "block of the simulation": list(state.arrays.values()),
        "observation": [batch.shown_jobs, batch.shown_cluster, batch.mask],
    }
    table = Table(
        "of an environment", "bytes", "written in a step", title=f"{scenario}, {num_envs}"
    )
    before = {part: [array.copy() for array in arrays] for part, arrays in parts.items()}
    envs.step(actions[0])
    for part, arrays in parts.items():
        n_bytes = sum(array.nbytes for array in arrays) / num_envs
        pairs = zip(arrays, before[part], strict=True)
        written = sum((array != was).sum() * array.itemsize for array, was in pairs) / num_envs
        table.add_row(part, f"{n_bytes:,.0f}", f"{written:,.0f}")
    jobs = {id(env.workload): env._episode.table for env in envs.envs}.values()
    shared = [sum(np.asarray(column).nbytes for column in columns) for columns in jobs]
    table.add_row("job table of its week, shared", f"{np.mean(shared):,.0f}", "0")
    table.add_row("environments in one week", f"{num_envs / len(shared):.0f}", "")
    return table


def held(envs: SchedulingVectorEnv) -> int:
    """Return the bytes of environments, beside observations and 32 B for each of their jobs."""
    buffers = envs.buffers
    states = {id(state): state for state, _ in map(buffers.place_of, range(envs.num_envs))}
    blocks = sum(state.n_bytes for state in states.values())
    shown = (buffers.batch.shown_jobs, buffers.batch.shown_cluster, buffers.batch.mask)
    rest = sum(np.asarray(array).nbytes for array in buffers.batch)
    rest -= sum(array.nbytes for array in shown)
    return int(blocks + rest - 32 * sum(len(env.workload) for env in envs.envs))


def against_sync(scenario: str, num_envs: int, repeats: int) -> Table:
    """Compare steps per second with Gymnasium's `SyncVectorEnv` of the same scalar environment."""
    actions = random_actions(SchedulingVectorEnv(scenario, num_envs=num_envs, **MEASURED))
    sync = gymnasium.make_vec(
        "HPCBatch-v0",
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        scenario=Episodes(scenario),
        **MEASURED,
    )
    sync.reset(seed=0)
    quickest(sync, actions, 100, 1)
    slow = num_envs / quickest(sync, actions, 100, repeats)
    table = Table(
        "as", "steps/s", "ratio", title=f"{num_envs} environments, {scenario}, random weights"
    )
    table.add_row("Gymnasium's SyncVectorEnv", f"{slow:,.0f}", "1")
    for copy in (True, False):
        envs = prepared_vector(
            scenario, num_envs, copy=copy, autoreset_mode=AutoresetMode.SAME_STEP
        )
        quickest(envs, actions, EPISODE_STEPS, 1)
        rate = num_envs / quickest(envs, actions, 2_000, repeats)
        table.add_row(f"make_vec, copy={copy}", f"{rate:,.0f}", f"{rate / slow:.1f}")
    return table


_DICT = {"scenario": "synthetic-256-weeks"}
_FLAT = {"scenario": "synthetic-busy-weeks", "observation": "flat"}

LOSING: dict[str, tuple[str, dict[str, Any]]] = {
    "CartPole-v1": ("CartPole-v1", {}),
    "index": ("HPCBatch-v0", _DICT),
    "job": ("HPCBatch-v0", _DICT | {"action": "job"}),
    "job, flat, train": ("HPCBatch-v0", _FLAT | {"action": "job", "weeks": "train"}),
    "job, flat, test": ("HPCBatch-v0", _FLAT | {"action": "job", "weeks": "test"}),
    "index, flat, train": ("HPCBatch-v0", _FLAT | {"action": "index", "weeks": "train"}),
}
"""Id and keywords of environments that are compared with the first."""


def losses_in_sync(num_envs: int, rounds: int, n_calls: int = 300) -> Table:
    """Measure what environments lose in Gymnasium's `SyncVectorEnv`, beside the first's loss.

    A loss is the CPU time of a step in the vector over that of the same environment alone. Resets
    count, and episodes are prepared. Rounds take all in turn; shown are medians, and quartiles.
    """
    made: dict[str, tuple[Any, ...]] = {}
    for name, (env_id, keywords) in LOSING.items():

        def bare(env_id: str = env_id, keywords: dict[str, Any] = keywords) -> Any:
            env: Any = gymnasium.make(env_id, disable_env_checker=True, **keywords).unwrapped
            if isinstance(env, SchedulingEnv):
                prepare(env._config)
            return env

        alone, envs = bare(), SyncVectorEnv([bare] * num_envs)
        alone.action_space.seed(0)
        alone.reset(seed=0)
        envs.reset(seed=0)
        actions = [alone.action_space.sample() for _ in range(N_ACTIONS)]
        made[name] = alone, actions, envs, random_actions(envs)
    losses: dict[str, list[float]] = {name: [] for name in made}
    times: dict[str, list[float]] = {name: [] for name in made}
    for number in range(1 + rounds):
        for name, (alone, actions, envs, batches) in made.items():
            begun = time.process_time()
            for call in range(num_envs * n_calls):
                if alone.step(actions[call % N_ACTIONS])[2]:
                    alone.reset()
            between = time.process_time()
            quickest(envs, batches, n_calls, 1)
            if number:  # the first round warms up
                times[name].append((between - begun) / num_envs / n_calls)
                losses[name].append((time.process_time() - between) / (between - begun))
    first = np.array(next(iter(losses.values())))
    columns = ("environment", "alone, us/step", "loss", "of the first's")
    table = Table(*columns, title=f"Gymnasium's SyncVectorEnv, {num_envs} environments")
    for name, found in losses.items():
        shares = np.percentile(found / first, [50, 25, 75])
        share = "{:.2f} ({:.2f} to {:.2f})".format(*shares)
        alone_us = f"{1e6 * np.median(times[name]):.1f}"
        table.add_row(name, alone_us, f"{np.median(found):.2f}", share)
    return table


def over_waiting(longest: int, repeats: int) -> Table:
    """Measure a step by kind of action on one thread, and memory, while the queue grows tenfold.

    Rounds take all lengths in turn.
    """
    kinds: dict[str, dict[str, Any]] = {
        "SAF": {"action": "policy", "policies": ["SAF"]},
        "job": {"action": "job"},
        "order": {"action": "order"},
        "weights": {"action": "weights"},
    }
    columns = [f"{kind}, us/step" for kind in kinds]
    table = Table("waiting", *columns, "kB/env", title="A step as the queue grows, 128 slots")
    lengths = [10**power for power in range(3, 7) if 10**power <= longest] or [longest]
    cells: dict[int, list[str]] = {waiting: [] for waiting in lengths}
    memory = dict.fromkeys(lengths, 0)
    for keywords in kinds.values():
        vectors = {waiting: _with_waiting(waiting, keywords) for waiting in lengths}
        taken = dict.fromkeys(lengths, np.inf)
        for _ in range(1 + repeats):  # the first round compiles what has not been yet
            for waiting, envs in vectors.items():
                envs.reset(seed=0)
                seconds = quickest(envs, random_actions(envs), 100, 1)
                taken[waiting] = min(taken[waiting], seconds / 4)
        for waiting, envs in vectors.items():
            cells[waiting].append(f"{taken[waiting] * 1e6:,.1f}")
            memory[waiting] = max(memory[waiting], held(envs) // 4)
    for waiting, row in cells.items():
        table.add_row(f"{waiting:,}", *row, f"{memory[waiting] / 1e3:,.0f}")
    return table


def _with_waiting(waiting: int, keywords: dict[str, Any]) -> SchedulingVectorEnv:
    """Return four environments in which about so many jobs wait."""
    log = saturated(waiting, 2_000)
    episodes = Episodes(_scenario_of(log.largest_request), workload=log)
    return SchedulingVectorEnv(episodes, num_envs=4, threads=1, copy=False, **MEASURED | keywords)


def _scenario_of(largest_request: int) -> Scenario:
    """Return a scenario whose only episode is a workload on 256 processors."""
    return Scenario(
        name="a long queue",
        description="As many jobs wait as a first burst brings.",
        trace=TraceSpec(name="tiny", missing_request="drop"),
        machine=MachineSpec(processors=256, largest_request_s=largest_request),
        episode=WholeEpisode(),
        scheduler=SchedulerSpec(),
    )
