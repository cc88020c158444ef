"""What held jobs back is split by cause as rows say, and what a log cannot show is not 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.site import Reading, report_on
from hpcgym.site.causes import cells, in_words, waiting_by_cause
from hpcgym.site.log import read_site_log
from hpcgym.site.markdown import markdown_of
from hpcgym.site.page import page_html
from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.rows import CAUSES

SLURM = Path(__file__).parents[1] / "data" / "slurm" / "sacct-causes.txt"
OTHERS = ("limits", "dependencies", "reservations", "begin times", "failures")
HEADER = "JobID|State|Submit|Eligible|Start|End|TimelimitRaw|NCPUS|Reason|Reservation"
LATE = 100_000
JUDGED = [  # id, state, submit, eligible, start, reason, reservation; the hours of each by hand:
    (50, "COMPLETED", 0, 0, 7_200, "None", ""),  # 2 h of order
    (51, "COMPLETED", 0, 3_600, 7_200, "Dependency", ""),  # 1 h of a dependency, 1 of order
    (52, "COMPLETED", 0, 10_800, 10_800, "JobHeldUser", ""),  # 3 h of a hold
    (53, "COMPLETED", 0, 7_200, 9_000, "BeginTime", ""),  # 2 h of its begin, half an hour of order
    (54, "COMPLETED", 0, 0, 14_400, "QOSMaxJobsPerUserLimit", ""),  # 4 h of a limit
    (55, "COMPLETED", 0, 0, 3_600, "None", "course"),  # 1 h of a reservation, by its name
    (56, "COMPLETED", 0, 0, 1_800, "Reservation", "course"),  # half an hour of it
    (57, "NODE_FAIL", 0, 0, 3_600, "None", ""),  # 1 h of order, then an hour's run
    (57, "COMPLETED", 7_200, 7_320, 18_000, "BeginTime", ""),  # 3 h after a failure, from 7,200 on
    (58, "COMPLETED", 0, 0, 1_800, "ReqNodeNotAvail", ""),  # half an hour: down, or reserved?
    (59, "COMPLETED", 0, 1_800, 3_600, "None", ""),  # half an hour why?, half an hour of order
]
HOURS = {"reservations": 1.5, "limits": 4, "dependencies": 1, "holds": 3, "begin times": 2}
HOURS |= {"nodes reserved or down": 0.5, "failures": 3, "ineligible without a stated reason": 0.5}
HOURS |= {"no cause in the log": 2 + 1 + 0.5 + 1 + 0.5}


def text(*fields: str) -> str:
    """Return 20 early jobs that wait for nothing, those above, and 20 like the first."""
    plain = [(n, "COMPLETED", 60 * n, 60 * n, 60 * n, "None", "") for n in range(1, 21)]
    rows = plain + [(*row[:2], *(LATE + at for at in row[2:5]), *row[5:]) for row in JUDGED]
    rows += [(70 + n, "COMPLETED", *[LATE + 1 + n] * 3, "None", "") for n in range(20)]
    names, lines = HEADER.split("|"), []
    for job, state, submit, eligible, start, reason, name in rows:
        cells = [job, state, submit, eligible, start, start + 3_600, 120, 1, reason, name]
        told = dict(zip(names, cells, strict=True))
        lines.append("|".join(str(told[field]) for field in fields))
    return "\n".join(["|".join(fields), *lines]) + "\n"


@pytest.mark.parametrize("counted_from", ["eligible", "submit"])
def test_waiting_is_split_by_cause_as_worked_by_hand(tmp_path: Path, counted_from: str) -> None:
    (tmp_path / "sacct.txt").write_text(text(*HEADER.split("|")))
    log = read_site_log(tmp_path / "sacct.txt", Reading(counted_from=counted_from))
    jobs = log.workload
    simulated_h = np.random.default_rng(1).integers(0, 9, len(jobs)) / 4
    rows = {row["cause"]: row for row in waiting_by_cause(log, simulated_h)}
    hours = {name: row["share"] * sum(HOURS.values()) for name, row in rows.items()}
    assert hours == pytest.approx(HOURS)
    all_h = jobs.wait_time[log.is_judged].sum() / 3600
    for name, ids in {"limits": [54], "reservations": [55, 56], "dependencies": [51]}.items():
        rows_of = [row for row in range(len(jobs)) if jobs.job_id[row] in ids]
        longer = [jobs.wait_time[row] / 3600 - simulated_h[row] for row in rows_of]
        for key, part in (("missing", longer), ("too_much", [-each for each in longer])):
            assert rows[name][key] == pytest.approx(sum(max(each, 0) for each in part) / all_h)
    whole = np.abs(jobs.wait_time / 3600 - simulated_h)[log.is_judged].sum() / all_h
    apart = sum(row["missing"] + row["too_much"] for row in rows.values())
    assert apart == pytest.approx(whole) and whole > 1
    row_of = {"cause": "limits", "n": 4, "share": 0.5, "missing": 0.104, "too_much": 19.95}
    assert cells([row_of]) == [["limits", "4", "50%", "10%", "over 1000%"]]
    assert sum(row["n"] for row in rows.values()) == np.count_nonzero(log.is_judged)


def test_what_held_back_each_of_a_real_slurms_jobs_is_told() -> None:
    runs = read_accounting(SLURM, timezone="UTC").runs
    found = dict(zip(runs["executable"], (CAUSES[cause] for cause in runs["cause"]), strict=True))
    assert {name: cause for name, cause in found.items() if cause} == {
        **dict.fromkeys(("heldfirst", "heldlater"), "holds"),  # the second once it was eligible
        **dict.fromkeys(("blocked", "both"), "nodes reserved or down"),  # by a reservation
        **dict.fromkeys(("wantsdrained", "wantstwo"), "nodes reserved or down"),
        **dict(zip(("arr", "dep", "inres", "begin", "fails"), OTHERS, strict=True)),
    }


BY_REASON = {*HOURS} - {"failures", "ineligible without a stated reason", "no cause in the log"}
ELIGIBLE = {"dependencies", "holds", "begin times"}


@pytest.mark.parametrize(
    ("without", "unknown"),
    [
        ({"Reason", "Reservation"}, BY_REASON),
        ({"Reason"}, BY_REASON - {"reservations"}),
        ({"Eligible"}, ELIGIBLE | {"ineligible without a stated reason"}),
    ],
)
def test_what_a_log_cannot_show_is_not_said_to_be_none(
    tmp_path: Path, without: set[str], unknown: set[str]
) -> None:
    fields = [name for name in HEADER.split("|") if name not in without]
    (tmp_path / "sacct.txt").write_text(text(*fields))
    log = read_site_log(tmp_path / "sacct.txt")
    rows = waiting_by_cause(log, np.zeros(len(log.workload)))
    assert {row["cause"] for row in rows if row["share"] is None} == unknown


def test_failures_are_not_in_a_log_without_further_attempts(fcfs_report: dict[str, Any]) -> None:
    rows = fcfs_report["trust"]["causes"]
    assert [row["cause"] for row in rows if row["n"] is not None] == ["no cause in the log"]
    assert fcfs_report["trust"]["missed"] == [] and in_words(fcfs_report["trust"]) == ""


@pytest.mark.long
def test_page_and_markdown_say_causes_where_the_setting_is_not_near(tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(text(*HEADER.split("|")))
    report = report_on(tmp_path / "sacct.txt", Reading(processors=64))
    assert report["trust"]["missed"][-1] == "correlation"
    for shown in (page_html(report), markdown_of(report)):
        assert "Without holds beyond 25%, or a correlation of 0.6: mean, " in shown
        assert all(cause in shown for cause in HOURS)
        assert (
            "waits      50 jobs, the last of each id, from eligible time to their start:" in shown
            and "attempt" not in shown
        )
        assert "1  further jobs of ids" in shown
