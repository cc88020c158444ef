"""The jobs of the worked examples of the documentation."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate


def of_minutes(*minutes: list[int], processors: list[int], machine: int) -> Workload:
    """Return jobs whose submit, run and requested times are minutes."""
    submit, run, request = (np.array(one) * 60 for one in minutes)
    columns = (submit, run, request, processors)
    return Workload.from_arrays(*columns, machine_processors=machine, name="eight jobs")


def example() -> Workload:
    """Return the eight jobs of docs/backfilling.md, on five processors."""
    times = [0, 0, 0, 1, 1, 1, 1, 1], [3, 6, 4, 4, 4, 2, 4, 1], [8, 6, 4, 4, 4, 2, 4, 6]
    return of_minutes(*times, processors=[2, 4, 1, 3, 1, 3, 2, 1], machine=5)


def starts(modes: Iterable[str]) -> pd.DataFrame:
    """Return where each of the eight jobs starts under each mode, and the means; minutes."""
    rows = []
    for mode in modes:
        schedule = simulate(example(), backfill=mode)
        metrics = schedule.metrics()
        row: dict[str, object] = {"backfill": f"`{mode}`"}
        row |= {f"{job + 1}": start for job, start in enumerate(schedule.start_time // 60)}
        row["mean wait"] = f"{metrics['mean_wait_time'] / 60:.3g}"
        row["mean bounded slowdown"] = f"{metrics['mean_bsld']:.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def tried() -> Workload:
    """Return the eight jobs of docs/trials.md, on six processors."""
    submit, run = [0, 0, 1, 2, 3, 12, 14, 33], [40, 35, 10, 2, 20, 3, 15, 12]
    request = [60, 120, 30, 120, 120, 90, 15, 60]
    return of_minutes(submit, run, request, processors=[3, 1, 5, 2, 2, 1, 2, 1], machine=6)
