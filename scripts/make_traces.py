"""Write the synthetic log of the shelf `traces/` and the shelf's index, always the same bytes."""

from __future__ import annotations

import argparse
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from hpcgym.schedule import simulate
from hpcgym.trace.catalogue import shelf_index
from hpcgym.trace.swf import SwfLog, log_of, read_bytes, write_swf
from hpcgym.trace.synthetic import LONGEST_REQUEST_S, synthetic_workload

SHELF = Path(__file__).resolve().parent.parent / "traces"
NAME = "synthetic-256"
SEED = 1
N_JOBS = 10_000
LOAD = 0.6
MONDAY_UNIX_S = 1_767_571_200  # 2026-01-05 00:00 UTC

HEADER = (
    "; Acknowledge: hpcgym",
    "; TimeZoneString: Etc/UTC",
    f"; MaxRuntime: {LONGEST_REQUEST_S}",
    "; Note: synthetic: Lublin-Feitelson jobs, Tsafrir's estimates, users with habits",
    f"; Note: made by scripts/make_traces.py with seed {SEED}",
    "; Note: waits are those of FCFS with EASY backfilling",
)


def synthetic_256() -> SwfLog:
    """Draw the log; its waits are those of FCFS with EASY backfilling."""
    drawn = synthetic_workload(
        N_JOBS, np.random.default_rng(SEED), machine_processors=256, load=LOAD, name=NAME
    )
    waits = simulate(drawn, "FCFS").wait_time
    return log_of(replace(drawn, wait_time=waits, unix_start=MONDAY_UNIX_S), HEADER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=SHELF, help="where to write; default: shelf")
    folder = parser.parse_args().folder
    log = folder / f"{NAME}.swf.gz"
    write_swf(log, synthetic_256(), force=True)
    digest = hashlib.sha256(read_bytes(log)).hexdigest()
    print(f"{log}: sha256 of the text {digest}")
    if folder.resolve() == SHELF:
        card = SHELF / f"{NAME}.toml"
        text = card.read_text(encoding="utf-8")
        card.write_text(re.sub(r'(?m)^sha256 = ".*"$', f'sha256 = "{digest}"', text), "utf-8")
        (SHELF / "README.md").write_text(shelf_index(), encoding="utf-8")


if __name__ == "__main__":
    main()
