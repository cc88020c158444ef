"""Thousands of schedules in one call: every workload under every policy, of which metrics are kept.

A cell is one workload under one policy. Threads take blocks of cells of one workload. Each thread
has a state of its own, in which a kernel simulates and measures cell after cell without the GIL. No
process is started, and numba's threading layer is not used. So several threads may call at once, in
forked and in spawned processes. Ctrl-C stops a call after the running blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base.errors import (
    HpcgymError,
    PolicyError,
    WorkloadError,
    refuse_unless_a,
    unknown_name,
)
from hpcgym.base.keywords import refuse_unknown, takes
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.dependencies import begin, own_columns
from hpcgym.core.features import FEATURES
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.env.metrics import EPISODE_METRICS, N_METRICS
from hpcgym.core.own_backfill import refuse_own
from hpcgym.core.policy import KEYS, Policy, as_policy, mixed_policy, refuse_as_choice
from hpcgym.core.predictor import Predictor
from hpcgym.core.prepare import (
    PreparedEpisode,
    checked_keys,
    network_of,
    prepare,
    rules_of,
    state_for,
)
from hpcgym.core.setting_list import SettingKeywords, SettingList
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.state import SettingRows, own_table, sim_of
from hpcgym.core.threads import checked_threads
from hpcgym.core.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

BLOCK_JOBS = 200_000  # jobs a thread simulates between two looks at the interpreter; some 0.05 s

METRICS = EPISODE_METRICS[2:]
"""What can be measured of a cell: sums over jobs, and metrics of `Schedule.metrics()`."""

_KEYED = Policy("keys", KEYS, np.zeros(s.N_WEIGHTS))


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Metrics of every workload under every policy, shape (n_workloads, n_policies) each.

    `n_jobs` is the number of jobs of each workload.
    """

    workloads: tuple[str, ...]
    policies: tuple[str, ...]
    n_jobs: NDArray[np.int64]
    metrics: dict[str, FloatArray]

    def __getitem__(self, metric: str) -> FloatArray:
        """Return one metric of every cell, shape (n_workloads, n_policies)."""
        if metric not in self.metrics:
            raise HpcgymError(unknown_name("metric", metric, self.metrics))
        return self.metrics[metric]

    def __repr__(self) -> str:
        size = f"{len(self.workloads)} workloads x {len(self.policies)} policies"
        return f"BatchResult({size}: {', '.join(self.metrics)})"

    def to_frame(self, metric: str) -> pd.DataFrame:
        """Return one metric as a table, with a row per workload and a column per policy.

        Raises:
            HpcgymError: The metric was not asked for.
        """
        import pandas as pd

        return pd.DataFrame(self[metric], index=self.workloads, columns=self.policies)


class _Orders(NamedTuple):
    """The policies as kernels read them."""

    names: tuple[str, ...]  # name of each policy
    setting: SettingRows  # rows of `Sim.setting`, shape (n_policies, N_SETTINGS)
    weight: FloatArray  # rows of `Sim.weight`, shape (n_policies, N_ORDERS, N_WEIGHTS)
    # Which of a workload's keys order its jobs, shape (n_policies,), -1 = none do.
    key_row: NDArray[np.int64]
    network: FloatArray  # parameters of each network there is, shape (n_networks, N_NETWORK)
    # Which of them expects run times, shape (n_policies,), -1 = none does.
    network_row: NDArray[np.int64]


class _Ready(NamedTuple):
    """A prepared workload, and the keys of its jobs, shape (n_keyed, n_jobs)."""

    episode: PreparedEpisode
    keys: NDArray[Any]


class _Block(NamedTuple):
    """Cells that are run in one call: a workload under the policies from `first` on."""

    workload: int
    first: int
    end: int


