"""Contests: which agents keep the threshold, by the modes and estimates that they state."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hpcgym.agent import NamedAgent, RuleAgent, load_cards
from hpcgym.agent.contest import contest_by, contest_of, mode_in_env
from hpcgym.agent.shelf import parse_cards
from hpcgym.core.backfill import MODES
from hpcgym.core.own_backfill import OwnBackfill, OwnPass
from hpcgym.core.settings import SchedulerSettings
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.schedule.simulate import simulate

THRESHOLD = SchedulerSettings(threshold=200_000)


class Mine(OwnBackfill):
    """Starts nothing."""

    def start(self, now: OwnPass) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("mode", "contest"),
    [
        ("none", "guarded"),
        ("easy", "guarded"),
        ("easy:cap=0.97", "guarded"),
        ("easy:cap=0.97,overdue=open", "open"),
        ("cost-benefit:kappa=5", "guarded"),
        ("cost-benefit:overdue=open", "open"),
        ("depth:k=3", "guarded"),
        ("conservative", "guarded"),
        ("conservative:compress=shift", "open"),
        ("look-ahead", "guarded"),
        ("relaxed:omega=1", "open"),
        ("relaxed:omega=0", "guarded"),
        ("slack:c=1", "open"),
        ("multi-queue", "guarded"),
        ("multi-queue:delay=2500", "open"),
        ("gang", "open"),
    ],
)
def test_contest_follows_from_the_mode(mode: str, contest: str) -> None:
    assert contest_by(mode) == contest


def delayed(mode: str) -> int:
    """Count the jobs beyond a threshold that start later than EASY would let them.

    Estimates are exact. From the first event at which such a job is the oldest that waits, it must
    start once enough of what runs then has ended.
    """
    late, threshold = 0, 20_000
    for week in (0, 2, 3):
        jobs = Episodes("synthetic-256-weeks").workload(week)
        made = simulate(jobs, "SAF", backfill=mode, threshold=threshold, estimates="exact")
        start, end = made.start_time, made.start_time + made.run_time
        events = np.unique(np.concatenate([jobs.submit_time, end]))
        for job in np.flatnonzero(start - jobs.submit_time > threshold):
            now = events[np.searchsorted(events, jobs.submit_time[job] + threshold, "right")]
            if start[job] <= now or (start[:job] > now).any():
                continue
            runs = np.flatnonzero((start <= now) & (end > now))
            runs = runs[np.argsort(end[runs])]
            free = jobs.machine_processors - jobs.processors[runs].sum()
            room = free + np.cumsum(jobs.processors[runs])
            late += start[job] > end[runs][np.argmax(room >= jobs.processors[job])]
    return late


@pytest.mark.parametrize(
    "mode", ["none", "easy:cap=0.5", "cost-benefit:kappa=5,cap=0.5", "depth:k=3", "look-ahead"]
)
def test_a_guarded_agent_delays_no_job_beyond_the_threshold(mode: str) -> None:
    assert delayed(mode) == 0


@pytest.mark.parametrize("mode", ["cost-benefit:kappa=5,overdue=open", "relaxed:omega=1"])
def test_an_open_agent_does(mode: str) -> None:
    assert delayed(mode) > 0


def test_every_mode_has_a_contest() -> None:
    needed: Mapping[str, str] = {"depth": ":k=2", "slack": ":c=1"}
    for name in MODES:
        assert contest_by(f"{name}{needed.get(name, '')}") in ("guarded", "open"), name


def test_contest_of_a_mode_of_your_own_is_not_known() -> None:
    assert contest_of(RuleAgent("SAF", backfill=Mine()), THRESHOLD) == "-"


def test_an_agent_that_states_no_mode_has_that_of_the_scenario() -> None:
    relaxed = SchedulerSettings(threshold=200_000, backfill="relaxed")
    for agent in (RuleAgent("SAF"), NamedAgent("net", RuleAgent("SAF"), {"action": "order"})):
        assert contest_of(agent, THRESHOLD) == "guarded"
        assert contest_of(agent, relaxed) == "open"
    states = NamedAgent("net", RuleAgent("SAF"), {"backfill": "cost-benefit:overdue=open"})
    assert contest_of(states, THRESHOLD) == "open"


def test_predictions_may_be_too_short_for_the_reservation_of_the_head() -> None:
    assert contest_by("easy", "recent") == "open"
    assert contest_by("easy", "exact") == "guarded"


def test_without_a_threshold_there_is_no_contest() -> None:
    assert contest_of(RuleAgent("SAF"), SchedulerSettings()) == "-"


@pytest.mark.long
def test_cards_are_open_where_their_agents_are() -> None:
    for name, card in load_cards().items():
        assert card.contest == contest_of(card.agent, THRESHOLD), name


@pytest.mark.long
def test_contest_of_a_card_by_its_results_is_that_by_its_mode() -> None:
    for card in parse_cards():
        mode = mode_in_env(card.environment, "easy")
        assert card.contest == contest_by(mode, card.parameters.get("estimates")), card.name
