"""DiscreteCQL by d3rlpy, on the recorded episodes that a checkout has."""

import gymnasium
import minari
import numpy as np
from d3rlpy.algos import DiscreteCQLConfig
from d3rlpy.dataset import MDPDataset
from d3rlpy.logging import NoopAdapterFactory

data = minari.MinariDataset("docs/datasets/busy-smith-v0/data")  # of a checkout
episodes = list(data)


def flat(parts: dict[str, np.ndarray]) -> np.ndarray:
    """Return the parts of observations side by side, as `observation="flat"` shows them."""
    n_seen = len(parts["jobs"]) - 1  # d3rlpy leaves out what follows the last action
    names = ("jobs", "cluster", "action_mask")
    return np.concatenate([parts[name][:n_seen].reshape(n_seen, -1) for name in names], axis=1)


recorded = MDPDataset(
    observations=np.concatenate([flat(one.observations) for one in episodes]),
    actions=np.concatenate([one.actions for one in episodes]),
    rewards=np.concatenate([one.rewards for one in episodes]),
    terminals=np.concatenate([one.terminations for one in episodes]),
)
cql = DiscreteCQLConfig(gamma=1.0, learning_rate=1e-3).create(device="cpu:0")
cql.fit(recorded, n_steps=1_000, n_steps_per_epoch=500, logger_adapter=NoopAdapterFactory())

keywords = data.spec.env_spec.kwargs | {"observation": "flat"}
env = gymnasium.make("hpcgym:HPCBatch-v0", **keywords, weeks="11")
observation, info = env.reset(seed=0)
is_over = False
while not is_over:
    (chosen,) = cql.predict(observation[None])
    observation, _, terminated, truncated, info = env.step(chosen)
    is_over = terminated or truncated
print(info["ratio"], info["invalid_actions"])