class _Worker:
    """A state of one simulation that any workload fits into, used by one thread at a time."""

    def __init__(self, episodes: Sequence[PreparedEpisode]) -> None:
        self.state = state_for(episodes)
        self.sim = sim_of(self.state, 0)
        self.keys = np.empty((max(len(episode.workload) for episode in episodes), 2))

    def run(self, ready: _Ready, orders: _Orders, block: _Block) -> FloatArray:
        """Simulate and measure the cells of one block, shape (n_cells, N_METRICS)."""
        episode, rule = ready.episode, ready.episode.dependencies
        if rule is not None and block.end > block.first + 1:  # each exchanges rows of its own table
            cells = range(block.first, block.end)
            alone = [block._replace(first=cell, end=cell + 1) for cell in cells]
            return np.concatenate([self.run(ready, orders, cell) for cell in alone])
        n = len(episode.workload)
        part = slice(block.first, block.end)
        keys = self.keys[:n]
        keys[:] = episode.table.keys[:, :2]  # of primary and backfill order
        kept = episode.table._replace(keys=keys)
        table = own_table(kept if rule is None else own_columns(kept), self.state, 0)
        jobs = Struct(table)
        setting = SettingRows(orders.setting.rows[part].copy())
        if rule is not None:
            begin(table, self.state, 0, kept)
            setting.events_hear |= rule.hears
        setting.backfill = episode.setting.backfill  # another part makes the passes of nodes
        setting.hears = episode.setting.hears
        setting.n_jobs = n
        setting.machine_processors = episode.workload.machine_processors
        setting.week_start = episode.workload.week_start
        setting.full_passes = int(episode.workload.machine is not None)
        setting.events_hear = episode.setting.events_hear  # a machine may have outages of its own
        key_row = orders.key_row[part]
        keyed = np.unique(key_row[key_row >= 0])
        given = np.ascontiguousarray(ready.keys[keyed], dtype=np.float64)
        np.maximum(given, np.finfo(np.float64).min, out=given)  # -inf is the threshold's
        measured = np.empty((block.end - block.first, N_METRICS))
        entry_points.sweep_policies(
            jobs.address,
            self.sim.address,
            episode.initial.address,
            setting.rows,
            orders.weight[part],
            given,
            np.where(key_row >= 0, np.searchsorted(keyed, key_row), -1),
            orders.network,
            orders.network_row[part],
            measured,
        )
        return measured


@takes(SettingList, but=("policy",))
def simulate_many(
    workloads: Sequence[Workload],
    policies: Sequence[str | Policy | Sequence[float]] | None = None,
    *,
    weights: ArrayLike | None = None,
    divisors: ArrayLike | None = None,
    keys: Sequence[ArrayLike] | None = None,
    metrics: Sequence[str] = METRICS,
    threads: int | None = None,
    **settings: Unpack[SettingKeywords],
) -> BatchResult:
    """Schedule every workload under every policy, on all cores, and keep metrics only.

    Each schedule is the one that `hpcgym.simulate` gives, and so are its metrics, but for the last
    digits of sums: here they run in the order of the jobs. Exactly one of `policies`, `weights` and
    `keys` says which policies.

    Args:
        workloads: The jobs of each, with their machines.
        policies: Names, weights or `Policy`, each as in `hpcgym.simulate`; no formulas in Python.
        weights: Weights of (q, e, wait, rho, exp, area), one vector per policy, shape (n_policies,
            6); each is L1-normalised, all zero means FCFS, as by `hpcgym.core.policy.mixed_policy`.
        divisors: What each feature is divided by before it is weighted, shape (6,), > 0; default 1,
            the raw features. With `weights` only. Those of the environment's unit scale are
            `hpcgym.env.action.unit_divisors`.
        keys: For each workload one key per job and policy, shape (n_policies, n_jobs), lowest
            first.
        metrics: Metrics to keep, of `METRICS`; each takes 8 bytes per cell.
        threads: Threads that work; default one per core this process may use.
        **settings: As in `hpcgym.simulate`, the same for all cells. Not "gang", and no function in
            Python as `estimates`, but these may be one array per workload, shape (n_jobs,).

    Raises:
        HpcgymError: Something else than workloads, no workload, an unknown metric, no thread.
        PolicyError: Not exactly one of `policies`, `weights` and `keys`; none, or one that is
            unknown, malformed or a formula in Python; a predictor that is a function in Python;
            settings that contradict each other.
        WorkloadError: Keys or estimates that do not fit a workload.

    Source: RR-9212, section 4 (policies that cover the space of weights).

    Example:
        >>> import hpcgym
        >>> tiny = hpcgym.load_workload("tiny")
        >>> result = hpcgym.simulate_many([tiny], ["FCFS", "SAF", "wait=-1,area=0.1"])
        >>> result["n_backfilled"].shape
        (1, 3)
        >>> simplex = np.random.default_rng(0).normal(size=(500, 6))
        >>> int(hpcgym.simulate_many([tiny], weights=simplex)["mean_bsld"].argmin()) < 500
        True
    """
    _refuse_malformed(workloads, metrics)
    n_threads = checked_threads(threads)
    chosen = _policies_of(workloads, policies, weights, divisors, keys)
    refuse_unknown("setting", settings, SettingKeywords.__annotations__)
    many = _many_settings(len(workloads), **settings)
    orders = _orders_of(chosen, many[0])
    needs_history = bool(orders.setting.keep_history.any())
    asking = [policy for policy in chosen if policy.expects][:1]  # makes room for what is expected
    ready = []
    for row, workload in enumerate(workloads):
        episode = prepare(workload, many[row], extra_policies=asking, keep_history=needs_history)
        _ = episode.initial  # made here, not by two threads at once
        given = _keys_of(workload, chosen) if keys is None else np.asarray(keys[row])
        ready.append(_Ready(episode, given))
    measured = {metric: np.empty((len(workloads), len(chosen))) for metric in metrics}
    _run_all(ready, orders, measured, n_threads)
    n_jobs = np.array([len(workload) for workload in workloads])
    return BatchResult(tuple(w.name for w in workloads), orders.names, n_jobs, measured)


