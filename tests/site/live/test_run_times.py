"""How long live jobs are expected to run, against a plain loop over the accounting."""

import numpy as np
import pytest
from live_queues import NOW

from hpcgym.site.live.run_times import no_past, read_past

HEAD = "JobID|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NCPUS"


def accounting(path, jobs, limit_minutes=10):
    """Write what sacct prints of jobs (user, submit, start, seconds)."""
    lines = [
        f"{k}|{user}|phys|batch|COMPLETED|{submit}|{submit}|{start}|{start + run}|{run}"
        f"|{limit_minutes}|2"
        for k, (user, submit, start, run) in enumerate(jobs, start=1)
    ]
    path.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
    return path


def drawn(n_jobs=60, seed=1):
    """Draw jobs of two users before now."""
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(n_jobs):
        user = ("ana", "ben")[rng.integers(2)]
        submit = int(NOW - rng.integers(2000, 20_000))
        run = int(rng.integers(30, 60)) + (200 if user == "ben" else 0)
        jobs.append((user, submit, submit + int(rng.integers(0, 500)), run))
    return jobs


def test_last_two_jobs_of_a_user_are_averaged(tmp_path):
    jobs = drawn()
    past = read_past(accounting(tmp_path / "sacct.txt", jobs), NOW)
    by_end = sorted(jobs, key=lambda job: job[2] + job[3])
    for user in ("ana", "ben"):
        last = [run for name, _, _, run in by_end if name == user][-2:]
        assert past.expected(user, 600) == int(sum(last) / 2)
        assert past.expected(user, 40) == 40
    assert past.expected("chi", 600) == 600


def test_said_errors_are_those_of_a_plain_loop(tmp_path):
    jobs = drawn()
    past = read_past(accounting(tmp_path / "sacct.txt", jobs), NOW)
    by_users, by_limits = [], []
    for user, submit, _, run in jobs:
        ended = [
            (start + seconds, seconds)
            for name, _, start, seconds in jobs
            if name == user and start + seconds <= submit
        ]
        if ended:
            last = [seconds for _, seconds in sorted(ended)][-2:]
            by_users.append(abs(sum(last) / len(last) - run))
            by_limits.append(abs(600 - run))
    assert f"over {len(by_users)} jobs" in past.says
    means = np.mean(by_users), np.mean(by_limits)
    assert past.says.split("off by ")[1].split("s in")[0] == f"{means[0]:.1f}"
    minutes, seconds = divmod(round(means[1]), 60)
    assert past.says.endswith(f"limits by {minutes}m{seconds:02}s")


def test_limits_are_taken_where_they_are_nearer(tmp_path):
    """Ana's jobs run for 20 and 580 s in turn, and the limit is 600 s: her last two say 300 s."""
    jobs = [
        ("ana", NOW - 9000 + 700 * k, NOW - 9000 + 700 * k, 590 - (k % 7 == 0)) for k in range(6)
    ]
    jobs.insert(0, ("ana", NOW - 30_000, NOW - 30_000, 2))
    past = read_past(accounting(tmp_path / "sacct.txt", jobs), NOW)
    assert not past.predicts
    assert past.expected("ana", 600) == 600
    assert past.says.startswith("run times by the limits")


def test_jobs_that_end_later_are_not_known(tmp_path):
    jobs = [*drawn(), ("ana", NOW - 90, NOW - 80, 81)]
    past = read_past(accounting(tmp_path / "sacct.txt", jobs), NOW)
    assert len(past.user) == 60


def test_running_job_that_outlives_what_was_expected_is_expected_to_double(tmp_path):
    jobs = [("ana", NOW - 9000, NOW - 9000, 50), ("ana", NOW - 8000, NOW - 8000, 50)]
    past = read_past(accounting(tmp_path / "sacct.txt", jobs), NOW)
    left = [
        past.expected_left("ana", 180, elapsed) for elapsed in (0, 49, 50, 99, 100, 150, 179, 200)
    ]
    assert left == [50, 1, 50, 1, 80, 30, 1, 1]


def test_without_accounting_jobs_run_to_their_limits():
    past = no_past()
    assert past.expected("ana", 600) == 600
    assert past.expected_left("ana", 600, 250) == 350
    assert "the limits" in past.says


@pytest.mark.parametrize("user", ["", "ana"])
def test_single_jobs_of_users_predict_nothing(tmp_path, user):
    path = accounting(tmp_path / "sacct.txt", [(user, NOW - 9000, NOW - 9000, 50)])
    assert read_past(path, NOW).expected("ana", 600) == 600
