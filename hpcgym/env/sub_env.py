"""One environment out of a vector environment, to be looked at by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from hpcgym.core.workload import Workload
from hpcgym.env.action import masks_of
from hpcgym.env.episode import Prepared
from hpcgym.errors import ActionError
from hpcgym.schedule import Schedule

if TYPE_CHECKING:
    from hpcgym.env.vector import SchedulingVectorEnv


class EnvView:
    """What `SchedulingEnv` shows besides observations, for one environment of a vector.

    Once an episode is over in mode SAME_STEP, a view shows the next one.

    Args:
        vector: The vector environment.
        env: Which of its environments.

    Source:
        House rule: one record of a schedule behind every face.
    """

    def __init__(self, vector: SchedulingVectorEnv, env: int) -> None:
        self._vector = vector
        self._env = env
        self._wiring = vector.wirings[env]
        self.episodes = self._wiring.episodes
        self.settings = self._wiring.settings
        self.n_slots = self._wiring.n_slots
        self.action_space = vector.single_action_space
        self.observation_space = vector.single_observation_space
        self.render_mode = vector.render_mode

    @property
    def _prepared(self) -> Prepared:
        """Return the episode, once one has begun."""
        prepared = self._vector.stack.prepared[self._env]
        if prepared is None:
            raise ActionError("no episode has begun; call reset()")
        return prepared

    @property
    def label(self) -> str | None:
        """Return the name of the episode, None before the first."""
        label: str | None = self._vector.labels[self._env]
        return label

    @property
    def unwrapped(self) -> EnvView:
        """Return this view: nothing wraps an environment of a vector."""
        return self

    @property
    def spec(self) -> EnvSpec | None:
        """Return what `gymnasium.make_vec` made the vector of, None if it did not."""
        return self._vector.spec

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what the vector says of itself."""
        return self._vector.metadata

    @property
    def now(self) -> int:
        """Return the clock, s from the episode's start."""
        return int(self._vector.stack.fields.tally[0, self._env])

    @property
    def workload(self) -> Workload:
        """Return the jobs of this episode."""
        return self._prepared.episode.workload

    @property
    def np_random(self) -> np.random.Generator:
        """Return the source of randomness."""
        return self._vector.generator(self._env)

    @property
    def np_random_seed(self) -> int | None:
        """Return what the environment was seeded by, None if by nothing yet."""
        return self._vector.np_random_seed[self._env]

    def schedule(self) -> Schedule:
        """Return the schedule made so far.

        Returns:
            As `SchedulingEnv.schedule`.

        Raises:
            ActionError: No episode has begun.

        Source:
            House rule: one record of a schedule behind every face.
        """
        prepared = self._prepared
        return self._wiring.schedule(self._vector.stack.state, self._env, prepared)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the schedule made so far.

        Returns:
            As `SchedulingEnv.metrics`.

        Raises:
            ActionError: No episode has begun.

        Source:
            Specification, section 1, "Metrics".
        """
        prepared = self._prepared
        return self._wiring.metrics(self._vector.stack.state, self._env, prepared)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which slots hold a job, for `job` actions.

        Returns:
            Shape (n_slots,); the first slot alone where no job waits.

        Source:
            Specification, "Action semantics", `job`.
        """
        return masks_of(self._vector.stack.fields.slot[self._env])

    def render(self) -> Any:
        """Show the machine over time, the queue and the head's reservation.

        Returns:
            A text or a picture, as the `render_mode` of the vector says.

        Raises:
            ActionError: No episode has begun, or there is no `render_mode`.

        Source:
            House rule: people would rather look than read.
        """
        from hpcgym.env.rendering.snapshot import frame_of
        from hpcgym.env.rendering.viewer import Viewer

        if self.render_mode is None:
            raise ActionError("nothing to render: no render_mode was given")
        prepared, stack = self._prepared, self._vector.stack
        frame = frame_of(
            f"{self.episodes.scenario.name}, {self.label}",
            self.schedule(),
            prepared.episode.table,
            stack.state,
            self._env,
            prepared.jobs,
            stack.rows[self._env],
        )
        viewers = self._vector.viewers
        if self._env not in viewers:
            fps = self._vector.metadata["render_fps"]
            viewers[self._env] = Viewer(self.render_mode, fps)  # type: ignore[arg-type]
        return viewers[self._env].render(frame)
