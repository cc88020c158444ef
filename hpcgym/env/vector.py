"""`HPCBatch-v0` as one vector environment: many schedulers stepped in one compiled call."""

from __future__ import annotations

import copy as copies
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hpcgym.core.threads import checked_threads
from hpcgym.env.action import masks_of
from hpcgym.env.buffers import EnvBuffers
from hpcgym.env.config import AnyScenario, Keywords, Wiring
from hpcgym.env.episode import Prepared
from hpcgym.env.info import metrics_where
from hpcgym.env.scheduling import Observation
from hpcgym.env.sub_env import EnvView
from hpcgym.errors import ActionError, ScenarioError, unknown_name

RENDER_MODES = ("ansi", "rgb_array")

Bools = NDArray[np.bool_]


class SchedulingVectorEnv(VectorEnv[Observation, Any, NDArray[Any]]):
    """Many `SchedulingEnv`, each equal to the scalar one to the bit, stepped in one compiled call.

    `gymnasium.make_vec("HPCBatch-v0", num_envs=64)` makes one. Observations, actions, rewards and
    episodes are those of `hpcgym.env.scheduling.SchedulingEnv`, its data sheet, with a leading axis
    n_envs; infos and autoresets those of Gymnasium's `SyncVectorEnv`.

    Args:
        scenario: Name or path of a scenario, a `Scenario`, or its `Episodes`; or several of them,
            dealt out to the environments in turn, which may be of logs and machines of any size;
            one that is named twice goes to twice as many.
        num_envs: Environments side by side.
        autoreset_mode: What follows the end of an episode: NEXT_STEP (the next step resets, its
            action unread), SAME_STEP (the step itself resets; what ended is in
            `info["final_obs"]` and `info["final_info"]`) or DISABLED (`reset` with a
            `reset_mask`). A member of `AutoresetMode`, its name or its value.
        copy: Whether observations are copies; False hands out the buffers themselves, read-only,
            which the next step overwrites.
        threads: Threads that step; None = one per core. They do not change what comes out.
        max_episode_steps: Steps after which an episode is truncated; None = never.
        render_mode: "ansi" or "rgb_array"; None = no pictures.
        **keywords: The other keywords of `SchedulingEnv`, alike for all environments.

    Attributes:
        viewers: What draws the environments that have been rendered.

    Raises:
        ScenarioError: An unknown or contradictory keyword.
        HpcgymError: Threads that are not a whole number >= 1.

    Source:
        Specification, section 10; Gymnasium's interface of vector environments.

    Example:
        >>> envs = SchedulingVectorEnv("tiny", num_envs=3)
        >>> shown, info = envs.reset(seed=1)
        >>> shown["jobs"].shape, info["label"].tolist()
        ((3, 2304), ['whole', 'whole', 'whole'])
        >>> shown, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        >>> reward.shape
        (3,)
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        scenario: AnyScenario | Sequence[AnyScenario] = "synthetic-256-weeks",
        *,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        threads: int | None = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **keywords: Unpack[Keywords],
    ) -> None:
        """Wire the environments; the class describes the arguments."""
        num_envs = _checked_count("num_envs", num_envs)
        if max_episode_steps is not None:
            max_episode_steps = _checked_count("max_episode_steps", max_episode_steps)
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ScenarioError(unknown_name("render_mode", render_mode, RENDER_MODES))
        for keyword in keywords:
            if keyword not in Keywords.__annotations__:
                raise ScenarioError(unknown_name("keyword", keyword, Keywords.__annotations__))
        self._mode = _mode_of(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        self.num_envs, self.copy, self.render_mode = num_envs, copy, render_mode
        self.wirings = _wirings_of(scenario, num_envs, keywords)
        first = self.wirings[0]
        self._reader, self._terms = first.reader, first.reward_terms
        self.single_action_space = first.reader.space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.stack = EnvBuffers(self.wirings, max_episode_steps, checked_threads(threads))
        self.labels: NDArray[np.object_] = np.full(num_envs, None, dtype=object)
        self.viewers: dict[int, Any] = {}
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds: list[int | None] = [None] * num_envs
        self._is_over: Bools = np.ones(num_envs, dtype=np.bool_)
        self._some_are_over = True
        self._every: Bools = np.ones(num_envs, dtype=np.bool_)

    # --- Episodes ---------------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin episodes and run to their first decisions.

        Args:
            seed: Environment i is seeded by seed + i, or by the i-th of a sequence, None leaving it
                as it is.
            options: As for the scalar environment, where `episode` and `workload` may also be
                sequences, one per environment; `{"common_random_numbers": True}` lets all draw the
                episodes of the first until they are seeded anew; `{"reset_mask": mask}` resets
                those alone whose entry is True, shape (n_envs,).

        Returns:
            Observations, and info with `label` and `now` of each environment that was reset.

        Raises:
            ScenarioError: Seeds, a mask or an option that do not fit; then nothing has been reset.

        Source:
            Specification, section 10, "Episodes".
        """
        asked = dict(options or {})
        mask = _checked_mask(asked.pop("reset_mask", None), self.num_envs)
        if not mask.all() and None in self.labels:
            raise ScenarioError("the first reset must be of all environments, without a reset_mask")
        envs = np.flatnonzero(mask)
        seeds = _checked_seeds(seed, self.num_envs)
        is_common = self._draws_in_common(asked.pop("common_random_numbers", False), mask)
        each = {env: _options_of(asked, env, self.num_envs) for env in envs.tolist()}
        generators, known = list(self._generators), list(self._seeds)
        for env in each:
            if seeds[env] is not None or generators[env] is None:
                generators[env], known[env] = seeding.np_random(seeds[env])
            else:
                generators[env] = copies.deepcopy(generators[env])
            if is_common:
                generators[env], known[env] = copies.deepcopy(generators[0]), known[0]
        drawn = [
            self.wirings[env].draw(own, _existing(generators[env])) for env, own in each.items()
        ]
        self._begin(envs, drawn)
        self._generators, self._seeds = generators, known
        self._is_over[envs] = False
        self._some_are_over = bool(self._is_over.any())
        return self._observation(), self._label_info(mask) | self._clock_info(mask)

    def _draws_in_common(self, common: Any, mask: Bools) -> bool:
        """Tell whether all environments are to draw the same; refuse where they cannot."""
        if not isinstance(common, (bool, np.bool_)):
            raise ScenarioError(f"option 'common_random_numbers' must be a bool, got {common!r}")
        if not common:
            return False
        if not mask.all() or any(wiring is not self.wirings[0] for wiring in self.wirings):
            raise ScenarioError(
                "option 'common_random_numbers' is for all environments, of one scenario: no "
                "reset_mask goes with it"
            )
        return True

    def generator(self, env: int) -> np.random.Generator:
        """Return the source of randomness of one environment.

        Args:
            env: Which one.

        Returns:
            Its generator, seeded by chance unless a reset has seeded it.

        Source:
            Gymnasium's `Env.np_random`.
        """
        if self._generators[env] is None:
            self._generators[env], self._seeds[env] = seeding.np_random()
        return _existing(self._generators[env])

    def _draw(self, env: int) -> tuple[str, Prepared]:
        """Draw the next episode of an environment."""
        return self.wirings[env].draw({}, self.generator(env))

    def _begin(self, envs: NDArray[np.int64], drawn: list[tuple[str, Prepared]]) -> None:
        """Begin the episodes that were drawn; if that fails, nothing goes on before a reset."""
        for env in envs.tolist():
            self.labels[env] = None
        self._some_are_over = True
        self.stack.begin(envs, [prepared for _, prepared in drawn])
        for env, (label, _) in zip(envs.tolist(), drawn, strict=True):
            self.labels[env] = label

    # --- Steps ------------------------------------------------------------------------------------

    def step(
        self, actions: Any
    ) -> tuple[Observation, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take one action in each environment and run each to its next decision.

        Args:
            actions: Member of the action space: one action per environment.

        Returns:
            Observations, rewards, terminated, truncated, shape (n_envs,) each, and infos, in which
            `_key` says for which environments `key` holds.

        Raises:
            ActionError: Wrong shape or type, a value out of range or NaN, or an episode that is
                over; then nothing has been done.

        Source:
            Specification, "Action semantics" and "Reward identity".
        """
        fields, resting, drawn = self.stack.fields, None, []
        self._reader.read_many(actions, fields.number, fields.values)
        if self._some_are_over:
            resting = self._resting()
            self._refuse(self.stack.find_refused(resting), actions)
            drawn = [self._draw(env) for env in resting.tolist()]
        n_ended = self.stack.step(resting)
        self._refuse(-1 - n_ended, actions)
        payment, tally, ended = fields.payment.copy(), fields.tally.copy(), fields.ended.copy()
        stepped = self._every.copy()
        if resting is not None:
            stepped[resting] = False
            payment[:, resting] = 0.0
            ended[:, resting] = 0
            self._begin(resting, drawn)
        terminated, truncated = ended.view(np.bool_)
        if resting is None and n_ended == 0:
            info = self._step_info(stepped, payment, tally)
        else:
            info = self._turning_info(stepped, payment, tally, terminated | truncated)
        return self._observation(), payment[0], terminated, truncated, info

    def _resting(self) -> NDArray[np.int64]:
        """Return the environments that a step resets instead; refuse where none may."""
        if None in self.labels:
            raise ActionError("no episode is under way; call reset()")
        over = np.flatnonzero(self._is_over)
        if self._mode is AutoresetMode.DISABLED:
            raise ActionError(
                f"the episodes of environments {over.tolist()} are over and autoreset_mode is "
                "DISABLED; call reset(options={'reset_mask': mask})"
            )
        return over

    def _refuse(self, env: int, actions: Any) -> None:
        """Refuse the action of an environment; env < 0 = no action is refused."""
        if env >= 0:
            why = self._reader.refuse(np.asarray(actions)[env])
            raise ActionError(f"environment {env}: {why}")

    def _turning_info(
        self, stepped: Bools, payment: NDArray[Any], tally: NDArray[Any], over: Bools
    ) -> dict[str, Any]:
        """Return the info of a step that ended or began episodes; SAME_STEP resets those ended."""
        self._is_over, self._some_are_over = over.copy(), bool(over.any())
        if self._mode is not AutoresetMode.SAME_STEP or not self._some_are_over:
            info = self._step_info(stepped, payment, tally) | self._clock_info(self._every.copy())
            return info | self._label_info(over | ~stepped) | self._metrics_info(over)
        ended = np.flatnonzero(over)
        drawn = [self._draw(env) for env in ended.tolist()]
        final_obs = np.full(self.num_envs, None, dtype=object)
        for env in ended.tolist():
            final_obs[env] = {key: array[env].copy() for key, array in self.stack.shown.items()}
        final_info = self._step_info(over, payment, tally)
        final_info |= self._label_info(over) | self._metrics_info(over)
        info = {"final_obs": final_obs, "_final_obs": over}
        info |= {"final_info": final_info, "_final_info": over}
        info |= self._step_info(stepped & ~over, payment, tally)
        self._begin(ended, drawn)
        self._is_over, self._some_are_over = ~self._every, False
        return info | self._label_info(over | ~stepped) | self._clock_info(self._every.copy())

    # --- What is shown ----------------------------------------------------------------------------

    def _observation(self) -> Observation:
        """Return the observations, as copies if so wished."""
        shown = self.stack.shown
        return {key: array.copy() for key, array in shown.items()} if self.copy else {**shown}

    def _clock_info(self, begun_or_stepped: Bools) -> dict[str, Any]:
        """Return the clocks of some environments."""
        now = np.where(begun_or_stepped, self.stack.fields.tally[0], 0)
        return {"now": now, "_now": begun_or_stepped}

    def _label_info(self, labelled: Bools) -> dict[str, Any]:
        """Return which episodes some environments play."""
        labels = self.labels.copy()
        labels[~labelled] = None
        return {"label": labels, "_label": labelled}

    def _metrics_info(self, over: Bools) -> dict[str, Any]:
        """Return the figures of the episodes that this step ended."""
        if not over.any():
            return {}
        return {"metrics": metrics_where(over, self.stack.fields.figure), "_metrics": over}

    def _step_info(
        self, stepped: Bools, payment: NDArray[Any], tally: NDArray[Any]
    ) -> dict[str, Any]:
        """Return what a step says of the environments that it moved; nothing if it moved none."""
        n_stepped = np.count_nonzero(stepped)
        if n_stepped == 0:
            return {}
        if n_stepped < self.num_envs:
            payment, tally = np.where(stepped, payment, 0.0), np.where(stepped, tally, 0)
        terms: dict[str, Any] = {}
        for row, key in enumerate(self._terms, start=1):
            terms[key], terms[f"_{key}"] = payment[row], stepped
        return {
            "now": tally[0],
            "_now": stepped,
            "reward_terms": terms,
            "_reward_terms": stepped,
            "invalid_actions": tally[1],
            "_invalid_actions": stepped,
        }

    def action_masks(self) -> Bools:
        """Return which slots hold a job, for `job` actions.

        Returns:
            Shape (n_envs, n_slots); the first slot alone where no job waits.

        Source:
            Specification, "Action semantics", `job`.
        """
        return masks_of(self.stack.fields.slot)

    def render(self) -> tuple[Any, ...] | None:
        """Show each environment: machine over time, queue, and the head's reservation.

        Returns:
            One text or picture per environment, as `render_mode` says.

        Raises:
            ActionError: No episode has begun.

        Source:
            House rule: people would rather look than read.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: no render_mode was given")
            return None
        return tuple(env.render() for env in self.envs)

    # --- As Gymnasium's own vector environments have it -------------------------------------------

    @property
    def envs(self) -> tuple[EnvView, ...]:
        """Return a view of each environment: `envs[3].schedule()`."""
        return tuple(EnvView(self, env) for env in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close what draws the environments.

        Args:
            **kwargs: Not used.

        Source:
            Gymnasium's `VectorEnv.close`.
        """
        for viewer in self.viewers.values():
            viewer.close()
        self.viewers.clear()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute.

        Args:
            name: Name of something that `EnvView` has.
            *args: Passed on.
            **kwargs: Passed on.

        Returns:
            What each environment gives.

        Raises:
            AttributeError: An environment has nothing of that name.

        Source:
            Gymnasium's `SyncVectorEnv.call`.
        """
        found = [getattr(env, name) for env in self.envs]
        return tuple(one(*args, **kwargs) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each environment.

        Args:
            name: Name of an attribute that `EnvView` has.

        Returns:
            What each environment gives.

        Raises:
            AttributeError: An environment has nothing of that name.

        Source:
            Gymnasium's `SyncVectorEnv.get_attr`.
        """
        return self.call(name)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Return each environment's source of randomness."""
        return tuple(self.generator(env) for env in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """Return what each environment was seeded by."""
        return tuple(self._seeds)


def _checked_count(name: str, value: Any) -> int:
    """Return a whole number >= 1, refuse anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ScenarioError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(value)


def _existing(generator: np.random.Generator | None) -> np.random.Generator:
    """Return a generator that is known to be there."""
    assert generator is not None
    return generator


def _mode_of(autoreset_mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode meant by a member of `AutoresetMode`, its name or its value."""
    for mode in AutoresetMode:
        if autoreset_mode in (mode, mode.value, mode.name):
            return mode
    names = [mode.name for mode in AutoresetMode]
    raise ScenarioError(unknown_name("autoreset_mode", str(autoreset_mode), names))


def _wirings_of(
    scenario: AnyScenario | Sequence[AnyScenario], num_envs: int, keywords: Keywords
) -> list[Wiring]:
    """Wire each environment; those of one scenario share what was prepared of its episodes."""
    several: list[Any] = list(scenario) if isinstance(scenario, (list, tuple)) else [scenario]
    if not 1 <= len(several) <= num_envs:
        raise ScenarioError(
            f"{len(several)} scenarios cannot be dealt out to {num_envs} environments"
        )
    wired: dict[Any, Wiring] = {}
    for one in several:
        key = one if isinstance(one, (str, Path)) else id(one)
        if key not in wired:
            wired[key] = Wiring(one, **keywords)
    order = [wired[one if isinstance(one, (str, Path)) else id(one)] for one in several]
    return [order[env % len(order)] for env in range(num_envs)]


def _checked_seeds(seed: Any, num_envs: int) -> list[int | None]:
    """Return one seed per environment, None where it is not seeded anew."""
    if seed is None:
        return [None] * num_envs
    try:
        first = operator.index(seed)
        seeds: list[int | None] = [first + env for env in range(num_envs)]
    except TypeError:
        is_many = isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str)
        seeds = list(seed) if is_many and np.ndim(seed) == 1 else []
    are_whole = [one is None or isinstance(one, (int, np.integer)) for one in seeds]
    if len(seeds) != num_envs or isinstance(seed, bool) or not all(are_whole):
        raise ScenarioError(
            f"seed must be a whole number or one for each of {num_envs} environments, got {seed!r}"
        )
    for one in seeds:
        if isinstance(one, bool) or (one is not None and one < 0):
            raise ScenarioError(f"a seed must be a whole number >= 0, got {one!r}")
    return [None if one is None else int(one) for one in seeds]


def _checked_mask(mask: Any, num_envs: int) -> Bools:
    """Return which environments a reset is for."""
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise ScenarioError(
            f"option 'reset_mask' must be an array of bools of shape ({num_envs},), got {mask!r}"
        )
    if not mask.any():
        raise ScenarioError("option 'reset_mask' resets no environment")
    return mask.copy()


def _options_of(options: dict[str, Any], env: int, num_envs: int) -> dict[str, Any]:
    """Return what the options of a reset ask of one environment."""
    own = dict(options)
    for key, value in options.items():
        if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0:
            if len(value) != num_envs:
                raise ScenarioError(
                    f"option {key!r} must be one for all or one for each of {num_envs} "
                    f"environments, got {len(value)}"
                )
            own[key] = value[env]
    return own
