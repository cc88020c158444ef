"""Actions that name a slot that serves nothing: what stands for them, or what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from env_cases import Case, busy_workload, cases, env_of, episodes_of
from hpcgym.base.errors import ActionError
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv

BUSY = busy_workload(4, n=150, processors=64)


def keywords_of(invalid: str) -> dict[str, Any]:
    """Return the keywords of an environment in which many slots serve nothing."""
    keywords = {"action": "job", "invalid": invalid, "n_slots": 12}
    return {"scenario": episodes_of(BUSY, threshold=10_000), **keywords}


def make(invalid: str) -> SchedulingEnv:
    """Make such an environment."""
    return SchedulingEnv(**keywords_of(invalid))


def drawn(env: Any, generator: np.random.Generator) -> int:
    """Draw any action, one in four that the mask allows."""
    masks = env.action_masks()
    if generator.random() < 0.25:
        return int(generator.choice(np.flatnonzero(masks)))
    return int(generator.integers(len(masks)))


def test_a_penalty_comes_off_and_all_else_stays() -> None:
    """The sum is that of the ratio less 0.01 for each of them."""
    env, first = make("penalty"), make("first")
    env.reset(), first.reset()
    generator, over, total, n_invalid = np.random.default_rng(0), False, 0.0, 0
    while not over:
        chosen = drawn(env, generator)
        is_invalid = not env.action_masks()[chosen]
        shown, paid, over, _, info = env.step(chosen)
        seen, reward, ended, _, told = first.step(chosen)
        assert paid == reward - (0.01 if is_invalid else 0.0)
        assert ended == over
        assert all(shown[key].tobytes() == seen[key].tobytes() for key in shown)
        total, n_invalid = total + paid, n_invalid + is_invalid
    assert 10 < n_invalid == info["invalid_actions"]
    np.testing.assert_equal(info, told)
    assert total == pytest.approx(-info["ratio"] - 0.01 * n_invalid, rel=1e-9)
    assert env.schedule().start_time.tolist() == first.schedule().start_time.tolist()


def test_an_error_leaves_no_trace() -> None:
    env, calm = make("error"), make("first")
    env.reset(), calm.reset()
    generator, over, n_refused = np.random.default_rng(1), False, 0
    while not over:
        masks, chosen = env.action_masks(), drawn(env, generator)
        if not masks[chosen]:
            before = [array.tobytes() for array in env._state.arrays.values()]
            words = f"action 'job': slot {chosen} holds no job that may be named now"
            with pytest.raises(ActionError, match=words):
                env.step(chosen)
            assert [array.tobytes() for array in env._state.arrays.values()] == before
            n_refused, chosen = n_refused + 1, int(masks.argmax())
        _, paid, over, _, info = env.step(chosen)
        assert calm.step(chosen)[1] == paid
    assert n_refused > 10
    assert info["invalid_actions"] == 0


@given(case=cases(action="job"))
def test_an_empty_slot_is_what_the_count_and_the_penalty_say(case: Case) -> None:
    """Where an episode has no decision its first slot may be named, and is counted all the same."""
    env = env_of(case.workload, case.rules)
    penal = SchedulingEnv(
        env.episodes,
        action="job",
        decide=case.rules.decide,
        reward=case.rules.reward,
        baseline=env._config.baseline,
        n_slots=case.rules.n_slots,
        invalid="penalty",
    )
    generator, over = np.random.default_rng(case.seed), False
    shown, _ = env.reset()
    penal.reset()
    n_empty = 0
    while not over:
        chosen = int(generator.integers(case.rules.n_slots))
        is_invalid = not penal.action_masks()[chosen]
        n_empty += shown["action_mask"][chosen] == 0
        shown, reward, over, _, _ = env.step(chosen)
        _, paid, _, _, info = penal.step(chosen)
        assert paid == reward - 0.01 * is_invalid
    assert info["invalid_actions"] == n_empty


@pytest.mark.long
def test_vectors_refuse_them_all_or_none() -> None:
    keywords = keywords_of("error")
    envs, twin = (SchedulingVectorEnv(num_envs=3, **keywords) for _ in range(2))
    envs.reset(seed=0), twin.reset(seed=0)
    n_refused, over = 0, np.zeros(3, dtype=bool)
    for _ in range(80):
        masks = envs.action_masks()
        good = masks.argmax(axis=1)
        wrong = good.copy()
        wrong[1] = masks.shape[1] - 1
        if not over[1] and not masks[1, wrong[1]]:
            with pytest.raises(ActionError, match="environment 1: action 'job': slot"):
                envs.step(wrong)
            n_refused += 1
        _, rewards, over, _, _ = envs.step(good)
        assert twin.step(good)[1].tolist() == rewards.tolist()
    assert n_refused > 10
    assert envs.call("now") == twin.call("now")
