"""The end of an episode that Gymnasium's `max_episode_steps` cuts short."""

from __future__ import annotations

from typing import Any, cast

import gymnasium

from hpcgym.env.scheduling import Observation, SchedulingEnv


class PayAtTimeLimit(
    gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs
):
    """Pays the reward that is still due when `max_episode_steps` truncates an episode.

    Gymnasium's time limit is outside the environment, which cannot know of it, and this wrapper is
    outside the time limit. `gymnasium.make` adds it by the registration. At a truncation all forms
    of the reward have the same sum.
    """

    def __init__(self, env: gymnasium.Env[Observation, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step as `SchedulingEnv.step` does, and pay the rest if the time limit is reached."""
        shown, reward, terminated, truncated, info = self.env.step(action)
        if truncated and not terminated:
            reward, last_info = cast(SchedulingEnv, self.unwrapped).truncate()
            info |= last_info
        return shown, float(reward), terminated, truncated, info
