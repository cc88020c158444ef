"""Stable-Baselines3: PPO on the index, DQN on jobs."""

from client import check_returns, example, refuse_infinite, report

if __name__ == "__main__":
    made = example("Stable-Baselines3")
    for name, action in {"ppo": "the index", "dqn": "jobs"}.items():
        model = made[name]
        assert model.num_timesteps == 1_024
        refuse_infinite(model.policy.parameters())
        n_ended = check_returns(episode["r"] for episode in model.ep_info_buffer)
        shown = model.get_env().reset()
        (chosen,), _ = model.predict(shown, deterministic=True)
        assert model.action_space.contains(chosen)
        report(f"{name.upper()} on {action}, 1,024 steps, episodes ended: {n_ended}")
