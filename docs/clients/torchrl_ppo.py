"""PPO by TorchRL, on the compiled vector, which TorchRL resets itself."""

import gymnasium
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper, RewardSum, TransformedEnv
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

name = "hpcgym:hpcgym/Windows-pick-train-v0"
vector = gymnasium.make_vec(name, num_envs=4, autoreset_mode="DISABLED")
wrapped = GymWrapper(vector, categorical_action_encoding=True)
envs = TransformedEnv(wrapped, RewardSum())
n_numbers = envs.observation_spec["observation"].shape[-1]
n_choices = envs.action_spec.space.n


def network(n_outputs: int) -> nn.Module:
    """Return a network of one hidden layer."""
    return nn.Sequential(nn.Linear(n_numbers, 64), nn.Tanh(), nn.Linear(64, n_outputs))


logits = TensorDictModule(network(n_choices), in_keys=["observation"], out_keys=["logits"])
actor = ProbabilisticActor(
    logits,
    in_keys=["logits"],
    distribution_class=torch.distributions.Categorical,
    return_log_prob=True,
)
critic = ValueOperator(network(1), in_keys=["observation"])
advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
ppo_loss = ClipPPOLoss(actor, critic)
optimiser = torch.optim.Adam(ppo_loss.parameters(), lr=3e-4)
collector = Collector(envs, actor, frames_per_batch=2_048, total_frames=4_096)
losses, returns = [], []
for steps in collector:
    with torch.no_grad():
        advantage(steps)
    loss = sum(part for key, part in ppo_loss(steps.reshape(-1)).items() if key.startswith("loss_"))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
    returns += steps["next", "episode_reward"][steps["next", "done"]].tolist()
collector.shutdown()
print(losses, returns)
