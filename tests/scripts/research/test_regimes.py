"""Other mixes of jobs than those of `many-weeks`: what they state, and what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgym.env.scenario.episodes import Episodes
from research import regimes
from research.regimes import REGIMES, WEEKS, rows, scenario_of


def test_each_regime_is_many_weeks_with_other_numbers() -> None:
    for name, stated in REGIMES.items():
        scenario = scenario_of(name)
        trace, usual = scenario.trace, {"load": 0.82, "wide": None, "session_jobs": None}
        numbers = usual | {key: value for key, value in stated.items() if key != "processors"}
        assert {key: getattr(trace, key) for key in usual} == numbers
        assert scenario.machine.processors == stated.get("processors", 128)
        episodes = Episodes(scenario)
        assert len(episodes.select("train")) == len(episodes.select("test")) == WEEKS


def test_a_row_has_the_gap_and_its_share_of_the_static_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = {
        "static": "constant",
        "constant": [0.5, 0.0, 0.0, 0.0, -0.5],
        "rule": "SAF-REG",
        "means": {"constant": 0.8, "rule": 0.9, "clairvoyant": 0.6},
        "gap": [0.2, 0.1, 0.3],
        "weeks": [[1, "a", 10.0, 0.8, 0.6], [2, "b", 20.0, 0.8, 0.6]],
    }
    played = []

    def find(scenario: Any, action: str, *_: Any, **__: Any) -> dict[str, Any]:
        played.append((scenario.name, action))
        return scale

    monkeypatch.setattr(regimes, "find", find)
    table = [*rows(tmp_path)]
    assert played == [(name, "index") for name in REGIMES]
    assert [*table[0].values()][1:] == [
        *("15.0", "0.800: (0.5, 0, 0, 0, -0.5)", "0.600", "0.200 [0.100, 0.300]", "25 %")
    ]
