"""TorchRL: PPO's loss on the compiled vector, and four environments in processes of their own."""

import torch
from client import check_returns, example, refuse_infinite, report
from torchrl.envs import GymEnv


def step_processes(name: str) -> None:
    """Step four environments, each in its process, past ends of episodes."""
    envs = GymEnv(name, num_workers=4, categorical_action_encoding=True)
    steps = envs.rollout(600, break_when_any_done=False)
    envs.close()
    assert steps.shape == (4, 600)
    n_ended = int(steps["next", "done"].sum())
    assert n_ended and torch.isfinite(steps["next", "reward"]).all()
    report(f"GymEnv with num_workers=4, 2,400 steps, episodes ended: {n_ended}")


if __name__ == "__main__":
    made = example("TorchRL")
    assert len(made["losses"]) == 2 and torch.isfinite(torch.tensor(made["losses"])).all()
    refuse_infinite(made["ppo_loss"].parameters())
    n_ended = check_returns(made["returns"])
    report(f"GymWrapper of the vector, PPO, 4,096 steps, episodes ended: {n_ended}")
    step_processes(made["name"])
