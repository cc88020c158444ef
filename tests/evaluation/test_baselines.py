"""Orders that know run times, and weights that have seen the week."""

import numpy as np
import pytest

from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.baselines import BASELINES, RULES, best_of_week, clairvoyant
from hpcgym.schedule.simulate import simulate


def queue() -> Workload:
    """A job holds all four processors until 100 s; three wait for it, then run one by one.

    Requests mislead: by (q, run, request) A = (2, 60, 100), B = (3, 30, 300), C = (4, 40, 50).
    """
    return Workload.from_arrays(
        [0, 1, 2, 3],
        [100, 60, 30, 40],
        [100, 100, 300, 50],
        [4, 3, 3, 4],
        machine_processors=4,
        name="queue",
    )


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("KNOWS-SPF", [2, 3, 1]),  # 60, 30, 40
        ("KNOWS-SAF", [2, 3, 1]),  # 180, 90, 160
        ("KNOWS-SMITH", [2, 3, 1]),  # 10,800, 2,700, 6,400
    ],
)
def test_clairvoyant_orders_go_by_run_times_not_requests(name: str, order: list[int]) -> None:
    settings = clairvoyant(name, SchedulerSettings()).settings(SchedulerSettings())
    start = simulate(queue(), **vars(settings)).start_time
    assert np.argsort(start).tolist() == [0, *order]
    assert settings.estimates == "requested"
    by_request = simulate(queue(), "SPF").start_time
    assert np.argsort(by_request).tolist() == [0, 3, 1, 2]


def keys_of(name: str, *, killed: bool) -> list[float]:
    """Return what a clairvoyant order sorts by: one job over its request, one below 10 s."""
    workload = Workload.from_arrays(
        [0, 0], [500, 4], [200, 100], [2, 3], machine_processors=4, name="two"
    )
    policy = clairvoyant(name, SchedulerSettings(kill_at_limit=killed)).policy
    assert policy.keys is not None
    return list(np.asarray(policy.keys(workload)))


@pytest.mark.parametrize(
    ("name", "killed", "runs_on"),
    [
        ("KNOWS-SPF", [200, 4], [500, 4]),
        ("KNOWS-SAF", [400, 12], [1_000, 12]),
        ("KNOWS-SMITH", [80_000, 120], [500_000, 120]),
    ],
)
def test_clairvoyant_keys_are_of_run_times_as_executed(
    name: str, killed: list[float], runs_on: list[float]
) -> None:
    assert keys_of(name, killed=True) == killed
    assert keys_of(name, killed=False) == runs_on


def test_easy_plans_with_requests_though_the_order_knows_run_times() -> None:
    """The head needs all 4 at 100 s by request, so a job of 70 s run, 110 s request must wait."""
    workload = Workload.from_arrays(
        [0, 1, 2], [90, 50, 70], [100, 50, 110], [2, 4, 2], machine_processors=4, name="plan"
    )
    settings = clairvoyant("KNOWS-SPF", SchedulerSettings()).settings(SchedulerSettings())
    assert simulate(workload, **vars(settings)).start_time.tolist() == [0, 90, 140]


@pytest.mark.long
def test_w_star_is_searched_by_week_and_seed_and_no_worse_than_any_pure_policy() -> None:
    episodes = Episodes("synthetic-256-weeks")
    agent = best_of_week(episodes, 3, seed=0)
    assert best_of_week(episodes, 3, seed=0).policy.name == agent.policy.name
    week = episodes.workload(episodes.position(3))

    def mean_bsld(policy: object) -> float:
        settings = vars(episodes.settings) | {"policy": policy}
        return float(simulate(week, **settings).bsld().mean())

    pure = ("FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "SAF", "LAF", "SRF", "LRF", "SEXP", "LEXP")
    assert mean_bsld(agent.policy) <= min(map(mean_bsld, pure))


def test_every_baseline_of_the_specification_is_there() -> None:
    assert {"FCFS", "SPF", "SAF", "F1", "EASY-PLUS-PLUS", "DYNP"} <= set(RULES)
    assert {"w*train", "w*", "KNOWS-SAF", "KNOWS-SPF"} <= set(BASELINES)
