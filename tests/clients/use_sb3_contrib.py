"""sb3-contrib: MaskablePPO on jobs and on policies."""

from client import check_returns, example, refuse_infinite, report
from sb3_contrib.common.maskable.evaluation import evaluate_policy

if __name__ == "__main__":
    made = example("sb3-contrib")
    for name in ("jobs", "policies"):
        model = made[name]
        env = model.get_env()
        refuse_infinite(model.policy.parameters())
        n_ended = check_returns(episode["r"] for episode in model.ep_info_buffer)
        (mask,) = env.env_method("action_masks")
        assert mask.shape == (model.action_space.n,) and mask.any()
        most = 0

        def look(local: dict, _: dict) -> None:
            global most
            most = max(most, local["info"].get("invalid_actions", 0))  # told at the end

        mean, _ = evaluate_policy(model, env, n_eval_episodes=1, callback=look, warn=False)
        check_returns([mean])
        assert most == 0
        report(
            f"MaskablePPO on {len(mask)} {name}, episodes ended: {n_ended + 1}, no masked action"
        )
