"""Costs of evaluations: what is measured is scaled and summed as the tables say."""

import re
from dataclasses import replace

import pytest

from hpcgym.agent import load_agent
from research.costs import (
    Campaign,
    LogCost,
    Rates,
    Shared,
    cost_rows,
    estimate_rows,
    limit_rows,
    log_cost,
    logs_here,
    many_rules,
    rate_rows,
    speed_rows,
    speed_up,
)

COSTS = [
    LogCost("one", 20, {"SAF": 8.0}, 0.5, 1.0, (0.02, 0.002), (20_000, 1_000)),
    LogCost("two", 60, {"SAF": 24.0}, 2.0, 3.0, (0.06, 0.006), (20_000, 1_000)),
]
RUN = Shared(2, 3, 60, 4.0, 1.0, 22.0, 3.0, 1.8)
RATES = Rates(0.0002, 0.00001, 0.001, 0.00009, 0.0001, 4_000.0, 1.5)


def test_an_estimate_is_the_sum_of_its_terms() -> None:
    (row,) = estimate_rows(COSTS, RATES, Campaign(1_000, 40, (64, 100_000)))
    assert row["tasks"] == "1,600,000"
    assert row["playing, core-hours"] == f"{40_000 * 16 / 3600:,.0f}" == "178"
    leading = (40_000 * 0.004 + 1_600_000 * 0.0002) / 3600
    assert row["leading process, hours"] == f"{leading:.1f}"
    assert row["kept, GB"] == "32.0, 1.6"
    on_64 = ((640_000 + 160) / 64 + 40 * 2 + 2) / 3600
    assert row["64 cores, hours"] == f"{on_64:.1f} (workers)"
    assert row["100,000 cores, hours"] == f"{leading:.1f} (leading process)"


def test_workers_kept_busy_are_the_task_over_what_leads_it() -> None:
    local, remote, evaluated = limit_rows(COSTS, RATES, RUN)
    keys = 0.008 / 80
    assert local["SAF"] == f"{0.4 / (0.0002 + 0.00009 + 0.0001 + keys):,.0f}"
    assert evaluated["SAF"] == "20"  # 400 ms over 1.2 s / 60
    assert remote["SAF"] == f"{0.4 / (0.00001 + 0.00009 + 0.0001 + keys):,.0f}"


def test_a_speed_up_is_bounded_by_the_longest_task_and_the_end() -> None:
    alone = Shared(0, 3, 60, 4.0, 0.0, 22.0, 21.0, 2.0)
    shared = [Shared(n, 3, 60, 4.0, 1.0, 22.0 / n, 3.0, 2.0) for n in (1, 2)]
    first, second = speed_rows(alone, shared)
    assert (first["speed-up"], first["at most"]) == ("1.00", "1.00")
    assert second["speed-up"] == "2.00"
    assert second["at most"] in ("1.00", "1.83")  # on one core, or on more
    long = Shared(0, 3, 60, 19.0, 0.0, 22.0, 21.0, 2.0)
    (row,) = speed_rows(long, [Shared(64, 3, 60, 19.0, 1.0, 22.0, 3.0, 2.0)])
    assert row["at most"] == "1.05"  # 22 / 21


@pytest.mark.long
def test_costs_of_a_log_are_those_of_all_its_weeks() -> None:
    agents = [load_agent(name) for name in ("SAF", "SMITH")]
    cost = log_cost("synthetic-busy-weeks", agents, 2)
    assert cost.n_weeks == 17 and set(cost.seconds) == {"SAF", "SMITH"}
    assert all(17 / 2 * cost.longest >= seconds / 2 > 0 for seconds in cost.seconds.values())
    assert min(cost.keys) > 0
    (row,) = cost_rows([cost])
    assert re.fullmatch(r"\d+\.\d, \d+\.\d", row["kept of a week, kB"])
    assert logs_here(["tiny", "synthetic-busy-weeks"]) == (["tiny", "synthetic-busy-weeks"], [])


@pytest.mark.long
def test_an_agent_is_measured_on_the_logs_that_it_can_schedule() -> None:
    agents = [load_agent(name) for name in ("SLACK", "SAF")]
    assert set(log_cost("hetero-64-weeks", agents, 1).seconds) == {"SAF"}
    costs = [COSTS[0], replace(COSTS[1], seconds={"SLACK": 30.0})]
    assert [row["SLACK, s"] for row in cost_rows(costs)] == ["", "30.00"]
    rows = list(estimate_rows(costs, RATES, Campaign(1_000, 40, (64,))))
    assert [row["playing, core-hours"] for row in rows] == ["89", "333"]
    assert ["SLACK" in row for row in limit_rows(costs, RATES, RUN)] == [True] * 3


def test_rules_that_share_a_speed_up_differ() -> None:
    rules = many_rules(12)
    assert len({rule.name for rule in rules}) == 12
    alone, shared = speed_up("tiny", [1], 0.001)
    assert (alone.workers, alone.n_agents, alone.n_tasks) == (0, 3, 3)
    assert shared.workers == 1 and shared.start > 0 and shared.led < shared.wall + 5
    assert len(list(rate_rows(RATES, alone))) == 8


@pytest.mark.parametrize("name", ["no-such-log"])
def test_a_name_that_is_no_scenario_is_an_error(name: str) -> None:
    with pytest.raises(Exception, match="unknown scenario"):
        logs_here([name])
