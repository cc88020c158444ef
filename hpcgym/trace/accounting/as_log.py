"""Runs of accounting as a log and as a workload, with the names that the site uses.

Source: Specification, section 14, "A log".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.trace.accounting.charged import held_processors
from hpcgym.trace.accounting.rows import NAMES
from hpcgym.trace.accounting.runs import Accounting
from hpcgym.trace.packing import unpacked_name
from hpcgym.trace.swf import FIELDS, GUESSED_SIZE, SwfLog, per_processor

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.core.workload import Workload
    from hpcgym.machine import Machine

REQUESTS = ("chunks", "cpus", "gpus", "memory_mb", "spread", "exclusive", "partition")


def as_log(accounting: Accounting, path: str | Path, machine: Machine | None = None) -> SwfLog:
    """Lay runs out as a log; names become numbers that comments and `SwfLog.names` explain.

    Beside it is what the runs asked of nodes. A machine that counts processors knows no whole
    nodes: without `machine` a run that had such asks for the processors that it held. On one that
    states no partitions all runs are in that of all nodes.
    """
    import pandas as pd

    runs = accounting.runs
    asked = (runs["chunks"] * runs["cpus"]).to_numpy()
    processors = held_processors(runs) if machine is None else asked
    begin = int(runs["submit_time"].min())
    charged = np.maximum(runs["charged"], 1)
    asked_kb = runs["chunks"] * runs["memory_mb"] * 1024
    asked_kb = asked_kb.where(asked_kb > 0, runs["asked_memory_kb"])
    known = {
        **{key: runs[key] for key in ("job_id", "wait_time", "run_time", "requested_time")},
        "status": runs["status"],
        "submit_time": runs["submit_time"] - begin,
        "allocated_processors": charged,
        "used_memory": per_processor(runs["used_memory_kb"], charged),
        "requested_processors": processors,
        "requested_memory": per_processor(asked_kb, processors),
    }
    header = ["; Version: 2.2", f"; MaxJobs: {len(runs)}", f"; MaxRecords: {len(runs)}"]
    header += [f"; UnixStartTime: {begin}"]
    if accounting.machine_processors is not None:
        header.append(f"; MaxProcs: {accounting.machine_processors}")
        if accounting.is_guess:
            header.append(f"; Note: MaxProcs is {GUESSED_SIZE}")
    names: dict[str, tuple[str, ...]] = {}
    for key in NAMES:
        known[key], names[key] = _numbered(runs[key])
        listed = enumerate(names[key], start=1)
        header += [f"; {key.capitalize()}: {number} {' '.join(n.split())}" for number, n in listed]
    if "after" in runs:
        known |= {"preceding_job": runs["after"], "think_time": runs["think_time"]}
    records = pd.DataFrame({field: known.get(field, -1) for field in FIELDS})
    further = [key for key in ("array", "array_limit", "after", "think_time") if key in runs]
    requests = runs[[*REQUESTS, *further]].set_axis(accounting.lines, axis=0)
    if machine is not None and not machine.has_partitions:
        requests["partition"] = ""
    name, said = Path(unpacked_name(path)).stem, accounting.in_short
    return SwfLog(name, Path(path), tuple(header), records, (), requests, names, said)


def to_workload(
    accounting: Accounting,
    machine: Machine | None = None,
    processors: int | None = None,
    **options: Any,
) -> Workload:
    """Return the runs as jobs, with recorded waits; `Workload.source` has names.

    Args:
        accounting: What `read_accounting` returned, with the same `machine`.
        machine: A machine of nodes; without one, jobs ask for counted processors.
        processors: Size of the machine; default the header's, or a guess.
        **options: Further keywords of `hpcgym.trace.clean`.

    Raises:
        TraceError: As `hpcgym.trace.clean`.
    """
    from hpcgym.trace.clean import clean

    log = as_log(accounting, accounting.formats[0][0], machine)
    return clean(log, machine=machine, machine_processors=processors, **options)[0]


def _numbered(names: pd.Series[str]) -> tuple[pd.Series[int], tuple[str, ...]]:
    """Return names numbered from 1 by first appearance, "" as -1; names that are numbers stay."""
    import pandas as pd

    known = [name for name in pd.unique(names) if name]
    if all(name.isascii() and name.isdigit() and len(name) < 16 for name in known):
        return names.map(lambda name: int(name or -1)), ()
    numbers = {name: number for number, name in enumerate(known, start=1)}
    return names.map(lambda name: numbers.get(name, -1)), tuple(known)
