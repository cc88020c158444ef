"""State grows with the jobs that run and wait, and not with the log."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import Struct
from hpcgym.core.kernels import entry_points
from hpcgym.core.observation_fields import N_HISTORY_FIELDS
from hpcgym.core.parts.waiting_cost import STARTED_KEPT
from hpcgym.core.prepare import prepare, state_for
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.state import sim_of
from hpcgym.core.workload import Workload
from hpcgym.env.reward import cost_by_processor
from hpcgym.trace.synthetic import synthetic_workload
from research import benchmark

UNTOUCHED = -77
PER_JOB = ("start_time", "flag")  # the schedule: what a state may hold of each job of the log

RINGS = ("history_run_time", "history_requested_time", "history_processors")
"""What is remembered of each user's last jobs, up to a bound."""

SETTINGS = [
    SchedulerSettings(),
    SchedulerSettings(policy="SAF"),
    SchedulerSettings(policy="SPF", threshold=20_000),
    SchedulerSettings(policy="SAF", backfill_order="SPF", threshold=50_000),
    SchedulerSettings(policy="WFP3", backfill_order="UNICEF"),
    SchedulerSettings(policy="MULTIFACTOR", event_semantics="pyss"),
    SchedulerSettings(policy="SAF", backfill="conservative"),
    SchedulerSettings(policy="WFP3", backfill="conservative:compress=shift", threshold=20_000),
    SchedulerSettings(policy="SAF", backfill="depth:k=3", backfill_order="SPF"),
    SchedulerSettings(policy="WFP3", backfill="look-ahead:window=20"),
    SchedulerSettings(policy="SAF", backfill="relaxed", backfill_order="SPF"),
    SchedulerSettings(policy="SAF", backfill="slack:c=0.5", threshold=50_000),
]


def label(settings):
    """Name a setting as test reports show it."""
    return f"{settings.policy}-{settings.backfill}-{settings.backfill_order}-{settings.threshold}"


@pytest.fixture(scope="module")
def once():
    return synthetic_workload(3_000, np.random.default_rng(1), load=0.9)


def again_and_again(log, times):
    """Submit a log several times, each when the machine has long been empty again."""
    after = int(log.submit_time[-1] + log.requested_time.sum())
    part = np.arange(times)[:, np.newaxis]
    columns = (log.run_time, log.requested_time, log.processors)
    return Workload.from_arrays(
        (log.submit_time + part * after).ravel(),
        *(np.tile(column, times) for column in columns),
        machine_processors=log.machine_processors,
        user=(log.user + part * (log.user.max() + 1)).ravel(),
    )


def reward_of(log):
    """Return what waiting costs by a figure that spares wide jobs for long."""
    cost = cost_by_processor(log, log.run_time)
    return {"reward_rate": cost.rate, "reward_onset": cost.onset}


def written(log, settings, **extra):
    """Replay a log and count the elements of each array of the state that were written.

    A node counts once, however many children it had, and an entry once, in however many orders.
    """
    episode = prepare(log, settings, **extra)
    state = state_for([episode], fields=True)
    for array in state.arrays.values():  # a byte is a flag of a job, or is empty without nodes
        array.fill(0 if array.dtype == np.uint8 else UNTOUCHED)
    row, jobs = sim_of(state, 0), Struct(episode.table)
    entry_points.begin(row.address, episode.initial.address)
    assert entry_points.run(jobs.address, row.address) == s.STATUS_DONE
    touched = {key: array != UNTOUCHED for key, array in state.arrays.items()}
    touched["node_child"] = touched["node_child"].any(axis=2)
    touched["key"] = touched["key"].any(axis=1)
    return {key: int(places.sum()) for key, places in touched.items() if key not in PER_JOB}


@pytest.mark.long
@pytest.mark.parametrize("settings", SETTINGS, ids=label)
def test_a_log_four_times_as_long_touches_no_more_of_the_state(once, settings):
    assert written(again_and_again(once, 4), settings) == written(once, settings)


@pytest.mark.parametrize("policy", ["FCFS", "SMITH-HISTORY"])
def test_what_is_known_and_what_waiting_costs_grow_with_the_jobs_that_wait(once, policy):
    counts = []
    for log in (once, again_and_again(once, 4)):
        counted = written(log, SchedulerSettings(policy), keep_history=True, **reward_of(log))
        counts.append({key: n for key, n in counted.items() if key not in RINGS})
        most = counted["spare_entry"]
        assert 0 < counted["onset"] <= 2 * most + STARTED_KEPT + 1
        assert counted["expected"] in (0, most * s.N_WEIGHTS)
        assert (counted["expected"] > 0) == (policy == "SMITH-HISTORY")
        assert counted["inverse"] == most and counted["history_field"] <= most * N_HISTORY_FIELDS
    of_users = [key for key in counts[0] if key.startswith("history_") and key != "history_field"]
    assert len(of_users) == 6  # every copy of the log has its own users
    assert all(counts[1].pop(key) == 4 * counts[0].pop(key) for key in of_users)
    assert counts[1] == counts[0]


def test_jobs_that_start_before_their_waiting_costs_do_not_pile_up():
    n = 500
    columns = [np.full(n, value) for value in (10, 10, 256)]
    log = Workload.from_arrays(np.arange(n) * 20, *columns, machine_processors=256)
    reward = reward_of(log)
    assert (reward["reward_onset"] > log.submit_time + 2_000).all()  # a hundred jobs later
    assert written(log, SchedulerSettings(), **reward)["onset"] <= 2 + STARTED_KEPT + 1


@pytest.mark.parametrize("settings", SETTINGS, ids=label)
def test_as_many_seats_are_taken_as_jobs_ever_waited_at_once(once, settings):
    simulator = Simulator(once, settings)
    simulator.run()
    most = simulator.counts()["max_waiting"]
    assert simulator.state.n_entries[0] == most
    assert 50 < most < len(once) / 4
    assert benchmark.held_beyond_schedule(simulator) < 5_000 + 250 * most * s.N_QUEUES


@pytest.mark.parametrize("settings", SETTINGS, ids=label)
def test_a_copy_of_what_is_in_use_ends_like_its_original(once, settings):
    ours = Simulator(once, settings, decide="event")
    for _ in range(2_000):
        ours.run()
    twin = ours.copy()
    while ours.run():
        pass
    while twin.run():
        pass
    np.testing.assert_array_equal(twin.start_time, ours.start_time)


@pytest.mark.long
def test_a_long_log_is_generated_replayed_and_summed_up_in_some_bytes_a_job():
    n_jobs = 400_000
    command = [sys.executable, benchmark.__file__, str(n_jobs), "1"]
    # Else malloc moves its own threshold, and the peak is another from run to run.
    variables = dict(os.environ, MALLOC_MMAP_THRESHOLD_="131072")
    run = subprocess.run(command, check=True, env=variables, capture_output=True, text=True)
    *_, before, after = json.loads(run.stdout)
    assert 60 < (after - before) / n_jobs < 190  # the job table alone takes 64
