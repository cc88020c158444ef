"""Rollouts whose decisions are compared with those of the same hour of the same week."""

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch")
Paired = pytest.importorskip("research.paired").Paired


def test_what_befalls_a_whole_group_in_an_hour_is_no_advantage() -> None:
    rng, box = np.random.default_rng(0), gymnasium.spaces.Box(-1, 1, (2,))
    begun = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    shared, found = rng.normal(size=(4, 1)) * [0, 0, 1, 1], []
    own, zeros = rng.normal(size=(4, 4)), torch.zeros(4)
    for size in (0, 10):
        rollouts = Paired(4, box, box, "cpu", gamma=0.9, gae_lambda=0.9, n_envs=4, group_size=2)
        for step, rewards in enumerate(own + size * shared):
            rollouts.add(np.zeros((4, 2)), np.zeros((4, 2)), rewards, begun[step], zeros, zeros)
        rollouts.compute_returns_and_advantage(zeros, np.zeros(4))
        found.append(rollouts.advantages)
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert found[0][:2].reshape(2, 2, 2).sum(axis=2) == pytest.approx(0, abs=1e-6)
    assert found[0][2:, :2] == pytest.approx(0, abs=1e-6)  # nobody is beside them in their hours
