"""`hpcgym warm`: compile the kernels ahead of their first use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from hpcgym.cli.show import echo
from hpcgym.errors import HpcgymError
from hpcgym.progress import steps


def warm(
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many compile at once; default one per core.")
    ] = None,
) -> None:
    """Compile the kernels ahead, for installations and images of containers.

    What is compiled already is left alone. All virtual environments of a user share the kernels.
    """
    from concurrent.futures import as_completed

    from hpcgym.core.compiler.jit import CACHE_FOLDER, NOT_KEPT
    from hpcgym.core.threads import cores
    from hpcgym.evaluation.workers import workers

    if CACHE_FOLDER is None or NOT_KEPT:
        raise HpcgymError(f"compiled kernels cannot be kept: {NOT_KEPT}")
    n_processes = min(processes or cores(), len(USES))
    with (
        workers(n_processes, _fall_silent) as pool,
        steps(len(USES), "compiling kernels", "uses") as work,
    ):
        for done in as_completed([pool.submit(use) for use in USES]):
            done.result()
            work.advance()
    n_kept = len(list(CACHE_FOLDER.glob("*.kernel")))
    echo(f"{n_kept} compiled kernels are in {CACHE_FOLDER}")


def _fall_silent() -> None:
    """Leave the progress of each kernel out: this command shows its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _step_vectors(threads: int) -> None:
    """Step two environments side by side on so many threads."""
    import gymnasium

    import hpcgym  # noqa: F401 - registers the environment

    envs = gymnasium.make_vec("HPCBatch-v0", num_envs=2, scenario="tiny", threads=threads)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())


def _step_alone() -> None:
    """Use the environment with each kind of action, all orders, and vectors of one thread."""
    import gymnasium

    import hpcgym  # noqa: F401 - registers the environment

    options: dict[str, Any] = {"scenario": "tiny", "max_episode_steps": 1, "render_mode": "ansi"}
    for action in ("index", "weights", "policy", "order", "job"):
        env = gymnasium.make("HPCBatch-v0", action=action, **options)
        env.reset(seed=0)
        env.render()
        env.step(env.action_space.sample())
    _step_vectors(1)


def _simulate() -> None:
    """Use the simulator with all kinds of policies, modes and predictors, and for many policies."""
    import hpcgym
    from hpcgym.moldable import simulate_moldable

    log = hpcgym.load_workload("tiny")
    hpcgym.simulate(log, "SAF").metrics()
    hpcgym.simulate(log, backfill="conservative")
    hpcgym.simulate_many([log], policies=["SAF"])
    hpcgym.simulate(log, estimates=lambda submission: submission.requested_time)
    hpcgym.simulate(log, lambda jobs: jobs.q)
    for policy in ("DYNP", "PLANNER", "BANDIT-UCB"):
        hpcgym.simulate(log, policy)
    simulate_moldable(log, [[(1, 60, 60), (2, 40, 40)]] * len(log))


def _simulate_nodes() -> None:
    """Use machines of nodes."""
    import hpcgym
    from hpcgym.scenario.episodes import Episodes

    hpcgym.simulate(Episodes("hetero-64-weeks").workload(0)).fragmentation()


USES: tuple[Callable[[], None], ...] = (
    partial(_step_vectors, threads=2),
    _step_alone,
    _simulate,
    _simulate_nodes,
)
"""What compiles all kernels of daily use, the longest first."""
