"""Trial runs, young jobs that give way, and the cap by request: against the reference."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from drawn_lives import assert_attempts, assert_lives, attempts_in, cases, trials
from engines import whole, workload_of
from fair_share_cases import with_names
from hpcgym.core.backfill import Easy, as_mode
from hpcgym.core.parts.trials import Trial
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from strategies import busy_workloads, one_of

KTH = "KTH-SP2-1996-2.1-cln"
SAFE = "easy:cap=0.95,by=request,widest=0.2,pressed=0.25+trial:young=1800,victim=0.25"
shares, seeds = one_of((0, 0.3, 0.7, 1)), st.integers(0, 20)


def test_a_start_ends_a_plain_trial_and_leaves_a_younger_one_that_is_guaranteed():
    """V gives way to G at 8, waits again, and needs a processor at 10: P goes, though G is younger.

    At 28 the guarantee of G is over, so S takes its processor.

    ::

        AAAAAAAAAAAAAAAAAAAA...      A 2p x 40, V 1p x 100, H 4p x 30, behind V until 110
        AAAAAAAAAAAAAAAAAAAA...      P 1p x 50 of 200, G 1p x 50 of 150, S 1p x 5
        .....VVVGGGGGGGGGGGG...SSSSSGGG
        .......PPPVVVVVVVVVV...
        0    5 7  10         28    33
    """
    jobs = [(0, 40, 40, 2), (5, 100, 100, 1), (6, 30, 30, 4)]
    jobs += [(7, 50, 200, 1), (8, 50, 150, 1), (10, 5, 5, 1)]
    assert_attempts(
        jobs,
        "limit=60,young=100,request=50,times=1,share=0.5,guarantee=20",
        (0, 0, 0, 40, "completed"),
        (1, 5, 5, 8, "gave way"),
        (1, 10, 10, 110, "completed"),
        (2, 110, 110, 140, "completed"),
        (3, 7, 7, 10, "evicted"),
        (3, 40, 40, 90, "completed"),
        (4, 8, 8, 28, "evicted"),
        (4, 33, 33, 83, "completed"),
        (5, 28, 28, 33, "completed"),
    )


def test_a_job_gives_way_where_it_starts_if_it_may_up_to_an_age_of_one_second():
    """A has all processors at 0, and starts again at 5, when B is over."""
    assert_attempts(
        [(0, 100, 100, 4), (0, 5, 5, 1)],
        "limit=20,young=1,request=50,share=1,guarantee=20",
        (0, 0, 0, 0, "gave way"),
        (0, 5, 5, 105, "completed"),
        (1, 0, 0, 5, "completed"),
    )


def test_a_job_that_ran_for_a_second_before_it_gave_way_makes_no_other_give_way():
    """C comes at 2; Z, as young as A was, could then give way to A."""
    assert_attempts(
        [(0, 100, 100, 2), (0, 100, 100, 2), (1, 5, 5, 1), (2, 5, 5, 1)],
        "limit=20,young=5,request=50,share=1,guarantee=20",
        (0, 0, 0, 1, "gave way"),
        (0, 7, 7, 107, "completed"),
        (1, 0, 0, 100, "completed"),
        (2, 1, 1, 6, "completed"),
        (3, 2, 2, 7, "completed"),
    )


@pytest.mark.parametrize(("submitted", "first"), [(1, 2), (2, 3)])
def test_a_start_ends_the_trial_that_began_last_and_of_one_instant_the_lower_position(
    submitted, first
):
    """P and Q are on trial beside A, while H waits until 40; S needs one processor at 3."""
    jobs = [(0, 40, 40, 2), (1, 10, 10, 4), (1, 30, 50, 1), (submitted, 30, 50, 1), (3, 5, 5, 1)]
    made = assert_lives(workload_of(jobs, 4), backfill="easy+trial:limit=60", policy="FCFS")
    got = attempts_in(made)
    assert [(job, end) for job, _, _, end, reason in got if reason == "evicted"] == [(first, 3)]


@pytest.mark.parametrize(("threshold", "gave_way"), [(None, [30]), (10, [])])
def test_nobody_gives_way_while_one_is_overdue_off_trial_though_another_is_overdue_on_trial(
    threshold, gave_way
):
    """A and V run and P is on trial; H needs all 4 processors. At 30 G might take that of V."""
    jobs = [(0, 300, 300, 2), (1, 9, 9, 4), (2, 80, 300, 1), (22, 160, 160, 1), (30, 50, 300, 1)]
    given = {"policy": "FCFS", "threshold": threshold}
    mode = "easy+trial:limit=60,young=60,request=150"
    got = attempts_in(assert_lives(workload_of(jobs, 4), backfill=mode, **given))
    assert [end for job, _, _, end, reason in got if (job, reason) == (3, "gave way")] == gave_way


@pytest.mark.parametrize(
    ("overhead", "expected"),
    [
        (0, [(2, 39, 39, 40, "evicted"), (2, 42, 42, 52), (3, 1, 1, 39), (4, 40, 40, 42)]),
        (1, [(2, 42, 42, 52), (3, 1, 2, 40), (4, 40, 40, 42)]),
        (
            2,
            [
                (2, 10, 12, 22),
                *[(3, 1, 3, 10, "evicted"), (3, 22, 24, 40, "evicted"), (3, 44, 46, 84)],
                (4, 40, 42, 44),
            ],
        ),
    ],
)
def test_a_job_on_trial_is_estimated_to_end_from_the_useful_start_of_its_trial_on(
    overhead, expected
):
    """T goes on trial at 1, behind the head H. At 5 the wider N is the head, from B's end at 40 on.

    T stays where it is if its 38 s from its useful start are over at 40: under an overhead of 0 or
    1 s. From 5 on they would not be, and from 1 on they would be under 2 s, too.

    ::

        AAAAAAAAAA                         A 2p x 10, B 1p x 40, H 3p x 10, T 1p x 38
        AAAAAAAAAA                         N 4p x 2, from 40 on
        .TTTTTTTTTTTTTTTTTTTTTTTTT...TT.NN
        BBBBBBBBBBBBBBBBBBBBBBBBBB...BBBNN
        0    5    10                  39
    """
    jobs = [(0, 10, 10, 2), (0, 40, 40, 1), (1, 10, 10, 3), (1, 38, 38, 1), (5, 2, 2, 4)]
    both = [(0, 0, 0, 10), (1, 0, 0, 40), *expected]
    ended = [one if len(one) == 5 else (*one, "completed") for one in both]
    assert_attempts(jobs, f"limit=20,overhead={overhead}", *ended, policy="SAF")


@given(case=cases(("trials",)), users=shares, seed=seeds)
def test_jobs_that_must_not_be_killed_are_neither_tried_nor_give_way(case, users, seed):
    workload, _, given = case
    mode = as_mode(given["backfill"])
    flags = np.random.default_rng(seed).random(len(workload)) < 0.7
    workload = replace(workload, requeue=flags)
    mode = replace(mode, trial=replace(mode.trial, users=users, seed=seed))
    allowed = set(np.flatnonzero(mode.requeueable(workload)).tolist())
    assert allowed <= set(np.flatnonzero(flags).tolist())
    # The drawing is that of users: of one user all jobs are, or only those left out by the column.
    kept = {workload.user_index[job] for job in allowed}
    of_kept = np.isin(workload.user_index, list(kept)) & flags
    assert set(np.flatnonzero(of_kept).tolist()) == allowed
    assert_lives(workload, **given | {"backfill": str(mode)})


def users_on(submit, **further):
    """Return jobs of users 0, 1, 2, ... with these submit times."""
    columns = [submit, *np.ones((3, len(submit)), dtype=int)]
    further = {"user": np.arange(len(submit))} | further
    return Workload.from_arrays(*columns, machine_processors=1, **further)


def drawn_in(jobs, users=0.5, seed=1):
    """Return which jobs may be killed, by id, in plain Python from the specification."""
    allowed = set()
    times = (jobs.submit_time + jobs.time_offset).tolist()
    for job, time, user in zip(jobs.job_id.tolist(), times, jobs.named("user"), strict=True):
        digest = hashlib.sha256(f"{seed} {time // 604_800} {user}".encode()).hexdigest()
        if int(digest[:12], 16) / 2**48 < users:
            allowed.add(job)
    return allowed


def allowed_in(jobs, users=0.5, seed=1):
    """Return which jobs may be killed, by id."""
    return set(jobs.job_id[Trial(users=users, seed=seed).requeueable(jobs) == 1].tolist())


def test_users_are_drawn_by_seed_week_and_name_as_the_specification_says():
    jobs = users_on(np.arange(400) * 9_000, time_offset=600_000)
    assert 160 < len(allowed_in(jobs)) < 240
    assert allowed_in(jobs) == drawn_in(jobs)
    assert allowed_in(jobs, users=0.25, seed=7) == drawn_in(jobs, users=0.25, seed=7)
    assert allowed_in(jobs, seed=2) != drawn_in(jobs)
    later = replace(jobs, time_offset=600_000 + 604_800)
    assert allowed_in(later) == drawn_in(later) != drawn_in(jobs)
    named = with_names(jobs, user=[f"ana{user % 50}" for user in range(400)])
    assert allowed_in(named) == drawn_in(named)
    assert not allowed_in(jobs, users=0)
    assert len(Trial().requeueable(jobs)) == 0
    assert sorted(allowed_in(users_on(np.zeros(16)))) == [3, 4, 6, 7, 9, 11, 15, 16]


def test_other_jobs_do_not_change_which_users_are_drawn():
    """Nor does a cut of the log that begins later, in which the users have other places."""
    jobs = users_on(np.arange(400) * 9_000, user=np.arange(400) % 40, time_offset=5_000)
    assert allowed_in(jobs.select(np.arange(100))) == {j for j in allowed_in(jobs) if j <= 100}
    cut = jobs.select(np.arange(130, 400), start=int(jobs.submit_time[125]))
    assert allowed_in(cut) == {j for j in allowed_in(jobs) if j > 130}
    extra = users_on(np.append(jobs.submit_time, 10**8), user=[*jobs.user, 99], time_offset=5_000)
    assert allowed_in(extra) - {401} == allowed_in(jobs)


def delays_of_heads(workload, mode):
    """Return how often a head's reservation was seen again, and was later than before."""
    settings = SchedulerSettings("FCFS", backfill=mode)
    simulator = Simulator(workload, settings, decide="event")
    order = np.argsort(workload.submit_time, kind="stable")
    head, seen, again, later = -1, 0, 0, 0
    while simulator.run():
        free = simulator.free_processors
        ends = simulator.table.estimate + simulator.start_time
        first = next(job for job in order if job in set(simulator.waiting.tolist()))
        if free >= workload.processors[first]:
            head = -1  # it starts now
            continue
        running = iter(sorted(simulator.running.tolist(), key=ends.__getitem__))
        while free < workload.processors[first]:
            job = next(running)
            free += workload.processors[job]
            reserved = ends[job]
        if first == head:
            again += 1
            later += reserved > seen
        head, seen = first, reserved
    return again, later


