"""What holds in every backfilling mode, and however a simulation under any setting is run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as drawing
from hypothesis import strategies as st

import hpcgym
from engines import (
    asks_lives,
    by_package,
    check_copies_go_on_alike,
    first_difference,
    simulator_of,
    starts_again,
)
from every_setting import EVERY_MODE, SETTINGS
from fuzzing import many
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from strategies import busy_workloads, indexes, policies, predicted, settings_for, workloads

KINDS = (
    *("conservative", "conservative:compress=shift", "depth:k=2", "look-ahead:window=3"),
    *("relaxed:omega=0.3", "slack:c=0.5", "multi-queue:bounds=2/10,delay=7,batch=3"),
    *("easy:cap=0.4,long=10", "cost-benefit:kappa=1,cap=0.4,long=10,overdue=open"),
    *("slurm:max_job_test=2,window=1,resolution=7,interval=5", "committed:fill=before"),
)
"""A mode of each kind, with bounds and delays among the times that are drawn."""


jobs = workloads() | workloads(max_jobs=60) | busy_workloads()
orders = policies | indexes()


@pytest.mark.parametrize("mode", EVERY_MODE)
@many(2)
@given(data=st.data())
def test_every_drawn_job_starts_as_the_reference_says(mode, data):
    """Under any order, where run times are as estimated, or predicted and corrected."""
    workload = data.draw(jobs)
    settings = data.draw(settings_for(workload, data.draw(EVERY_MODE[mode])))
    if not asks_lives(settings["backfill"]) and data.draw(st.booleans()):
        settings = data.draw(predicted(settings))
    assert not first_difference(workload, policy=data.draw(orders), **settings)


@pytest.mark.parametrize(
    "mode",
    [
        *("depth:k=1", "relaxed:omega=0", "multi-queue:bounds=1000000", "easy:cap=3,long=0"),
        *("cost-benefit:kappa=0", "cost-benefit:kappa=0,overdue=open"),
    ],
)
@given(data=st.data())
def test_modes_of_which_numbers_leave_easy_alone_are_easy(mode, data):
    workload, policy = data.draw(jobs), data.draw(orders)
    settings = data.draw(settings_for(workload, mode)) | {"policy": policy}
    assert by_package(workload, **settings) == by_package(
        workload, **settings | {"backfill": "easy"}
    )


@pytest.mark.parametrize("kind", SETTINGS)
@drawing(max_examples=max(drawing.default.max_examples // 2, 1))
@given(data=st.data(), n_events=st.integers(0, 20))
def test_how_a_simulation_is_run_changes_no_start(kind, data, n_events):
    """Invariants hold at every event; passes that are cut short start what full passes start.

    So do copies and pickles, of its beginning and its middle, and what is run where another
    simulation has left whatever it likes. One cell of many measures the same.
    """
    workload, settings = case = data.draw(SETTINGS[kind])
    schedule = case.run()
    starts = schedule.start_time.tolist()
    simulator = simulator_of(workload, **settings)
    check_copies_go_on_alike(simulator)
    assert simulator.start_time.tolist() == starts
    assert simulator.backfilled.tolist() == schedule.backfilled.tolist()
    assert starts_again(simulator) == starts
    full = simulator_of(workload, full_passes=True, **settings)
    full.run()
    assert full.start_time.tolist() == starts
    if kind != "dependencies":  # which are beside no decisions
        middle = simulator_of(workload, decide="event", **settings)
        for _ in range(n_events):
            middle.run()
        check_copies_go_on_alike(middle)
    if kind == "shares":  # which are no cell of many
        return
    policy, estimates = settings["policy"], settings.get("estimates", "requested")
    cell = {key: value for key, value in settings.items() if key != "policy"}
    if not isinstance(estimates, str):
        cell["estimates"] = [estimates]
    many, metrics = hpcgym.simulate_many([workload], [policy], **cell), schedule.metrics()
    for name in ("makespan", "max_wait_time", "n_backfilled") if metrics["n_jobs"] else ():
        assert many[name][0, 0] == metrics[name]


def queue_of_pass(simulator, keys):
    """Return the jobs that a pass may start in queue order, by keys of all waiting ones.

    A committed job goes before all others, whatever they say.
    """
    wait = simulator.now - simulator.workload.submit_time
    threshold, flags = simulator.settings.threshold, simulator.state.flag[0]
    is_old = wait > (np.inf if threshold is None else threshold)
    chosen = int(simulator.state.chosen[0]) - 1
    rank = {job: -2 if job == chosen else -1 if is_old[job] else keys[job] for job in keys}
    ranked = sorted((rank[job], job) for job in keys)
    return [job for _, job in ranked if not flags[job] & s.FLAG_HELD]


@pytest.mark.parametrize("mode", ["none", "easy", *KINDS])
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_backfilled_jobs_are_those_that_start_ahead_of_one_that_keeps_waiting(mode, data, seed):
    """Every pass is decided, by keys that tie or by a pick, so that its queue order is known."""
    workload = data.draw(workloads(max_jobs=30))
    simulator = simulator_of(workload, decide="event", **data.draw(settings_for(workload, mode)))
    generator, expected, goes_on = np.random.default_rng(seed), {}, simulator.run()
    while goes_on:
        waiting = simulator.waiting
        keys = dict(zip(waiting, generator.integers(0, 3, len(waiting)), strict=True))
        if as_backfill(mode).keeps_reservations or generator.integers(2):
            simulator.order_by_keys(list(keys.values()))
        else:  # the others follow first come, first served
            picked = int(generator.choice(waiting))
            keys = {job: int(job != picked) for job in waiting}
            simulator.pick(picked)
        queue = queue_of_pass(simulator, keys)
        goes_on = simulator.run()
        waits = False  # a job before this one, when the pass is over
        for job in queue:
            if simulator.start_time[job] >= 0:
                expected[job] = waits
            else:
                waits = True
    assert simulator.backfilled.tolist() == [expected[job] for job in range(len(workload))]


@pytest.mark.parametrize("mode", KINDS)
@given(data=st.data())
def test_asking_for_decisions_changes_nothing_if_the_same_policy_decides(mode, data):
    """At contested passes only or at every event, in modes that remember something, too."""
    workload, policy = data.draw(workloads(max_jobs=30)), data.draw(st.sampled_from(("SAF", "LPF")))
    settings = data.draw(settings_for(workload, mode)) | {"backfill_order": None}
    at_once = simulator_of(workload, policy, **settings)
    at_once.run()
    decide = data.draw(st.sampled_from(("contested", "event")))
    stepped = simulator_of(workload, "FCFS", decide=decide, **settings)
    while stepped.run():
        stepped.order_by(policy)
    assert stepped.start_time.tolist() == at_once.start_time.tolist()
    assert stepped.backfilled.tolist() == at_once.backfilled.tolist()
