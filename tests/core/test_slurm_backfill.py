"""Slurm's backfilling: against the reference, cases worked by hand, limits, and its files."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_limits
import reference_slurm
from engines import first_difference, history_of_users, jobs_of, simulator_of, workload_of
from fair_share_cases import limited
from hpcgym.base.errors import MachineError
from hpcgym.core.backfill import as_backfill
from hpcgym.core.parts.slurm import Slurm
from strategies import one_of, policies, slurms, workloads

FINE = "resolution=1,interval=1"


def starts(rows, processors, text, **settings):
    """Return when jobs start, s, by both schedulers, which must agree."""
    jobs = workload_of(rows, processors)
    assert not first_difference(jobs, backfill=text, **settings)
    return hpcgym.simulate(jobs, backfill=text, **settings).start_time.tolist()


def test_a_cycle_comes_an_interval_after_the_last_without_an_event():
    """The third job fits beside the second's reservation, and waits for the cycle at 30."""
    rows = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 10, 10, 1)]
    assert starts(rows, 4, "slurm") == [0, 100, 30]
    assert starts(rows, 4, "slurm:interval=7") == [0, 100, 7]
    assert starts(rows, 4, "slurm:interval=1") == [0, 100, 2]
    assert starts(rows, 4, "slurm:interval=500") == [0, 100, 150]


def test_the_main_scheduler_needs_no_cycle():
    """The second job comes between cycles, and is the first in order that fits."""
    assert starts([(0, 100, 100, 3), (1, 50, 50, 1)], 4, "slurm:interval=500") == [0, 1]


def test_a_job_planned_beyond_the_window_has_no_reservation():
    """The second job would start at 3600; with a window of an hour the third waits for it."""
    rows = [(0, 3600, 3600, 3), (0, 60, 60, 4), (0, 9000, 9000, 1)]
    assert starts(rows, 4, "slurm:window=60") == [0, 3600, 3660]
    assert starts(rows, 4, "slurm:window=59") == [0, 9000, 0]


def test_a_cycle_tests_so_many_jobs_and_the_next_goes_on_behind_those_that_started():
    """At 0 the second job, for which there is no room, and the third are tested; later the last."""
    rows = [(0, 100, 100, 6), (0, 9, 9, 8), (0, 90, 90, 1), (0, 80, 80, 1)]
    assert starts(rows, 8, "slurm") == [0, 100, 0, 0]
    assert starts(rows, 8, "slurm:max_job_test=2,resolution=1") == [0, 100, 0, 109]
    assert starts(rows, 8, "slurm:max_job_test=2,resolution=1,interval=20") == [0, 100, 0, 20]
    assert starts(rows, 8, "slurm:max_job_test=1") == [0, 100, 109, 109]


def test_a_cycle_tests_so_many_jobs_of_a_user_and_does_not_count_the_others():
    """User 0 has two jobs before the one of user 1, of which a cycle tests one."""
    rows = [(0, 100, 100, 6, 9), (0, 9, 9, 8, 0), (0, 50, 50, 1, 0), (0, 60, 60, 1, 1)]
    assert starts(rows, 8, "slurm") == [0, 100, 0, 0]
    assert starts(rows, 8, "slurm:max_job_user=1") == [0, 100, 109, 0]
    assert starts(rows, 8, "slurm:max_job_user=1,max_job_test=2") == [0, 100, 109, 0]


@pytest.mark.parametrize(
    ("seconds", "processors", "begins"), [(60, 2, 0), (61, 2, 200), (61, 1, 0), (100, 1, 0)]
)
def test_a_reservation_begins_on_the_grid_and_leaves_what_is_left_at_its_start(
    seconds, processors, begins
):
    """The second job is to start at 100, with one processor left; its reservation begins at 60."""
    rows = [(0, 100, 100, 3), (0, 100, 100, 4), (0, seconds, seconds, processors)]
    assert starts(rows, 5, "slurm") == [0, 100, begins]
    assert starts(rows, 5, f"slurm:{FINE}") == [0, 100, 0]


