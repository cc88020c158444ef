"""Controls of an agent: its mean action, and its own actions in another turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.agent.base import NamedAgent
from hpcgym.agent.blind import MOST_WEEKS, Shuffled, actions_of, controls_of
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.training_weeks import Training
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.errors import CardError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.evaluation import overview
from hpcgym.evaluation.looks import Looks, looks_of
from hpcgym.evaluation.statistics import Estimate

SCENARIO = "synthetic-busy-weeks"
WEEKS = Episodes(SCENARIO).select("15,16")


@dataclass
class Watcher:
    """Sets kappa by how much waits, and remembers what it did."""

    taken: list[Any] = field(default_factory=list)

    def predict(
        self, observation: Any, state: Any = None, start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        waits = float(observation["action_mask"].mean())
        self.taken.append(np.array([0.0, waits, waits, 0.0, waits], dtype=np.float32))
        return self.taken[-1], state


@dataclass
class Picker:
    """Names the first slot, and the second where many jobs wait."""

    def predict(
        self, observation: Any, state: Any = None, start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        return int(observation["action_mask"].sum() > 20), state


def play(agent: NamedAgent, number: int) -> list[Any]:
    """Return the actions of a week."""
    env = SchedulingEnv(WEEKS, **agent.env_keywords)
    shown, _ = env.reset(options={"episode": number})
    state, is_over, taken = None, False, []
    while not is_over:
        action, state = agent.predict(shown, state, np.zeros(1, bool), True)
        taken.append(action)
        shown, _, is_over, _, _ = env.step(action)
    return taken


def test_the_mean_is_that_of_what_the_agent_does_in_the_weeks() -> None:
    watcher = Watcher()
    mean, _ = controls_of(NamedAgent("SEES", watcher, {"action": "index"}), WEEKS)
    assert mean.name == "SEES/mean"
    reference = [
        sum(float(row[at]) for row in watcher.taken) / len(watcher.taken) for at in range(5)
    ]
    assert isinstance(mean.agent, ConstantAction)
    assert mean.agent.action == pytest.approx(reference)
    assert {tuple(action) for action in play(mean, 15)} == {mean.agent.action}


def test_of_numbered_actions_the_most_frequent_is_held() -> None:
    agent = NamedAgent("PICKS", Picker(), {"action": "job"})
    actions = actions_of(agent, WEEKS)
    assert set(actions) == {0, 1}
    mean, _ = controls_of(agent, WEEKS)
    assert mean.agent == ConstantAction(int((actions == 1).sum() > (actions == 0).sum()))


def test_shuffled_actions_are_the_same_in_another_turn() -> None:
    agent = NamedAgent("SEES", Watcher(), {"action": "index"})
    one_week = WEEKS.select("15")
    own = [tuple(action) for action in actions_of(agent, one_week)]
    (_, shuffled), (_, other) = (controls_of(agent, one_week, seed=seed) for seed in (0, 1))
    first, again, by_other = (
        [tuple(action) for action in play(control, 15)] for control in (shuffled, shuffled, other)
    )
    assert first == again != by_other
    assert first != own[: len(first)]
    n = min(len(own), len(first))
    assert abs(len(own) - len(first)) <= 2  # an episode may end a decision earlier or later
    assert sum(own.count(action) for action in set(first)) >= n


def test_another_episode_begins_another_turn() -> None:
    blind = Shuffled(np.arange(50.0)[:, None])
    turns = []
    for shown in (0.0, 1.0):
        state, taken = None, []
        for _ in range(60):
            action, state = blind.predict({"cluster": np.array([shown])}, state)
            taken.append(float(action[0]))
        assert sorted(taken[:50]) == list(range(50)) and taken[50:] == taken[:10]
        turns.append(taken)
    assert turns[0] != turns[1]


def test_rules_and_constants_have_no_controls() -> None:
    constant = NamedAgent("HELD", ConstantAction((0.0,) * 5), {"action": "index"})
    assert controls_of(RuleAgent("SAF"), WEEKS) == controls_of(constant, WEEKS) == []


def test_no_more_weeks_are_played_than_needed() -> None:
    every = Episodes("synthetic-256-weeks")
    assert len(every) > MOST_WEEKS
    counts = []

    class Counter(Watcher):
        def predict(self, observation: Any, state: Any = None, start: Any = None, *_: Any) -> Any:
            counts.append(bool(start[0]))
            return super().predict(observation, state, start)

    actions_of(NamedAgent("COUNTS", Counter(), {"action": "index"}), every)
    assert sum(counts) == MOST_WEEKS


@pytest.mark.long
def test_an_evaluation_has_both_beside_the_agent_and_says_whether_it_looks() -> None:
    agent = NamedAgent("SEES", Watcher(), {"action": "index"})
    found = hpcgym.evaluate([agent, "FCFS"], SCENARIO, weeks="15-17", controls=True, progress=False)
    assert found.agents == ("SEES", "FCFS", "SAF", "SEES/mean", "SEES/shuffled")
    looks = looks_of(found, "SEES")
    assert looks is not None and looks_of(found, "FCFS") is None
    for control, ratio in (("mean", looks.to_mean), ("shuffled", looks.to_shuffled)):
        sums = [found.values(name).sum() for name in ("SEES", f"SEES/{control}")]
        assert ratio.value == pytest.approx(sums[0] / sums[1])
    notes = " ".join(overview(found).notes)
    assert f"SEES: {looks.to_mean} of its mean action" in notes


def test_it_looks_only_where_it_is_surely_better_than_both() -> None:
    sure, unsure = Estimate(0.9, 0.01, 9), Estimate(0.9, 0.2, 9)
    assert Looks(sure, sure).is_seen
    assert not Looks(sure, unsure).is_seen and not Looks(unsure, sure).is_seen
    assert not Looks(sure, Estimate(0.5, None, 0)).is_seen


def test_controls_are_no_way_to_play_weeks_of_the_training() -> None:
    training = Training({SCENARIO: (1, 2)}, 0, 1.0, "", "")
    agent = NamedAgent("SEES", Watcher(), {"action": "index"}, training)
    with pytest.raises(CardError, match="was trained on weeks 1-2"):
        hpcgym.evaluate([agent], SCENARIO, weeks="2", controls=True, progress=False)
    assert all(one.training is training for one in controls_of(agent, WEEKS))
