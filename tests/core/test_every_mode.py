"""What holds in every backfilling mode: the reference, passes cut short, copies, and cells."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import first_difference, simulator_of, starts_again
from every_setting import MODES, RESERVING
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from research.benchmark import saturated
from strategies import policies, settings_for, workloads

HELD = "multi-queue:bounds=5000,delay=90000,batch=10"
LONG = (
    *RESERVING,
    "look-ahead:window=5",
    "relaxed:omega=0.5",
    "slack:c=0.5",
    "multi-queue",
    HELD,
    "easy:cap=0.5,long=600",
    "cost-benefit:kappa=1,cap=0.7,long=600",
    "slurm:max_job_test=40,max_job_user=9,interval=600",
    "committed:fill=before",
)
"""Modes for long queues."""


KINDS = (
    "conservative",
    "conservative:compress=shift",
    "depth:k=2",
    "look-ahead:window=3",
    "relaxed:omega=0.3",
    "slack:c=0.5",
    "multi-queue:bounds=2/10,delay=7,batch=3",
    "easy:cap=0.4,long=10",
    "cost-benefit:kappa=1,cap=0.4,long=10,overdue=open",
    "slurm:max_job_test=2,window=1,resolution=7,interval=5",
    "committed:fill=before",
)
"""A mode of each kind, with bounds and delays among the times that are drawn."""


few_or_crowded = workloads() | workloads(max_jobs=60)


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
def test_every_drawn_job_starts_as_the_reference_says(mode, data):
    workload = data.draw(few_or_crowded)
    settings = data.draw(settings_for(workload, mode))
    assert not first_difference(workload, policy=data.draw(policies), **settings)


@pytest.mark.parametrize("mode", ["easy", *KINDS])
@given(data=st.data())
def test_passes_that_are_cut_short_start_what_full_passes_start(mode, data):
    """Every invariant that the simulator relies on is checked at every event."""
    workload, policy = data.draw(workloads(max_jobs=30)), data.draw(policies)
    settings = data.draw(settings_for(workload, mode))
    short = simulator_of(workload, policy, **settings)
    full = simulator_of(workload, policy, full_passes=True, **settings)
    short.run()
    full.run()
    assert short.start_time.tolist() == full.start_time.tolist()
    assert short.backfilled.tolist() == full.backfilled.tolist()


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
    """At contested passes only, though in modes that remember something between passes."""
    workload, policy = data.draw(workloads(max_jobs=30)), data.draw(st.sampled_from(("SAF", "LPF")))
    settings = data.draw(settings_for(workload, mode)) | {"backfill_order": None}
    at_once = simulator_of(workload, policy, **settings)
    at_once.run()
    stepped = simulator_of(workload, "FCFS", decide="contested", **settings)
    while stepped.run():
        stepped.order_by(policy)
    assert stepped.start_time.tolist() == at_once.start_time.tolist()
    assert stepped.backfilled.tolist() == at_once.backfilled.tolist()


@pytest.mark.parametrize("policy", ["FCFS", "SMITH-HISTORY", "SMITH-URGENT"])
@given(data=st.data())
def test_nothing_is_read_before_it_is_written(policy, data):
    """Rows of a state are used again, with whatever the last simulation in them has left."""
    workload, mode = data.draw(workloads(max_jobs=30)), data.draw(st.sampled_from(("easy", *MODES)))
    simulator = simulator_of(workload, policy, **data.draw(settings_for(workload, mode)))
    simulator.run()
    starts = simulator.start_time.tolist()
    assert starts_again(simulator) == starts


@pytest.mark.parametrize("mode", LONG)
def test_copy_and_pickle_in_the_middle_end_like_the_original(mode):
    settings = SchedulerSettings("SAF", backfill=mode, threshold=30_000)
    ours = Simulator(saturated(300, 150), settings, decide="event")
    for _ in range(300):
        assert ours.run()
    assert (ours.state.n_held[0] > 0) == (mode == HELD)
    twins = [ours.copy(), pickle.loads(pickle.dumps(ours))]
    while ours.run():
        pass
    for twin in twins:
        while twin.run():
            pass
        assert twin.start_time.tolist() == ours.start_time.tolist()
        twin.restore(ours.copy())


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "semantics"),
    [
        (mode, semantics)
        for mode in LONG
        for semantics in ("batch", "pyss", "one-by-one")
        if semantics == "batch" or "instants" not in as_backfill(mode).demands
    ],
)
def test_many_cells_give_the_figures_of_single_simulations(mode, semantics):
    logs = [saturated(200, 200), saturated(50, 300)]
    names = ["FCFS", "SAF", "WFP3", "e=1,wait=-0.5"]
    settings = {"backfill": mode, "threshold": 50_000, "event_semantics": semantics}
    many = hpcgym.simulate_many(logs, names, **settings)
    for row, workload in enumerate(logs):
        for column, name in enumerate(names):
            figures = hpcgym.simulate(workload, name, **settings).metrics()
            assert many["n_backfilled"][row, column] == figures["n_backfilled"]
            assert many["mean_bsld"][row, column] == pytest.approx(figures["mean_bsld"], rel=1e-12)
