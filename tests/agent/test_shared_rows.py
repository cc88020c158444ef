"""The network shared over rows: alike in every slot, masked, and at home with learners."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from env_cases import busy_workload, episodes_of
from hpcgym.base.errors import ScenarioError
from hpcgym.env.observation import flat_places

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")
shared = pytest.importorskip("hpcgym.agent.shared_rows")
HPCBatchVecEnv = pytest.importorskip("hpcgym.agent.sb3").HPCBatchVecEnv

BUSY = episodes_of(busy_workload(3, n=90), threshold=1_800)
SLOTS = 6


def envs_of(observation: str, n: int = 4) -> Any:
    """Return a vector of environments of action `job`."""
    keywords = {"action": "job", "n_slots": SLOTS, "observation": observation}
    return HPCBatchVecEnv(BUSY, num_envs=n, **keywords)


def some(n: int = 50) -> Any:
    """Return observations of random actions, in one array each."""
    envs = envs_of("flat")
    envs.seed(1)
    shown, chance = [envs.reset()], np.random.default_rng(0)
    while len(shown) < n // 4:
        mask = shown[-1][:, -SLOTS:]
        shown.append(envs.step((chance.random(mask.shape) * mask).argmax(axis=1))[0])
    return torch.as_tensor(np.concatenate(shown))


def trained_a_little(envs: Any) -> Any:
    """Return a model after two rollouts, so that no weight is what it was made as."""
    keywords = {"n_steps": 16, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
    return sb3.PPO(shared.SharedRowsPolicy, envs, **keywords).learn(128)


@pytest.mark.long
def test_rows_swapped_are_logits_swapped_and_the_value_stays() -> None:
    network, shown = trained_a_little(envs_of("flat")).policy.network, some()
    order = torch.as_tensor(np.random.default_rng(2).permutation(SLOTS))
    places = flat_places(SLOTS)
    swapped = shown.clone()
    rows = shown[:, places["jobs"]].reshape(len(shown), SLOTS, -1)[:, order]
    swapped[:, places["jobs"]] = rows.reshape(len(shown), -1)
    swapped[:, places["action_mask"]] = shown[:, places["action_mask"]][:, order]
    with torch.no_grad():
        assert torch.allclose(network(swapped), network(shown)[:, order], atol=1e-6)
        assert torch.allclose(network.get_value(swapped), network.get_value(shown), atol=1e-6)
        assert len(network.get_value(shown).unique()) > 10


@pytest.mark.long
def test_empty_slots_have_no_chance_and_no_influence() -> None:
    network, shown = trained_a_little(envs_of("flat")).policy.network, some()
    mask = shown[:, flat_places(SLOTS)["action_mask"]] > 0
    assert 0 < mask.float().mean() < 1
    noisy = shown.clone()
    jobs = noisy[:, flat_places(SLOTS)["jobs"]].reshape(len(shown), SLOTS, -1)
    jobs[~mask] = 0.7
    noisy[:, flat_places(SLOTS)["jobs"]] = jobs.reshape(len(shown), -1)
    with torch.no_grad():
        chances = torch.softmax(network(shown), dim=1)
        assert (chances[~mask] == 0).all() and (chances[mask] > 0).all()
        assert torch.equal(network(noisy), network(shown))
        assert torch.equal(network.get_value(noisy), network.get_value(shown))


@pytest.mark.long
def test_a_job_s_logit_is_that_of_plain_numbers() -> None:
    network, shown = trained_a_little(envs_of("flat")).policy.network, some()
    weights = {key: value.numpy().astype(float) for key, value in network.state_dict().items()}
    places, row, slot = flat_places(SLOTS), 7, 0
    fields = shown[row, places["jobs"]].numpy()[:18].tolist()
    cluster = shown[row, places["cluster"]].numpy().tolist()

    def layer(name: str, numbers: list[float]) -> list[float]:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return [
            float(sum(w * x for w, x in zip(line, numbers, strict=True)) + b)
            for line, b in zip(weight, bias, strict=True)
        ]

    pairs = zip(layer("jobs", fields), layer("cluster", cluster), strict=True)
    hidden = [max(of_job + of_cluster, 0.0) for of_job, of_cluster in pairs]
    hidden = [max(number, 0.0) for number in layer("middle", hidden)]
    with torch.no_grad():
        assert float(network(shown)[row, slot]) == pytest.approx(
            layer("logit", hidden)[0], abs=1e-5
        )


def test_dicts_and_arrays_are_read_alike() -> None:
    flat = shared.SharedRows(envs_of("flat"))
    parts = shared.SharedRows(envs_of("dict"))
    parts.load_state_dict(flat.state_dict())
    ours, theirs = envs_of("flat"), envs_of("dict")
    ours.seed(3), theirs.seed(3)
    array, shown = ours.reset(), theirs.reset()
    tensors = {key: torch.as_tensor(value) for key, value in shown.items()}
    with torch.no_grad():
        assert torch.equal(flat(torch.as_tensor(array)), parts(tensors))


@pytest.mark.long
def test_ppo_takes_no_empty_slot_and_a_saved_model_acts_alike(tmp_path: Path) -> None:
    envs = envs_of("flat")
    model = trained_a_little(envs)
    shown, invalid = envs.reset(), []
    for _ in range(150):
        actions, _ = model.predict(shown, deterministic=False)
        shown, _, done, infos = envs.step(actions)
        invalid += [infos[env]["invalid_actions"] for env in np.flatnonzero(done)]
    assert invalid and not any(invalid)
    model.save(tmp_path / "model.zip")
    again = sb3.PPO.load(tmp_path / "model.zip", device="cpu")
    chosen = model.predict(shown, deterministic=True)[0]
    assert (again.predict(shown, deterministic=True)[0] == chosen).all()
    policy = copy.deepcopy(model.policy)
    policy.save(tmp_path / "policy.zip")
    alone = shared.SharedRowsPolicy.load(tmp_path / "policy.zip", device="cpu")
    assert (alone.predict(shown, deterministic=True)[0] == chosen).all()


@pytest.mark.long
def test_the_methods_of_cleanrl_s_agent() -> None:
    envs = gymnasium.make_vec("hpcgym/Windows-pick-test-v0", num_envs=3)
    agent = shared.SharedRows(envs, hidden=8)
    shown = torch.as_tensor(envs.reset(seed=1)[0])
    action, likelihood, entropy, value = agent.get_action_and_value(shown)
    assert action.shape == likelihood.shape == entropy.shape == (3,) and value.shape == (3, 1)
    again = agent.get_action_and_value(shown, action)
    assert torch.equal(again[1], likelihood) and torch.equal(agent.get_value(shown), value)
    chances = torch.softmax(agent(shown), dim=1).detach()
    assert likelihood.exp().tolist() == pytest.approx(
        [float(chances[env, slot]) for env, slot in enumerate(action.tolist())], rel=1e-5
    )
    expected = -(chances * torch.log(chances.clamp(min=1e-30))).sum(dim=1)
    assert torch.allclose(entropy, expected, atol=1e-5)
    (-(likelihood.mean() + entropy.mean()) + value.mean()).backward()
    assert all(torch.isfinite(weights.grad).all() for weights in agent.parameters())


@pytest.mark.parametrize(
    "keywords",
    [{"action": "index"}, {"action": "order"}, {"action": "policy"}],
    ids=lambda keywords: keywords["action"],
)
def test_other_actions_are_refused(keywords: dict[str, Any]) -> None:
    envs = gymnasium.make("HPCBatch-v0", scenario="tiny", observation="flat", **keywords)
    with pytest.raises(ScenarioError, match="SharedRows scores the jobs of action 'job'; got"):
        shared.SharedRows(envs)
