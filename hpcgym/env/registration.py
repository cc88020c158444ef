"""Registers `HPCBatch-v0` with `gymnasium.make` and `gymnasium.make_vec`, by strings.

Further ids fix the kind of action, and a flat observation, for clients that pass no keywords:
`HPCBatch-job-v0`, `HPCBatch-job-flat-v0` and so on.
"""

from gymnasium.envs.registration import register

from hpcgym.core.loaders import SHIPPED_ACTIONS


def _register(name: str, **keywords: str) -> None:
    """Register an id whose environments have some keywords."""
    register(
        id=f"{name}-v0",
        entry_point="hpcgym.env.scheduling:SchedulingEnv",
        vector_entry_point="hpcgym.env.vector:SchedulingVectorEnv",
        kwargs=keywords,
    )


_register("HPCBatch")
for _action in SHIPPED_ACTIONS:
    _register(f"HPCBatch-{_action}", action=_action)
    _register(f"HPCBatch-{_action}-flat", action=_action, observation="flat")
