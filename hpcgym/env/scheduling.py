"""The environment `HPCBatch-v0`, whose docstring is its data sheet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import (
    ActionError,
    PolicyError,
    ScenarioError,
    refuse_unless_whole,
    unknown_name,
)
from hpcgym.base.keywords import documented, takes
from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.env.metrics import N_METRICS
from hpcgym.core.own_pass import OwnPasses, own_passes
from hpcgym.core.policy import Policy
from hpcgym.core.prepare import state_for
from hpcgym.core.state import Room, State, sim_of
from hpcgym.core.workload import Workload
from hpcgym.env.config import PENALTY, AnyScenario, EnvConfig, Keywords, refused_keyword
from hpcgym.env.data_sheet import DATA_SHEET
from hpcgym.env.episode import EnvEpisode
from hpcgym.env.info import end_of
from hpcgym.env.rendering.pen import IMAGE_SIZE
from hpcgym.env.time_limit import steps_left
from hpcgym.schedule.schedule import Schedule

if TYPE_CHECKING:
    from hpcgym.env.rendering.viewer import Viewer

RENDER_MODES = ("ansi", "rgb_array", "human")

Singles = NDArray[np.float32]
Observation: TypeAlias = Any  # a dict of arrays, or one array, as the keyword `observation` says


@documented(EnvConfig)
class SchedulingEnv(gymnasium.Env[Observation, Any]):  # noqa: D101
    __doc__ = DATA_SHEET

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "frame_size": IMAGE_SIZE,
    }

    @takes(EnvConfig)
    def __init__(
        self,
        scenario: AnyScenario = "many-weeks",
        *,
        render_mode: str | None = None,
        **keywords: Unpack[Keywords],
    ) -> None:
        for name in keywords:
            if words := refused_keyword(name):
                # Python's words: TorchRL looks for them, and then does without the keyword.
                raise TypeError(f"got an unexpected keyword argument {name!r}: {words}")
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ScenarioError(unknown_name("render_mode", render_mode, RENDER_MODES))
        self._config = EnvConfig(scenario, **keywords)
        self.episodes = self._config.episodes
        self.settings = self._config.settings
        self.render_mode = render_mode
        self.metadata = dict(self.metadata)
        self.action = str(self._config.action)
        self.n_slots = n_slots = self._config.slots
        self.action_space = self._config.reader.space
        self.observation_space = self._config.observation_space
        self._places = self._config.places
        self._slot = np.full(n_slots, -1, dtype=np.int64)
        self._action_spec = self._config.action_spec()
        self._state: State | None = None
        self._room = Room()
        self._episode: EnvEpisode | None = None
        self._own_passes: OwnPasses | None = None
        self._is_over = True
        self._limit: int | None = None
        self._viewer: Viewer | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode and run it to its first decision.

        Args:
            seed: Seed of the episodes drawn from now on.
            options: `{"episode": 7}` or `{"episode": "week 7"}` begins that episode of the
                scenario; `{"workload": jobs}` simulates these jobs on the scenario's machine.

        Raises:
            ScenarioError: An unknown option or episode, jobs for a machine of another size, or a
                time limit around it that its reward does not allow.

        Source: Specification, section 10, "Episodes".
        """
        if seed is not None:
            refuse_unless_whole("a seed", seed, most=math.inf, error=ScenarioError)
            seed = int(seed)
        limit = steps_left(self)
        if limit is not None:
            self._config.refuse_cut()
        super().reset(seed=seed)
        drawn = self._config.draw({} if options is None else options, self.np_random)
        self._label, self._number, self._episode = drawn
        self._make_room(self._episode)
        self._jobs = self._episode.jobs_in(self._begun_state, 0, begins=True)
        jobs, sim = self._jobs.address, self._sim.address
        entry_points.begin(sim, self._episode.prepared.initial.address)
        self._own_passes = own_passes(self.settings)
        while entry_points.run(jobs, sim) == s.STATUS_OWN_PASS:
            self._make_own_pass()
        self._is_over, self._limit = False, limit
        shown, parts = self._empty()
        entry_points.observe(jobs, sim, self._slot, *parts)
        if self.render_mode == "human":
            self.render()
        info: dict[str, Any] = {"episode_number": self._number}
        info |= dict.fromkeys(self._config.shown_terms, 0.0)
        if self._config.names_slots:
            info["action_mask"] = self.action_masks()
        return shown, info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Apply an action to the present pass and run to the next decision.

        Returns:
            Observation, reward, terminated (every job has started), truncated, and info.

        Raises:
            ActionError: Wrong shape or type, a value out of range or NaN, or the episode is over.

        Source: Specification, section 10, "Action semantics" and "Reward identity".
        """
        episode = self._episode
        if episode is None or self._is_over:
            raise ActionError("no episode is under way; call reset()")
        index, values = self._config.reader.read(action)
        is_invalid = self._config.invalid != "first" and not self.action_masks()[index]
        if is_invalid and self._config.invalid == "error":
            raise ActionError(self._config.reader.refuse_invalid(index))
        shown, parts = self._empty()
        jobs, plan = self._jobs.address, episode.reward_plan.address
        sim, spec = self._sim.address, self._action_spec.address
        arguments = (jobs, sim, spec, plan, self._slot, index, values, *parts)
        while (status := entry_points.step(*arguments)) == s.STATUS_OWN_PASS:
            self._make_own_pass()
        if status == s.STATUS_STUCK:
            raise PolicyError("jobs wait that fit no more, and no event is to come")
        if status == s.STATUS_BAD_ACTION:
            raise ActionError(self._config.reader.refuse(action))
        terminated, truncated = status == s.STATUS_DONE, self._is_last_step()
        self._is_over = terminated or truncated
        if self.render_mode == "human":
            self.render()
        reward = float(self._sim.fields.reward) - (PENALTY if is_invalid else 0.0)
        return shown, reward, terminated, truncated, self._info()

    def _is_last_step(self) -> bool:
        """Return whether a time limit around the environment truncates now."""
        if self._limit is None:
            return False
        n_steps = int(self._sim.fields.n_steps)
        if n_steps >= self._limit:
            # A wrapper inside the time limit may make several steps of one: ask again.
            self._limit = n_steps + (steps_left(self) or 0)
        return n_steps >= self._limit

    def _make_own_pass(self) -> None:
        """Let the mode in Python make the pass that is due."""
        assert self._own_passes is not None
        self._own_passes.make(self._begun_episode.workload, self._jobs, self._sim)

    def truncate(self) -> dict[str, Any]:
        """End the episode at this decision, as a time limit does, and return its last info.

        Raises:
            ActionError: No episode is under way.
            ScenarioError: The reward pays at starts or at the end.
        """
        if self._episode is None or self._is_over:
            raise ActionError("no episode is under way; call reset()")
        self._config.refuse_cut()
        self._is_over = True
        return self._info()

    def _info(self) -> dict[str, Any]:
        sim, info = self._sim.fields, dict[str, Any]()
        sides = sim.agent_term, sim.baseline_term
        for term, side in zip(self._config.shown_terms, sides, strict=False):
            info[term] = float(side)
        if self._config.names_slots:
            info["action_mask"] = self.action_masks()
        if self._is_over:
            measured = np.empty(N_METRICS)
            entry_points.measure(self._jobs.address, self._sim.address, measured)
            info["episode_number"] = self._number
            episode = self._begun_episode
            info |= end_of(measured, episode.saf.value)
            info |= episode.priced(self._begun_state, 0, info["mean_bsld"])
            info |= self._config.gap_closed(self._number, episode.workload, info)
            if self._config.names_slots:
                info["invalid_actions"] = int(sim.n_invalid)
        return info

    def action_masks(self) -> NDArray[np.int8]:
        """Return 1 for each part of an action that serves now, 0 for the others.

        sb3-contrib's MaskablePPO asks for it, and `action_space.sample` takes it.

        Returns:
            For actions "job" and "order" which slots hold a job, shape (n_slots,); where no job
            waits the first slot is 1, since a masked agent needs one action. For others 1 for each
            policy, weight and number.
        """
        return self._config.reader.masks(self._slot)

    @property
    def label(self) -> str | None:
        """Return the name of the episode, None before the first."""
        return None if self._episode is None else self._label

    @property
    def now(self) -> int:
        """Return the clock, s from the episode's start."""
        return int(self._begun_state.now[0])

    @property
    def workload(self) -> Workload:
        """Return the jobs of this episode."""
        return self._begun_episode.workload

    def first_by(self, policy: Policy) -> NDArray[np.int64]:
        """Return the slots that hold a job, the first in a policy's order first, (n_visible,).

        Jobs beyond the threshold come first, whatever the policy.

        Raises:
            PolicyError: The policy orders in Python or by keys.
        """
        if policy.is_python or policy.rule == s.RULE_KEYS:
            raise PolicyError(f"{policy.name} orders in Python or by keys, and not by a rule")
        state, jobs, sim = self._begun_state, self._jobs, self._sim
        weight = np.array(policy.parameters)
        entry_points.order_by_rule(jobs.address, sim.address, policy.rule, weight)
        state.ordered[0] = 0  # the pass is still to be decided
        visible = np.flatnonzero(self._slot >= 0)
        job = self._slot[visible]
        key = state.key[0, s.PASS_ORDER, s.FIRST_ENTRY - state.start_time[0, job]]
        return visible[np.lexsort((job, key))]

    def schedule(self) -> Schedule:
        """Return the schedule made so far, start -1 where a job has not started.

        Raises:
            ActionError: No episode has begun.
        """
        return self._begun_episode.schedule(self._begun_state, 0)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the schedule made so far, as `hpcgym.core.metrics.summary`.

        Jobs that wait count as if they started now.

        Raises:
            ActionError: No episode has begun.
        """
        return self._begun_episode.metrics(self._begun_state, 0)

    def render(self) -> Any:
        """Show the machine over time, the queue and the head's reservation.

        A machine of nodes is drawn with a row for each node, by groups, and a band for each
        partition. `metadata["frame_size"]`, set before the first frame, is the width and height of
        images and of the window, pixels; the picture is scaled and keeps its proportions.

        Returns:
            Text for "ansi", an array (height, width, 3) for "rgb_array", None for "human".

        Raises:
            ActionError: No episode has begun.
            ScenarioError: The size is none.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: no render_mode was given")
            return None
        from hpcgym.env.rendering.snapshot import take_snapshot
        from hpcgym.env.rendering.viewer import Viewer

        episode, state = self._begun_episode, self._begun_state
        title = f"{self.episodes.scenario.name}, {self._label}"
        frame = take_snapshot(title, episode, self._jobs, state, 0, self._sim)
        if self._viewer is None:
            fps, size = self.metadata["render_fps"], self.metadata["frame_size"]
            self._viewer = Viewer(self.render_mode, fps, size)  # type: ignore[arg-type]
        return self._viewer.render(frame)

    def close(self) -> None:
        """Close the window, if one is open."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None

    @property
    def _begun_state(self) -> State:
        """Return the state, which the first reset allocates."""
        if self._state is None:
            raise ActionError("no episode has begun; call reset()")
        return self._state

    @property
    def _begun_episode(self) -> EnvEpisode:
        if self._episode is None:
            raise ActionError("no episode has begun; call reset()")
        return self._episode

    def _make_room(self, episode: EnvEpisode) -> None:
        """Allocate a state if there is none in which the episode fits."""
        if self._state is None or not self._room.holds(episode.prepared.size):
            self._room = self._room.grown(episode.prepared.size)
            self._state = state_for([episode.prepared], fields=True, room=self._room)
            self._sim = sim_of(self._state, 0)

    def _empty(self) -> tuple[Observation, tuple[Singles, Singles, Singles]]:
        """Return zeros for an observation, and those about jobs, the cluster, and the mask."""
        n_jobs, mask = self._places["jobs"].stop, self._places["action_mask"]
        n_before = mask.start
        flat = np.zeros(mask.stop, dtype=np.float32)
        parts = flat[:n_jobs], flat[n_jobs:n_before], flat[n_before:]
        if self._config.observation != "dict":
            return flat, parts
        jobs = parts[0].reshape(self.n_slots, -1)
        shown = {"jobs": jobs, "cluster": parts[1], "action_mask": parts[2]}
        if "machine" in self._places:
            shown |= {part: flat[self._places[part]] for part in ("cluster", "machine")}
        if self._places["jobs"].stop == 0:  # these are all fields
            return {"cluster": parts[1]}, parts
        return shown, parts

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the window, and structs of kernels, which hold addresses of this process."""
        kept = self.__dict__ | {"_viewer": None}
        return {key: value for key, value in kept.items() if not isinstance(value, Struct)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Make the structs of kernels again."""
        self.__dict__.update(kept)
        self._action_spec = self._config.action_spec()
        if self._state is not None:
            self._sim = sim_of(self._state, 0)
            if self._episode is not None:
                self._jobs = self._episode.jobs_in(self._state, 0, begins=False)
