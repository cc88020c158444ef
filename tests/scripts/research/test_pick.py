"""Training the network shared over rows on `pick`: what is paid, what is judged, and the loop."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from env_cases import busy_workload, episodes_of
from hpcgym import simulate
from hpcgym.env.scale import scale_of
from papers.common.expected_cost import expected_cost, held_means
from research.pick import FIRST, played, shuffled, table_of, windows_of

PPO = pytest.importorskip("stable_baselines3").PPO
loop = pytest.importorskip("papers.common.rows_ppo")
HPCBatchVecEnv = pytest.importorskip("hpcgym.agent.sb3").HPCBatchVecEnv


def first(shown: Any) -> Any:
    return np.zeros(len(shown), dtype=np.int64)


def test_means_are_held_to_what_is_expected() -> None:
    keys = np.array([[1], [2], [1]])
    held = held_means(keys, np.array([3.0, 5.0, 9.0]), np.array([0.0, 1.0, 0.0]), 2.0)
    assert held.tolist() == [12 / 4, (5 + 2 * 1) / 3, 12 / 4]


def test_jobs_cost_what_their_like_do_in_units_of_saf_reg() -> None:
    windows = [busy_workload(seed, n=90) for seed in (3, 4)]
    cost = expected_cost(windows, "SAF-REG", backfill="easy").cost_of(
        windows[0], windows[0].run_time
    )
    columns = ("user", "requested_time", "run_time")
    jobs = [row for w in windows for row in zip(*(getattr(w, key) for key in columns), strict=True)]
    paces = [1 / max(run_time, 10) for _, _, run_time in jobs]
    usual = sum(paces) / len(paces)

    def expected(user: int, request: int) -> float:
        of_request = [1 / max(p, 10) for _, e, p in jobs if e == request]
        of_both = [1 / max(p, 10) for u, e, p in jobs if (u, e) == (user, request)]
        held = (sum(of_request) + 5 * usual) / (len(of_request) + 5)
        return (sum(of_both) + 20 * held) / (len(of_both) + 20)

    rates = np.array([expected(user, request) for user, request, _ in jobs[:90]])
    waits = simulate(windows[0], "SAF-REG", backfill="easy").wait_time
    assert cost.rate == pytest.approx(rates / (1 + (rates * waits).mean()))
    assert (cost.onset == windows[0].submit_time).all() and cost.at_submission == 0


@pytest.mark.long
def test_copies_stand_beside_their_windows() -> None:
    windows = windows_of("test", 3, copies=2)
    assert [len(row) for row in windows] == [3, 3, 3]
    assert all((row[1].run_time.sum() == row[0].run_time.sum()) for row in windows)
    alone, seen = played(first, windows_of("test", 3)), played(first, windows)
    assert seen.bsld[:, :1] == pytest.approx(alone.bsld)
    assert (seen.bsld[:, 1] != seen.bsld[:, 0]).any() and (seen.wait > 0).all()


def test_table_has_a_row_of_a_shuffled_agent() -> None:
    scale = scale_of("windows-256", "job", "none")
    agents = {"shuffled": shuffled(first), "static": FIRST[scale.rule]}
    table = table_of(agents, n_windows=60).set_index("agent")
    rule = "SAF without backfilling"
    assert table.loc["shuffled"].tolist() == table.loc[rule].tolist()
    assert "random" not in table.index and "random" in table_of({}, n_windows=1)["agent"].tolist()
    assert table.loc["SAF under EASY", "geometric mean"] == "1.000 [1.000, 1.000]"
    closed = table.loc[[*agents], ["gap closed", "lighter half"]].map(lambda t: float(t.split()[0]))
    assert closed.loc["static"].eq(0).all() and closed.loc["shuffled"].lt(-0.1).all()
    assert closed.loc["shuffled"].is_unique


def test_training_keeps_its_best_and_goes_on(tmp_path: Path) -> None:
    busy = episodes_of(busy_workload(3, n=90))
    envs = HPCBatchVecEnv(busy, num_envs=4, action="job", observation="flat")
    told = iter([2.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    judged = []

    def judge(chooses: Any) -> tuple[float, str]:
        judged.append(chooses(envs.reset()).tolist())
        return next(told), "as told"

    keywords: Any = {"every": 10**9, "n_steps": 8}
    loop.train(tmp_path, envs, judge, minutes=1e-9, **keywords)
    state = json.loads((tmp_path / "state.json").read_text())
    assert len(judged) == 2 and state["best"] == 1.0 and state["rollouts"] == 1
    loop.train(tmp_path, envs, judge, minutes=1e-9, resume=True, **keywords)
    loop.train(tmp_path, envs, judge, minutes=2 * state["minutes"], resume=True, **keywords)
    again = json.loads((tmp_path / "state.json").read_text())
    assert again["best"] == 1.0 and again["minutes"] >= 2 * state["minutes"]
    assert again["rollouts"] > 2 and next(told) == 5.0
    assert len(loop.trained(tmp_path)(envs.reset())) == 4


def test_defaults_are_another_network(tmp_path: Path) -> None:
    envs = HPCBatchVecEnv("tiny", num_envs=2, action="job", observation="flat")
    loop.train(tmp_path, envs, lambda _: (0.0, ""), minutes=1e-9, every=1, defaults=True)
    model = PPO.load(tmp_path / "best.zip")
    assert type(model.policy).__name__ == "ActorCriticPolicy" and model.n_epochs == 10
