"""Simulations side by side: one struct of arrays, stepped in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.core import state as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.kernels.env import step_batch as kernels
from hpcgym.core.kernels.env.metrics import N_FIGURES
from hpcgym.core.kernels.env.observation import N_CLUSTER, N_FIELDS
from hpcgym.core.kernels.types import Batch
from hpcgym.core.rows import sim_of
from hpcgym.core.struct import IS_COMPILED, Struct
from hpcgym.core.threads import step_batch
from hpcgym.env.config import Wiring
from hpcgym.env.episode import Prepared


class EnvBuffers:
    """N environments in one struct of arrays, with the buffers they read from and write to.

    The state grows when an episode comes that does not fit into it, by doubling.

    Args:
        wirings: What the keywords of each environment come to, shape (n_envs,).
        horizon: Steps after which an episode is cut short, None = none.
        threads: Threads that step.

    Attributes:
        threads: Threads that step, at most one per environment.
        fields: Buffers, as `hpcgym.core.kernels.types.Stack` describes them.
        shown: The observations in those buffers, not to be written to.
        prepared: Episode of each environment, None before its first reset.

    Source:
        House rule: struct of arrays; one dynamics behind every face.
    """

    def __init__(self, wirings: Sequence[Wiring], horizon: int | None, threads: int) -> None:
        n_envs, n_slots, reader = len(wirings), wirings[0].n_slots, wirings[0].reader
        self._wirings = list(wirings)
        self.threads = min(threads, n_envs)
        self._state: s.State | None = None
        self._room = (0, 0)  # jobs and users that fit
        self.prepared: list[Prepared | None] = [None] * n_envs
        self.fields = Batch(
            address=np.zeros((n_envs, 5), dtype=np.int64 if IS_COMPILED else object),
            resting=np.zeros(n_envs, dtype=np.uint8),
            horizon=np.array([horizon or 0]),
            n_choices=np.array([reader.n_choices]),
            number=np.zeros(n_envs, dtype=np.int64),
            values=np.zeros((n_envs, reader.n_values), dtype=np.float32),
            slot=np.full((n_envs, n_slots), -1, dtype=np.int64),
            shown_jobs=np.zeros((n_envs, n_slots * N_FIELDS), dtype=np.float32),
            shown_cluster=np.zeros((n_envs, N_CLUSTER), dtype=np.float32),
            mask=np.zeros((n_envs, n_slots), dtype=np.float32),
            payment=np.zeros((3, n_envs)),
            tally=np.zeros((2, n_envs), dtype=np.int64),
            ended=np.zeros((2, n_envs), dtype=np.uint8),
            figure=np.zeros((n_envs, N_FIGURES)),
        )
        self._open()

    @property
    def state(self) -> s.State:
        """Return the state, which the first reset allocates."""
        assert self._state is not None
        return self._state

    def begin(self, envs: NDArray[np.int64], episodes: Sequence[Prepared]) -> None:
        """Begin episodes and run them to their first decisions.

        Args:
            envs: In which environments, shape (n_begun,).
            episodes: Episode of each.

        Writes:
            The simulations, observations and clocks of these environments; their rewards and ends
            are cleared.

        Source:
            Specification, section 10, "Episodes".
        """
        self._make_room(episodes)
        for env, prepared in zip(envs.tolist(), episodes, strict=True):
            self.prepared[env] = prepared
            self._show(env, prepared)
        kernels.begin_batch(self._struct.address, envs)

    def step(self, resting: NDArray[np.int64] | None = None) -> int:
        """Take the actions that stand in `fields`.

        Args:
            resting: Environments that are left alone, shape (n_resting,); None = none.

        Returns:
            As `hpcgym.core.kernels.env.step_batch.step_batch`.

        Source:
            House rule: one compiled step behind every face.
        """
        if resting is None:
            return step_batch(self._struct.address, self.threads)
        self.fields.resting[resting] = 1
        try:
            return step_batch(self._struct.address, self.threads)
        finally:
            self.fields.resting[:] = 0

    def find_refused(self, resting: NDArray[np.int64]) -> int:
        """Find an environment whose action, which stands in `fields`, is none.

        Args:
            resting: Environments whose actions are not looked at, shape (n_resting,).

        Returns:
            As `hpcgym.core.kernels.env.step_batch.first_refused`.

        Source:
            House rule: bad input is refused before anything has been done with it.
        """
        self.fields.resting[resting] = 1
        try:
            return kernels.find_refused(self._struct.address)
        finally:
            self.fields.resting[:] = 0

    def _make_room(self, episodes: Sequence[Prepared]) -> None:
        """Allocate a state that holds the episodes, unless the one at hand does."""
        before, (n_jobs, n_users) = self._state, self._room
        for prepared in episodes:
            n_jobs = max(n_jobs, prepared.n_jobs)
            n_users = max(n_users, prepared.n_users)
        if (n_jobs, n_users) == self._room:
            return
        n_jobs, n_users = 2 ** (n_jobs - 1).bit_length(), 2 ** (n_users - 1).bit_length()
        larger = s.allocate(
            len(self.prepared),
            n_jobs,
            n_users,
            max(wiring.episodes.scenario.machine.processors for wiring in self._wirings),
            history=True,
            reward=True,
            fields=True,
            estimates=False,
            expectations=any(wiring.expects for wiring in self._wirings),
            modes={as_backfill(wiring.settings.backfill).number for wiring in self._wirings},
        )
        if before is not None:
            s.copy_into(larger, s.in_use(before))
        self._state, self._room = larger, (n_jobs, n_users)
        self._open()

    def _open(self) -> None:
        """Take hold of all arrays the way kernels see them."""
        choices = {id(wiring): wiring.choice() for wiring in self._wirings}
        self._action_specs = [choices[id(wiring)] for wiring in self._wirings]
        n_rows = 0 if self._state is None else len(self.prepared)
        self.rows = [sim_of(self.state, env) for env in range(n_rows)]
        self._struct = Struct(self.fields)
        buffers = self.fields.shown_jobs, self.fields.shown_cluster, self.fields.mask
        self.shown = dict(zip(("jobs", "cluster", "action_mask"), buffers, strict=True))
        for key, buffer in self.shown.items():
            self.shown[key] = buffer.view()
            self.shown[key].flags.writeable = False
        address: Any = self.fields.address
        for env in range(n_rows):
            address[env, kernels.SIM] = self.rows[env].address
            address[env, kernels.ACTION_SPEC] = self._action_specs[env].address
        for env, prepared in enumerate(self.prepared):
            if prepared is not None:
                self._show(env, prepared)

    def _show(self, env: int, prepared: Prepared) -> None:
        """Tell the kernels where the records of an environment's episode are."""
        address: Any = self.fields.address
        address[env, kernels.JOBS] = prepared.jobs.address
        address[env, kernels.INITIAL_STATE] = prepared.episode.start.address
        address[env, kernels.REWARD_PLAN] = prepared.reward_plan.address

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the records of kernels, which only this process can hold."""
        kept = self.__dict__.copy()
        for key in ("rows", "shown", "_action_specs", "_struct"):
            del kept[key]
        kept["fields"] = self.fields._replace(address=np.zeros_like(self.fields.address))
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take hold of all arrays again."""
        self.__dict__.update(kept)
        self._open()
