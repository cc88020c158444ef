"""A report finds the scheduler that a site has, and says what would change, to the second."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import HpcgymError
from hpcgym.machine import Machine, NodeType
from hpcgym.site import Reading, report_on
from hpcgym.site.log import half_of
from hpcgym.site.markdown import markdown_of
from hpcgym.site.outcome import Outcome, distance_h, log_ratios, share_apart
from hpcgym.site.page import page_html
from hpcgym.trace import read_swf
from hpcgym.trace.accounting import read_accounting, write_accounting

Jobs = list[dict[str, int]]
SLURM = Path(__file__).parents[1] / "data" / "slurm"


def rows_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in report["options"]}


def jobs_of(file: Path) -> Jobs:
    """Read a log without hpcgym's cleaning: what the report's numbers are recomputed from."""
    keys = ("job_id", "submit_time", "wait_time", "run_time", "requested_time", "user")
    records = read_swf(file).records[[*keys, "requested_processors"]]
    return [{key: int(value) for key, value in row.items()} for row in records.to_dict("records")]


def judged_of(jobs: Jobs) -> Jobs:
    split = (jobs[0]["submit_time"] + jobs[-1]["submit_time"]) // 2
    return [job for job in jobs if job["submit_time"] >= split]


def waits_h(file: Path, policy: str, **settings: Any) -> dict[int, float]:
    """Simulate by the public function: wait of each job by id, h."""
    jobs = hpcgym.load_workload(file)
    made = hpcgym.simulate(jobs, policy, kill_at_limit=False, **settings)
    return dict(zip(jobs.job_id.tolist(), (made.wait_time / 3600).tolist(), strict=True))


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "settings", "text"),
    [
        ("FCFS", {}, "FCFS, backfill easy, no threshold"),
        ("FCFS", {"backfill": "none"}, "FCFS, backfill none, no threshold"),
        ("FCFS", {"backfill": "conservative"}, "FCFS, backfill conservative, no threshold"),
        ("SAF", {"threshold": 200_000}, "SAF, backfill easy, threshold 55.6 h"),
    ],
)
def test_the_scheduler_that_a_site_has_is_found_and_nothing_is_missed(
    site_log: Callable[..., Path], policy: str, settings: dict[str, Any], text: str
) -> None:
    trusted = report_on(site_log(policy, **settings))["trust"]
    assert (trusted["setting"], trusted["misfit_h"]) == (text, 0)
    assert (trusted["verdict"], trusted["correlation"]) == ("near", pytest.approx(1))
    assert (trusted["same_class"], trusted["overfull_jobs"]) == (1, 0)
    assert trusted["recorded"] == trusted["simulated"]


def test_recorded_waits_are_those_of_the_second_half_of_the_log(
    fcfs_log: Path, fcfs_report: dict[str, Any]
) -> None:
    waits = [job["wait_time"] / 3600 for job in judged_of(jobs_of(fcfs_log))]
    row = rows_of(fcfs_report)["recorded"]
    assert fcfs_report["log"]["n_judged"] == len(waits)
    assert row["wait"]["mean"] == pytest.approx(statistics.fmean(waits))
    assert row["wait"]["median"] == pytest.approx(statistics.median(waits))
    assert row["wait"]["max"] == max(waits)
    assert row["long_share"] == sum(wait > 24 for wait in waits) / len(waits)


@pytest.mark.parametrize("policy", ["SAF", "SPF", "SQF", "WFP3", "SMITH-REG"])
def test_the_gain_of_an_order_is_what_its_simulation_says(
    fcfs_log: Path, fcfs_report: dict[str, Any], policy: str
) -> None:
    today, then = waits_h(fcfs_log, "FCFS"), waits_h(fcfs_log, policy, threshold=200_000)
    judged = [job["job_id"] for job in judged_of(jobs_of(fcfs_log))]
    gains = [today[job] - then[job] for job in judged]
    row = rows_of(fcfs_report)[policy.lower()]
    assert row["gain_h"] == pytest.approx(statistics.fmean(gains))
    assert row["losers"] == sum(gain < -1 / 6 for gain in gains) / len(gains)
    assert row["winners"] == sum(gain > 1 / 6 for gain in gains) / len(gains)


def test_waits_of_users_are_means_of_their_jobs(
    fcfs_log: Path, fcfs_report: dict[str, Any]
) -> None:
    recorded: dict[int, list[float]] = defaultdict(list)
    for job in judged_of(jobs_of(fcfs_log)):
        recorded[job["user"]].append(job["wait_time"] / 3600)
    expected = sorted((len(waits), statistics.fmean(waits)) for waits in recorded.values())
    found = sorted((row["n"], row["recorded"]) for row in fcfs_report["groups"]["user"])
    assert [n for n, _ in found] == [n for n, _ in expected]
    assert [wait for _, wait in found] == pytest.approx([wait for _, wait in expected])


def test_queue_and_processors_are_counted_at_each_step(
    fcfs_log: Path, fcfs_report: dict[str, Any]
) -> None:
    jobs, queue = jobs_of(fcfs_log), fcfs_report["queue"]
    begin = jobs[0]["submit_time"]
    for step in range(0, len(queue["series"]["recorded"]), 97):
        now = begin + step * queue["step_s"]
        waiting = busy = 0
        for job in jobs:
            start = job["submit_time"] + job["wait_time"]
            waiting += job["submit_time"] <= now < start
            busy += job["requested_processors"] * (start <= now < start + job["run_time"])
        assert queue["series"]["recorded"][step] == waiting
        assert queue["cpus"]["recorded"][step] == busy


def test_what_a_day_shows_never_holds_a_processor_twice(fcfs_report: dict[str, Any]) -> None:
    assert fcfs_report["days"]
    for day in fcfs_report["days"]:
        for boxes in day["schedules"].values():
            held = np.zeros((fcfs_report["queue"]["capacity"], 1440), dtype=int)
            for low, count, start, end, _ in boxes:
                held[low : low + count, math.ceil(start / 60) : end // 60] += 1
            assert held.max() == 1


@pytest.mark.long
def test_a_change_that_is_smaller_than_the_misfit_cannot_be_told(
    site_log: Callable[..., Path], tmp_path: Path
) -> None:
    text = site_log("FCFS").read_text().splitlines()
    header = [line for line in text if line.startswith(";")]
    jobs = [line.split() for line in text if not line.startswith(";")]
    later = 40 * 3600
    worse = [[job[0], job[1], str(int(job[2]) + later), *job[3:]] for job in jobs]
    file = tmp_path / "late.swf"
    file.write_text("\n".join([*header, *(" ".join(job) for job in worse)]) + "\n")
    report = report_on(file, Reading(processors=10**6))
    assert report["trust"]["verdict"] == "far"
    assert {row["told"] for row in report["options"]} == {None, "not distinguishable"}
    assert "cannot be told from today's" in report["answer"][0]


@pytest.mark.long
def test_the_answer_names_the_best_order_of_the_first_half(site_log: Callable[..., Path]) -> None:
    file = site_log("FCFS", n_jobs=20_000)
    jobs, report = jobs_of(file), report_on(file)
    late = {job["job_id"] for job in judged_of(jobs)}
    means = {
        policy: statistics.fmean(
            wait
            for job, wait in waits_h(file, policy, threshold=200_000).items()
            if job not in late
        )
        for policy in ("SAF", "SPF", "SQF", "WFP3", "SMITH-REG")
    }
    assert report["best"] == min(means, key=lambda policy: means[policy]).lower()
    row = rows_of(report)[report["best"]]
    assert row["told"] == "better"
    better = [row for row in report["options"] if row["told"] == "better"]
    set_by_sites = [row for row in better if row["group"] != "simulated only"]
    most = max(set_by_sites, key=lambda row: row["gain_h"])
    assert report["answer"][0].startswith(f"Under {most['name']} ")
    assert report["named"] == most["id"] in report["heat"]["waits"]
    change = {job["change_h"] for job in report["changed"]}
    assert max(map(abs, change)) > 0 and most["id"] in report["groups"]["cpus"][0]["waits"]


@pytest.mark.long
def test_names_are_hashed_unless_they_are_asked_for(tmp_path: Path, fcfs_log: Path) -> None:
    text = fcfs_log.read_text().splitlines()
    lines = ["JobID|User|Account|Partition|JobName|State|Submit|Start|End|TimelimitRaw|NCPUS"]
    for job in (line.split() for line in text if not line.startswith(";")):
        start = 10**9 + int(job[1]) + int(job[2])
        lines.append(
            f"{job[0]}|zoe-q|lab-q|batch|run-q|COMPLETED|{10**9 + int(job[1])}|{start}|"
            f"{start + int(job[3])}|{int(job[8]) // 60 + 1}|{job[7]}"
        )
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join(lines))
    assert not any(name in json.dumps(report_on(file)) for name in ("zoe-q", "lab-q", "run-q"))
    kept = report_on(file, Reading(keep_names=True))
    assert {job["user"] for job in kept["changed"]} == {"zoe-q"}
    assert "run-q" not in json.dumps(kept)


def test_that_jobs_hold_more_than_they_asked_for_is_told_first(tmp_path: Path) -> None:
    """Forty jobs of one thread each are charged the two of a core."""
    header = "JobID|User|Submit|Start|End|State|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|ReqCPUS"
    lines = [f"{header}|ReqTRES"]
    for n in range(40):
        at = 1_760_000_000 + 1_000 * n
        times = f"{at}|{at + 50}|{at + 650}|COMPLETED|600|20"
        lines.append(f"{n + 1}|ann|{times}|1|2|1|billing=1,cpu=1,node=1")
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join(lines) + "\n")
    report = report_on(file)
    line = "40 jobs hold what they were charged, not what they asked for, 2.00 times as many"
    assert report["trust"]["told"][0].startswith(line)
    assert line in markdown_of(report) and line in page_html(report)


@pytest.mark.long
def test_a_table_of_jobs_says_what_the_accounting_that_it_was_made_of_says(tmp_path: Path) -> None:
    sacct, table = SLURM / "sacct-allocations.txt", tmp_path / "jobs.csv"
    write_accounting(table, read_accounting(sacct, timezone="UTC"))
    first = report_on(sacct, Reading(timezone="UTC", keep_names=True))
    second = report_on(table, Reading(processors=32, keep_names=True))
    assert second["log"]["machine_is_guess"] is False
    assert rows_of(second)["recorded"]["wait"] == rows_of(first)["recorded"]["wait"]
    for by in ("user", "account", "partition"):
        named = [
            [(row["name"], row["n"], row["recorded"]) for row in report["groups"][by]]
            for report in (first, second)
        ]
        assert named[0] == named[1]


@pytest.mark.long
def test_a_machine_of_nodes_is_simulated_as_such(site_log: Callable[..., Path]) -> None:
    machine = Machine((NodeType(16, cpus=8),))
    file = site_log("FCFS", machine=machine)
    jobs_of_site = hpcgym.load_workload(file, machine=machine)
    report = report_on(file, Reading(machine=machine))
    assert report["log"]["machine"] == "16 nodes, 128 cpus"
    assert report["trust"]["setting"] == "FCFS, backfill easy, no threshold"
    assert report["trust"]["misfit_h"] == 0
    assert {row["group"] for row in report["options"]} >= {"today", "order", "mode"}
    sizes = {row["processors"]: row["wait_mean"] for row in report["machine_sizes"]}
    assert list(sizes) == [128, 136, 144]  # some jobs are as wide as the machine
    larger = replace(jobs_of_site, machine=Machine((NodeType(18, cpus=8),)), machine_processors=144)
    eighteen = hpcgym.simulate(larger, "FCFS", kill_at_limit=False).wait_time
    judged = larger.submit_time >= larger.submit_time[-1] // 2
    assert sizes[144] == pytest.approx(eighteen[judged].mean() / 3600)
    on_nodes = {row["id"]: row["wait"]["mean"] for row in report["options"]}
    made = hpcgym.simulate(jobs_of_site, "SAF", threshold=200_000, kill_at_limit=False)
    assert on_nodes["saf"] == pytest.approx(made.wait_time[judged].mean() / 3600)


def written(path: Path, jobs: list[tuple[int, ...]]) -> Path:
    """Write a log of (submit, wait, run, processors, request, user)."""
    lines = [
        f"{number} {submit} {wait} {run} {cpus} -1 -1 {cpus} {request} -1 1 {user} 1 1 1 1 -1 -1"
        for number, (submit, wait, run, cpus, request, user) in enumerate(jobs, start=1)
    ]
    path.write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    "jobs",
    [
        [(10 * n, 0, 5, 1, 20, 1) for n in range(60)],  # nobody waits
        [(10 * n, 0, 0, 8, 20, n) for n in range(60)],  # nothing runs
        [(10**7 * n, 3, 50, 8, 60, n % 2) for n in range(60)],  # years apart
        [(0, n, 5, 1, 20, 1) for n in range(30)] + [(n, 5, 5, 1, 9, 1) for n in range(1, 31)],
        [(n // 2, 9**6, 9**6, 8, 9**7, 1) for n in range(60)],  # far more work than time
    ],
)
def test_odd_logs_become_a_page_without_a_number_that_is_none(
    tmp_path: Path, jobs: list[tuple[int, ...]]
) -> None:
    report = report_on(written(tmp_path / "odd.swf", jobs))
    json.dumps(report, allow_nan=False)
    assert "nan" not in markdown_of(report) + page_html(report).lower().replace("nan(", "")
    assert len(report["answer"]) == 3


def test_jobs_that_all_come_at_one_instant_are_refused(tmp_path: Path) -> None:
    jobs = [(0, n, 5, 1, 20, 1) for n in range(60)]
    with pytest.raises(HpcgymError, match=r"0 jobs are submitted before the others"):
        report_on(written(tmp_path / "burst.swf", jobs))


@pytest.mark.long
def test_folders_of_files_are_in_no_report(tmp_path: Path) -> None:
    folder = tmp_path / "home-of-zoe"
    folder.mkdir()
    jobs = [(10 * n, n % 7, 30, 4, 60, n % 5) for n in range(60)]
    report = report_on(written(folder / "log.swf", jobs))
    assert "home-of-zoe" not in json.dumps(report)


def test_a_log_without_recorded_starts_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "none.swf"
    lines = [f"{job} {job} -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 -1 -1 -1" for job in range(1, 99)]
    file.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    with pytest.raises(HpcgymError, match=r"0 jobs have a recorded start.*needs 40 at least"):
        report_on(file)


def test_the_report_is_plain_json(fcfs_report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(fcfs_report, allow_nan=False)) == fcfs_report


def test_halves_are_of_time_and_each_has_the_fewest_jobs() -> None:
    even, late = np.arange(0, 1000, 10), np.array([0, *range(900, 999)])
    assert half_of(even) == 495
    assert half_of(late) == late[19] + 1 == 919


def test_waits_are_apart_by_mean_median_and_90th_percentile_together() -> None:
    rng = np.random.default_rng(1)
    waits, others = rng.exponential(5, 400), rng.exponential(2, 400)
    ratios = []
    for measure in (statistics.fmean, statistics.median, lambda each: np.quantile(each, 0.9)):
        pair = sorted(float(measure(each)) + 1 / 60 for each in (waits, others))
        ratios.append(pair[1] / pair[0])
    for pair in ((waits, others), (others, waits)):
        assert share_apart(log_ratios(*pair)) == pytest.approx(math.prod(ratios) ** (1 / 3) - 1)
    assert share_apart(log_ratios(waits, waits[::-1])) == 0


def test_the_distance_of_waits_is_that_of_their_distributions() -> None:
    generator = np.random.default_rng(1)
    waits, others = generator.integers(0, 50, (2, 40)).astype(float)
    masks = {"a": np.arange(40) < 15, "b": np.arange(40) >= 15}
    apart = sum(
        abs(first - second)
        for mask in masks.values()
        for first, second in zip(sorted(waits[mask]), sorted(others[mask]), strict=True)
    )
    assert distance_h(waits, others, masks) == pytest.approx(apart / 40)


def test_capacity_idle_while_jobs_wait_is_counted_second_by_second() -> None:
    jobs = hpcgym.load_workload("tiny")
    made = Outcome.simulated(hpcgym.simulate(jobs, backfill="none"))
    everyone = np.ones(len(jobs), dtype=bool)
    found = made.summary(everyone)
    idle = busy = 0
    last = int(jobs.submit_time[-1])
    for now in range(last):
        held = sum(
            int(jobs.processors[job])
            for job in range(len(jobs))
            if made.start_time[job] <= now < made.end_time[job]
        )
        waits = any(jobs.submit_time[job] <= now < made.start_time[job] for job in range(len(jobs)))
        busy += held
        idle += (jobs.machine_processors - held) * waits
    area = jobs.machine_processors * last
    assert found["utilisation"] == pytest.approx(busy / area)
    assert found["idle_while_waiting"] == pytest.approx(idle / area)
    assert idle > 0


@pytest.mark.long
def test_what_a_log_does_not_state_is_not_built_on(tmp_path: Path) -> None:
    jobs = [(60 * n, n % 300, 50 + 37 * n % 900, 1 + n % 7, 1_000, -1) for n in range(80)]
    path = written(tmp_path / "no_users.swf", jobs)
    groups = {row["group"] for row in report_on(path)["options"]}
    assert "SMITH-REG" not in {row["name"] for row in report_on(path)["options"]}
    assert "machine" in groups
    path.write_text("\n".join(path.read_text().splitlines()[1:]))  # no size in a header
    guessed = report_on(path)
    assert guessed["log"]["machine_is_guess"]
    assert "machine" not in {row["group"] for row in guessed["options"]}


def test_names_of_files_make_no_marks_in_markdown(tmp_path: Path) -> None:
    jobs = [(60 * n, n % 300, 50, 1 + n % 7, 1_000, 1) for n in range(60)]
    report = report_on(written(tmp_path / "a_b_*c*.swf", jobs))
    assert markdown_of(report).startswith("# ")
    assert r"a\_b\_\*c\*" in markdown_of(report).splitlines()[0]
