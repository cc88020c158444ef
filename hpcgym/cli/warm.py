"""`hpcgym warm`: compile kernels and make generated weeks ahead of their first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import steps
from hpcgym.cli.options import On
from hpcgym.cli.show import echo


def warm(executor: On = "local") -> None:
    """Compile the kernels ahead, for installations, images of containers and nodes of a cluster.

    The weeks of many-weeks are made, too. What is there already is left alone. All virtual
    environments of a user share both, and all machines of one kind of processor that share the
    folder.
    """
    from concurrent.futures import as_completed

    from hpcgym.evaluation.executors import executor_of

    uses = (*USES, _make_weeks)
    with executor_of(executor) as pool, steps(len(uses), "compiling kernels", "uses") as work:
        assert pool is not None
        for done in as_completed([pool.submit(_warmed, use) for use in uses]):
            folder = done.result()
            work.advance()
        n_kept = pool.submit(_count, folder).result()
    echo(f"{n_kept} compiled kernels are in {folder}, and generated weeks beside it")


def _warmed(use: Callable[[], None]) -> str:
    """Compile what a use needs, and return the folder where kernels are kept."""
    from hpcgym.core.compiler.jit import CACHE_FOLDER, NOT_KEPT

    if CACHE_FOLDER is None or NOT_KEPT:
        raise HpcgymError(f"compiled kernels cannot be kept: {NOT_KEPT}")
    use()
    return str(CACHE_FOLDER)


def _count(folder: str) -> int:
    """Return how many kernels are kept in a folder."""
    return len(list(Path(folder).glob("*.kernel")))


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
    from hpcgym.schedule.moldable import simulate_moldable

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
    from hpcgym.env.scenario.episodes import Episodes

    hpcgym.simulate(Episodes("hetero-64-weeks").workload(0)).fragmentation()


def _make_weeks() -> None:
    """Make the logs of the weeks that environments play by default, some 0.4 s each."""
    from hpcgym.env.scenario.load import load_scenario
    from hpcgym.env.scenario.slicing import generated_weeks

    logs = generated_weeks(load_scenario("many-weeks")).populations
    for number in logs.on_record:
        logs.log(number)


USES: tuple[Callable[[], None], ...] = (
    partial(_step_vectors, threads=2),
    _step_alone,
    _simulate,
    _simulate_nodes,
)
"""What compiles all kernels of daily use, the longest first."""
