"""PPO by Tianshou on jobs, and SAC on the price of energy."""

import gymnasium
from tianshou.algorithm import PPO, SAC
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.modelfree.sac import SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

name = "hpcgym:hpcgym/Windows-pick-train-v0"
envs = DummyVectorEnv([lambda: gymnasium.make(name)] * 4)
space, n_choices = envs.observation_space[0], envs.action_space[0].n


def network() -> Net:
    """Return a network of two hidden layers."""
    return Net(state_shape=space.shape, hidden_sizes=[64, 64])


actor = DiscreteActor(preprocess_net=network(), action_shape=n_choices, softmax_output=False)
policy = DiscreteActorPolicy(actor=actor, action_space=envs.action_space[0])
critic = DiscreteCritic(preprocess_net=network())
ppo = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4))
buffer = VectorReplayBuffer(4_096, 4)
training = OnPolicyTrainerParams(
    training_collector=Collector(ppo, envs, buffer),
    max_epochs=1,
    epoch_num_steps=4_096,
    collection_step_num_env_steps=2_048,
    update_step_num_repetitions=2,
)
stats = ppo.run_training(training)


price_name = "hpcgym:hpcgym/Price-train-v0"
price_envs = DummyVectorEnv([lambda: gymnasium.make(price_name)] * 4)
price_space, box = price_envs.observation_space[0], price_envs.action_space[0]
price_actor = ContinuousActorProbabilistic(
    preprocess_net=Net(state_shape=price_space.shape, hidden_sizes=[64, 64]),
    action_shape=box.shape,
    unbounded=True,
    conditioned_sigma=True,
)
pairs = Net(
    state_shape=price_space.shape, action_shape=box.shape, hidden_sizes=[64, 64], concat=True
)
sac = SAC(
    policy=SACPolicy(actor=price_actor, action_space=box),
    policy_optim=AdamOptimizerFactory(lr=3e-4),
    critic=ContinuousCritic(preprocess_net=pairs),
    critic_optim=AdamOptimizerFactory(lr=3e-4),
)
price_buffer = VectorReplayBuffer(2_048, 4)
sac_training = OffPolicyTrainerParams(
    training_collector=Collector(sac, price_envs, price_buffer),
    max_epochs=1,
    epoch_num_steps=1_024,
    collection_step_num_env_steps=64,
    update_step_num_gradient_steps_per_sample=0.25,
)
sac_stats = sac.run_training(sac_training)
