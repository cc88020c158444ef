"""A site whose scheduler is known: its log is a schedule that hpcgym made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpcgym
from hpcgym.machine import Machine
from hpcgym.site import report_on

N_JOBS = 3_000


@pytest.fixture(scope="session")
def site_log(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write the log of a site, as (policy, machine, **settings of its scheduler) -> file."""
    folder = tmp_path_factory.mktemp("site")

    def write(
        policy: str, *, machine: Machine | None = None, n_jobs: int = N_JOBS, **settings: Any
    ) -> Path:
        jobs = hpcgym.load_workload("synthetic-busy-weeks", machine=machine).select(range(n_jobs))
        file = folder / f"{policy}-{len(list(folder.iterdir()))}.swf"
        hpcgym.simulate(jobs, policy, kill_at_limit=False, **settings).write(file)
        return file

    return write


@pytest.fixture(scope="session")
def fcfs_log(site_log: Callable[..., Path]) -> Path:
    """The log of a site that has FCFS with EASY."""
    return site_log("FCFS")


@pytest.fixture(scope="session")
def fcfs_report(fcfs_log: Path) -> dict[str, Any]:
    """The report on that site."""
    return report_on(fcfs_log, command="hpcgym report fcfs.swf")
