"""Many simulations in one struct of arrays, which one call steps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.core.compiler.struct import IS_COMPILED, Struct
from hpcgym.core.kernels.env import step_batch as kernels
from hpcgym.core.kernels.env.metrics import N_METRICS
from hpcgym.core.kernels.types import Batch, Jobs
from hpcgym.core.state import Room, State, addresses_of, allocate, copy_into, row_of
from hpcgym.core.threads import step_batch
from hpcgym.env.config import EnvConfig
from hpcgym.env.episode import EnvEpisode

PAYMENT = ("reward", "agent_term", "baseline_term")
ENDED = ("terminated", "truncated")
"""Vectors of `Batch` that are rows of one array, so that a step copies two arrays, not five."""

MOST_COPIES = 4  # sets of arrays for copies of observations that are kept for later ones

SHARERS = 8
"""Environments in each episode, on average, from which on those of one take turns in a row."""

PRESENT_JOBS = 112
"""Waiting and running jobs that each environment has room for, before it gets more."""

REWARD, AGENT_TERM, _ = range(3)  # places of some of them


class StepResults(NamedTuple):
    """What the latest step wrote for each environment; the rows are named above."""

    payment: NDArray[np.float64]
    ended: NDArray[np.uint8]

    @property
    def vectors(self) -> dict[str, Any]:
        """Return the rows by their names in `Batch`."""
        rows = (*self.payment, *self.ended)
        return dict(zip((*PAYMENT, *ENDED), rows, strict=True))


@dataclass(eq=False)
class WideRows:
    """A state for environments that need more room than the others have."""

    state: State
    room: Room
    free: list[int]  # rows that no environment is in

    @cached_property
    def addresses(self) -> NDArray[Any]:
        """Return what kernels take of each row."""
        return addresses_of(self.state)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the addresses, which hold in this process only."""
        return {key: value for key, value in self.__dict__.items() if key != "addresses"}


class Copies(NamedTuple):
    """Arrays that observations are copied to, and what they are like while nobody else has them."""

    # The arrays by their keys in an observation; a flat one has the key "".
    parts: dict[str, NDArray[np.float32]]
    where: NDArray[np.int64]  # where a step copies to, in the columns of `Batch.out`
    n_references: list[int]  # references to each array

    def are_free(self) -> bool:
        """Tell whether nobody else has one of the arrays, or a view of one."""
        return self.n_references == _references(self.parts)


def _write_place(where: NDArray[np.int64], key: str, rows: NDArray[np.float32]) -> None:
    """Write down where the rows of a part of observations lie."""
    column = kernels.OUT_PARTS[key]
    where[column] = rows.__array_interface__["data"][0]
    where[column + 1] = rows.strides[0]


def _references(parts: dict[str, NDArray[np.float32]]) -> list[int]:
    return [sys.getrefcount(array) for array in parts.values()]


