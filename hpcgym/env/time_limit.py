"""The steps that Gymnasium's `TimeLimit` leaves an environment, which cannot see its wrappers.

The info of a last step holds the metrics, so the environment must know which step that is. A
`TimeLimit` around it, put there by hand or by `gymnasium.make`, does not say so: but its `reset`
and `step` are the environment's callers, so they are on the call stack.
"""

from __future__ import annotations

import sys
from types import FrameType

import gymnasium
from gymnasium.wrappers import TimeLimit

_COUNTING = (TimeLimit.reset.__code__, TimeLimit.step.__code__)


def steps_left(env: gymnasium.Env[object, object]) -> int | None:
    """Return how many steps follow this reset or step before a `TimeLimit` truncates.

    The least counts; None where none has called. To be called inside `reset` or `step`.
    """
    left = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _COUNTING:
            limit = frame.f_locals["self"]
            if limit.unwrapped is env:  # and not one of an environment that plays with this one
                is_step = frame.f_code is TimeLimit.step.__code__
                here = limit._max_episode_steps - limit._elapsed_steps - is_step
                left = here if left is None else min(left, here)
        frame = frame.f_back
    return left
