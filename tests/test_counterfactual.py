"""Counterfactuals: branches of a decision against copies that are simulated to the end in Python."""

from copy import deepcopy

import numpy as np
import pytest

import hpcgym
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.counterfactual import FEATURES, Branches, Future, Option, first, last, under
from hpcgym.errors import PolicyError

SETTINGS = [
    {"policy": "FCFS"},
    {"policy": "SAF", "threshold": 3000},
    {"policy": "WFP3", "backfill": "easy"},
    {"policy": "SMITH-REGRESSION"},
    {"policy": "SMITH-HISTORY", "backfill": "depth:k=2"},
    {"policy": "SAF", "backfill": "conservative"},
    {"policy": "SAF", "backfill": "easy", "backfill_order": "SPF"},
    {"policy": "SAF", "estimates": "recent", "correction": "reqtime"},
    {"policy": "SMITH-URGENT", "backfill": "cost-benefit:kappa=0.25,cap=0.6,long=1500"},
    {"policy": "SAF", "backfill": "relaxed:omega=0.5"},
    {"policy": "SAF", "backfill": "easy+trial:limit=60"},
    {"policy": "FCFS", "event_semantics": "pyss"},
]


def drawn(seed, n_jobs=26):
    """Draw jobs for a machine of 8 processors that is busy at times and idle at others."""
    generator = np.random.default_rng(seed)
    gaps = generator.exponential(generator.choice([60, 1500], n_jobs, p=[0.8, 0.2]))
    run_time = np.ceil(generator.lognormal(5.5, 1.3, n_jobs)).astype(int)
    requested = run_time * generator.integers(1, 6, n_jobs)
    return hpcgym.Workload.from_arrays(
        np.cumsum(gaps).astype(int),
        run_time,
        requested,
        generator.choice([1, 2, 3, 4, 6, 8], n_jobs),
        user=generator.integers(0, 3, n_jobs),
        machine_processors=8,
    )


def simulator_of(workload, settings, decide="contested"):
    settings = hpcgym.SchedulerSettings(**settings)
    asked = [] if settings.correction != "none" else [hpcgym.as_policy("SMITH-HISTORY")]
    return hpcgym.Simulator(workload, settings, decide=decide, extra_policies=asked)


def scores(simulator):
    """Score the waiting jobs by the formula of the policy, lowest first."""
    waiting, jobs = simulator.waiting, simulator.workload
    q, wait = jobs.processors[waiting], simulator.now - jobs.submit_time[waiting]
    estimate = simulator.table.estimate[waiting]
    name = simulator.episode.policy.name
    if name == "FCFS":
        return -wait.astype(float)
    if name == "SAF":
        return (q * simulator.predicted_time[waiting]).astype(float)
    if name == "WFP3":
        return -((wait / estimate) ** 3) * q
    listed, term = simulator.terms()
    assert listed.tolist() == waiting.tolist()
    weights = simulator.episode.policy.parameters
    if name == "SMITH-URGENT":
        crowd = min(np.log(1 + q.sum() / 8), weights[6])
        urgent = (wait > weights[1]) & (q >= weights[3] * 8) & (q <= weights[4] * 8)
        urgency = np.where(urgent, weights[0] * (wait - weights[1]) / weights[2], 0.0)
        width = 1 - weights[5] * crowd
        return width * term[:, 0] + 2 * term[:, 1] + term[:, 6] - term[:, 7] - urgency
    return term @ weights


def ranks(simulator):
    """Rank the waiting jobs; `Simulator.order_by_keys` puts those beyond the threshold first."""
    rank = np.empty(len(simulator.waiting))
    rank[np.lexsort((simulator.waiting, scores(simulator)))] = np.arange(len(rank))
    return rank


def take(simulator, option):
    """Take an option at a decision."""
    if option.kind == "policy":
        simulator.order_by(option.policy)
        return
    keys = ranks(simulator)
    keys[simulator.waiting == option.job] = {"first": -1, "last": len(keys)}[option.kind]
    simulator.order_by_keys(keys)


def twin_of(simulator, option=None, duration=0):
    """Simulate a deep copy to its end, with an option from now on, and return the starts."""
    twin = deepcopy(simulator)
    own = twin.episode.policy
    is_over = option is None
    if option is not None:
        take(twin, option)
    end = twin.now + duration
    while twin.run():
        is_over = is_over or twin.now >= end
        is_over = is_over or (option.kind != "policy" and option.job not in twin.waiting)
        if not is_over:
            take(twin, option)
        elif not own.is_static:
            twin.order_by(own)  # `order_by` has replaced the parameters of the pass
    return twin.start_time


def slowdown(workload, starts):
    run_time = workload.run_time
    turnaround = starts - workload.submit_time + run_time
    return np.maximum(turnaround / np.maximum(run_time, BSLD_BOUND_S), 1.0)


def decisions_of(simulator, every=3, most=4):
    """Go through some of the decisions of a simulation."""
    place = 0
    while simulator.run() and most:
        if place % every == 0:
            most -= 1
            yield
        place += 1


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_branches_are_copies_that_are_simulated_to_the_end(settings):
    merged = changed = 0
    for seed in range(3):
        workload = drawn(seed)
        simulator = simulator_of(workload, settings)
        branches = Branches(simulator)
        for _ in decisions_of(simulator):
            jobs = branches.decisions().jobs
            options = [first(jobs[-1]), last(jobs[0]), first(jobs[len(jobs) // 2]), under("LCFS")]
            for duration in (0, 2000):
                found = branches.branch(options, duration)
                to_end = branches.branch(options, duration, until="end")
                base = twin_of(simulator)
                assert to_end.base_start_time.tolist() == base.tolist()
                for row, option in enumerate(options):
                    starts = twin_of(simulator, option, duration)
                    assert to_end.start_time[row].tolist() == starts.tolist(), (seed, option)
                    change = slowdown(workload, starts) - slowdown(workload, base)
                    np.testing.assert_allclose(found.slowdown[row], change, atol=1e-9)
                    np.testing.assert_allclose(to_end.slowdown[row], change, atol=1e-9)
                    changed += bool(change.any())
                merged += (found.merged_at >= 0).sum()
    assert changed
    keeps = ("relaxed", "trial", "pyss")
    assert (merged > 0) != any(word in str(settings) for word in keeps)


@pytest.mark.parametrize("decide", ["contested", "event", 500])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_rollout_of_the_base_is_the_episode(settings, decide):
    workload = drawn(7)
    played = hpcgym.simulate(workload, **settings).start_time.tolist()
    simulator = simulator_of(workload, settings, decide)
    branches, n = Branches(simulator), 0
    while simulator.run():
        if n % 5 == 0 and simulator.state.n_waiting[0]:
            assert branches.rollout().base_start_time.tolist() == played
        n += 1
    assert n and simulator.start_time.tolist() == played