def test_what_one_reservation_leaves_another_of_the_same_minute_does_not_give_back():
    """The third job is planned at 70 and leaves none from 60 on, the fourth at 90 and leaves one.

    So the last may start if it ends at 60, and not if it runs on.
    """
    rows = [(0, 70, 70, 4), (0, 90, 90, 4), (0, 100, 100, 6), (0, 40, 40, 3)]
    assert starts([*rows, (0, 60, 60, 1)], 10, "slurm") == [0, 0, 70, 90, 0]
    assert starts([*rows, (0, 65, 65, 1)], 10, "slurm") == [0, 0, 70, 90, 90]
    assert starts([*rows, (0, 65, 65, 1)], 10, f"slurm:{FINE}") == [0, 0, 70, 90, 0]


def test_a_reservation_ends_on_the_grid_so_that_the_next_is_planned_sooner():
    """From 100 to 199 at four processors; the grid ends it at 180, and the fourth job plans so."""
    rows = [(0, 100, 100, 3), (0, 99, 99, 4), (0, 50, 50, 4), (1, 185, 185, 1)]
    assert starts(rows, 4, f"slurm:{FINE}") == [0, 100, 199, 249]
    assert starts([*rows[:3], (0, 99, 99, 1)], 4, "slurm") == [0, 100, 199, 249]
    assert starts([*rows[:3], (0, 60, 60, 1)], 4, "slurm") == [0, 100, 199, 0]


@pytest.mark.parametrize("interval", [1, 30])
def test_the_clock_stops_at_cycles_only_where_a_job_may_start(interval):
    """Nothing fits for a week; then a job fits, and a reservation is in its way for another."""
    week = 604_800
    rows = [(0, week, week, 4), (0, week, week, 3), (5, week, week, 4), (9, 2 * week, 2 * week, 1)]
    simulator = simulator_of(workload_of(rows, 4), backfill=f"slurm:window=inf,interval={interval}")
    simulator.run()
    assert simulator.start_time.tolist() == [0, week, 2 * week, 3 * week]
    assert simulator.counts()["passes"] <= 9


@given(workloads(max_jobs=30), st.sampled_from(("FCFS", "SAF", "LPF", "SQF")), st.booleans())
def test_without_limits_and_grid_it_is_conservative(workload, policy, exact):
    """Jobs run for a second at least: those of no time make a second pass without a cycle."""
    workload = replace(workload, run_time=np.maximum(workload.run_time, 1))
    settings = {"estimates": "exact" if exact else "requested"}
    text = f"slurm:max_job_test=inf,window=inf,{FINE}"
    ours = hpcgym.simulate(workload, policy, backfill=text, **settings)
    theirs = hpcgym.simulate(workload, policy, backfill="conservative", **settings)
    assert ours.start_time.tolist() == theirs.start_time.tolist()
    assert ours.backfilled.tolist() == theirs.backfilled.tolist()


@given(workloads(max_jobs=30), slurms, st.data())
def test_events_make_few_cycles(workload, mode, data):
    """A pass comes with events, and once more after them at most."""
    simulator = simulator_of(workload, data.draw(policies), backfill=mode)
    simulator.run()
    counts = simulator.counts()
    assert counts["passes"] <= 2 * counts["events"] + len(workload)


# --- Beside other parts ---------------------------------------------------------------------------


@given(workloads(), slurms, st.data())
def test_a_job_beyond_a_limit_is_neither_tested_nor_counted(workload, mode, data):
    workload, texts, theirs = data.draw(limited(workload))
    settings = {"backfill": mode, "threshold": data.draw(one_of((None, 5, 30)))}
    policy = data.draw(policies)
    ours = hpcgym.simulate(workload, policy, events=texts, **settings)
    expected = reference_limits.simulate(
        jobs_of(workload),
        workload.machine_processors,
        policy,
        theirs,
        kind=reference_slurm.SlurmWithin,
        history=history_of_users(workload),
        **settings,
    )
    assert ours.start_time.tolist() == [start.start_time for start in expected]
    assert ours.backfilled.tolist() == [start.backfilled for start in expected]


