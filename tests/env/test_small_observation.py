"""Small observations: beside the twin, in vectors, and what they do not go with."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from env_cases import Case, busy_workload, cases, env_of, random_action, rules_for, slowed, twin_of
from hpcgym.agent.sb3_model import keywords_of
from hpcgym.base.errors import ScenarioError
from hpcgym.core.observation_fields import SmallField
from hpcgym.env.scheduling import SchedulingEnv


def play_both(case: Case) -> np.ndarray:
    """Play an episode beside the twin; return the largest of each number that was shown."""
    rules = case.rules
    usual = env_of(case.workload, rules)
    env = SchedulingEnv(
        usual.episodes,
        action=rules.action,
        decide=rules.decide,
        reward=rules.reward,
        baseline=usual._config.baseline,
        policies=rules.policies or None,
        observation="small",
    )
    twin, over, most = twin_of(case.workload, rules), False, np.full(len(SmallField), -1.0)
    generator = np.random.default_rng(case.seed)
    shown, _ = env.reset()
    twin.reset()
    while True:
        assert env.observation_space.contains(shown)
        assert env.now == twin.sim.now
        expected = np.array(twin.show_small())
        far = np.abs(shown - expected) > 2.0**-23 * np.maximum(np.abs(expected), 2.0**-3)
        names = [SmallField(k).field_name for k in np.flatnonzero(far)]
        assert names == [], (shown[far], expected[far])
        most = np.maximum(most, shown)
        if over:
            return most
        action = random_action(rules, generator)
        shown, _, over, _, _ = env.step(action)
        assert twin.step(action)[2] == over


@pytest.mark.parametrize("action", ["weights", "policy"])
@given(data=st.data())
def test_every_number_is_that_of_the_twin(action: str, data: st.DataObject) -> None:
    play_both(data.draw(cases(action=action, expectations=None)))


def test_every_number_is_that_of_the_twin_with_a_long_queue() -> None:
    workload = slowed(busy_workload(9), 8)  # up to 16 h
    rules = rules_for(workload, action="weights", decide=28_800, reward="ratio", n_slots=1)
    assert (play_both(Case(workload, rules, 1)) > 0).all()


def test_limits_put_jobs_out_of_sight() -> None:
    workload = busy_workload(4, n=150, processors=64)
    usual = env_of(workload, rules_for(workload), "limit:per=user,jobs=1")
    small = SchedulingEnv(usual.episodes, action="weights", observation="small")
    usual = SchedulingEnv(usual.episodes, action="weights", n_slots=512)
    (shown, _), (seen, _) = small.reset(), usual.reset()
    over, n_withheld = False, 0
    while not over:
        q = seen["jobs"][seen["action_mask"] == 1, 2].astype(float).sum()
        assert shown[SmallField.WAITING_PROCESSORS] == pytest.approx(q / (q + 1), abs=1e-5)
        n_withheld += int(small._sim.fields.n_withheld)
        shown, _, over, *_ = small.step(np.zeros(6, dtype=np.float32))
        seen = usual.step(np.zeros(6, dtype=np.float32))[0]
    assert n_withheld > 0


def test_starts_and_rewards_are_those_of_other_observations() -> None:
    """Also in vectors, whose small observations are those of single environments."""
    keywords: dict[str, Any] = {"scenario": "tiny", "action": "index", "decide": 600}
    small = gymnasium.make_vec("HPCBatch-v0", num_envs=3, observation="small", **keywords)
    alone = gymnasium.make("HPCBatch-v0", observation="small", **keywords)
    usual = gymnasium.make_vec("HPCBatch-v0", num_envs=3, **keywords)
    check_env(alone.unwrapped, skip_render_check=True)
    (shown, _), (one, _), _ = small.reset(seed=4), alone.reset(seed=4), usual.reset(seed=4)
    small.action_space.seed(0)
    for _ in range(60):
        assert shown.shape == (3, len(SmallField)) and shown[0].tobytes() == one.tobytes()
        actions = small.action_space.sample()
        shown, paid, over, _, _ = small.step(actions)
        _, reward, ended, _, _ = usual.step(actions)
        assert paid.tobytes() == reward.tobytes() and over.tobytes() == ended.tobytes()
        one, _, is_over, _, _ = alone.step(actions[0])
        if is_over:  # the vector resets in its next step
            break
    assert is_over
    assert small.unwrapped.envs[0].schedule() is not None


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        *(
            ({"action": action}, f"action '{action}' needs what observation 'small' does not")
            for action in ("order", "job", "controls", "trials")
        ),
        ({"n_slots": 4}, "shows no n_slots"),
        ({"expectations": "regression"}, "shows no expectations"),
        ({"fields": ["user_usage"]}, "shows no fields"),
        ({"scenario": "hetero-64-weeks"}, "a machine of nodes takes 'dict' or 'flat'"),
    ],
)
def test_what_is_not_shown_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        SchedulingEnv(**{"scenario": "tiny", "observation": "small"} | keywords)


@pytest.mark.parametrize("action", ["index", "weights"])
def test_a_saved_model_is_known_by_its_small_space(action: str) -> None:
    keywords = {"action": action, "observation": "small"}
    assert keywords_of(SchedulingEnv("tiny", **keywords), "model.zip") == keywords
