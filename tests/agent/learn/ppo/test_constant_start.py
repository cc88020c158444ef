"""The search for a constant action that a network begins at, before PPO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.agent.card_writer import write_agent
from hpcgym.agent.shelf import load_card
from hpcgym.agent.training_weeks import Training
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.errors import HpcgymError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.vector import SchedulingVectorEnv

torch = pytest.importorskip("torch")
ppo = pytest.importorskip("hpcgym.agent.learn.ppo")
callbacks = pytest.importorskip("hpcgym.agent.learn.ppo.callbacks")
constant_start = pytest.importorskip("hpcgym.agent.learn.ppo.constant_start")
validations = pytest.importorskip("hpcgym.agent.validation")

TINY = [Episodes("tiny")]
SMALL = {
    "n_slots": 16,
    "hidden": 8,
    "n_envs": 4,
    "group_size": 2,
    "n_steps": 32,
    "batch_size": 64,
    "steps": 256,
    "validate_every": 1,
    "validation_copies": 0,
    "device": "cpu",
}


def test_a_search_of_constants_moves_towards_the_best_and_stays_in_reach() -> None:
    spec = ppo.preset("index", bound=0.8).spec
    best, asked = np.array([0.5, -0.3, 0.0, 2.0, -2.0]), []

    def value_of(action: ConstantAction) -> float:
        asked.append(action.action)
        return float(((np.array(action.action) - best) ** 2).sum())

    found = constant_start.search_constant(spec, value_of, 640, np.random.default_rng(1))
    reach = 0.95 * 0.8
    assert found == pytest.approx(best.clip(-reach, reach), abs=0.1)
    assert len(asked) == 25 + 38 * 16 and np.abs(asked).max() <= reach
    turns = iter((True, True, False))
    rng = np.random.default_rng(1)
    constant_start.search_constant(spec, value_of, 640, rng, lambda: next(turns))
    assert len(asked) == 2 * 25 + (38 + 3) * 16


@pytest.mark.parametrize("best", range(25))
def test_known_constants_come_first_and_are_all_where_no_more_are_asked_for(best: int) -> None:
    spec, asked = ppo.preset("index").spec, []
    orders = ((0, -0.95, 0), (0.5, -0.5, 0.5), (0.95, 0, 0.95), (0, -0.5, 0), (0, 0, 0))
    known = [(0.5, *order, root) for order in orders for root in (-0.95, -0.7, -0.5, -0.3, 0)]

    def value_of(action: ConstantAction) -> float:
        asked.append(action.action)
        return float(len(asked) - 1 != best)

    found = constant_start.search_constant(spec, value_of, 25, np.random.default_rng(1))
    assert np.array(asked) == pytest.approx(np.array(known))
    assert found == pytest.approx(np.array(known[best]))


def test_without_known_constants_a_generation_is_searched_in_any_case() -> None:
    spec, asked = ppo.preset("trials").spec, []

    def value_of(action: ConstantAction) -> float:
        asked.append(action.action)
        return float(sum(action.action))

    found = constant_start.search_constant(spec, value_of, 1, np.random.default_rng(1))
    assert len(asked) == 16 and found.sum() < 0


def told(monkeypatch: pytest.MonkeyPatch, *ratios: float) -> list[Any]:
    """Let validations find ratios in turn; return the constants that searches will come to."""
    turns, score, found = iter(ratios), validations.Score(1.0, 0.0, 1.0), []
    search = constant_start.search_constant

    def next_score(*_: Any) -> Any:
        ratio = next(turns)
        return score._replace(ratio=ratio, mean_log_ratio=np.log(ratio))

    def noted(*given: Any) -> Any:
        found.append(search(*given))
        return found[-1]

    monkeypatch.setattr(validations.Validation, "score", next_score)
    monkeypatch.setattr(callbacks, "search_constant", noted)
    return found


@pytest.mark.long
@pytest.mark.parametrize("action", ["index", "trials"])
def test_a_network_begins_at_the_constant_that_the_search_came_to(
    action: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = ppo.preset(action, **SMALL | {"steps": 128, "constants": 16, "learning_rate": 1e-9})
    searched = np.linspace(1.2, 0.8, 25 if action == "index" else 16)
    found = told(monkeypatch, 1.0, *searched, 1.0, 1.1, 0.5, 1.2)
    trained = ppo.train(config, TINY, validation=TINY, seed=4)
    assert [(steps, ratio) for steps, ratio, _ in trained.history] == [(0, 1), (0, 1.1), (128, 1.2)]
    (constant,) = found
    assert np.abs(constant).max() > 0.1
    envs = SchedulingVectorEnv(TINY[0], num_envs=2, **config.env_keywords)
    shown, _ = envs.reset(seed=0)
    for agent in (trained.last, trained.agent):
        assert agent.predict(shown)[0] == pytest.approx(np.tile(constant, (2, 1)), abs=1e-5)
    assert trained.ended_at_constant and not trained.ended_at_start
    made = Training({"tiny": (1,)}, 1, 2.5, "abc", "a test")
    card = load_card(str(write_agent(trained, "NET", tmp_path, made)))
    assert "takes one constant action" in card.description


def test_a_constant_that_is_worse_on_all_weeks_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ppo.preset("index", **SMALL | {"steps": 128, "constants": 16})
    told(monkeypatch, 1.0, *np.linspace(1.2, 0.8, 25), 1.0, 1.1, 0.95, 1.0, 1.2)
    trained = ppo.train(config, TINY, validation=TINY, seed=4)
    assert [ratio for _, ratio, _ in trained.history] == [1, 1.1, 1, 1.2]
    assert trained.ended_at_start
    assert not trained.agent.weights["output.bias"].any()


@pytest.mark.long
def test_a_training_cut_off_in_its_search_goes_on_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = ppo.preset("index", **SMALL | {"constants": 16})
    whole = ppo.train(config, TINY, validation=TINY, seed=4)
    with monkeypatch.context() as patch:
        patch.setattr(callbacks, "search_constant", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ppo.train(config, TINY, validation=TINY, seed=4, output=tmp_path)
    gone_on = ppo.resume(tmp_path)
    for name, array in whole.last.weights.items():
        assert np.array_equal(array, gone_on.last.weights[name])
    assert gone_on.history == whole.history


def interrupted(spec: Any, value_of: Any, *given: Any) -> Any:
    """A search that is interrupted after some constants."""
    for _ in range(3):
        value_of(ConstantAction((0.0,) * spec.n_outputs))
    raise KeyboardInterrupt


def test_constants_of_actions_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(HpcgymError, match=r"vectors of numbers, .* got action 'job'"):
        ppo.preset("job", constants=8)
    assert not ppo.preset("index", residual=False).searches
