"""The locality study's engine, against a plain-Python reference and against SimGrid."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_locality as reference
from papers.locality import engine
from papers.locality.platform import CLUSTERS, HOSTS, Platform, heterogeneous, homogeneous
from papers.locality.sharing import Activities, rates

DATA = Path(__file__).parents[2] / "data" / "locality"
ORACLE = DATA / "simgrid_oracle.py"
CASES = json.loads((DATA / "simgrid-cases.json").read_text(encoding="utf-8"))["cases"]
DUPLEX = {"full-duplex": ("SPLITDUPLEX", 1.0), "half-duplex": ("SHARED", 2.0)}

PLATFORMS = [
    homogeneous(),
    homogeneous(half_duplex=True),
    heterogeneous("high", "o4"),
    heterogeneous("low", "o2", half_duplex=True),
]
SHARING = {"fair-bottleneck": reference.fair_bottleneck, "max-min": reference.max_min}


def activities_on(
    hosts: Sequence[Sequence[int]], flop: Sequence[float], traffic: Sequence[float]
) -> Activities:
    """Return jobs that are to run on these hosts."""
    clusters = [np.bincount(np.array(one) // 16, minlength=CLUSTERS) for one in hosts]
    zeros = [np.zeros(len(hosts)) for _ in range(3)]
    limit = np.full(len(hosts), np.inf)
    return Activities(np.array(flop), np.array(traffic), limit, np.array(clusters), *zeros)


def plainly(platform: Platform) -> reference.Platform:
    """Return a platform as the reference takes it."""
    return reference.Platform(*platform[:5], half_duplex=platform.directions == 2.0)


def hosts_of(words: np.ndarray) -> list[int]:
    """Return the hosts of a set."""
    bits = int(words[0]) | int(words[1]) << 64
    return [host for host in range(HOSTS) if bits >> host & 1]


# --- Against SimGrid ------------------------------------------------------------------------------


@pytest.mark.parametrize("duplex", DUPLEX)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}")
def test_completions_are_those_that_simgrid_recorded(case: dict[str, Any], duplex: str) -> None:
    by_cluster = (np.array(case[key]) for key in ("cp", "bw_c", "bw_s"))
    platform = Platform(*by_cluster, case["bw_b"], case["lat"], DUPLEX[duplex][1])
    jobs = case["jobs"]
    hosts, flop, traffic, start = (
        [job[key] for job in jobs] for key in ("hosts", "flop", "bytes", "start")
    )
    ended = engine.replay(np.array(start), activities_on(hosts, flop, traffic), platform)
    assert ended == pytest.approx(case["completion_times"][duplex], rel=1e-9)


@cache
def python_with_simgrid() -> str | None:
    """Return a Python that has SimGrid, which distributions install for their own alone."""
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        asked = [python or "", "-c", "import simgrid"]
        if python and Path(python).exists() and not subprocess.run(asked, capture_output=True).returncode:
            return python
    return None
