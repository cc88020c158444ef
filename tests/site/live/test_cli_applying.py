"""`hpcgym advise --apply`, `--restore` and `--compare-days`: what is refused, told and printed."""

import json
import re
import shutil
import subprocess
from datetime import date, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest
from fake_slurm import Slurm
from live_queues import RECORDED

from hpcgym.cli import applying
from hpcgym.site.live import days, last_reading
from hpcgym.site.live.apply import Factors, Plan

APPLY = ("advise", "--apply", "--partition", "batch", "--job-points", 9000, "--days", 0)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a Slurm with the queue that a toy cluster had."""
    monkeypatch.setattr(last_reading, "_folder", lambda: tmp_path / "kept")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Slurm(tmp_path, monkeypatch)
    printed = {name: (RECORDED / f"{name}.txt").read_text() for name in ("squeue", "sinfo")}
    rows = [line.split("|") for line in (RECORDED / "sprio.txt").read_text().splitlines()]
    jobs = {row[0]: {"base": int(row[2]), "site": 0} for row in rows}
    made.write(printed=printed, jobs=jobs)
    return made


@pytest.mark.long
def test_jobs_of_the_partition_stand_in_the_order_and_restoring_takes_it_back(run, slurm, tmp_path):
    rows = json.loads(run(*APPLY, "--format", "json"))
    moved = set(slurm.told())
    assert moved and not moved & {144, 145, 151}  # without a priority, or in another partition
    order = [job for job in slurm.order() if job in {139, 140, 141, 143, 146, 147, 149, 150}]
    wanted = sorted((row for row in rows if row["rank"]), key=lambda row: row["rank"])
    ids = [int(row["job"].partition("_")[0]) for row in wanted]
    assert order == [job for job in ids if job in order]
    assert (tmp_path / "state" / "hpcgym" / "site_factors.jsonl").exists()
    assert "Site factors set back to 0: 0 jobs." in run("advise", "--restore", "--expired")
    assert f"{len(moved)} jobs" in run("advise", "--restore")
    assert set(slurm.sites().values()) == {0}


def test_a_journal_that_is_not_there_is_no_journal_without_changes(refuse, slurm, tmp_path):
    missing = tmp_path / "typo.jsonl"
    assert "no such journal, so nothing is restored" in refuse(
        "advise", "--restore", "--journal", missing
    )
    assert not missing.exists()


def test_a_cycle_says_what_it_did_and_how_to_take_it_back(run, slurm):
    shown = " ".join(run(*APPLY).split())
    assert re.search(r"Site factors: \d jobs? \(.*\) up, ", shown)
    assert "Left alone, in a partition that is not named: 1 job (151)." in shown
    assert "hpcgym advise --restore --journal" in shown


def test_a_dry_run_lists_what_would_be_told_and_why_and_changes_nothing(
    run, slurm, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    shown = run(*APPLY, "--dry-run")
    said = " ".join(shown.split())
    assert "A cycle would tell" in said and "Nothing is told now." in said
    assert "site factor" in said and "fair share" in said  # what priorities are made of
    rows = json.loads(run(*APPLY, "--dry-run", "--format", "json"))
    head, *lines = run(*APPLY, "--dry-run", "--format", "csv").splitlines()
    at = [head.split(",").index(f"site_factor_{what}") for what in ("now", "told")]
    listed = [[line.split(",")[place] for place in (0, *at)] for line in lines if '"' not in line]
    assert slurm.told() == {} and not (tmp_path / "state" / "hpcgym").exists()
    counts = re.search(r"A cycle would tell (.*?) back to 0", said).group(1)
    assert counts in " ".join(run(*APPLY).split())
    told = {row["job"]: row["site_factor_told"] for row in rows if row["site_factor_told"]}
    assert {int(job.partition("_")[0]): site for job, site in told.items()} == slurm.told()
    assert {job: site for job, _, site in listed if site} == {
        job: str(site) for job, site in told.items() if job in {each[0] for each in listed}
    }
    assert {now for _, now, site in listed if site} == {"0"}
    started = Plan({7: [Factors(5, 3, 5.0, is_bare=False)]}, told={7: 0})
    (row,) = applying.with_told(started, [])
    assert (row["job"], row["site_factor_now"], row["site_factor_told"]) == ("7", 3, 0)
    for row in (row for row in rows if row["site_factor_told"]):
        points = sum(points for name, points in row.items() if name.startswith("sprio_"))
        assert points + row["site_factor_told"] == row["priority_then"] and "sprio_age" in row


@pytest.mark.long
def test_a_forecast_beside_bounds_is_of_the_order_that_they_leave(run, slurm):
    words = ("advise", "--apply", "--dry-run", "--partition", "batch", "--days", 0)
    narrow, wide, free = (
        json.loads(run(*words, "--job-points", points, "--format", "json"))
        for points in (1, 90_000, 900_000)
    )
    assert [row["job"] for row in wide] == [row["job"] for row in free]
    ranked = [row for row in narrow if row["rank"]]
    assert [row["rank"] for row in ranked] == [row["rank_now"] for row in ranked]


def test_no_job_is_moved_beyond_its_points(run, slurm):
    run("advise", "--apply", "--partition", "batch", "--job-points", 700, "--days", 0)
    assert 0 < max(abs(site) for site in slurm.sites().values()) <= 700


@pytest.mark.long
def test_a_day_without_takes_changes_back_and_is_noted(run, slurm, monkeypatch, tmp_path):
    monkeypatch.setattr(days, "is_on", lambda day: True)
    run(*APPLY, "--alternate", "days")
    assert any(slurm.sites().values())
    monkeypatch.setattr(days, "is_on", lambda day: False)
    assert "day without changes" in run(*APPLY, "--alternate", "days", "--dry-run")
    assert any(slurm.sites().values())
    assert "day without changes" in run(*APPLY, "--alternate", "days")
    assert not any(slurm.sites().values())
    journal = tmp_path / "state" / "hpcgym" / "site_factors.jsonl"
    assert json.loads(journal.read_text().splitlines()[-1])["off"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--apply", "--job-points", "5"], "--partition NAME"),
        (["--apply", "--partition", "batch"], "--job-points POINTS"),
        (["--apply", "--restore"], "--apply and --restore are both given"),
        (["--hold", "5"], "--hold has no effect without --apply"),
        (["--expired"], "--expired has no effect without --restore"),
        (["--journal", "x"], "--journal has no effect without"),
        (["--restore", "--policy", "SPF"], "--policy has no effect with --restore"),
        ([*map(str, APPLY[1:]), "--alternate", "weeks"], "allowed: days"),
        (["--apply", "--squeue", "x"], "--apply reads Slurm itself"),
        (["--compare-days", "none.txt"], "none.txt"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(refuse, slurm, words, message):
    assert message in refuse("advise", *words)
    assert slurm.told() == {}


def test_a_slurm_that_is_not_fit_is_refused_before_anything_is_changed(refuse, slurm):
    slurm.write(config={"PriorityType": "priority/basic"})
    assert "priority/basic" in refuse(*APPLY)
    assert slurm.told() == {}


def test_days_are_compared_by_the_journal_and_accounting(run, tmp_path):
    first = date(2026, 3, 2)
    on = first if days.is_on(first) else days.partner(first)
    journal, log = tmp_path / "journal.jsonl", tmp_path / "log.swf"
    entries, jobs = [], []
    for day, kind, wait in ((on, {"set": {}}, 60), (days.partner(on), {"off": True}, 180)):
        begin = datetime(day.year, day.month, day.day)
        hours = [int((begin + timedelta(hours=hour)).timestamp()) for hour in range(24)]
        entries += [json.dumps({"at": at, **kind}) for at in hours]
        jobs += [(at, wait) for at in hours[6:]]
    journal.write_text("\n".join(entries) + "\n")
    rows = ["JobID|Submit|Eligible|Start|End|State|NCPUS|Timelimit|User|Partition"]
    for at, wait in sorted(jobs):
        times = [datetime.fromtimestamp(at + each) for each in (0, 0, wait, wait + 600)]
        cells = [str(len(rows)), *(each.isoformat() for each in times)]
        rows.append("|".join([*cells, "COMPLETED", "1", "01:00:00", "ana", "batch"]))
    log.write_text("\n".join(rows) + "\n")
    shown = run("advise", "--compare-days", log, "--journal", journal)
    assert str(on) in shown and str(days.partner(on)) in shown
    assert "Mean wait, s, with - without: -120.00 (one pair: no interval)." in shown


@pytest.mark.long
def test_the_shipped_units_call_what_there_is(run, slurm, tmp_path):
    shipped = files("hpcgym.site.live")
    service = shipped.joinpath("hpcgym-restore.service").read_text()
    (command,) = re.findall(r"^ExecStart=/usr/bin/env hpcgym (.*)$", service, re.MULTILINE)
    words = command.split()
    words[-1] = str(tmp_path / Path(words[-1]).name)
    run(*APPLY, "--journal", words[-1])
    assert any(slurm.sites().values())
    assert "0 jobs" in run(*words)
    journal = Path(words[-1])
    journal.write_text(re.sub(r'"(expires|up)": \d+', r'"\1": 1', journal.read_text()))
    assert "0 jobs" not in run(*words)
    assert not any(slurm.sites().values())
    timer = shipped.joinpath("hpcgym-restore.timer").read_text()
    assert "OnUnitInactiveSec=1min" in timer and "WantedBy=timers.target" in timer


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_shipped_units_without_complaint():
    units = [
        str(files("hpcgym.site.live") / f"hpcgym-restore.{kind}") for kind in ("service", "timer")
    ]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert done.returncode == 0
    assert "hpcgym-restore" not in done.stderr  # it also complains of what else is installed
