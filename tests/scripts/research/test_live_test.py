"""What the live test makes of the files of its runs."""

import pandas as pd
import pytest

from research.live_test import compared, restoring, seen


def write(folder, arm, seed, jobs):
    """Write a run: jobs of (wait, run time)."""
    rows = [{"job": 1, "Submit": 5, "Start": 5 + wait, "End": 5 + wait + run} for wait, run in jobs]
    pd.DataFrame(rows).to_csv(folder / f"{arm}-{seed}.csv", index=False)


def test_waits_and_bounded_slowdowns_are_those_of_the_files(tmp_path):
    write(tmp_path, "fcfs", 1, [(20, 5), (0, 60)])
    write(tmp_path, "apply", 1, [(5, 5), (6, 60)])
    found = seen(tmp_path, 1)
    assert found["fcfs"] == {"wait": 10.0, "bsld": pytest.approx((2.5 + 1.0) / 2)}
    assert found["apply"] == {"wait": 5.5, "bsld": pytest.approx((1.0 + 1.1) / 2)}


def test_changes_are_means_of_pairs_within_their_interval():
    runs = {
        seed: {"fcfs": {"wait": before}, "apply": {"wait": after}}
        for seed, (before, after) in enumerate([(10, 5), (20, 18), (40, 30)])
    }
    row = compared(runs, "wait")
    assert row["fcfs"] == pytest.approx(70 / 3) and row["apply"] == pytest.approx(53 / 3)
    assert row["change"] == pytest.approx((-50 - 10 - 25) / 3)
    assert row["change_low"] < -50 < row["change"] < -10 < row["change_high"]


def test_a_job_whose_priority_or_site_factor_differs_is_not_restored(tmp_path):
    names = ("before", "applied", "after")
    kinds = ([(9, 0), (12, 3), (9, 0)], [(9, 0), (9, 0), (8, 0)], [(9, 0), (11, 2), (9, 2)])
    rows = []
    for job, moments in enumerate(kinds):
        row = {"job": job}
        for name, (priority, site) in zip(names, moments, strict=True):
            row |= {f"priority_{name}": priority, f"site_{name}": site}
        rows.append(row)
    pd.DataFrame(rows).to_csv(tmp_path / "restored-1.csv", index=False)
    assert restoring(tmp_path, [1]) == (2, 1, 3)
