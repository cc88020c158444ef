"""What a site may set beside order and mode is tried as it would be set, or a word says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.core.settings import SchedulerSettings
from hpcgym.machine import Machine, NodeType
from hpcgym.site import Reading, report_on
from hpcgym.site.log import read_site_log
from hpcgym.site.options import Option
from hpcgym.site.rules import cut_requests, rules_beside

SLURM = Path(__file__).parents[1] / "data" / "slurm"


def tried(file: Path, **settings: Any) -> tuple[dict[str, Option], str]:
    """Return options by id, and all that is said of those left out."""
    found = list(rules_beside(SchedulerSettings(**settings), read_site_log(file)))
    options = {option.id: option for option in found if isinstance(option, Option)}
    return options, "\n".join(said for said in found if isinstance(said, str))


@pytest.mark.parametrize(
    ("backfill", "made"),
    [
        ("slurm:max_job_test=20", {"max_job_test": "slurm:max_job_test=40"}),
        ("slurm:max_job_test=inf,interval=1", {}),
        ("depth:k=3", {"k": "depth:k=6"}),
        ("easy", {}),
    ],
)
def test_depth_is_doubled_and_the_interval_halved_where_there_is_one(
    fcfs_log: Path, backfill: str, made: dict[str, str]
) -> None:
    options, said = tried(fcfs_log, backfill=backfill)
    if backfill == "slurm:max_job_test=20":
        made |= {"interval": "slurm:max_job_test=20,interval=15"}
    found = {key: option for key, option in options.items() if option.group == "mode"}
    assert {key: str(option.settings.backfill) for key, option in found.items()} == made
    assert ("has neither" in said) == (not made)


def test_a_limit_of_users_is_left_out_with_a_word_beside_modes_that_know_none(
    fcfs_log: Path,
) -> None:
    options, said = tried(fcfs_log)
    (limit,) = options["user-jobs"].settings.events
    assert limit.per == "user" and limit.jobs and limit.cpus is None
    options, said = tried(fcfs_log, backfill="depth:k=3")
    assert "user-jobs" not in options
    assert " jobs a user: running limits and backfilling depth are not simulated together" in said


def test_the_largest_limit_is_the_least_that_few_jobs_of_the_first_half_outran(
    fcfs_log: Path,
) -> None:
    log = read_site_log(fcfs_log, Reading(keep_names=True))
    option = tried(fcfs_log)[0]["max-time"]
    hours = int(option.name.split()[1].replace(",", ""))
    early = log.workload.run_time[~log.is_judged] / 3600
    assert (early > hours).mean() <= 0.01 < (early > hours - 1).mean()
    beyond = log.is_judged & (log.workload.requested_time > 3600 * hours)
    assert option.what.startswith(f"{beyond.sum():,} jobs of the second half ask for more")
    assert option.change is not None
    made = option.change(log.workload)
    assert made.requested_time.max() == 3600 * hours
    assert np.array_equal(
        made.requested_time, np.minimum(log.workload.requested_time, 3600 * hours)
    )
    assert np.array_equal(made.run_time, log.workload.run_time)
    assert np.array_equal(
        cut_requests(made, 60).requested_time, np.minimum(made.requested_time, 60)
    )


@pytest.mark.long
def test_another_machine_is_tried_as_a_simulation_on_it(site_log: Callable[..., Path]) -> None:
    file, there = site_log("FCFS"), Machine((NodeType(20, cpus=8),))
    report = report_on(file, Reading(machine2=there))
    row = next(row for row in report["options"] if row["id"] == "machine2")
    jobs = hpcgym.load_workload(file, machine=there)
    waits = hpcgym.simulate(jobs, "FCFS", kill_at_limit=False).wait_time / 3600
    judged = jobs.submit_time >= jobs.submit_time[-1] // 2
    assert row["wait"]["mean"] == pytest.approx(waits[judged].mean())
    assert (row["group"], row["first"]) == ("machine", True)
    if row["told"] == "better" and row["gain_h"] == max(
        each["gain_h"] or 0 for each in report["options"] if each["group"] != "simulated only"
    ):
        assert report["answer"][0].startswith("On the other machine (20 nodes, 160 cpus")
    sizes = {each["id"]: each["processors"] for each in report["machine_sizes"]}
    assert sizes["machine2"] == 160


def test_jobs_that_cannot_run_on_the_other_machine_are_refused_with_their_lines(
    refuse: Callable[..., str], tmp_path: Path
) -> None:
    small = tmp_path / "small.toml"
    small.write_text("[[nodes]]\ncount = 1\ncpus = 8\n")
    words = ("report", SLURM / "sacct-allocations.txt", "--timezone", "UTC", "-o")
    said = refuse(*words, tmp_path / "a.html", "--machine2", small)
    assert "jobs cannot run on 1 nodes, 8 cpus, 1 partition, the first job " in said
    small.write_text("[[nodes]]\ncount = 0\n")
    assert "small.toml" in refuse(*words, tmp_path / "a.html", "--machine2", small)
    assert not list(tmp_path.glob("*.html"))
