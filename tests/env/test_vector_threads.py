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


SHARED = """
import numpy as np
from hpcgym.env.vector import SchedulingVectorEnv
def play(num_envs, threads):
    envs = SchedulingVectorEnv(
        "synthetic-256-weeks", action="weights", num_envs=num_envs, threads=threads, n_slots=8
    )
    envs.reset(seed=0)
    actions = np.ones((num_envs, 6), np.float32)
    return np.array([envs.step(actions)[1] for _ in range(40)]).tobytes()
for num_envs in (1, 2, 5, 7, 11):
    print(len({play(num_envs, threads) for threads in range(1, 6)}))
"""


@pytest.mark.long
def test_any_number_of_threads_shares_any_number_of_environments() -> None:
    """With an odd number of threads the last one has a part of its own."""
    assert run(SHARED, NUMBA_NUM_THREADS="5").split() == ["1"] * 5


@pytest.mark.long
def test_python_threads_step_vectors_of_their_own() -> None:
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda seed: played(2, seed), range(3)))
    assert together == [played(1, seed) for seed in range(3)]


AT_ONCE = """
import hashlib, threading, numpy as np
from hpcgym.env.vector import SchedulingVectorEnv
def play(threads, seen):
    envs = SchedulingVectorEnv(
        "synthetic-256-weeks", action="weights", num_envs=6, threads=threads, n_slots=8
    )
    envs.reset(seed=0)
    seen.append(np.array([envs.step(np.ones((6, 6), np.float32))[1] for _ in range(150)]).tobytes())
seen = []
play(1, seen)
team = [threading.Thread(target=play, args=(2, seen)) for _ in range(3)]
for one in team: one.start()
for one in team: one.join()
import numba
print(len(seen), len(set(seen)), numba.threading_layer())
"""


@pytest.mark.long
@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_python_threads_may_meet_on_every_threading_layer(layer: str) -> None:
    """The work queue of numba aborts where two threads enter it at once; ours take turns."""
    assert run(AT_ONCE, NUMBA_THREADING_LAYER=layer).split() == ["4", "1", layer]


FORKED = """
import os, sys, numpy as np
from hpcgym.env.vector import SchedulingVectorEnv
envs = SchedulingVectorEnv(
    "synthetic-256-weeks", action="weights", num_envs=6, threads=2, n_slots=8
)
envs.reset(seed=0)
def rewards():
    return np.array([envs.step(np.ones((6, 6), np.float32))[1] for _ in range(50)])
rewards()
child = os.fork()
mine = rewards()
np.save(f"{sys.argv[1]}/{'parent' if child else 'child'}.npy", mine)
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_forked_process_goes_on_as_its_parent_does(layer: str, tmp_path: Path) -> None:
    """The parent's threads are not there after a fork; the child steps on one thread."""
    run(FORKED, str(tmp_path), NUMBA_THREADING_LAYER=layer)
    parent, child = (np.load(tmp_path / f"{who}.npy") for who in ("parent", "child"))
    assert parent.tobytes() == child.tobytes()
    assert np.count_nonzero(parent) > 10


@pytest.mark.long
def test_spawned_processes_step_vectors() -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(played, 2).result() == played(1)


@pytest.mark.long
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_subprocesses_of_stable_baselines_run_the_scalar_environment(method: str) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    envs = sb3.SubprocVecEnv([tiny, tiny], start_method=method)
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
