"""Hyper-parameters of PPO for RL Baselines3 Zoo.

    python -m rl_zoo3.train --algo ppo --env hpcgym/Price-train-v0 \\
        --gym-packages hpcgym --conf-file scripts/rl_zoo3_ppo.py

`docs/learning.md` has what they reach in five minutes. An episode of `HPCBatch-v0` with action
`index` has some 42 decisions, and all of it counts: no discount.
"""

_PRICE = {
    "n_timesteps": 5_300_000,
    "policy": "MlpPolicy",
    "normalize": True,
    "n_envs": 64,
    "n_steps": 168,
    "batch_size": 2_688,
    "n_epochs": 6,
    "learning_rate": "lin_5e-4",
    "gamma": 0.999,
    "gae_lambda": 0.98,
    "ent_coef": 0.0,
    "policy_kwargs": {"log_std_init": -2.3, "net_arch": [64, 64]},
}

_INDEX = {
    "env_kwargs": {"action": "index", "observation": "small", "weeks": "train"},
    "n_timesteps": 300_000,
    "policy": "MlpPolicy",
    "n_envs": 8,
    "n_steps": 256,
    "batch_size": 256,
    "n_epochs": 5,
    "learning_rate": 3e-4,
    "gamma": 1.0,
    "gae_lambda": 0.95,
    "ent_coef": 0.0,
    "policy_kwargs": {"log_std_init": -0.5, "net_arch": [32, 32]},
}

hyperparams = {"hpcgym/Price-train-v0": _PRICE, "HPCBatch-v0": _INDEX}
