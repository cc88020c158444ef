"""How much of the memory that they asked for jobs used: the report's numbers, by plain Python."""

from __future__ import annotations

import gzip
import os
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcgym.site import Reading, report_on
from hpcgym.site.details import memory_use
from hpcgym.site.log import SiteLog, read_site_log
from hpcgym.site.page import page_html
from hpcgym.trace.accounting import read_accounting, write_accounting

Shares = list[float]
NOT_TOLD = "Not told: no job states what memory it asked for and, as measured, what it used."


def section_of(shares: Shares) -> dict[str, Any]:
    """Return what the section says, of the share that each job used which states both."""
    used = [min(share, 1.0) for share in shares]
    return {
        "n_jobs": len(used),
        "mean_used": pytest.approx(statistics.fmean(used)),
        "median_used": pytest.approx(statistics.median(used)),
        "below_quarter": sum(share < 0.25 for share in used) / len(used),
    }


def shares_of_swf(text: str) -> Shares:
    """Return used over asked memory of each line that states both, by fields 7 and 10."""
    shares = []
    for line in text.splitlines():
        fields = [] if line.lstrip().startswith(";") else line.split()
        if fields and int(fields[6]) > 0 and int(fields[9]) > 0 and int(fields[3]) >= 0:
            held, asked = int(fields[4]), int(fields[7])
            used_kb = int(fields[6]) * (held if held > 0 else asked)
            shares.append(used_kb / (int(fields[9]) * (asked if asked > 0 else held)))
    return shares


def swf_of(n_jobs: int, seed: int, memory: Callable[[random.Random], tuple[int, int]]) -> str:
    """Write jobs with a recorded wait; `memory` draws used and asked KB of a processor."""
    chance, lines = random.Random(seed), ["; MaxProcs: 64"]
    for job in range(n_jobs):
        used, asked = memory(chance)
        held, q = chance.choice([(4, 4), (8, 6), (-1, 3)])
        lines.append(
            f"{job} {60 * job} {chance.randrange(300)} {chance.randrange(1, 900)} {held} -1 {used} "
            f"{q} 1000 {asked} 1 {job % 7} 1 1 1 1 -1 -1"
        )
    return "\n".join(lines)


def measured(chance: random.Random) -> tuple[int, int]:
    """Draw what a job used and asked for, some of which is not stated."""
    used, asked = chance.choice([-1, 0, chance.randrange(1, 9_000)]), chance.randrange(500, 5_000)
    return used, chance.choice([asked, asked, -1])