def _refuse_malformed(workloads: Sequence[Workload], metrics: Sequence[str]) -> None:
    refuse_unless_a(Iterable, "metrics", metrics, "a sequence of names")
    is_one = isinstance(workloads, Workload) or not isinstance(workloads, Iterable)
    if is_one or not all(isinstance(w, Workload) for w in workloads):
        raise HpcgymError(
            f"a sequence of Workload is needed, got {workloads!r}; hpcgym.load_workload reads a log"
        )
    if not len(workloads):
        raise HpcgymError("at least one workload is needed, got none")
    if isinstance(metrics, str):
        raise HpcgymError(f"metrics must be a sequence of names, got {metrics!r}")
    for metric in metrics:
        if not isinstance(metric, str) or metric not in METRICS:
            raise HpcgymError(unknown_name("metric", metric, METRICS))


def _policies_of(
    workloads: Sequence[Workload],
    policies: Sequence[str | Policy | Sequence[float]] | None,
    weights: ArrayLike | None,
    divisors: ArrayLike | None,
    keys: Sequence[ArrayLike] | None,
) -> list[Policy]:
    """Return the policies meant, those given by `keys` without their keys."""
    given = {"policies": policies, "weights": weights, "keys": keys}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise PolicyError(
            f"give exactly one of policies, weights and keys; got {', '.join(named) or 'none'}"
        )
    if divisors is not None and weights is None:
        raise PolicyError(f"divisors go with weights only; got {named[0]}")
    if weights is not None:
        try:
            vectors = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise PolicyError(f"weights must be numbers, got {weights!r}") from None
        if vectors.ndim != 2 or vectors.shape[1] != len(FEATURES) or not len(vectors):
            raise PolicyError(
                f"weights must have shape (n_policies, {len(FEATURES)}), at least one vector; "
                f"got {vectors.shape}"
            )
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise PolicyError(
                f"weights must be finite; row {bad[0]} is {vectors[bad[0]]} ({len(bad)} such rows)"
            )
        return [mixed_policy(vector, divisors=divisors) for vector in vectors]
    if keys is not None:
        n_policies = _checked_given_keys(workloads, keys)
        return [replace(_KEYED, name=f"keys {row}") for row in range(n_policies)]
    assert policies is not None
    if isinstance(policies, (str, Policy)) or not (isinstance(policies, Sized) and len(policies)):
        raise PolicyError(f"policies must be a sequence of at least one policy, got {policies!r}")
    return [as_policy(policy) for policy in policies]


def _checked_given_keys(workloads: Sequence[Workload], keys: Sequence[ArrayLike]) -> int:
    """Refuse keys that cannot order the jobs; return for how many policies they are."""
    if len(keys) != len(workloads):
        raise WorkloadError(
            f"keys must be one array for each of {len(workloads)} workloads, got {len(keys)}"
        )
    n_policies = np.shape(keys[0])[0] if np.ndim(keys[0]) else 0
    if n_policies == 0:
        raise PolicyError(f"keys must be of at least one policy, got shape {np.shape(keys[0])}")
    for workload, given in zip(workloads, keys, strict=True):
        array = np.asarray(given)
        if array.shape != (n_policies, len(workload)):
            raise WorkloadError(
                f"{workload.name}: keys must have shape ({n_policies}, {len(workload)}), "
                f"(n_policies, n_jobs), got {array.shape}"
            )
        if array.dtype.kind not in "iuf" or np.isnan(array).any():
            raise WorkloadError(f"{workload.name}: keys must be numbers, none NaN")
    return n_policies