@given(workload=busy_workloads(), mode=trials())
def test_a_plain_trial_delays_no_reservation_of_a_head(workload, mode):
    plain = replace(mode, young=0, overhead=0)
    assert delays_of_heads(workload, Easy(trial=plain))[1] == 0


@pytest.mark.long
def test_heads_of_a_log_are_reserved_no_later_for_its_trials(real_log):
    workload = whole(real_log(KTH))
    first = workload.select(np.arange(len(workload)) < 700)
    again, later = delays_of_heads(first, as_mode("easy+trial"))
    assert again > 300
    assert later == 0
    assert len(hpcgym.simulate(first, backfill="easy+trial").attempts.job) > 15


@pytest.mark.long
@pytest.mark.parametrize(
    "mode",
    ["easy+trial", "cost-benefit:cap=0.97+trial:young=1800", SAFE, "easy+trial:overhead=120"],
)
def test_the_first_jobs_of_a_log_start_as_the_reference_says(real_log, mode):
    workload = whole(real_log(KTH))
    first = workload.select(np.arange(len(workload)) < 2_000)
    assert_lives(first, policy="SMITH-URGENT", backfill=mode, threshold=200_000)


@pytest.mark.slow
@pytest.mark.parametrize("log", [KTH, "CTC-SP2-1996-3.1-cln", "SDSC-SP2-1998-4.2-cln"])
@pytest.mark.parametrize(
    ("policy", "mode"), [("SAF", SAFE), ("SMITH-URGENT", "cost-benefit:cap=0.97+trial:young=1800")]
)
def test_whole_logs_start_as_the_reference_says(real_log, log, policy, mode):
    given = {"policy": policy, "backfill": mode, "threshold": 200_000}
    assert_lives(whole(real_log(log)), **given)
