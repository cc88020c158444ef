"""The end of a training by Stable-Baselines3, and its falling learning rate, by processor time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from hpcgym.agent.sb3 import Progress


class Clock(BaseCallback):
    """Ends a training once its processor time is used; the learning rate falls to a twentieth."""

    def __init__(self, minutes: float, rate: float) -> None:
        super().__init__()
        self.seconds, self.rate, self.begun = 60.0 * minutes, rate, time.process_time()

    @property
    def left(self) -> float:
        """Return the share of the time that is left."""
        return max(1.0 - (time.process_time() - self.begun) / self.seconds, 0.0)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Leave out what the block takes."""
        now = time.process_time()
        yield
        self.begun += time.process_time() - now

    def _on_step(self) -> bool:
        return self.left > 0.0

    def _on_rollout_end(self) -> None:
        rate = self.rate * max(self.left, 0.05)
        self.model.lr_schedule = lambda _: rate


class Validations(Progress):
    """Validations, whose time a clock does not count."""

    def __init__(self, clock: Clock, **given: Any) -> None:
        super().__init__(**given)
        self._clock = clock

    def _validate(self) -> None:
        with self._clock.stopped():
            super()._validate()