def _many_settings(
    n_workloads: int, estimates: Any = SettingList.estimates, **others: Any
) -> list[SchedulerSettings]:
    """Return the settings for each workload, which differ in the estimates only."""
    if isinstance(estimates, (str, Predictor)) or callable(estimates):
        every: list[Any] = [estimates] * n_workloads
    else:
        n_given = len(estimates) if isinstance(estimates, (Sequence, np.ndarray)) else 0
        if n_given != n_workloads:
            raise WorkloadError(
                f"estimates must be a name such as 'requested', or one array for each of "
                f"{n_workloads} workloads, got {n_given or repr(estimates)}"
            )
        every = list(estimates)
    many = [SchedulerSettings(estimates=estimate, **others) for estimate in every]
    refuse_own(as_backfill(many[0].backfill), "simulate_many", "use hpcgym.simulate")
    online = {
        settings.predictor.kind
        for settings in many
        if settings.predictor and settings.predictor.online
    }
    if "asked" in online:
        raise PolicyError(
            "estimates are a function in Python, which simulate_many cannot ask; use "
            "hpcgym.simulate, or name a predictor"
        )
    if online and not isinstance(estimates, (str, Predictor)):
        raise PolicyError(f"estimates {online.pop()!r} are for all workloads, given as one name")
    return many


def _orders_of(policies: Sequence[Policy], settings: SchedulerSettings) -> _Orders:
    order = settings.backfill_order
    backfill_policy = None if order is None else as_policy(order)
    others = [] if backfill_policy is None else [backfill_policy]
    refuse_as_choice((*policies, *others))
    for policy in (*policies, *others):
        if policy.is_python:
            raise PolicyError(
                f"policy {policy.name!r} orders in Python, which simulate_many cannot run; "
                "use hpcgym.simulate, or give it by keys or weights"
            )
    rules = [
        rules_of(policy, None if backfill_policy is policy else backfill_policy, settings)
        for policy in policies
    ]
    has_keys = np.array([policy.rule == s.RULE_KEYS for policy in policies])
    networks = [network_of([policy, *others]) for policy in policies]
    distinct = {network.tobytes(): network for network in networks if len(network)}
    row_of = {text: row for row, text in enumerate(distinct)}
    return _Orders(
        tuple(policy.name for policy in policies),
        SettingRows(np.stack([setting.rows for setting, _ in rules])),
        np.stack([weight for _, weight in rules]),
        np.where(has_keys, np.cumsum(has_keys) - 1, -1),
        np.array(list(distinct.values())).reshape(-1, s.N_NETWORK),
        np.array([row_of.get(network.tobytes(), -1) for network in networks]),
    )


def _keys_of(workload: Workload, policies: Sequence[Policy]) -> FloatArray:
    """Return the keys of the policies that are given by keys, shape (n_keyed, n_jobs)."""
    rows = [checked_keys(workload, policy) for policy in policies if policy.keys is not None]
    return np.array(rows).reshape(len(rows), len(workload))


def _blocks_of(ready: Sequence[_Ready], n_policies: int, threads: int) -> list[_Block]:
    """Cut the cells into blocks, short enough to share among the threads."""
    most = max(len(ready) * n_policies // (8 * threads), 1)
    blocks = []
    for row, prepared in enumerate(ready):
        size = min(max(BLOCK_JOBS // len(prepared.episode.workload), 1), most)
        firsts = range(0, n_policies, size)
        blocks += [_Block(row, first, min(first + size, n_policies)) for first in firsts]
    return blocks


def _run_all(
    ready: Sequence[_Ready], orders: _Orders, metrics: dict[str, FloatArray], threads: int
) -> None:
    """Run every block on some thread. Writes `metrics`."""
    blocks = _blocks_of(ready, len(orders.names), threads)
    threads = min(threads, len(blocks))
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for _ in range(threads):
        idle.put(_Worker([prepared.episode for prepared in ready]))

    def run(block: _Block) -> None:
        prepared = ready[block.workload]
        worker = idle.get()
        try:
            measured = worker.run(prepared, orders, block)
        finally:
            idle.put(worker)
        for metric, values in metrics.items():
            part = values[block.workload, block.first : block.end]
            part[:] = measured[:, EPISODE_METRICS.index(metric)]

    if threads == 1:
        for block in blocks:
            run(block)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="simulate_many") as pool:
        for _ in pool.map(run, blocks):
            pass
