"""What is reached by the choices of action `index`: an agent that takes them reaches the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from hpcgym.core.actions.index import SAF
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.schedule.counterfactual import Future
from research import index_reach
from research.index_reach import IndexWeek, futures_of, rows
from research.scales import Kept

SCENARIO = "synthetic-busy-weeks"
BASE = (0.5, 0.0, -0.5, 0.0, 0.0)


@pytest.fixture(scope="module")
def days() -> Workload:
    """Return the first jobs of a week."""
    return Episodes(SCENARIO).select("16").workload(0).select(np.arange(250))


@pytest.mark.parametrize("knows", [True, False])
def test_an_agent_that_takes_the_actions_reaches_the_same(
    days: Workload, knows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reach, "TRIED", (SAF, (-0.5, 0.0, 0.0, 0.0, -1.0)))
    week = IndexWeek(days, Episodes(SCENARIO).settings)
    total, taken = week.plan(BASE, futures_of(16, knows)[:2])
    assert len({BASE, *taken}) > 1
    env: Any = gymnasium.make("HPCBatch-v0", scenario=SCENARIO, action="index", reward="bsld")
    reached = {}
    for name, actions in {"plan": taken, "base": [BASE] * 99}.items():
        env.reset(options={"workload": days})
        for action in actions:
            _, _, is_over, _, info = env.step(np.array(action, np.float32))
            if is_over:
                break
        assert is_over
        reached[name] = info["mean_bsld"] * len(days)
    assert total == pytest.approx(reached["plan"], rel=1e-12)
    assert not knows or total < reached["base"]


def test_a_branch_is_what_the_week_becomes(days: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base's branch at the first decision is the week under the base."""
    monkeypatch.setattr(index_reach, "TRIED", ())
    week = IndexWeek(days, Episodes(SCENARIO).settings)
    total, taken = IndexWeek(days, Episodes(SCENARIO).settings).plan(BASE, [Future()])
    assert set(taken) == {BASE}
    others = []
    while week.simulator.run():
        base, other = week.sums([BASE, SAF], BASE, Future())
        assert base == pytest.approx(total, rel=1e-12)
        others.append(other)
        week.set(week.simulator, BASE)
    assert min(others) < total < max(others)


@pytest.mark.long
def test_the_table_is_of_the_weeks_whose_scale_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reach, "TRIED", ())  # the best constant alone: no gap is closed
    known = index_reach.scale_of("many-weeks", "index")
    assert known is not None
    numbers = (20_026, 20_027, 20_031, 20_033)
    weeks = {number: known.weeks[number]._replace(clairvoyant=0.01) for number in numbers}
    few = replace(known, weeks=weeks)
    monkeypatch.setattr(index_reach, "scale_of", lambda *_: few)
    found = [*rows("many-weeks", 40, Kept(tmp_path / "kept.jsonl"))]
    assert [row["gap closed"][:5] for row in found] == ["0.000", "0.000", "0.000", "1.000"]
    assert found[0]["ratio"] == found[1]["ratio"] == found[2]["ratio"] != found[3]["ratio"]
