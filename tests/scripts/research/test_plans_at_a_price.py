"""Plans of single weeks at a price: a search never ends above where it began."""

import numpy as np
import pytest

from research.price import (
    BEST,
    MOST_HOURS,
    SCENARIO,
    Plan,
    Weeks,
    held,
    other_run_times,
    plan_of,
    priced,
    rules_of_the_shelf,
)

WEEK = 20_001
WAITS = ("longest wait, mean, h", "most, h")


def test_a_plan_is_no_worse_than_what_its_search_began_at_and_can_be_played_again() -> None:
    weeks, begins = Weeks(str(WEEK), copies=2), [held((0.0, 0.0)), held((0.5, -0.2))]
    begun = [weeks.play(each)[0][0] for each in begins]
    reached, plan = plan_of(weeks, begins, tries=8)
    assert reached <= min(begun)
    assert plan.shape == (MOST_HOURS, 2)
    again = weeks.play(Plan(np.tile(plan, (2, 1, 1))).choose)[0]
    assert again == pytest.approx([reached, reached], abs=1e-12)
    first, second = (plan_of(weeks, begins, tries=8, seed=seed)[1] for seed in (1, 2))
    assert not np.array_equal(first, second)


def test_the_gap_closed_is_known_of_exact_forecasts_alone() -> None:
    found = {}
    for noise in (0, 0.3):
        weeks = Weeks("test:12", priced(SCENARIO, noise))
        reached, _ = weeks.play(rules_of_the_shelf()[BEST].choose)
        found[noise] = weeks.seen(reached)
    assert float(found[0].pop("gap closed").split()[0]) == 0
    assert set(found[0]) == set(found[0.3]) == {*WAITS, "slowdown to SAF", "cost"}
    slowdown, cost = (float(found[0.3][key]) for key in ("slowdown to SAF", "cost"))
    assert slowdown + 20 * cost == pytest.approx(21 + reached.mean(), abs=0.011)


def test_at_other_run_times_an_agent_meets_other_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.price.TRIES", 2)
    monkeypatch.setattr("research.price.PLANS", 2)
    usual = held((0.0, 0.0))
    agent, plan, elsewhere, plan_elsewhere = other_run_times(WEEK, {"zeros": usual}, [usual])
    assert (agent, elsewhere) == (plan, plan_elsewhere)  # the plan is what the search began at
    assert agent != elsewhere
