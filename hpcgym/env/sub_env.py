"""One environment of a vector environment, to look at."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from hpcgym.base.errors import ActionError
from hpcgym.core.state import sim_of
from hpcgym.core.workload import Workload
from hpcgym.env.episode import EnvEpisode
from hpcgym.schedule.schedule import Schedule


class SubEnv:
    """What `SchedulingEnv` offers besides `reset` and `step`, for one environment of a vector.

    In mode SAME_STEP it shows the next episode once an episode is over.
    """

    def __init__(self, vector: Any, env: int) -> None:
        self._vector = vector
        self._env = env
        config = vector.configs[env]
        self._reader = config.reader
        self.episodes = config.episodes
        self.settings = config.settings
        self.n_slots = config.slots
        self.action_space = vector.single_action_space
        self.observation_space = vector.single_observation_space
        self.render_mode = vector.render_mode

    @property
    def _episode(self) -> EnvEpisode:
        episode: EnvEpisode | None = self._vector.buffers.episodes[self._env]
        if episode is None:
            raise ActionError("no episode has begun; call reset()")
        return episode

    @property
    def label(self) -> str | None:
        """Return the name of the episode, None before the first."""
        label: str | None = self._vector.labels[self._env]
        return label

    @property
    def unwrapped(self) -> SubEnv:
        """Return itself: nothing wraps an environment of a vector."""
        return self

    @property
    def spec(self) -> EnvSpec | None:
        """Return the spec that `gymnasium.make_vec` made the vector of, None if it did not."""
        spec: EnvSpec | None = self._vector.spec
        return spec

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the vector."""
        metadata: dict[str, Any] = self._vector.metadata
        return metadata

    @property
    def now(self) -> int:
        """Return the clock, s from the episode's start."""
        return int(self._vector.buffers.batch.now[self._env])

    @property
    def workload(self) -> Workload:
        """Return the jobs of this episode."""
        return self._episode.workload

    @property
    def np_random(self) -> np.random.Generator:
        """Return the generator that draws the episodes."""
        generator: np.random.Generator = self._vector.generator(self._env)
        return generator

    @property
    def np_random_seed(self) -> int:
        """Return the seed of the environment, drawn by chance unless a reset has set one."""
        seed: int = self._vector.np_random_seed[self._env]
        return seed

    def schedule(self) -> Schedule:
        """Return the schedule made so far, as `SchedulingEnv.schedule`."""
        return self._episode.schedule(*self._vector.buffers.place_of(self._env))

    def metrics(self) -> dict[str, float]:
        """Return the metrics of that schedule, as `SchedulingEnv.metrics`."""
        return self._episode.metrics(*self._vector.buffers.place_of(self._env))

    def action_masks(self) -> NDArray[np.int8]:
        """Return 1 for each part of an action that serves now, as `SchedulingEnv.action_masks`."""
        slot = self._vector.buffers.batch.slot[self._env]
        masks: NDArray[np.int8] = self._reader.masks(slot)
        return masks

    def render(self) -> Any:
        """Return a text or an image of the machine over time, the queue and the reservation.

        Raises:
            ActionError: No episode has begun.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: no render_mode was given")
            return None
        from hpcgym.env.rendering.snapshot import take_snapshot
        from hpcgym.env.rendering.viewer import Viewer

        episode, buffers = self._episode, self._vector.buffers
        title = f"{self.episodes.scenario.name}, {self.label}"
        state, row = buffers.place_of(self._env)
        jobs = buffers.jobs_of(self._env)
        frame = take_snapshot(title, episode, jobs, state, row, sim_of(state, row))
        viewers = self._vector.viewers
        if self._env not in viewers:
            fps, size = self.metadata["render_fps"], self.metadata["frame_size"]
            viewers[self._env] = Viewer(self.render_mode, fps, size)
        return viewers[self._env].render(frame)
