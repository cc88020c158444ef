"""Choice by replay: which rule takes a week follows from the weeks before it alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcgym.agent import RuleAgent
from hpcgym.agent.card import read_card
from hpcgym.agent.contest import contest_of
from hpcgym.agent.replay import ReplayAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import CardError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WeekEpisodes
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.runner import Copies, Runner
from hpcgym.schedule.simulate import simulate

WEEK_S = 604_800
SPEC = Scenario(
    name="busy-weeks",
    description="Weeks of a busy little machine.",
    trace=TraceSpec(name="busy", missing_request="drop"),
    machine=MachineSpec(processors=16, largest_request_s=200_000),
    episode=WeekEpisodes(warm_history=False),
    scheduler=SchedulerSpec(),
)
RULES = [RuleAgent("SQF"), RuleAgent("LPF"), RuleAgent("FCFS")]


def columns(seed: int) -> dict[str, np.ndarray]:
    """Jobs of eight weeks with waits, many of them longer than a day."""
    generator = np.random.default_rng(seed)
    n = 500
    run = generator.lognormal(8.5, 1.8, n).astype(np.int64).clip(1, 100_000)
    return {
        "submit_time": np.sort(generator.integers(0, 8 * WEEK_S, n)),
        "run_time": run,
        "requested_time": run * 2,
        "processors": generator.integers(1, 17, n),
        "wait_time": generator.integers(-1, 200_000, n),
    }


def weeks_of(jobs: dict[str, np.ndarray]) -> Episodes:
    """Cut jobs into weeks, six of them whole."""
    first = [jobs[name] for name in ("submit_time", "run_time", "requested_time", "processors")]
    log = Workload.from_arrays(
        *first, machine_processors=16, wait_time=jobs["wait_time"], name="busy"
    )
    return Episodes(SPEC, workload=log)


def chosen_by_hand(jobs: dict[str, np.ndarray], number: int) -> str:
    """Choose the rule of a week from the columns of the log, job by job."""
    sums = dict.fromkeys((rule.name for rule in RULES), 0.0)
    for earlier in range(1, number):
        rows = []
        for submit, run, request, wide, wait in zip(*jobs.values(), strict=True):
            if submit // WEEK_S == earlier and submit + max(wait, 0) + run <= number * WEEK_S:
                rows.append((submit - earlier * WEEK_S, run, request, wide))
        if not rows:
            continue
        week = Workload.from_arrays(*np.array(rows).T, machine_processors=16, name="week")
        for name in sums:
            waits = simulate(week, name).start_time - week.submit_time
            times = np.maximum(week.run_time, 10)
            sums[name] += np.maximum((waits + week.run_time) / times, 1).mean()
    return min(sums, key=lambda name: sums[name])  # the first of equals


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_week_goes_to_the_rule_that_would_have_served_the_past_best(seed: int) -> None:
    jobs = columns(seed)
    weeks, agent = weeks_of(jobs), ReplayAgent(RULES, name="ANY")
    assert weeks.numbers == (1, 2, 3, 4, 5, 6)
    found = [agent.in_week(weeks, index).policy.name for index in range(6)]
    assert found == [chosen_by_hand(jobs, number) for number in weeks.numbers]
    assert found[0] == "SQF"
    part = weeks.select("4-6")
    assert [agent.in_week(part, index).policy.name for index in range(3)] == found[3:]


@pytest.mark.long
def test_some_drawn_week_goes_to_each_of_two_rules() -> None:
    agent, found = ReplayAgent(RULES, name="ANY"), set()
    for seed in range(4):
        weeks = weeks_of(columns(seed))
        found |= {agent.in_week(weeks, index).policy.name for index in range(6)}
    assert len(found) > 1


def test_the_future_changes_no_choice() -> None:
    jobs = columns(1)
    agent = ReplayAgent(RULES, name="ANY")
    before = agent.in_week(weeks_of(jobs), 3)
    begins = 4 * WEEK_S
    ends = jobs["submit_time"] + np.maximum(jobs["wait_time"], 0) + jobs["run_time"]
    unknown = ends > begins
    assert unknown[jobs["submit_time"] < begins].sum() > 0
    other = columns(2)
    for name in ("run_time", "requested_time", "processors"):
        jobs[name] = np.where(unknown, other[name], jobs[name])
    late = unknown & (jobs["submit_time"] >= begins)
    jobs["run_time"][late], jobs["requested_time"][late] = 90_000, 100_000
    jobs["wait_time"][unknown] = 2 * WEEK_S
    assert agent.in_week(weeks_of(jobs), 3) == before


@pytest.mark.long
def test_an_evaluation_gives_each_week_the_rows_of_its_rule() -> None:
    weeks = weeks_of(columns(0))
    agent = ReplayAgent(RULES, name="ANY")
    found = evaluate([agent, *RULES], weeks, jitter=600, replicas=1, progress=False).frame
    for index, number in enumerate(weeks.numbers):
        rows = found[found["week"] == number].groupby("agent")
        rule = agent.in_week(weeks, index).policy.name
        own, of_rule = (
            rows.get_group(name).drop(columns="agent").reset_index(drop=True)
            for name in ("ANY", rule)
        )
        assert own.equals(of_rule)


def test_a_kept_run_is_known_by_the_rule_that_took_the_week() -> None:
    jobs, agents = columns(0), [ReplayAgent(RULES, name="ANY"), *RULES]
    keys = [Runner(agents, weeks_of(jobs), Copies()).key((3, place)) for place in range(4)]
    assert len(set(keys)) == 4
    jobs["run_time"][jobs["submit_time"] // WEEK_S == 1] = 1
    again = Runner(agents, weeks_of(jobs), Copies())
    rules = [one.rule((3, 0)) for one in (Runner(agents, weeks_of(columns(0)), Copies()), again)]
    assert (again.key((3, 0)) == keys[0]) == (rules[0] == rules[1])
    assert again.key((3, 1)) == keys[1]


def test_the_contest_is_that_of_the_rule_that_dares_most() -> None:
    guarded = SchedulerSettings(threshold=1_000)
    both = [load_agent("SAF"), load_agent("SAF-TRIAL")]
    rules = [one for one in both if isinstance(one, RuleAgent)]
    assert contest_of(ReplayAgent(rules, name="BOTH"), guarded) == "requeue"
    assert contest_of(ReplayAgent(RULES, name="ANY"), guarded) == "guarded"
    with pytest.raises(CardError, match="ONE: a choice by replay needs at least two rules"):
        ReplayAgent(RULES[:1], name="ONE")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('agents = ["SAF-TRIAL"]', "needs at least two rules"),
        ('agents = ["SAF-TRIAL", "PPO-ORDER"]', "PPO-ORDER is no single rule"),
        ('agents = ["SAF-TRIAL", "REPLAY"]', "REPLAY is no single rule"),
        ('agents = ["SAF-TRIAL", "SAF-CAP-YUNG"]', "did you mean 'SAF-CAP-YOUNG'"),
        ('agents = ["SAF-CAP-YOUNG", "SAF-TRIAL"]', "backfill must be that of SAF-CAP-YOUNG"),
    ],
)
def test_a_card_of_other_agents_is_refused(line: str, message: str, tmp_path: Path) -> None:
    agent = load_agent("REPLAY")
    assert isinstance(agent, ReplayAgent)
    assert [rule.name for rule in agent.choices] == ["SAF-TRIAL", "SAF-CAP-YOUNG"]
    assert replace(agent, training=None) == agent
    text = Path("agents/replay.toml").read_text(encoding="utf-8")
    card = tmp_path / "replay.toml"
    card.write_text(text.replace('agents = ["SAF-TRIAL", "SAF-CAP-YOUNG"]', line), "utf-8")
    with pytest.raises(CardError, match=message):
        read_card(card)
