"""Past queues put together again: forecasts are the same as of a queue that is read."""

import numpy as np
from live_queues import NOW, nodes, reading, runs, waits

from hpcgym.site.live.replay import NEVER, Jobs, jobs_of, replay
from hpcgym.site.live.run_times import no_past, read_past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import Stage

HEAD = "JobID|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NCPUS"


def drawn(n_jobs=60, seed=4):
    """Draw jobs on 16 cpus: start where there is room, in order, with limits twice the run."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 3_000, n_jobs)) + NOW - 20_000
    run = rng.integers(60, 400, n_jobs)
    cpus = rng.choice([1, 2, 8, 16], n_jobs)
    start = np.empty(n_jobs, dtype=np.int64)
    free = np.zeros(16, dtype=np.int64)
    last = 0
    for job in range(n_jobs):
        free.sort()
        start[job] = last = max(submit[job], free[cpus[job] - 1], last)
        free[: cpus[job]] = start[job] + run[job]
    limit = -(-2 * run // 60) * 60
    return Jobs(submit, start, start + run, limit, cpus.astype(np.int64))


def test_forecasts_are_those_of_the_queue_as_it_was_read():
    jobs = drawn()
    made = replay(jobs, 16)
    rows = [int(row) for row in np.flatnonzero(np.isin(jobs.submit_time, made.instant))]
    checked = 0
    for row in rows:
        now = int(jobs.submit_time[row])
        there = [k for k in range(row + 1) if jobs.end_time[k] > now]
        wait = [k for k in there if jobs.start_time[k] >= now]
        listed = [
            waits(k + 1, int(jobs.processors[k]), int(jobs.requested_time[k]), waited=0)
            for k in wait
        ]
        held = [
            runs(
                k + 1,
                int(jobs.processors[k]),
                int(jobs.requested_time[k]),
                now - int(jobs.start_time[k]),
            )
            for k in there
            if jobs.start_time[k] < now
        ]
        (snapshot,) = snapshots_of(reading(listed, held))
        stage = Stage(snapshot, no_past())
        starts = dict(zip(wait, stage.starts(list(range(len(wait)))) - NOW, strict=True))
        mine = made.at((made.instant == now) & made.is_new)
        if np.sum(jobs.submit_time == now) == 1:
            assert mine.expected.tolist() == [starts[row]]
            others = made.at((made.instant == now) & ~made.is_new)
            kept = [k for k in wait if k != row and jobs.start_time[k] > now]
            assert others.expected.tolist() == [starts[k] for k in kept]
            assert others.came.tolist() == [jobs.start_time[k] - now for k in kept]
            checked += len(kept)
    assert checked > 50


def test_instants_begin_where_the_accounting_is_whole():
    jobs = drawn()
    made = replay(jobs, 16)
    assert made.instant.min() >= jobs.end_time.min()
    assert len(np.unique(replay(jobs, 16, most=7).instant)) <= 7
    waiting = jobs._replace(end_time=np.full(60, NEVER))
    assert len(replay(waiting, 16).instant) == 0


def test_jobs_that_run_or_wait_now_were_in_past_queues(tmp_path):
    begun = NOW - 800
    lines = [
        f"{k}|ana|{part}|COMPLETED|{NOW - 900}|{NOW - 900}|{begun}|{begun + 60 * k}|{60 * k}|10|2"
        for k, part in ((1, "batch"), (2, "other"), (3, "batch"))
    ]
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
    read = reading(
        [waits(9, 16, 600, tasks=2, array_id="9_[1-2]", waited=500)],
        [runs(8, 4, 600, 700)],
        of=(*nodes(16), *nodes(8, partition="other", first=2)),
    )
    snapshot = next(each for each in snapshots_of(read) if each.partitions == ("batch",))
    jobs = jobs_of(snapshot, read_past(path, NOW))
    assert jobs.submit_time.tolist() == [NOW - 900, NOW - 900, NOW - 700, NOW - 500, NOW - 500]
    assert jobs.start_time.tolist() == [NOW - 800, NOW - 800, NOW - 700, NEVER, NEVER]
    assert jobs.end_time.tolist() == [NOW - 740, NOW - 620, NEVER, NEVER, NEVER]
    assert jobs.requested_time.tolist() == [600] * 5
    assert jobs.processors.tolist() == [2, 2, 4, 16, 16]
