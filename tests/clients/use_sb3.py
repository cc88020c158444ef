"""Stable-Baselines3: PPO on the price of energy, DQN on jobs."""

from client import OF_PRICE, check_returns, example, refuse_infinite, report

if __name__ == "__main__":
    made = example("Stable-Baselines3")
    for name, (what, below) in {"ppo": ("the price", OF_PRICE), "dqn": ("jobs", 0)}.items():
        model = made[name]
        assert model.num_timesteps == 1_024
        refuse_infinite(model.policy.parameters())
        n_ended = check_returns((one["r"] for one in model.ep_info_buffer), below)
        shown = model.get_env().reset()
        (chosen,), _ = model.predict(shown, deterministic=True)
        assert model.action_space.contains(chosen)
        report(f"{name.upper()} on {what}, 1,024 steps, episodes ended: {n_ended}")
