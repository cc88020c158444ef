"""The search for the ends of a problem's scale, on one week; and the table of the page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import hpcgym
from hpcgym.agent.first_fit import FIRST_FITS
from hpcgym.agent.rule import RuleAgent
from hpcgym.base.registry import shelf_entries
from hpcgym.env.scale import scales_of
from hpcgym.env.scenario.episodes import Episodes
from research import scales
from research.scales import (
    Kept,
    Player,
    clairvoyant_values,
    constants_of,
    knowing_of,
    row_of,
    rules_of,
)

TABLE = Path(__file__).parents[3] / "docs" / "datasets" / "environment" / "scales.csv"
SCENARIO = "synthetic-busy-weeks"
WEEK = Episodes(SCENARIO).select("16")


def test_page_shows_the_rows_that_the_script_prints() -> None:
    shipped = [scale for name in shelf_entries("scenarios") for scale in scales_of(name)]
    assert len(shipped) >= 4
    with TABLE.open(encoding="utf-8") as file:
        assert [*csv.DictReader(file)] == [row_of(scale) for scale in shipped if scale.has_gap]


def test_a_constant_is_worth_what_the_rule_is_that_it_makes() -> None:
    player = Player(WEEK, "index", "", "ratio")
    tried = constants_of(player.envs.single_action_space, "index")
    assert len(tried) == len(set(tried)) == 45 and (0.5, 0, 0, 0, -0.5) in tried
    weighed = hpcgym.evaluate(
        [RuleAgent("SAF-REG", backfill="cost-benefit:kappa=0.25", name="WEIGHED"), "FCFS"],
        WEEK,
        progress=False,
    ).frame.set_index("agent")["mean_bsld"]
    saf = weighed["SAF"]
    assert player.constant((0.5, 0, 0, 0, -0.5)) == pytest.approx(weighed["WEIGHED"] / saf)
    assert player.constant((-0.5, -1, -1, 0, -1)) == pytest.approx(weighed["FCFS"] / saf)


def test_rules_of_a_problem_neither_kill_nor_learn_unless_it_allows_it() -> None:
    guarded = {rule.name for rule in rules_of(WEEK, "guarded", "")}
    assert {"SAF", "FCFS", "SAF-REG", "URGENT-BENEFIT", "CONSERVATIVE"} <= guarded
    assert not guarded & {"URGENT-YOUNG", "URGENT-OPEN", "REPLAY", "DYNP", "PLANNER", "TUNED-NET"}
    killing = {rule.name for rule in rules_of(WEEK, "requeue", "")}
    assert guarded | {"URGENT-YOUNG", "SAF-TRIAL"} <= killing
    without = rules_of(WEEK, "guarded", "none")
    assert without and {str(rule.backfill) for rule in without} == {"none"}


@pytest.mark.long
def test_the_clairvoyant_one_is_better_than_saf_and_its_weeks_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = knowing_of(WEEK, "guarded", "", tmp_path)
    assert base.name.startswith("KNOWS-")
    path = tmp_path / "kept.jsonl"
    (value,) = clairvoyant_values(base, WEEK, 0, Kept(path))
    assert 0 < value < 0.6
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)[1] == value
    monkeypatch.setattr(scales, "planned", None)  # would fail where it is called again
    assert list(clairvoyant_values(base, WEEK, 0, Kept(path))) == [value]


def ratio_of(env: gymnasium.Env, slot: int) -> float:
    """Return the ratio to SAF of a week in which one slot is chosen throughout."""
    env.reset(seed=0)
    info, over = {}, False
    while not over:
        *_, over, _, info = env.step(slot)
    return info["ratio"]


@pytest.mark.long
def test_what_never_changes_is_chosen_on_training_weeks(tmp_path: Path) -> None:
    found = scales.find(SCENARIO, "job", "", tmp_path, weeks=(1, 1))
    assert [row[0] for row in found["weeks"]] == [15]
    env = gymnasium.make("HPCBatch-v0", scenario=SCENARIO, weeks="1", action="job")
    ratios = [ratio_of(env, slot) for slot in range(8)]
    assert found["contest"] == "guarded" and found["constant"] == [float(np.argmin(ratios))]
    first = Episodes(SCENARIO).select("1")
    names = [rule.name for rule in rules_of(first, "guarded", "") if rule.name != "SAF"]
    runs = hpcgym.evaluate(names, first, progress=False).frame.set_index("agent")["mean_bsld"]
    assert found["rule"] == runs.idxmin()
    assert found["training"] == pytest.approx(runs.min() / runs["SAF"])
    assert found["static"] == "rule" and found["means"]["zeros"] == pytest.approx(1.0)
    number, _, saf, static, _ = found["weeks"][0]
    judged = hpcgym.evaluate(["FCFS"], Episodes(SCENARIO).select("15"), progress=False).frame
    assert number == 15 and saf == float(judged.set_index("agent")["mean_bsld"]["SAF"])
    assert static == pytest.approx(found["means"]["rule"])
    assert np.isfinite(found["means"]["random"]) and found["gap"][1:] == [0.0, 0.0]


@pytest.mark.long
def test_where_nothing_is_backfilled_the_first_that_fits_may_be_best(tmp_path: Path) -> None:
    """Values are ratios to SAF under the scenario's own mode, which is no rule of the problem."""
    found = scales.find(SCENARIO, "job", "none", tmp_path, weeks=(1, 1))
    assert found["rule"] in FIRST_FITS and found["clairvoyant"].endswith(" none")
    assert found["means"]["SAF"] == 1.0 < found["means"]["rule"]
