"""Hyper-parameters of PPO for RL Baselines3 Zoo, on `HPCBatch-v0` with action `index`.

    python -m rl_zoo3.train --algo ppo --env HPCBatch-v0 \\
        --gym-packages hpcgym --conf-file scripts/rl_zoo3_ppo.py

An episode has some 42 decisions, and all of it counts: no discount. `docs/learning.md` has what
they reach.
"""

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

hyperparams = {"HPCBatch-v0": _INDEX}
