"""PPO by skrl, on the compiled vector."""

import gymnasium
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from skrl.envs.wrappers.torch import wrap_env
from skrl.utils.runner.torch import Runner

vector = gymnasium.make_vec("hpcgym:hpcgym/Windows-pick-train-v0", num_envs=4)
envs = RecordEpisodeStatistics(vector)
layers = [{"name": "net", "input": "OBSERVATIONS", "layers": [64, 64], "activations": "tanh"}]
runner = Runner(
    wrap_env(envs),
    {
        "seed": 0,
        "models": {
            "separate": True,
            "policy": {"class": "CategoricalMixin", "network": layers, "output": "ACTIONS"},
            "value": {"class": "DeterministicMixin", "network": layers, "output": "ONE"},
        },
        "memory": {"class": "RandomMemory", "memory_size": -1},
        "agent": {"class": "PPO", "rollouts": 256, "learning_epochs": 2},
        "trainer": {"class": "SequentialTrainer", "timesteps": 512, "headless": True},
    },
)
runner.run()
print(envs.return_queue)
