"""The two schedulers side by side: the plain-Python reference and the package."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpcgym
import reference
import reference_capped
import reference_index
import reference_modes
import reference_multi_queue
import reference_prediction
import reference_profile
import reference_slurm
import reference_trials
from hpcgym.core.compiler.struct import layout_of
from hpcgym.core.history import RING_JOBS
from hpcgym.core.kernels.types import Sim
from hpcgym.core.policy import Policy
from hpcgym.core.predictor import Submission, as_predictor
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from reference import Completed, Job, Start


def workload_of(jobs: Sequence[Sequence[int]], processors: int) -> Workload:
    """Return rows of `reference.Job` as the package holds them."""
    table = [Job(*row) for row in jobs]
    submit_time, run_time, requested_time, sizes, user = zip(*table, strict=True)
    return Workload.from_arrays(
        submit_time,
        run_time,
        requested_time,
        sizes,
        user=user,
        machine_processors=processors,
        name="drawn",
    )


def jobs_of(workload: Workload) -> list[Job]:
    """Return a workload as rows of `reference.Job`."""
    columns = (
        *(workload.submit_time, workload.run_time, workload.requested_time, workload.processors),
        workload.user,
    )
    return [Job(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


@cache
def whole(path: Path) -> Workload:
    """Read a whole log once per process."""
    return hpcgym.load_workload(path)


part_or_whole = pytest.mark.parametrize("n", [3_000, pytest.param(None, marks=pytest.mark.slow)])
"""So many first jobs of a log every day, and all under `slow`."""


def first_jobs(path: Path, n: int | None) -> Workload:
    """Return the first n jobs of a log; None = all."""
    return whole(path).select(np.arange(len(whole(path)))[:n])


KINDS: dict[str, type[reference.Machine]] = {
    **reference_modes.KINDS,
    "multi-queue": reference_multi_queue.MultiQueue,
    "cost-benefit": reference_capped.CostBenefit,
    "trial": reference_trials.Lives,
    "slurm": reference_slurm.SlurmMachine,
}
"""The reference machine of each backfilling mode that has one of its own."""

ORDERS = ("policy", "backfill_order")


def history_of_users(workload: Workload) -> Mapping[int, list[Completed]]:
    """Return what a workload knows of each user at time 0, oldest completed job first."""
    history = workload.history
    known = {}
    for user, row in dict(zip(workload.user.tolist(), workload.user_index, strict=True)).items():
        completed = int(history.completed[row])
        cells = [k % RING_JOBS for k in range(max(0, completed - RING_JOBS), completed)]
        known[user] = [
            (int(history.run_time[row, c]), int(history.requested_time[row, c])) for c in cells
        ]
    return known


def records_of_users(workload: Workload) -> Mapping[int, reference_index.User]:
    """Return what `history_of_users` does, with processors and the number of ended jobs."""
    history = workload.history
    known = {}
    for user, row in dict(zip(workload.user.tolist(), workload.user_index, strict=True)).items():
        completed = int(history.completed[row])
        cells = [k % RING_JOBS for k in range(max(0, completed - RING_JOBS), completed)]
        columns = (history.run_time, history.requested_time, history.processors)
        records = zip(*(column[row, cells].tolist() for column in columns), strict=True)
        known[user] = reference_index.User(
            completed, tuple(reference_index.Record(*record) for record in records)
        )
    return known


def index_of(policy: Any) -> Any:
    """Return an index policy as the reference has it, any other policy unchanged."""
    if policy == "SMITH-URGENT":
        return reference_capped.SMITH_URGENT
    if isinstance(policy, Policy):
        weights = policy.parameters.tolist()
        if policy.order == hpcgym.as_policy("SMITH-URGENT").order:
            return reference_capped.SMITH_URGENT.with_numbers(*weights[:7])
        index = reference_index.Index(weights[:6])
        index.network = () if policy.network is None else policy.network.tolist()
        return index.with_more(*weights[6:])
    return reference_index.RULES.get(policy, policy) if isinstance(policy, str) else policy


def asks_lives(mode: str) -> bool:
    """Tell whether a mode is in `reference_trials`, which knows no corrections."""
    return any(word in mode for word in ("+trial", "by=", "widest=", "pressed="))


def by_reference(workload: Workload, **settings: Any) -> list[Start]:
    """Schedule with `tests/reference.py`, or with the reference of a mode or of predictions."""
    known = history_of_users(workload)
    processors = workload.machine_processors
    scheduler = reference_prediction if "correction" in settings else reference
    named = settings.get("estimates", "requested")
    if isinstance(named, str) and named.startswith("f-model"):
        model, executed = as_predictor(named), workload.run_time
        if settings.get("kill_at_limit", True):
            executed = np.minimum(executed, workload.requested_time)
        settings["estimates"] = reference_prediction.f_model(
            executed.tolist(), workload.job_id.tolist(), model.f, model.seed
        )
    mode = str(settings.get("backfill", "easy"))
    name = "cost-benefit" if mode.startswith("easy:") else mode.partition(":")[0]
    if asks_lives(mode):
        name = "trial"
    if name not in reference.Machine.MODES:
        settings["kind"] = KINDS.get(name, reference_profile.Planner)
    orders = {key: index_of(settings[key]) for key in ORDERS if key in settings}
    learns = any(isinstance(order, reference_index.Index) for order in orders.values())
    if learns or name in ("cost-benefit", "trial"):
        kind = settings.get("kind", reference.Machine)
        start = workload.time_offset if workload.unix_start is None else workload.unix_start
        known_users, base = records_of_users(workload), reference_capped.UrgentReader
        settings["kind"] = reference_index.reader(known_users, start, kind, base)
    settings |= orders
    return scheduler.simulate(jobs_of(workload), processors, history=known, **settings)


def by_package(workload: Workload, **settings: Any) -> list[Start]:
    """Schedule with `hpcgym.simulate`."""
    given = settings.get("estimates", "requested")
    if callable(given):

        def ask(job: Submission) -> int:
            """Call the predictor with the arguments of `reference_prediction.Ask`."""
            ended = list(zip(job.run_times.tolist(), job.requested_times.tolist(), strict=True))
            return given(job.requested_time, job.processors, ended)

        settings["estimates"] = ask
    elif not isinstance(given, str):
        settings["estimates"] = np.asarray(given)
    schedule = hpcgym.simulate(workload, **settings)
    columns = (schedule.start_time, schedule.backfilled, schedule.thresholded)
    return [Start(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def simulator_of(
    workload: Workload,
    policy: str | Sequence[float] = "FCFS",
    decide: str = "never",
    *,
    full_passes: bool = False,
    **settings: Any,
) -> Simulator:
    """Make a simulator, its invariants checked at every event."""
    if not isinstance(settings.get("estimates", ""), str):
        settings["estimates"] = np.asarray(settings["estimates"])
    return Simulator(
        workload,
        SchedulerSettings(policy, **settings),
        decide=decide,
        check_invariants=True,
        full_passes=full_passes,
    )


def starts_again(simulator: Simulator) -> list[int]:
    """Return the starts of a simulation that is run anew where another has left what it likes."""
    for name, array in simulator.state.arrays.items():
        if not layout_of(Sim).axes[name].zeros:
            array.fill(77)
    simulator.reset()
    simulator.run()
    return simulator.start_time.tolist()


ENGINES: dict[str, Callable[..., list[Start]]] = {"reference": by_reference, "hpcgym": by_package}


def first_difference(workload: Workload, **settings: Any) -> str:
    """Compare start and flags of every job; return "" where all are equal."""
    expected, got = by_reference(workload, **settings), by_package(workload, **settings)
    differing = [j for j, pair in enumerate(zip(expected, got, strict=True)) if pair[0] != pair[1]]
    if not differing:
        return ""
    j = min(differing, key=lambda k: (min(expected[k].start_time, got[k].start_time), k))
    job = jobs_of(workload)[j]
    return (
        f"{len(differing)} of {len(expected)} jobs differ; the first, in row {j}, {job}: "
        f"reference {expected[j]}, hpcgym {got[j]}"
    )


def check_copies_go_on_alike(simulator: Simulator) -> None:
    """Run a simulator, a copy and a pickle of it, then itself again: all schedules are equal."""
    copied, pickled = simulator.copy(), pickle.loads(pickle.dumps(simulator))
    for one in (simulator, copied, pickled):
        while one.run():
            pass
    first = simulator.start_time.copy()
    np.testing.assert_array_equal(copied.start_time, first)
    np.testing.assert_array_equal(pickled.start_time, first)
    simulator.reset()
    while simulator.run():
        pass
    np.testing.assert_array_equal(simulator.start_time, first)
