"""SBX: SAC on the price of energy."""

import jax
import torch
from client import OF_PRICE, check_returns, example, refuse_infinite, report

if __name__ == "__main__":
    sac = example("SBX")["sac"]
    assert sac.num_timesteps == 1_024
    learnt = jax.tree.leaves([sac.policy.actor_state.params, sac.policy.qf_state.params])
    refuse_infinite(torch.tensor(one.tolist()) for one in learnt)
    n_ended = check_returns((episode["r"] for episode in sac.ep_info_buffer), OF_PRICE)
    (chosen,), _ = sac.predict(sac.get_env().reset(), deterministic=True)
    assert sac.action_space.contains(chosen)
    report(f"SAC on the price, 1,024 steps, episodes ended: {n_ended}")
