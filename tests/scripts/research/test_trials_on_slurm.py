"""Runs on a real Slurm with trials: what is drawn, what is read of them, and why there are none."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from hpcgym.base.errors import EvaluationError
from research import slurm_chroot
from research.slurm_chroot import make_chroot
from research.trials_on_slurm import (
    ARMS,
    BOUND_S,
    CPUS,
    FORETOLD,
    arm_of,
    drawn_jobs,
    foretold,
    interval,
    pairs,
    recorded,
)

HEADER = "JobIDRaw|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|ReqCPUS"
PLAIN = (
    "1|main|normal|100|100|110|130|20|9|COMPLETED|4\n2|main|normal|100|100|130|140|10|9|COMPLETED|2"
)
TRIED = (
    "1|trial|trial|100|100|101|111|10|9|REQUEUED|4\n"
    "1|main|normal|111|117|120|140|20|9|COMPLETED|4\n"
    "2|trial|trial|100|100|101|111|10|9|COMPLETED|2"
)


def written(folder: Path, seed: int, arm: str, rows: str) -> Path:
    """Write the accounting of a run."""
    path = arm_of(folder, seed, arm) / "sacct.txt"
    path.parent.mkdir(parents=True)
    path.write_text(f"{HEADER}\n{rows}\n")
    return path


def test_waits_are_from_the_first_submission_to_the_last_start(tmp_path: Path) -> None:
    """Job 1 waits 20 s in all and runs 20 of them in use; job 2 waits 1 s, and ends on trial."""
    found = recorded(written(tmp_path, 1, "trials", TRIED))
    assert found.wait == (20 + 1) / 2
    assert found.slowdown == ((20 + 20) / 20 + (1 + 10) / 10) / 2
    assert (found.longest, found.kills, found.tried) == (20, 0.5, 1)
    assert found.waste == pytest.approx(10 * 4 / (20 * 4 + 10 * 2))


def test_a_pair_is_a_row_with_what_is_foretold(tmp_path: Path) -> None:
    written(tmp_path, 3, "plain", PLAIN)
    written(tmp_path, 3, "trials", TRIED)
    table = pairs(tmp_path, [3])
    row = table.loc["3"]
    assert (row["plain, wait"], row["trials, wait"]) == (20, 10.5)
    assert row["ratio"] == pytest.approx(1.55 / ((30 / 20 + 40 / 10) / 2))
    told = {arm: foretold(drawn_jobs(3), FORETOLD[arm]) for arm in ARMS}
    assert row["foretold"] == told["trials"].slowdown / told["plain"].slowdown
    assert row["kills, foretold"] > 0
    assert np.allclose(table.loc["all"], row)


def test_drawn_jobs_are_those_of_the_seed_and_fit_the_node() -> None:
    jobs = drawn_jobs(1)
    assert np.array_equal(jobs.run_time, drawn_jobs(1).run_time)
    assert not np.array_equal(jobs.run_time, drawn_jobs(2).run_time)
    assert jobs.processors.max() <= CPUS
    assert (jobs.run_time >= max(BOUND_S, 2)).all() and (jobs.run_time <= 120).all()
    assert (jobs.requested_time % 60 == 0).all() and (jobs.requested_time > jobs.run_time).all()


def test_interval_is_around_the_geometric_mean() -> None:
    mean, low, high = interval([0.5, 0.5, 2.0, 2.0])
    assert mean == pytest.approx(1)
    assert low < 1 < high
    assert interval([0.7, 0.7]) == pytest.approx((0.7, 0.7, 0.7))


def test_reason_is_said_where_there_can_be_no_such_slurm(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EvaluationError, match="only root"):
        make_chroot(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "debootstrap" else tool)
    with pytest.raises(EvaluationError, match="debootstrap must be installed"):
        make_chroot(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda tool: tool)
    failing = tmp_path / "bin"
    failing.mkdir()
    (failing / "debootstrap").write_text("#!/bin/sh\necho E: no such mirror\nexit 1\n")
    (failing / "debootstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{failing}:/usr/bin:/bin")
    with pytest.raises(EvaluationError, match="debootstrap trixie: E: no such mirror"):
        make_chroot(tmp_path / "root")
    assert not slurm_chroot.why_not()
