"""Write the generated logs of the shelf `traces/`, always the same bytes."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.core.workload import Workload
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.packing import read_bytes
from hpcgym.trace.sessions import LONGEST_S, MONDAY_UNIX_S, session_workload
from hpcgym.trace.swf import SwfLog, log_of, write_swf
from hpcgym.trace.synthetic import LONGEST_REQUEST_S, synthetic_workload
from research.hetero import hetero_workload

SHELF = Path(__file__).resolve().parent.parent / "traces"
NAME = "synthetic-256"
SEED = 1
N_JOBS = 10_000
LOAD = 0.6
SESSIONS = {
    "synthetic-busy-weeks": (18, 3, {}),
    "synthetic-fair-share": (12, 1, {"machine_processors": 32, "n_users": 24, "load": 0.8}),
}
"""Logs of sessions: weeks, seed, and what is unusual."""

HETERO_NAME = "hetero-64"
HETERO_LOAD = 0.55

NOTES = "Lublin-Feitelson jobs, Tsafrir's estimates, users with habits"
SESSION_NOTES = "users who work in sessions, hpcgym/trace/sessions.py"


def synthetic_256() -> SwfLog:
    """Draw the default log."""
    drawn = synthetic_workload(
        N_JOBS, np.random.default_rng(SEED), machine_processors=256, load=LOAD, name=NAME
    )
    return _log_of(drawn, NOTES, SEED, LONGEST_REQUEST_S)


def of_sessions(name: str) -> SwfLog:
    """Draw a log of sessions."""
    weeks, seed, unusual = SESSIONS[name]
    drawn = session_workload(weeks, np.random.default_rng(seed), name=name, **unusual)
    return _log_of(drawn, SESSION_NOTES, seed, LONGEST_S)


def _log_of(drawn: Workload, notes: str, seed: int, longest_s: int) -> SwfLog:
    """Return a log whose waits are those of FCFS with EASY backfilling."""
    waits = simulate(drawn, "FCFS").wait_time
    header = (
        "; Acknowledge: hpcgym",
        "; TimeZoneString: Etc/UTC",
        f"; MaxRuntime: {longest_s}",
        f"; Note: synthetic: {notes}",
        f"; Note: made by scripts/make_traces.py with seed {seed}",
        "; Note: waits are those of FCFS with EASY backfilling",
    )
    return log_of(replace(drawn, wait_time=waits, unix_start=MONDAY_UNIX_S), header)


def hetero_64() -> bytes:
    """Draw the log for nodes, and lay it out as a table of jobs in CSV."""
    drawn = hetero_workload(N_JOBS, np.random.default_rng(SEED), load=HETERO_LOAD, name=HETERO_NAME)
    text: str = table_of(drawn).to_csv(index=False, lineterminator="\n")
    return text.encode()


def table_of(workload: Workload) -> pd.DataFrame:
    """Lay a workload on nodes out as a table of jobs; partitions by name, flags as 0 and 1."""
    assert workload.machine is not None and workload.chunks is not None
    keys = ("job_id", "submit_time", "run_time", "requested_time", "chunks")
    columns = {key: getattr(workload, key) for key in keys}
    columns["cpus"] = workload.processors // workload.chunks
    columns |= {key: getattr(workload, key) for key in ("gpus", "memory_mb")}
    columns |= {key: getattr(workload, key).astype(int) for key in ("spread", "exclusive")}
    columns["partition"] = np.array(workload.machine.partition_names)[workload.partition]
    return pd.DataFrame(columns | {"user": workload.user})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=SHELF, help="where to write; default: shelf")
    folder = parser.parse_args().folder
    logs = {NAME: synthetic_256()} | {name: of_sessions(name) for name in SESSIONS}
    paths = [folder / f"{name}.swf.gz" for name in logs]
    for path, log in zip(paths, logs.values(), strict=True):
        write_swf(path, log, force=True)
    packed = gzip.compress(hetero_64(), compresslevel=9, mtime=0)
    paths.append(folder / f"{HETERO_NAME}.csv.gz")
    paths[-1].write_bytes(packed)
    for path in paths:
        digest = hashlib.sha256(read_bytes(path)).hexdigest()
        print(f"{path}: sha256 of the text {digest}")
        if folder.resolve() == SHELF:
            state_digest(SHELF / f"{path.name.split('.')[0]}.toml", digest)


def state_digest(card: Path, digest: str) -> None:
    """Write the digest of a log into its entry."""
    text = card.read_text(encoding="utf-8")
    card.write_text(re.sub(r'(?m)^sha256 = ".*"$', f'sha256 = "{digest}"', text), "utf-8")


if __name__ == "__main__":
    main()