@pytest.mark.parametrize("mode", ["none", "easy", "slurm"])
def test_a_job_that_starts_ahead_of_one_that_a_limit_holds_is_backfilled(mode):
    """At 50 no limit holds the third job alone; WFP3 has the fourth before it, FCFS behind it."""
    rows = [(0, 100, 100, 1), (0, 50, 50, 3), (1, 500, 500, 3), (2, 1, 1, 1)]
    jobs = replace(workload_of(rows, 4), qos=np.array([0, 1, 1, 0]))
    settings = {"backfill": mode, "events": "limit:per=qos,jobs=1"}
    schedule = hpcgym.simulate(jobs, "WFP3", **settings)
    assert schedule.start_time.tolist() == [0, 0, 50, 100]
    assert schedule.backfilled.tolist() == [False, False, True, False]
    assert not hpcgym.simulate(jobs, "FCFS", **settings).backfilled.any()


def test_it_stands_beside_priorities_and_dependencies():
    """Orders that change with time are made at the instants of cycles, too."""
    jobs = hpcgym.load_workload("synthetic-256").select(np.arange(400))
    order = "multifactor:age=1000,fairshare=1000"
    coarse = hpcgym.simulate(jobs, order, backfill="slurm:interval=3600")
    fine = hpcgym.simulate(jobs, order, backfill="slurm")
    assert (coarse.start_time != fine.start_time).any()
    assert coarse.wait_time.mean() > fine.wait_time.mean()
    after = np.full(len(jobs), -1)
    after[1::2] = np.arange(0, len(jobs), 2)
    chained = replace(jobs, after=after)
    schedule = hpcgym.simulate(chained, backfill="slurm", dependencies="start")
    assert (schedule.start_time[1::2] >= schedule.end_time[::2]).all()


# --- Slurm's files --------------------------------------------------------------------------------

CONF = """# scheduling
SchedulerType=sched/backfill
SchedulerParameters=bf_continue,bf_max_job_test=1000,bf_max_job_user=20,bf_window=4320 # days
SelectType=select/cons_tres
"""
SHOWN = """Configuration data as of 2026-11-27T02:52:10
SchedulerParameters     = bf_interval=1,bf_resolution=1,sched_interval=1,bf_max_job_user=0
SchedulerType           = sched/backfill
"""


def test_a_configuration_says_which_backfilling_it_means(tmp_path):
    path = tmp_path / "slurm.conf"
    for text, mode in (
        (CONF, Slurm(max_job_test=1000, max_job_user=20, window=4320)),
        (SHOWN, Slurm(resolution=1, interval=1)),
        ("SchedulerParameters=(null)\n", Slurm()),
        ("SchedulerType=sched/backfill\nSchedulerParameters=bf_max_job_part=0\n", Slurm()),
    ):
        path.write_text(text)
        assert as_backfill(f"slurm:{path}") == mode
        assert as_backfill(str(mode)) == mode
    jobs = workload_of([(0, 100, 100, 3), (1, 50, 50, 4), (2, 10, 10, 1)], 4)
    path.write_text(SHOWN)
    assert hpcgym.simulate(jobs, backfill=f"slurm:{path}").start_time.tolist() == [0, 100, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SchedulerParameters=bf_max_job_start=9\n", "1: SchedulerParameters has 'bf_max_job_st"),
        ("\nSchedulerParameters=defer\n", "2: SchedulerParameters has 'defer', which is not mod"),
        ("SchedulerParameters=bf_window=day\n", "bf_window is 'day'; allowed: a whole number"),
        ("SchedulerParameters=bf_interval=0\n", "bf_interval is '0'; allowed: 1 or more"),
        ("SchedulerType=sched/builtin\n", "allowed: 'sched/backfill'.*backfill 'none'"),
        ("PriorityType=priority/basic\n", "no SchedulerParameters nor SchedulerType"),
    ],
)
def test_what_a_configuration_has_that_is_not_modelled_is_refused(tmp_path, text, said):
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    with pytest.raises(MachineError, match=said):
        as_backfill(f"slurm:{path}")


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(MachineError, match="no such file"):
        as_backfill("slurm:nowhere/slurm.conf")
