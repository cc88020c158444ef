"""Vector environments among threads, forks and other processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv

N_STEPS = 150


def played(threads: int, seed: int = 0) -> bytes:
    """Step a vector at random; return all its rewards."""
    envs = SchedulingVectorEnv(
        "synthetic-256-weeks", action="weights", num_envs=6, threads=threads, n_slots=8
    )
    envs.action_space.seed(seed)
    envs.reset(seed=seed)
    rewards = [envs.step(envs.action_space.sample())[1] for _ in range(N_STEPS)]
    return np.array(rewards).tobytes()


def run(program: str, *arguments: str, **variables: str) -> str:
    """Run a program of its own; return what it printed."""
    made = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        timeout=600,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.long
def test_number_of_threads_changes_nothing() -> None:
    assert played(1) == played(2) == played(64)


@pytest.mark.long
def test_python_threads_step_vectors_of_their_own() -> None:
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda seed: played(2, seed), range(3)))
    assert together == [played(1, seed) for seed in range(3)]


ON_A_LAYER = """
import os, sys, threading, numba, numpy as np
from hpcgym.env.vector import SchedulingVectorEnv
def begun(num_envs, threads):
    envs = SchedulingVectorEnv(
        "synthetic-256-weeks", action="weights", num_envs=num_envs, threads=threads, n_slots=8
    )
    envs.reset(seed=0)
    return envs
def play(envs, n_steps):
    actions = np.ones((envs.num_envs, 6), np.float32)
    return np.array([envs.step(actions)[1] for _ in range(n_steps)])
for num_envs in (1, 2, 5, 7, 11):
    seen = {play(begun(num_envs, threads), 40).tobytes() for threads in range(1, 6)}
    assert len(seen) == 1
seen = [play(begun(6, 1), 150).tobytes()]
team = [
    threading.Thread(target=lambda: seen.append(play(begun(6, 2), 150).tobytes()))
    for _ in range(3)
]
for one in team: one.start()
for one in team: one.join()
print(len(seen), len(set(seen)), numba.threading_layer(), flush=True)
envs = begun(6, 2)
play(envs, 50)
child = os.fork()
mine = play(envs, 50)
np.save(f"{sys.argv[1]}/{'parent' if child else 'child'}.npy", mine)
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_threads_share_environments_meet_and_fork_on_every_layer(
    layer: str, tmp_path: Path
) -> None:
    """With an odd number of threads the last one has a part of its own.

    The work queue of numba aborts where two threads enter it at once; ours take turns. The parent's
    threads are not there after a fork; the child steps on one thread.
    """
    said = run(ON_A_LAYER, str(tmp_path), NUMBA_NUM_THREADS="5", NUMBA_THREADING_LAYER=layer)
    assert said.split() == ["4", "1", layer]
    parent, child = (np.load(tmp_path / f"{who}.npy") for who in ("parent", "child"))
    assert parent.tobytes() == child.tobytes()
    assert np.count_nonzero(parent) > 10


@pytest.mark.long
def test_spawned_processes_step_vectors() -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(played, 2).result() == played(1)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_subprocesses_of_stable_baselines_run_the_scalar_environment() -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    envs = sb3.SubprocVecEnv([tiny, tiny], start_method="fork")
    try:
        envs.seed(0)
        shown = envs.reset()
        alone = tiny()
        mine, _ = alone.reset(seed=0)
        for _ in range(3):
            assert np.array_equal(shown["jobs"][1], mine["jobs"])
            shown, reward, _, _ = envs.step(np.ones((2, 6), dtype=np.float32))
            mine, paid, *_ = alone.step(np.ones(6, dtype=np.float32))
            assert reward[0] == paid
    finally:
        envs.close()


def tiny() -> SchedulingEnv:
    """Make a small scalar environment, in whichever process."""
    return SchedulingEnv("tiny", action="weights", n_slots=8)
