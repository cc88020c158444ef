"""Queues of a real Slurm as it printed them while drawn jobs came and went, and what became of all.

Of a run there is a folder for each reading, and `sacct.txt` of the whole run.
"""

from __future__ import annotations

import time
from pathlib import Path

from hpcgym.base.output import writing
from hpcgym.site.live.readings import asked
from research.toy_slurm import TICK_S, drawn_jobs, n_in_queue, recorded_text

READINGS = ("squeue", "sprio", "sinfo")
APART_S = 20.0  # between readings


def record(folder: Path, seeds: int, n_jobs: int) -> None:
    """Record runs of seeds 0, 1, ..., but for those that are there."""
    for seed in range(seeds):
        if not (folder / f"{seed}" / "sacct.txt").exists():
            record_run(folder / f"{seed}", seed, n_jobs)


def record_run(folder: Path, seed: int, n_jobs: int) -> None:
    """Submit drawn jobs when it is their time, read the queue meanwhile, and wait for all ends."""
    jobs = drawn_jobs(seed, n_jobs)
    ids: list[str] = []
    begun, n_readings = time.monotonic(), 0
    while len(ids) < len(jobs) or n_in_queue(ids):
        passed = time.monotonic() - begun
        if passed >= APART_S * (n_readings + 1):
            n_readings += 1
            texts = {name: asked(name).text for name in READINGS}
            (folder / f"{n_readings}").mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (folder / f"{n_readings}" / f"{name}.txt").write_text(text, encoding="utf-8")
        while len(ids) < len(jobs) and jobs[len(ids)].delay <= passed:
            ids.append(jobs[len(ids)].submit())
        time.sleep(TICK_S)
    with writing(folder / "sacct.txt") as partial:
        partial.write_text(recorded_text(ids), encoding="utf-8")
