"""Real logs on machines of nodes: every start, node, chunk and kind equals the reference's."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import reference_nodes
from hpcgym.core.workload import Workload
from nodes_of_kernels import MACHINES, first_difference_on_log, log_on_nodes

FIRST = {"KTH-SP2-1996-2.1-cln": 2_000, "HPC2N-2002-2.2-cln": 60_000}
"""The first row of the part of each log; there, most jobs of HPC2N ask for memory."""

SETTINGS = [
    {"depth": 1},
    {"depth": 1, "placement": "best-effort-local"},
    {"depth": 2, "placement": "best-effort-local"},
    {"conservative": True, "planned": 50},
]

on_logs = pytest.mark.parametrize("log", MACHINES)
in_settings = pytest.mark.parametrize("settings", SETTINGS, ids=str)


@cache
def whole(path: Path) -> Workload:
    """Read a log onto its machine once per process."""
    return log_on_nodes(path)


def part_of(path: Path, n: int) -> Workload:
    """Return n jobs of a log."""
    workload, first = whole(path), FIRST[path.name.removesuffix(".swf.gz")]
    rows = np.arange(len(workload))
    return workload.select((rows >= first) & (rows < first + n))


def test_the_part_of_hpc2n_asks_for_memory(real_log):
    part = part_of(real_log("HPC2N-2002-2.2-cln"), 100)
    assert (part.memory_mb > 0).mean() > 0.5


@pytest.mark.long
@on_logs
@in_settings
def test_part_of_a_log_on_nodes_starts_as_the_reference_for_logs_does(real_log, log, settings):
    assert not first_difference_on_log(part_of(real_log(log), 300), **settings)


@pytest.mark.slow
@on_logs
@in_settings
def test_part_of_a_log_on_nodes_starts_as_the_slow_reference_does(real_log, log, settings):
    part = part_of(real_log(log), 300)
    assert not first_difference_on_log(part, reference_nodes.simulate, **settings)


@pytest.mark.slow
@on_logs
@in_settings
def test_months_of_a_log_on_nodes_start_as_the_reference_for_logs_does(real_log, log, settings):
    assert not first_difference_on_log(part_of(real_log(log), 5_000), **settings)
