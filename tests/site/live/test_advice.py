"""Ranks, starts and reasons of a queue that is small enough to work out by hand."""

import numpy as np
from live_queues import NOW, drawn, reading, runs, waits

from hpcgym.core.settings import SchedulerSettings
from hpcgym.site.live.advice import advise, ranges_now
from hpcgym.site.live.replay import Forecasts
from hpcgym.site.live.run_times import no_past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import Stage

WIDE = waits(1, 16, 600, priority=3)
SHORT = waits(2, 4, 300, priority=2)
LONG = waits(3, 4, 1200, priority=1)
HOLDS = runs(9, 12, 700, 100)  # of 16 cpus four are idle, and the others are free in 600 s


def advice_on(*waiting, policy="SAF", backfill="conservative"):
    """Return advice on a queue beside the job that runs."""
    (snapshot,) = snapshots_of(reading(waiting, [HOLDS]))
    stage = Stage(snapshot, no_past())
    return advise(stage, stage.wanted_order(SchedulerSettings(policy)), policy, backfill)


def test_jobs_have_ranks_and_starts_in_both_orders():
    """In Slurm's order WIDE is reserved at 600 s, SHORT ends before, and LONG comes after it.

    By area SHORT starts now, LONG when it ends, and WIDE when LONG does.
    """
    advice = advice_on(WIDE, SHORT, LONG)
    rows = [
        (each.job.job_id, each.rank_now, each.rank, each.start_now - NOW, each.start - NOW)
        for each in advice.jobs
    ]
    assert rows == [(2, 2, 1, 0, 0), (3, 3, 2, 1200, 300), (1, 1, 3, 600, 1500)]


def test_reasons_say_who_passes_whom_and_what_is_missing():
    assert [each.why for each in advice_on(WIDE, SHORT, LONG).jobs] == [
        "passes 1 job (less work); starts now",
        "passes 1 job (less work); first in line: needs 4 cpus; none stays idle; enough in 5m00s",
        "lets 2 jobs pass (less work); needs 16 cpus; none stays idle",
    ]
    assert [each.why for each in advice_on(WIDE, LONG, policy="FCFS").jobs] == [
        "first in line: needs 16 cpus; 4 stay idle; enough in 10m00s",
        "the idle cpus suffice, but it would delay a job before it",
    ]


def test_totals_are_means_over_all_tasks():
    """Slowdowns are 1260/600, 360/300, 2460/1200; by area 2160/600, 360/300, 1560/1200."""
    advice = advice_on(WIDE, SHORT, LONG)
    assert advice.totals == (
        "Of 3 waiting jobs, tasks of arrays counted one by one, SAF starts 1 earlier and 1 later, "
        "if nobody submits more.",
        "Mean time until the start: 10m00s in Slurm's order, 10m00s under SAF; mean bounded "
        "slowdown: 1.78 and 2.03.",
        "Delayed most: job 1 of ana, by 15m00s.",
    )


def test_tasks_of_arrays_are_counted_one_by_one():
    array = waits(5, 2, 60, array_id="5_[1-3]", tasks=3, priority=9)
    advice = advice_on(array, WIDE)
    assert advice.jobs[0].why == "starts now, a task of 3"
    assert advice.jobs[0].start == NOW
    assert advice.totals[0].startswith("Of 4 waiting jobs")


def test_jobs_kept_out_come_last_without_ranks():
    held = waits(4, 1, 60, priority=0, reason="JobHeldUser")
    later = waits(6, 1, 60, reason="BeginTime", eligible_time=NOW + 90)
    advice = advice_on(held, later, SHORT)
    assert [(each.job.job_id, each.rank, each.why) for each in advice.jobs] == [
        (2, 1, "starts now"),
        (6, None, "may begin in 1m30s"),
        (4, None, "held by its user"),
    ]
    assert advice.jobs[1].start == NOW + 300  # when SHORT, which comes before it, ends
    assert advice.jobs[2].start is None


def test_notes_say_what_is_simplified():
    endless = waits(7, 1, 365 * 86_400)
    notes = " ".join(advice_on(endless).notes)
    assert "batch: 16 cpus on 1 node, counted as one pool" in notes
    assert "4 cpus are idle; run times are the limits" in notes
    assert "jobs without a limit: 1; a year is planned for each" in notes


def test_a_range_holds_the_start_beside_it_and_no_start_before_cpus_are_free():
    rng, columns = np.random.default_rng(1), []
    for is_new in (False, True):
        expected = rng.integers(0, 3_000, 400)
        came = rng.integers(0, 2, 400) * (expected + rng.integers(-50, 50, 400)).clip(0)
        columns.append((np.arange(400) * 10_000, np.full(400, is_new), expected, came))
    known = Forecasts(*map(np.concatenate, zip(*columns, strict=True)))
    known = known.at(np.argsort(known.instant, kind="stable"))
    n_ranges = 0
    for seed in range(60):
        read, past = drawn(seed)
        (snapshot,) = snapshots_of(read)
        stage = Stage(snapshot, past)
        advice = advise(stage, stage.wanted_order(SchedulerSettings("SAF")), "SAF", known=known)
        of_new = zip(snapshot.waiting, ranges_now(stage, known, is_new=True), strict=True)
        found = [(job, each, each and each.middle) for job, each in of_new]
        found += [(each.job, each.range_now, each.start_now - NOW) for each in advice.jobs]
        for job, likely, shown in (each for each in found if each[1]):
            n_ranges += 1
            assert likely.low <= shown <= likely.high
            assert likely.low >= max(job.cpus > stage.idle, snapshot.begins(job) - NOW)
    assert n_ranges > 300
