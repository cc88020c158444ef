"""Learning curves: what the judge says of constants, and that a learner's points go on in time."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from stable_baselines3 import PPO

from hpcgym.agent.sb3 import HPCBatchVecEnv, Progress
from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.gap import gap_closed
from research import curves, curves_drawn
from research.clock import Clock, Validations
from research.curves_drawn import draw, judged_of, rows_of, table_of
from research.price import held

BUSY = "synthetic-busy-weeks"


@pytest.fixture(scope="module")
def judge() -> curves.Judge:
    return curves.Judge(BUSY, "test", 1)


def test_saf_is_one_on_every_week_and_copy(judge: curves.Judge) -> None:
    judged = judge(held(curves.CONSTANTS["SAF"]))
    assert judged.bsld.shape == (3, 2)
    assert judged.bsld == pytest.approx(judged.saf)
    assert len(np.unique(judged.saf)) == 6  # no copy is another's


def test_rules_score_as_an_evaluation_says(judge: curves.Judge) -> None:
    constants = {"FCFS": curves.CONSTANTS["FCFS"], "SMITH-REG": (0.5, 1, 0, 1, -1)}
    found = evaluate(["SAF", *constants], BUSY, weeks="15-17")
    for agent, constant in constants.items():
        own = judge(held(constant)).bsld[:, 0]
        assert own == pytest.approx(found.values(agent)[:, 0])


def test_h_is_played_under_its_own_keywords() -> None:
    own = curves.Judge(BUSY, "test", 0, **curves.BY_RULE)
    judged = own(lambda shown: np.zeros(len(shown), np.int64))
    found = evaluate(["SAF", "URGENT-BENEFIT"], BUSY, weeks="15-17")
    assert judged.bsld[:, 0] == pytest.approx(found.values("URGENT-BENEFIT")[:, 0])


def test_parts_that_are_trained_on_and_judged_share_no_week() -> None:
    seen = Episodes(BUSY).select("train").numbers
    assert not {*seen} & {*Episodes(BUSY).select("test").numbers}


def test_table_and_picture_are_made_of_what_is_kept(judge: curves.Judge, tmp_path) -> None:
    begun = judge(held(curves.CONSTANTS["FCFS"]))
    ended = judge(held((0, 0, 0, 0, 0)))
    saf = judge(held(curves.CONSTANTS["SAF"]))
    rows_of("SAF", 0, 0.0, 0, saf).to_csv(tmp_path / f"{BUSY} rules.csv", index=False)
    for seed in range(2):
        rows = [rows_of("sb3", seed, 0.0, 0, begun), rows_of("sb3", seed, 9.0, 99, ended)]
        pd.concat(rows).to_csv(tmp_path / f"{BUSY} sb3 5 min seed {seed}.csv", index=False)
    rows[1].to_csv(tmp_path / f"{BUSY} sb3 15 min seed 0.csv", index=False)  # is left out
    table = table_of(tmp_path, BUSY, ["sb3"], 5).set_index("agent")
    assert table.loc["SAF", "at its end"].startswith("1.000")
    assert table.loc["sb3", "at its end"] == str(ended.ratio)
    assert table.loc["sb3", "at its start"] == f"{begun.ratio.value:.3f}"
    assert table.loc["sb3", "steps"] == "99"
    assert set(table["gap closed"]) == {"no gap"}  # three test weeks show none
    draw(tmp_path, BUSY, ["sb3"], 5)
    assert (tmp_path / f"{BUSY}.png").stat().st_size > 5_000


def test_the_gap_closed_is_of_the_weeks_themselves_and_of_all_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = scale_of(BUSY, "index")
    assert known is not None
    ends = {
        number: end._replace(weight=10.0, static=static, clairvoyant=0.4)
        for (number, end), static in zip(known.weeks.items(), (0.9, 0.8, 1.0), strict=True)
    }
    monkeypatch.setattr(curves_drawn, "scale_of", lambda *_: replace(known, weeks=ends))
    saf = np.full((3, 2), 10.0)
    # The second column is of copies, which do not count.
    seeds = [np.array([[8.0, 99.0], [6.0, 99.0], [9.0, 99.0]]), np.full((3, 2), 7.0)]
    rows = [
        rows_of("net", seed, 1.0, 1, curves.Judged(bsld, saf, saf))
        for seed, bsld in enumerate(seeds)
    ]
    expected = gap_closed([0.9, 0.8, 1.0], [0.75, 0.65, 0.8], [0.4] * 3, [10.0] * 3)
    assert str(curves_drawn.gap_of(pd.concat(rows), BUSY)) == str(expected)


def test_rows_give_back_what_was_judged(judge: curves.Judge) -> None:
    judged = judge(held(curves.CONSTANTS["FCFS"]))
    again = judged_of(rows_of("FCFS", 0, 0.0, 0, judged))
    assert all(map(np.array_equal, again, judged)) and judged.wait.min() > 3600


@pytest.mark.long
def test_of_the_price_j_is_judged_and_the_best_rule_closes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = curves.Judge
    monkeypatch.setattr(curves, "Judge", lambda scenario, part: few(scenario, f"{part}:20"))
    found = [rows_of(name, 0, 0.0, 0, one) for name, one in curves.constants("price-weeks")]
    pd.concat(found).to_csv(tmp_path / "price-weeks rules.csv", index=False)
    points = curves.by_zoo("price-weeks", 0, 0.1)
    rows = [rows_of("zoo", 0, *point) for point in points]
    pd.concat(rows).to_csv(tmp_path / "price-weeks zoo 5 min seed 0.csv", index=False)
    table = table_of(tmp_path, "price-weeks", ["zoo"], 5).set_index("agent")
    assert table.loc["SAF", "at its end"] == "21.000 [21.000, 21.000]"
    assert table.loc["PRICE-RANK", "gap closed"].startswith("0.000 [-0.000")
    assert float(table.loc["SAF", "gap closed"].split()[0]) < -0.2
    begun, zeros = table.loc["zoo", "at its start"], table.loc["zeros", "at its end"].split()[0]
    assert float(begun) == pytest.approx(float(zeros), abs=0.1)
    draw(tmp_path, "price-weeks", ["zoo"], 5)


@pytest.mark.long
def test_learner_is_judged_at_its_start_and_its_end() -> None:
    points = curves.by_sb3(BUSY, 0, 0.1, n_steps=64, batch_size=64)
    assert points[0].steps == 0 < points[-1].steps
    assert points[0].seconds < points[-1].seconds


@pytest.mark.long
def test_training_of_hpcgym_begins_at_zeros() -> None:
    begun, ended = curves.by_hpcgym(BUSY, 0, 0.5)
    zeros = curves.Judge(BUSY, "test")(held((0.0,) * 5))
    assert begun.judged.ratio.value == pytest.approx(zeros.ratio.value)
    assert ended.judged.bsld.shape == (3, 11)
    assert ended.judged.bsld.min() >= 1  # what half a second finds depends on the machine


def test_a_clock_leaves_validations_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now = Clock(1.0, 1e-3), [0.0]
    monkeypatch.setattr("time.process_time", lambda: now[0])
    clock.model, clock.begun, now[0] = SimpleNamespace(), 0.0, 30.0
    monkeypatch.setattr(Progress, "_validate", lambda told: now.append(now.pop() + 20.0))
    Validations(clock)._validate()
    assert now == [50.0] and clock.left == 0.5
    clock._on_rollout_end()
    assert clock.model.lr_schedule(1.0) == 5e-4 and clock._on_step()
    now[0] = 90.0
    clock._on_rollout_end()
    assert clock.model.lr_schedule(1.0) == 5e-5 and not clock._on_step()


def test_a_training_goes_on_from_its_last_validation(tmp_path: Path) -> None:
    clock, last = Clock(10.0, 1e-3), tmp_path / "best.last.zip"
    told = Validations(clock, last, weeks="1", best=tmp_path / "best.zip")
    model = PPO("MultiInputPolicy", HPCBatchVecEnv("tiny"), n_steps=8, batch_size=8)
    clock.begun -= 60.0
    model.learn(64, callback=[told, clock])
    later = Clock(10.0, 1e-3)
    again = Validations(later)
    again.goes_on(PPO.load(last))
    assert 60.0 < later.used < clock.used + 0.5 and again.history == told.history
    assert [decisions for decisions, _ in told.history][-1] == 64 == PPO.load(last).num_timesteps
