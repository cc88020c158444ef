"""Weeks that networks are compared on: with jittered copies where there are few."""

import pytest

from hpcgym.scenario.episodes import Episodes

validation = pytest.importorskip("hpcgym.agent.ppo.validation")


@pytest.mark.parametrize(("enough", "weeks"), [(6, 15), (5, 5), (4, 5)])
def test_many_weeks_have_no_copies(monkeypatch, enough, weeks):
    monkeypatch.setattr(validation, "ENOUGH", enough)
    five = Episodes("synthetic-256-weeks").select("1-5")
    played = validation._weeks_of(five, copies=2)
    assert len(played) == weeks
    originals = [five.workload(position) for position in range(5)]
    assert played[:: weeks // 5] == originals
