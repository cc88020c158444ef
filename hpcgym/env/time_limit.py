"""What a horizon owes: the last payment and the final info of an episode cut short."""

from __future__ import annotations

from typing import Any, cast

import gymnasium

from hpcgym.env.scheduling import Observation, SchedulingEnv


class PayAtHorizon(
    gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs
):
    """Ends an episode properly when Gymnasium's `max_episode_steps` cuts it short.

    The time limit stands outside the environment, which therefore cannot know of it. This wrapper
    stands outside the time limit: it adds what the reward still owes for the waiting jobs and the
    metrics of the schedule so far. `gymnasium.make` puts it there by the registration.

    Args:
        env: A `SchedulingEnv` in its wrappers.

    Source:
        Specification, section 10: at a truncation all forms of the reward have one sum.
    """

    def __init__(self, env: gymnasium.Env[Observation, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Step, and settle the account if this step reached the horizon.

        Args:
            action: A member of the action space.

        Returns:
            As `SchedulingEnv.step`.

        Source:
            Specification, section 10.
        """
        shown, reward, terminated, truncated, info = self.env.step(action)
        if truncated and not terminated:
            reward, closing = cast(SchedulingEnv, self.unwrapped).truncate()
            info |= closing
        return shown, float(reward), terminated, truncated, info
