"""skrl: PPO on jobs, with the compiled vector."""

from client import check_returns, example, refuse_infinite, report

if __name__ == "__main__":
    made = example("skrl")
    agent = made["runner"].agent
    refuse_infinite([*agent.policy.parameters(), *agent.value.parameters()])
    n_ended = check_returns(made["envs"].return_queue)
    report(f"PPO, 2,048 steps, episodes ended: {n_ended}")
