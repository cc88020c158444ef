"""The end of a training by Stable-Baselines3, and its falling learning rate, by processor time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from hpcgym.agent.sb3 import Progress


class Clock(BaseCallback):
    """Ends a training once its processor time is used; the learning rate falls to a twentieth."""

    def __init__(self, minutes: float, rate: float) -> None:
        super().__init__()
        self.seconds, self.rate, self.begun = 60.0 * minutes, rate, time.process_time()

    @property
    def used(self) -> float:
        """Return the processor time so far, in s."""
        return time.process_time() - self.begun

    @property
    def left(self) -> float:
        """Return the share of the time that is left."""
        return max(1.0 - self.used / self.seconds, 0.0)

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
    """Validations, whose time a clock does not count; a training can go on from each of them.

    Args:
        clock: Of the training.
        last: File for the model of the last validation, which `goes_on` takes up; None = no file.
        **given: Arguments of `Progress`.
    """

    def __init__(self, clock: Clock, last: Path | None = None, **given: Any) -> None:
        super().__init__(**given)
        self._clock, self._last = clock, last

    def goes_on(self, model: Any) -> None:
        """Take up the time and the validations of a model that was kept, and is trained further."""
        used, self.history = model.so_far
        self._clock.begun -= used

    def _validate(self) -> None:
        used = self._clock.used
        with self._clock.stopped():
            super()._validate()
            if self._last is not None:
                model, partial = self.model, self._last.with_suffix(".part.zip")
                model.so_far = used, self.history  # type: ignore[attr-defined]
                model.save(partial, exclude=["lr_schedule"])
                partial.replace(self._last)