@pytest.mark.parametrize("seed", range(3))
def test_shares_of_a_log_are_those_of_its_fields_7_and_10(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "log.swf"
    text = swf_of(300, seed, measured)
    file.write_text(text)
    assert memory_use(read_site_log(file)) == section_of(shares_of_swf(text))


def slurm_of(n_jobs: int, seed: int) -> tuple[str, Shares]:
    """Write accounting of Slurm with steps, and the share that each job used which states both."""
    chance, shares = random.Random(seed), []
    lines = ["JobID|State|Submit|Start|End|TimelimitRaw|NCPUS|NTasks|MaxRSS|ReqTRES|AllocTRES"]
    for job in range(n_jobs):
        submit, cpus = 10**9 + 60 * job, chance.choice([1, 2, 4])
        start, asked_mb = submit + chance.randrange(300), 100 * chance.randrange(1, 9)
        ran = f"COMPLETED|{submit}|{start}|{start + 500}"
        memory = f"cpu={cpus},mem={asked_mb}M,node=1"
        is_limited = chance.random() < 0.8
        given = memory if is_limited else f"cpu={cpus},node=1"
        lines.append(f"{job}|{ran}|20|{cpus}|||{memory}|{given}")
        used_kb = 0
        for step in range(chance.randrange(3)):
            tasks, rss_kb = chance.randrange(1, 4), chance.randrange(1, 300_000)
            lines.append(f"{job}.{step}|{ran}||{cpus}|{tasks}|{rss_kb}K||{given}")
            used_kb = max(used_kb, tasks * rss_kb)
        if used_kb and is_limited:
            shares.append(used_kb / (1024 * asked_mb))
    return "\n".join(lines), shares


@pytest.mark.long
def test_a_report_says_what_share_of_their_memory_jobs_of_slurm_used(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    text, shares = slurm_of(120, seed=1)
    file.write_text(text)
    report = report_on(file)
    found, expected = report["requests"]["memory"], section_of(shares)
    for key in ("mean_used", "median_used"):
        expected[key] = pytest.approx(expected[key].expected, rel=1e-4)  # to a KB a processor
    assert found == expected
    page = page_html(report)
    assert (
        f"Of 120 jobs of the whole log, {len(shares)} state both what memory they asked for" in page
    )
    assert f"{found['below_quarter']:.0%} of them used less than a quarter." in page
    assert NOT_TOLD not in page
    assert any("used memory: largest task" in line for line in report["log"]["read"])


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.swf"])
def test_what_is_imported_says_the_same_of_memory(tmp_path: Path, name: str) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text(slurm_of(120, seed=2)[0])
    write_accounting(tmp_path / name, read_accounting(file))
    first, second = (
        memory_use(read_site_log(path, Reading(processors=64))) for path in (file, tmp_path / name)
    )
    assert first is not None and second is not None
    assert second == {key: pytest.approx(value, rel=1e-4) for key, value in first.items()}


@pytest.mark.parametrize(
    ("memory", "why"),
    [
        (lambda chance: (-1, 700), ""),
        (lambda chance: (chance.randrange(1, 900), -1), ""),
        (
            lambda chance: (1_024, chance.randrange(900, 5_000)),
            "used memory, not taken: the same for each processor of 90 jobs",
        ),
        (
            lambda chance: (chance.choice([500, 700]),) * 2,
            "used memory, not taken: what was asked for once more, in ",
        ),
    ],
)
def test_what_was_not_measured_is_not_told(
    tmp_path: Path, memory: Callable[[random.Random], tuple[int, int]], why: str
) -> None:
    file = tmp_path / "log.swf"
    file.write_text(swf_of(90, 0, memory).replace(" 8 -1 ", " 6 -1 "))
    log = read_site_log(file)
    assert memory_use(log) is None
    said = [line for line in log.read if "not taken" in line]
    assert len(said) == bool(why)
    assert all(line.startswith(why) for line in said)


@pytest.mark.long
def test_a_page_says_that_memory_cannot_be_told(fcfs_report: dict[str, Any]) -> None:
    assert fcfs_report["requests"]["memory"] is None
    assert NOT_TOLD in page_html(fcfs_report)


def real(variable: str, *parts: str) -> Path:
    """Return a real log, or skip the test."""
    folder = os.environ.get(variable)
    if not folder or not (file := Path(folder, *parts)).exists():
        pytest.skip(f"no real logs: set {variable}")
    return file


def read_real(file: Path) -> SiteLog:
    """Read a log of an archive, which may lack requests."""
    return read_site_log(file, Reading(missing_request="run"))


@pytest.mark.slow
def test_of_a_whole_log_the_section_is_that_of_plain_python() -> None:
    file = real("HPCGYM_TRACES", "LPC-EGEE-2004-1.2-cln.swf.gz")
    shares = shares_of_swf(gzip.decompress(file.read_bytes()).decode("latin-1"))
    assert len(shares) == 415
    assert memory_use(read_real(file)) == section_of(shares)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "why"),
    [
        (("HPCGYM_TRACES", "HPC2N-2002-2.2-cln.swf.gz"), "in 172121 of 175358 jobs"),
        (("HPCGYM_MODERN", "cerit-2013", "wagap-2013.swf.gz"), "the same for each processor"),
        (("HPCGYM_MODERN", "cirrus", "2024_Q1_CPU-sacct-subset.csv.gz"), ""),
        (("HPCGYM_MODERN", "eagle-sample-1000.csv"), ""),
        (("HPCGYM_MODERN", "alcf", "theta_2022.swf.gz"), ""),
        (("HPCGYM_MODERN", "pbs-fairshare", "PBSeasy.swf"), ""),
    ],
)
def test_real_logs_without_a_measurement_tell_nothing(place: tuple[str, ...], why: str) -> None:
    log = read_real(real(*place))
    assert memory_use(log) is None
    said = [line for line in log.read if line.startswith("used memory, not taken")]
    assert [why in line for line in said] == ([True] if why else [])
