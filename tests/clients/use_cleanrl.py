"""CleanRL: ppo, dqn and sac, unchanged, from the folder that is given."""

import runpy
import sys
from pathlib import Path

from client import OF_PRICE, check_returns, refuse_infinite, report

PROGRAMS = {
    "ppo": ("Windows-pick-train", ["--total-timesteps", "4096"], ["agent"]),
    "dqn": (
        "Windows-pick-train",
        ["--total-timesteps", "1500", "--learning-starts", "500", "--buffer-size", "1000"],
        ["q_network"],
    ),
    "sac_continuous_action": (
        "Price-train",
        ["--total-timesteps", "1000", "--learning-starts", "500", "--buffer-size", "1000"],
        ["actor", "qf1"],
    ),
}
"""Problem, arguments and networks of each."""

if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(folder))
    for program, (problem, arguments, networks) in PROGRAMS.items():
        name = f"hpcgym:hpcgym/{problem}-v0"
        sys.argv = [program, "--env-id", name, "--no-cuda"]
        sys.argv += arguments
        made = runpy.run_path(str(folder / f"{program}.py"), run_name="__main__")
        for network in networks:
            refuse_infinite(made[network].parameters())
        ended = [env.get_wrapper_attr("return_queue") for env in made["envs"].envs]
        below = OF_PRICE if problem == "Price-train" else 0
        n_ended = check_returns((one for queue in ended for one in queue), below)
        report(f"{program}.py on {problem}, {int(arguments[1]):,} steps, episodes ended: {n_ended}")
