"""Weeks that networks are compared on: with jittered copies where there are few, and intervals."""

import numpy as np
import pytest

import hpcgym
from hpcgym.agent import NamedAgent, validation
from hpcgym.agent.first_fit import FIRST_FITS, FirstFit
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.estimate import mean_of
from hpcgym.env.scale import scale_of
from hpcgym.env.scenario.episodes import Episodes

SLOT = ConstantAction(0)


@pytest.mark.parametrize(("enough", "weeks"), [(6, 15), (5, 5), (4, 5)])
def test_many_weeks_have_no_copies(monkeypatch, enough, weeks):
    monkeypatch.setattr(validation, "ENOUGH", enough)
    five = Episodes("synthetic-256-weeks").select("1-5")
    played = validation._weeks_of(five, copies=2)
    assert len(played) == weeks
    originals = [five.workload(position) for position in range(5)]
    assert played[:: weeks // 5] == originals


def bslds(agent, episodes):
    """Return the mean bsld of each week under an agent, and under SAF, by an evaluation."""
    runs = hpcgym.evaluate([agent, "SAF"], episodes, progress=False).frame
    bsld = runs.pivot(index="week", columns="agent", values="mean_bsld")
    return bsld[agent.name].to_numpy(), bsld["SAF"].to_numpy()


@pytest.mark.parametrize("copies", [0, 2])
def test_a_score_is_the_geometric_mean_of_weeks_with_its_interval(copies):
    weeks, keywords = Episodes("synthetic-busy-weeks").select("11-13"), {"action": "index"}
    played = validation.Validation([weeks], keywords, copies=copies, threads=1)
    action = ConstantAction((0.5, 0.0, 0.0, 0.0, -1.0))
    score = played.score(action)
    assert score.gap is None  # on that scale there is no gap to close
    assert score.by_week.value == pytest.approx(np.exp(score.mean_log_ratio))
    assert score.by_week.degrees == 2
    mine, base = bslds(NamedAgent("SAF-REG", action, keywords), weeks)
    logarithms = [np.log(mine / base)]
    if copies == 0:
        low, high = (np.exp(end) for end in mean_of(logarithms[0]).ends())
        assert score.by_week.ends() == pytest.approx((low, high))


def test_the_gap_is_in_units_of_that_of_the_test_weeks():
    weeks, scale = Episodes("many-weeks").select("validation:3"), scale_of("many-weeks", "index")
    played = validation.Validation([weeks], {"action": "index"}, copies=0, threads=1)
    assert played.score(ConstantAction(scale.constant)).gap.ends() == (0, 0)
    saf = played.score(ConstantAction((0.5, 0.0, -1.0, 0.0, -1.0)))
    assert saf.by_week.ends() == pytest.approx((1, 1))
    static, base = bslds(
        NamedAgent("S", ConstantAction(scale.constant), {"action": "index"}), weeks
    )
    closed = (static.sum() / base.sum() - 1) / scale.gap[0]
    assert saf.gap.value == pytest.approx(closed)
    assert str(saf).startswith("1.000 [1.000, 1.000] of SAF, gap closed ")


@pytest.mark.long
def test_the_static_end_may_be_what_picks_the_first_job_that_fits():
    windows = Episodes("windows-256").select("validation:3")
    keywords = {"action": "job", "backfill": "none"}
    found = validation.Validation([windows], keywords, copies=0, threads=1).score(SLOT)
    scale = scale_of("windows-256", "job", "none")
    assert scale.static == "rule" and scale.rule in FIRST_FITS
    first = NamedAgent("FIRST", FIRST_FITS[scale.rule], FirstFit.NEEDS)
    (static, base), (mine, _) = (
        bslds(agent, windows) for agent in (first, NamedAgent("SLOT", SLOT, keywords))
    )
    assert found.gap.value == pytest.approx((static - mine).sum() / base.sum() / scale.gap[0])


def test_several_scenarios_have_no_scale_and_count_week_by_week():
    both = [Episodes("many-weeks").select("1-2"), Episodes("synthetic-busy-weeks").select("11")]
    played = validation.Validation(both, {"action": "index"}, copies=0, threads=1)
    score = played.score(ConstantAction((0.0,) * 5))
    assert (score.gap, score.by_week.degrees) == (None, 2)