class EnvBuffers:
    """The state of n_envs environments, and the buffers of their actions and observations.

    All simulations have room for `PRESENT_JOBS` waiting and running jobs. One that needs more takes
    a row of a wider state until its episode is over; the episode remembers how many it needed. The
    common state grows when an episode does not fit into it.

    Attributes:
        threads: Threads that step, at most one per environment.
        batch: The buffers, as `hpcgym.core.kernels.types.Batch` explains them.
        results: Those of them that the latest step wrote for each environment.
        shown: The observations in those buffers, read-only.
        episodes: Episode of each environment, None before its first reset.
    """

    def __init__(
        self, configs: Sequence[EnvConfig], max_episode_steps: int | None, threads: int
    ) -> None:
        n_envs, n_slots, reader = len(configs), configs[0].slots, configs[0].reader
        jobs, cluster, *_, mask = configs[0].places.values()
        self._n_cluster = cluster.stop - cluster.start
        self._configs = list(configs)
        self.threads = min(threads, n_envs)
        self._state: State | None = None
        self._room = Room(present=PRESENT_JOBS)
        self._wide: dict[int, list[WideRows]] = {}  # by present jobs that there is room for
        self._moved: dict[int, tuple[WideRows, int]] = {}
        self._copies: list[Copies] = []
        self._n_begun = 0
        self.episodes: list[EnvEpisode | None] = [None] * n_envs
        self._jobs: dict[int, Struct[Jobs]] = {}
        self.results = StepResults(
            payment=np.zeros((3, n_envs)), ended=np.zeros((2, n_envs), dtype=np.uint8)
        )
        self.batch = Batch(
            address=np.zeros(
                (n_envs, kernels.ACTION_SPEC + 1), dtype=np.int64 if IS_COMPILED else object
            ),
            order=np.arange(n_envs),
            n_taken=np.zeros(kernels.TURNS_APART * (self.threads + 1), dtype=np.int64),
            resting=np.zeros(n_envs, dtype=np.uint8),
            time_limit=max_episode_steps or 0,
            n_choices=reader.n_choices,
            number=np.zeros(n_envs, dtype=np.int64),
            values=np.zeros((n_envs, reader.n_values), dtype=np.float32),
            slot=np.full((n_envs, n_slots), -1, dtype=np.int64),
            now=np.zeros(n_envs, dtype=np.int64),
            n_invalid=np.zeros(n_envs, dtype=np.int64),
            shown_jobs=np.zeros((n_envs, jobs.stop), dtype=np.float32),
            shown_cluster=np.zeros((n_envs, mask.start - jobs.stop), dtype=np.float32),
            mask=np.zeros((n_envs, n_slots), dtype=np.float32),
            out=np.zeros(kernels.N_OUT, dtype=np.int64),
            **self.results.vectors,
            full=np.zeros(n_envs, dtype=np.uint8),
            metric=np.zeros((n_envs, N_METRICS)),
        )
        self._bind()

    @property
    def state(self) -> State:
        """Return the common state, which the first reset allocates."""
        assert self._state is not None
        return self._state

    def place_of(self, env: int) -> tuple[State, int]:
        """Return the state that an environment is in, and its row there."""
        if env not in self._moved:
            return self.state, env
        rows, row = self._moved[env]
        return rows.state, row

    def jobs_of(self, env: int) -> Struct[Jobs]:
        """Return the jobs of an environment's episode as kernels take them."""
        return self._jobs[env]

    def begin(
        self, envs: NDArray[np.int64], episodes: Sequence[EnvEpisode], *, others_step: bool = False
    ) -> int:
        """Begin an episode in each of some environments and run it to its first decision.

        Writes the simulations, observations and clocks of these environments, and clears their
        rewards and ends. The other environments rest, or take their actions in the same call.
        Returns what `step` does.
        """
        self._make_room(episodes)
        for env, episode in zip(envs.tolist(), episodes, strict=True):
            self.episodes[env] = episode
            self._move(env, episode.n_present)
            self._bind_episode(env, episode, begins=True)
        self._n_begun += len(envs)
        if self._n_begun > len(self.episodes) // 8:
            self._order_by_episode()
        self.batch.resting[:] = kernels.STEPS if others_step else kernels.RESTS
        self.batch.resting[envs] = kernels.BEGINS
        try:
            return self.step()
        finally:
            self.batch.resting[:] = kernels.STEPS

    def step(self) -> int:
        """Take the actions in `batch`, and give room to the environments that need it.

        Return how many episodes ended; -1 less an environment if its action is refused.
        """
        n_envs = len(self.episodes)
        result = step_batch(self._struct.address, self.threads)
        if result >= -n_envs:
            return result
        resting, n_ended = self.batch.resting.copy(), 0
        while result < -n_envs:
            n_ended += -1 - n_envs - result
            full = self._widen()
            self.batch.resting[:] = kernels.RESTS
            self.batch.resting[full] = np.where(
                resting[full] == kernels.STEPS, kernels.STEPS, kernels.BEGUN
            )
            result = step_batch(self._struct.address, self.threads)
        self.batch.resting[:] = resting
        return result + n_ended

    def _order_by_episode(self) -> None:
        """Let environments of one episode take turns in a row: its jobs stay in the caches."""
        self._n_begun = 0
        jobs = [id(episode) for episode in self.episodes]
        if len(jobs) >= SHARERS * len(set(jobs)):
            self.batch.order[:] = np.argsort(jobs, kind="stable")

    def _widen(self) -> NDArray[np.int64]:
        """Give twice the room for present jobs to those environments that are full; return them."""
        full: NDArray[np.int64] = np.flatnonzero(self.batch.full)
        for env in full.tolist():
            episode = self.episodes[env]
            assert episode is not None
            state, row = self.place_of(env)
            room = self._moved[env][0].room if env in self._moved else self._room
            assert room.present is not None
            episode.n_present = 2 * room.present
            self._move(env, episode.n_present)
            copy_into(row_of(*self.place_of(env)), row_of(state, row))
        self.batch.full[full] = 0
        return full

    def _move(self, env: int, n_present: int) -> None:
        """Give an environment a row with room for so many present jobs; copies nothing."""
        is_wide = n_present > PRESENT_JOBS
        if not is_wide and env not in self._moved:
            return
        alike = self._wide.setdefault(n_present, []) if is_wide else []
        if env in self._moved:
            rows, row = self._moved[env]
            if rows in alike:
                return
            rows.free.append(row)
            del self._moved[env]
        if is_wide:
            self._moved[env] = self._free_row(alike, n_present)
        self._bind_sim(env)

    def _free_row(self, alike: list[WideRows], n_present: int) -> tuple[WideRows, int]:
        """Return a row that no environment is in; a quarter more are made when there is none."""
        rows = next((rows for rows in alike if rows.free), None)
        if rows is None:
            n_rows = max(sum(len(rows.addresses) for rows in alike) // 4, 1)
            room = self._room._replace(present=n_present)
            rows = WideRows(self._allocate(n_rows, room), room, list(range(n_rows)))
            alike.append(rows)
        return rows, rows.free.pop()

    def find_refused(self, resting: NDArray[np.int64]) -> int:
        """Return what `step_batch.first_refused` does, of environments that do not rest."""
        self.batch.resting[resting] = kernels.RESTS
        try:
            return kernels.find_refused(self._struct.address)
        finally:
            self.batch.resting[:] = kernels.STEPS

    def copies(self, is_flat: bool) -> dict[str, NDArray[np.float32]]:
        """Return arrays that the next step copies its observations to, which the caller may keep.

        Arrays that a caller has let go are used again. That spares the system from finding, and
        clearing, as much memory at every step.
        """
        chosen = next((copies for copies in self._copies if copies.are_free()), None)
        if chosen is None:
            chosen = self._new_copies(is_flat)
            self._copies = [chosen, *self._copies[: MOST_COPIES - 1]]
        self.batch.out[:] = chosen.where
        return dict(chosen.parts)

    def copy_nowhere(self) -> None:
        """Make no copies of observations until `copies` is called."""
        self.batch.out[:] = 0

    def _new_copies(self, is_flat: bool) -> Copies:
        places = self._configs[0].places
        where = np.zeros(kernels.N_OUT, dtype=np.int64)
        if is_flat:
            width = max(part.stop for part in places.values())
            parts = {"": np.empty((len(self.episodes), width), dtype=np.float32)}
            for key, part in places.items():
                if part.stop == part.start:  # not shown
                    continue
                _write_place(where, key, parts[""][:, part])
        else:
            parts = {key: np.empty(array.shape, np.float32) for key, array in self.shown.items()}
            for key in parts:
                _write_place(where, key, parts[key])
        return Copies(parts, where, _references(parts))

    def _make_room(self, episodes: Sequence[EnvEpisode]) -> None:
        """Allocate a larger state if the episodes do not fit, and copy the simulations."""
        before, room = self._state, self._room
        for episode in episodes:
            if not room.holds(episode.prepared.size):
                room = room.grown(episode.prepared.size)
        if before is not None and room is self._room:
            return
        larger = self._allocate(len(self.episodes), room)
        if before is not None:
            copy_into(larger, before)
        self._state, self._room = larger, room
        self._wide.clear()  # their rows are too small; who is in one leaves it with its episode
        self._bind()

    @property
    def _kept(self) -> set[str]:
        """Return what each environment keeps, in a row of its own as beside others."""
        asked = {
            "costs by user": any(config.pays_by_user for config in self._configs),
            "expectations": any(config.expects for config in self._configs),
            "log": len(self.episodes) == 1,
        }
        return {"history", "reward", "fields", *(name for name in asked if asked[name])}

    def _allocate(self, n_envs: int, room: Room) -> State:
        """Allocate the state of so many of these environments."""
        configs = {id(config): config for config in self._configs}.values()
        return allocate(
            n_envs,
            room,
            max(config.episodes.scenario.machine.processors for config in configs),
            keeps=self._kept,
            parts={part for config in configs for part in config.parts},
            n_queues=1 + any(config.settings.backfill_order is not None for config in configs),
            n_events=max(len(config.settings.events) for config in configs),
        )

    def _bind(self) -> None:
        """Write down the addresses of all arrays for the kernels."""
        specs = {id(config): config.action_spec() for config in self._configs}
        self._action_specs = [specs[id(config)] for config in self._configs]
        self._struct = Struct(self.batch)
        cluster = self.batch.shown_cluster
        self.shown = {
            "jobs": self.batch.shown_jobs.reshape(*self.batch.slot.shape, -1),
            "cluster": cluster[:, : self._n_cluster],
            "action_mask": self.batch.mask,
        }
        self.shown = {
            part: buffer
            for part, buffer in self.shown.items()
            if self._configs[0].places[part].stop > self._configs[0].places[part].start
        }
        if cluster.shape[1] > self._n_cluster:
            self.shown["machine"] = cluster[:, self._n_cluster :]
        for key, buffer in self.shown.items():
            self.shown[key] = buffer.view()
            self.shown[key].flags.writeable = False
        address: Any = self.batch.address
        address[:, kernels.ACTION_SPEC] = [spec.address for spec in self._action_specs]
        if self._state is not None:
            self.addresses = addresses_of(self._state)
            address[:, kernels.SIM] = self.addresses
        for env in self._moved:
            self._bind_sim(env)
        for env, episode in enumerate(self.episodes):
            if episode is not None:
                self._bind_episode(env, episode, begins=False)

    def _bind_sim(self, env: int) -> None:
        """Write down the address of an environment's simulation."""
        rows, row = self._moved.get(env, (self, env))
        self.batch.address[env, kernels.SIM] = rows.addresses[row]

    def _bind_episode(self, env: int, episode: EnvEpisode, *, begins: bool) -> None:
        """Write down the addresses of an environment's episode, which begins or goes on."""
        address: Any = self.batch.address
        if begins or env not in self._jobs:
            self._jobs[env] = episode.jobs_in(*self.place_of(env), begins=begins)
        address[env, kernels.JOBS] = self._jobs[env].address
        address[env, kernels.INITIAL_STATE] = episode.prepared.initial.address
        address[env, kernels.REWARD_PLAN] = episode.reward_plan.address

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what holds addresses of this process; `_bind` makes it again."""
        kept = self.__dict__.copy()
        for key in ("shown", "addresses", "_action_specs", "_struct"):
            del kept[key]
        kept["_copies"], kept["_jobs"] = [], {}
        kept["batch"] = self.batch._replace(
            address=np.zeros_like(self.batch.address), out=np.zeros_like(self.batch.out)
        )
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Write down the addresses of this process."""
        self.__dict__.update(kept)
        # A pickle has copied the rows apart from their arrays.
        self.batch = self.batch._replace(**self.results.vectors)
        self._bind()
