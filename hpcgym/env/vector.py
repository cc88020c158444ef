"""`HPCBatch-v0` as one vector environment: one compiled call steps many simulations."""

from __future__ import annotations

import copy as copies
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hpcgym.base.errors import (
    LARGEST_WHOLE,
    ActionError,
    ScenarioError,
    refuse_unless_whole,
    unknown_name,
)
from hpcgym.base.keywords import takes
from hpcgym.core.backfill import as_backfill
from hpcgym.core.own_backfill import refuse_own
from hpcgym.core.threads import checked_threads
from hpcgym.env.buffers import AGENT_TERM, REWARD, EnvBuffers
from hpcgym.env.config import PENALTY, AnyScenario, Drawn, EnvConfig, Keywords, refused_keyword
from hpcgym.env.info import ends_where, info_where
from hpcgym.env.rendering.pen import IMAGE_SIZE
from hpcgym.env.reset_options import checked_mask, checked_seeds, options_of
from hpcgym.env.scheduling import Observation
from hpcgym.env.sub_env import SubEnv

MOST_ENVS = 2**20

RENDER_MODES = ("ansi", "rgb_array")

Bools = NDArray[np.bool_]
T = TypeVar("T")


class SchedulingVectorEnv(VectorEnv[Observation, Any, NDArray[Any]]):
    """Many `SchedulingEnv` in one, each equal to the scalar environment to the bit.

    `gymnasium.make_vec("HPCBatch-v0", num_envs=64)` makes one. Observations, actions, rewards and
    episodes are those of `hpcgym.env.scheduling.SchedulingEnv`, with a leading axis n_envs. Infos
    and autoresets are those of Gymnasium's `SyncVectorEnv`.

    Args:
        scenario: Name or path of a scenario, a `Scenario`, or its `Episodes`. A list of several is
            dealt out to the environments in turn; their logs and machines may be of any size, and
            one that is named twice gets twice as many environments.
        num_envs: Number of environments.
        autoreset_mode: What follows the end of an episode, a member of `AutoresetMode`, its name or
            its value. NEXT_STEP: the next step resets and ignores its action. SAME_STEP: the step
            itself resets, and `info["final_obs"]` and `info["final_info"]` hold the end. DISABLED:
            the caller resets, with a `reset_mask`.
        copy: Whether observations are copies. False returns the buffers themselves, read-only,
            which the next step overwrites; flat observations are always copies.
        threads: Threads that step; None = one per core. Results do not depend on them.
        max_episode_steps: Steps after which an episode is truncated; None = never.
        render_mode: "ansi", "rgb_array" or None.
        **keywords: The other keywords of `SchedulingEnv`, the same for all environments.

    Attributes:
        autoreset_mode: The mode, a member of `AutoresetMode`.
        configs: Configuration of each environment; environments of one scenario share one.
        buffers: The simulations, and the buffers of actions and observations.
        labels: Name of each environment's episode, None before its first reset.
        viewers: Viewers of the environments that have been rendered.

    Raises:
        ScenarioError: An unknown or contradictory keyword.
        HpcgymError: `threads` is not a whole number >= 1.

    Source: Specification, section 10; Gymnasium's interface of vector environments.

    Example:
        >>> envs = SchedulingVectorEnv("tiny", num_envs=3)
        >>> shown, info = envs.reset(seed=1)
        >>> shown["jobs"].shape, info["episode_number"].tolist()
        ((3, 8, 18), [1, 1, 1])
        >>> envs.labels
        array(['whole', 'whole', 'whole'], dtype=object)
        >>> shown, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        >>> reward.shape
        (3,)
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "frame_size": IMAGE_SIZE,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    @takes(EnvConfig)
    def __init__(
        self,
        scenario: AnyScenario | Sequence[AnyScenario] = "many-weeks",
        *,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        threads: int | None = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **keywords: Unpack[Keywords],
    ) -> None:
        self.viewers: dict[int, Any] = {}  # first: Gymnasium 1.2 closes what was refused, too
        refuse_unless_whole("num_envs", num_envs, 1, MOST_ENVS, ScenarioError)
        num_envs, most = int(num_envs), LARGEST_WHOLE
        if max_episode_steps is not None:
            refuse_unless_whole("max_episode_steps", max_episode_steps, 1, most, ScenarioError)
            max_episode_steps = int(max_episode_steps)
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ScenarioError(unknown_name("render_mode", render_mode, RENDER_MODES))
        for name in keywords:
            if words := refused_keyword(name, "num_envs", "threads", "max_episode_steps"):
                raise ScenarioError(words)
        self.autoreset_mode = _mode_of(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs, self.copy, self.render_mode = num_envs, copy, render_mode
        self.configs = _configs_of(scenario, num_envs, keywords)
        first = self.configs[0]
        for config in self.configs:
            refuse_own(
                as_backfill(config.settings.backfill),
                "this vector environment",
                "gymnasium.make_vec takes vectorization_mode='sync', which steps single ones",
            )
            if config.observation_space != first.observation_space:
                name, other = (each.episodes.scenario.name for each in (first, config))
                raise ScenarioError(
                    f"{name} and {other} show different observations: scenarios of one vector need "
                    "machines of nodes with as many partitions, or none with nodes"
                )
        self._reader, self._terms = first.reader, first.shown_terms
        self._names_slots = first.names_slots
        self._is_flat = first.observation != "dict"
        self.single_action_space = first.reader.space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        if max_episode_steps is not None:
            first.refuse_cut()
        self.buffers = EnvBuffers(self.configs, max_episode_steps, checked_threads(threads))
        self._invalid = first.invalid
        self.labels: NDArray[np.object_] = np.full(num_envs, None, dtype=object)
        self._numbers = np.full(num_envs, -1)
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds: list[int | None] = [None] * num_envs
        self._is_over: Bools = np.ones(num_envs, dtype=np.bool_)
        self._some_are_over, self._have_begun = True, False
        self._every: Bools = np.ones(num_envs, dtype=np.bool_)
        self._every.flags.writeable = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin episodes and run them to their first decisions.

        Args:
            seed: Environment i gets the seed seed + i, or the i-th of a sequence; None keeps its
                generator.
            options: As for the scalar environment; `episode` and `workload` may be sequences, one
                per environment. `{"common_random_numbers": True}`: all draw the episodes of the
                first until they get other seeds. `{"reset_mask": mask}`: only environments where
                the mask, shape (n_envs,), is True are reset.

        Raises:
            ScenarioError: Seeds, a mask or an option that do not fit; then nothing has been reset.

        Source: Specification, section 10, "Episodes".
        """
        asked = {} if options is None else options
        if not isinstance(asked, Mapping):
            raise ScenarioError(f"reset options must be a dict, got {options!r}")
        asked = dict(asked)
        mask = checked_mask(asked.pop("reset_mask", None), self.num_envs)
        if not mask.all() and not self._have_begun:
            raise ScenarioError("the first reset must be of all environments, without a reset_mask")
        envs = np.flatnonzero(mask)
        seeds = checked_seeds(seed, self.num_envs)
        is_common = self._draws_in_common(asked.pop("common_random_numbers", False), mask)
        each = {env: options_of(asked, env, self.num_envs) for env in envs.tolist()}
        generators, known = list(self._generators), list(self._seeds)
        for env in each:
            if seeds[env] is not None or generators[env] is None:
                generators[env], known[env] = seeding.np_random(seeds[env])
            else:
                generators[env] = copies.deepcopy(generators[env])
            if is_common:
                generators[env], known[env] = copies.deepcopy(generators[0]), known[0]
        drawn = [
            self.configs[env].draw(asked, _existing(generators[env])) for env, asked in each.items()
        ]
        self.buffers.copy_nowhere()
        self._begin(envs, drawn)
        self._generators, self._seeds = generators, known
        self._is_over[envs] = False
        self._some_are_over = bool(self._is_over.any())
        shown = {**self.buffers.shown}
        if self.copy or self._is_flat:
            shown = self._observation_of(slice(None))
        info = self._info(self.buffers.results.payment) | self._numbers_where(mask)
        return shown, info_where(mask, info)

    def _draws_in_common(self, common: Any, mask: Bools) -> bool:
        """Return whether all environments draw the same episodes; refuse it where they cannot."""
        if not isinstance(common, (bool, np.bool_)):
            raise ScenarioError(f"option 'common_random_numbers' must be a bool, got {common!r}")
        if not common:
            return False
        if not mask.all() or any(config is not self.configs[0] for config in self.configs):
            raise ScenarioError(
                "option 'common_random_numbers' is for all environments, of one scenario: no "
                "reset_mask goes with it"
            )
        return True

    def generator(self, env: int) -> np.random.Generator:
        """Return an environment's generator, seeded by chance unless a reset has seeded it."""
        if self._generators[env] is None:
            self._generators[env], self._seeds[env] = seeding.np_random()
        return _existing(self._generators[env])

    def _draw(self, env: int) -> Drawn:
        """Draw the next episode of an environment."""
        return self.configs[env].draw({}, self.generator(env))

    def _begin(
        self, envs: NDArray[np.int64], drawn: list[Drawn], *, others_step: bool = False
    ) -> int:
        """Begin the drawn episodes; if that fails, these environments need a reset.

        Return how many episodes ended of those that take a step meanwhile.
        """
        for env in envs.tolist():
            self.labels[env] = None
        self._some_are_over, self._have_begun = True, False
        episodes = [pick.episode for pick in drawn]
        n_ended = self.buffers.begin(envs, episodes, others_step=others_step)
        self._have_begun = True
        for env, pick in zip(envs.tolist(), drawn, strict=True):
            self.labels[env], self._numbers[env] = pick.label, pick.number
        return n_ended

    def step(
        self, actions: Any
    ) -> tuple[Observation, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take one action in each environment and run each to its next decision.

        Returns:
            Observations, rewards, terminated and truncated, of shape (n_envs,), and infos, in which
            `_key` is the mask of the environments for which `key` holds.

        Raises:
            ActionError: Wrong shape or type, a value out of range or NaN, or an episode that is
                over; then no environment has moved.

        Source: Specification, section 10, "Action semantics" and "Reward identity".
        """
        batch, resting = self.buffers.batch, None
        self._reader.read_many(actions, batch.number, batch.values)
        invalid = self._invalid_now(actions) if self._invalid != "first" else None
        is_copied = self.copy or self._is_flat
        copies = self.buffers.copies(self._is_flat) if is_copied else self.buffers.shown
        if self._some_are_over:
            resting = self._resting()
            self._refuse(self.buffers.find_refused(resting), actions)
            drawn = [self._draw(env) for env in resting.tolist()]
            n_ended = self._begin(resting, drawn, others_step=True)
        else:
            n_ended = self.buffers.step()
            self._refuse(-1 - n_ended, actions)
        results = self.buffers.results
        payment, ended = results.payment.copy(), results.ended.copy()
        terminated, truncated = ended.view(np.bool_)
        if invalid is not None:
            payment[REWARD] -= PENALTY * invalid
        info = self._info(payment)
        if resting is not None or n_ended > 0:
            self._some_are_over = n_ended > 0
            self._is_over = terminated | truncated if n_ended > 0 else np.zeros_like(terminated)
            named = self._is_over.copy()
            named[[] if resting is None else resting] = True
            info |= self._numbers_where(named)
        if n_ended > 0:
            info = self._info_of_ends(info, payment)
        shown = copies[""] if self._is_flat else {**copies}
        return shown, payment[REWARD], terminated, truncated, info

    def _invalid_now(self, actions: Any) -> Bools:
        """Return where an action names a slot that serves nothing, or refuse it as `invalid` says.

        Numbers that are no choice are refused by the kernels.
        """
        number, masks = self.buffers.batch.number, self.action_masks()
        named = masks[np.arange(self.num_envs), np.clip(number, 0, masks.shape[1] - 1)]
        invalid = (named == 0) & ~self._is_over
        if self._invalid == "error" and invalid.any():
            env = int(invalid.argmax())
            why = self._reader.refuse_invalid(int(number[env]))
            raise ActionError(f"environment {env}: {why}")
        return np.asarray(invalid)

    def _resting(self) -> NDArray[np.int64]:
        """Return the environments that this step resets; refuse in mode DISABLED."""
        if not self._have_begun:
            raise ActionError("no episode is under way; call reset()")
        over = np.flatnonzero(self._is_over)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise ActionError(
                f"the episodes of environments {over.tolist()} are over and autoreset_mode is "
                "DISABLED; call reset(options={'reset_mask': mask})"
            )
        return over

    def _refuse(self, env: int, actions: Any) -> None:
        """Raise the error for an environment's action; env < 0 = none is refused."""
        if env >= 0:
            why = self._reader.refuse(np.asarray(actions)[env])
            raise ActionError(f"environment {env}: {why}")

    def _info_of_ends(self, info: dict[str, Any], payment: NDArray[Any]) -> dict[str, Any]:
        """Return the info of a step that ended episodes; SAME_STEP begins the next."""
        over = self._is_over.copy()
        ended = np.flatnonzero(over)
        saf = np.ones(self.num_envs)
        saf[ended] = [_existing(self.buffers.episodes[env]).saf.value for env in ended.tolist()]
        ends: dict[str, Any] = dict(ends_where(over, self.buffers.batch.metric, saf))
        if self._names_slots:
            ends["invalid_actions"] = np.where(over, self.buffers.batch.n_invalid, 0)
        info |= ends | {f"_{key}": over for key in ends} | self._known_of_some(ended, ends)
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            return info
        drawn = [self._draw(env) for env in ended.tolist()]
        final_obs = np.full(self.num_envs, None, dtype=object)
        for env in ended.tolist():
            final_obs[env] = self._observation_of(env)
        final: dict[str, Any] = {"final_obs": final_obs, "_final_obs": over}
        final |= {"final_info": info_where(over, info), "_final_info": over}
        self._begin(ended, drawn)
        self._is_over, self._some_are_over = ~self._every, False
        payment[AGENT_TERM:, ended] = 0.0
        return self._info(payment) | self._numbers_where(over) | final

    def _known_of_some(self, ended: NDArray[np.int64], ends: dict[str, Any]) -> dict[str, Any]:
        """Return what infos say of the price and the gap closed, where episodes ended that tell."""
        told: dict[str, Any] = {}
        for env in ended.tolist():
            episode = _existing(self.buffers.episodes[env])
            metrics = {key: float(column[env]) for key, column in ends.items()}
            known = episode.priced(*self.buffers.place_of(env), metrics["mean_bsld"])
            number, of = int(self._numbers[env]), self.configs[env]
            known |= of.gap_closed(number, episode.workload, metrics | known)
            for key, value in known.items():
                told.setdefault(key, np.zeros(self.num_envs))[env] = value
                told.setdefault(f"_{key}", np.zeros(self.num_envs, dtype=np.bool_))[env] = True
        return told

    def _observation_of(self, envs: int | slice) -> Observation:
        batch, shown = self.buffers.batch, self.buffers.shown
        if self._is_flat:
            parts = [batch.shown_jobs[envs], batch.shown_cluster[envs]]
            parts += [batch.mask[envs]] if "action_mask" in shown else []
            return np.concatenate(parts, axis=-1)
        return {key: array[envs].copy() for key, array in shown.items()}

    def _info(self, payment: NDArray[Any]) -> dict[str, Any]:
        """Return the info of a step in which no episode begins or ends."""
        info: dict[str, Any] = {}
        if not self._terms and not self._names_slots:
            return info
        for row, key in enumerate(self._terms, start=AGENT_TERM):
            info[key] = payment[row]
        if self._names_slots:
            info["action_mask"] = self.action_masks()
        return info | {f"_{key}": self._every for key in info}

    def _numbers_where(self, mask: Bools) -> dict[str, Any]:
        """Return the numbers of episodes that begin or end, for an info."""
        return {"episode_number": np.where(mask, self._numbers, 0), "_episode_number": mask}

    def action_masks(self) -> NDArray[np.int8]:
        """Return the scalar environment's `action_masks`, with a leading axis n_envs."""
        return self._reader.masks(self.buffers.batch.slot)

    def render(self) -> tuple[Any, ...] | None:
        """Return a text or an image of each environment, as `render_mode` says.

        Raises:
            ActionError: No episode has begun.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: no render_mode was given")
            return None
        return tuple(env.render() for env in self.envs)

    @property
    def envs(self) -> tuple[SubEnv, ...]:
        """Return each environment, to look at: `envs[3].schedule()`."""
        return tuple(SubEnv(self, env) for env in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the viewers."""
        for viewer in self.viewers.values():
            viewer.close()
        self.viewers.clear()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each `SubEnv`, or read an attribute, as `SyncVectorEnv.call`.

        Raises:
            AttributeError: `SubEnv` has nothing of that name.
        """
        attributes = [getattr(env, name) for env in self.envs]
        return tuple(
            attribute(*args, **kwargs) if callable(attribute) else attribute
            for attribute in attributes
        )

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each `SubEnv`, as `SyncVectorEnv.get_attr`."""
        return self.call(name)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Return each environment's generator."""
        return tuple(self.generator(env) for env in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Return each environment's seed, drawn by chance unless a reset has set one."""
        _ = self.np_random
        return tuple(seed for seed in self._seeds if seed is not None)


def _existing(optional: T | None) -> T:
    """Return what is not None."""
    assert optional is not None
    return optional


def _mode_of(autoreset_mode: AutoresetMode | str) -> AutoresetMode:
    """Return a mode, given a member of `AutoresetMode`, its name or its value."""
    for mode in AutoresetMode:
        if autoreset_mode in (mode, mode.value, mode.name):
            return mode
    names = [mode.name for mode in AutoresetMode]
    raise ScenarioError(unknown_name("autoreset_mode", str(autoreset_mode), names))


def _configs_of(
    scenario: AnyScenario | Sequence[AnyScenario], num_envs: int, keywords: Keywords
) -> list[EnvConfig]:
    """Configure each environment; those of one scenario share a configuration."""
    several: list[Any] = list(scenario) if isinstance(scenario, (list, tuple)) else [scenario]
    n = len(several)
    if not 1 <= n <= num_envs:
        raise ScenarioError(f"{n} scenarios cannot be dealt out to {num_envs} environments")
    keys = [given if isinstance(given, (str, Path)) else id(given) for given in several]
    made: dict[Any, EnvConfig] = {}
    for key, given in zip(keys, several, strict=True):
        if key not in made:
            made[key] = EnvConfig(given, **keywords)
    return [made[keys[env % len(keys)]] for env in range(num_envs)]
