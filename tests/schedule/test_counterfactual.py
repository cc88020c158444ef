"""Branches of a decision against deep copies that are simulated to the end in Python."""

from copy import deepcopy

import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.compiler.struct import IS_COMPILED
from hpcgym.core.kernels.planning import branches as kernels
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.schedule.counterfactual import Branches, Future, Option, first, last, under
from hpcgym.schedule.features import FEATURES

SETTINGS = [
    {"policy": "FCFS"},
    {"policy": "SAF", "threshold": 3000},
    {"policy": "WFP3", "backfill": "easy"},
    {"policy": "SMITH-REG"},
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
    for seed in range(2):
        workload = drawn(seed)
        simulator = simulator_of(workload, settings)
        branches = Branches(simulator)
        for _ in decisions_of(simulator, every=4, most=3):
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


MERGING = [SETTINGS[0], SETTINGS[1], SETTINGS[3], SETTINGS[4], SETTINGS[7], SETTINGS[8]]


@pytest.mark.parametrize("settings", MERGING, ids=str)
def test_a_branch_that_has_merged_differs_no_more(settings):
    merged = 0
    for seed in range(5):
        # Few kinds of long jobs: states often differ by one job, or by whose it is.
        generator = np.random.default_rng(seed)
        run_time = generator.choice([900, 1800, 5400], 30)
        workload = hpcgym.Workload.from_arrays(
            np.sort(generator.integers(0, 60_000, 30)),
            run_time,
            run_time * generator.choice([1, 2], 30),
            generator.choice([1, 4, 8], 30),
            user=generator.integers(0, 2, 30),
            machine_processors=8,
        )
        simulator = simulator_of(workload, settings)
        branches = Branches(simulator)
        for _ in decisions_of(simulator, every=2, most=5):
            options = [first(job) for job in branches.decisions().jobs]
            found = branches.branch(options)
            to_end = branches.branch(options, until="end")
            np.testing.assert_allclose(found.slowdown, to_end.slowdown, atol=1e-9)
            merged += (found.merged_at >= 0).sum()
    assert merged


def waiting_entry(sim):
    return kernels.entry_of(sim, int(sim.scratch[0]))


CHANGED = {
    "an end": lambda sim: sim.ending_time.__setitem__(0, sim.ending_time[0] + 1),
    "a running job": lambda sim: sim.ending_job.__setitem__(0, 29),
    "an estimated end": lambda sim: sim.release_time.__setitem__(0, sim.release_time[0] + 1),
    "a job under the cap": lambda sim: sim.flag.__setitem__(
        sim.ending_job[0], sim.flag[sim.ending_job[0]] ^ s.FLAG_CAPPED
    ),
    "a pass that is due": lambda sim: setattr(sim, "pass_due", 1 - sim.pass_due),
    "free processors": lambda sim: setattr(sim, "free", sim.free + 1),
    "jobs to come": lambda sim: setattr(sim, "next_job", sim.next_job + 1),
    "overdue jobs": lambda sim: setattr(sim, "n_overdue", sim.n_overdue + 1),
    "a waiting job": lambda sim: sim.node_child.__setitem__(
        (sim.node_child[sim.group_order[0, 0], 0], 0), 29
    ),
    "a key": lambda sim: sim.key.__setitem__((0, waiting_entry(sim)), -1e9),
    "a key of the backfill order": lambda sim: sim.key.__setitem__((1, waiting_entry(sim)), -1e9),
    "what a job costs": lambda sim: sim.inverse.__setitem__(waiting_entry(sim), 7.0),
    "a coefficient": lambda sim: sim.coefficient.__setitem__(
        (1, 3), np.nextafter(sim.coefficient[1, 3], 9)
    ),
    "squares": lambda sim: sim.squares.__setitem__((0, 1), np.nextafter(sim.squares[0, 1], 9)),
    "a record": lambda sim: sim.history_run_time.__setitem__((0, 0), 29),
    "a count of records": lambda sim: sim.history_completed.__setitem__(
        1, sim.history_completed[1] + 1
    ),
}


@pytest.mark.skipif(IS_COMPILED, reason="calls a kernel within others")
@pytest.mark.parametrize("what", CHANGED)
def test_states_that_differ_in_anything_that_matters_have_not_merged(what):
    workload = drawn(4, n_jobs=30)
    settings = {"policy": "SMITH-REG", "backfill_order": "SPF", "correction": "reqtime"}
    settings["estimates"] = "recent"
    simulator = simulator_of(workload, settings)
    at_decision = simulator.run()
    while at_decision and simulator.state.n_ended[0] < 5:
        at_decision = simulator.run()
    assert at_decision and simulator.state.n_running[0]
    twin = simulator.copy()

    def have_merged():
        return kernels.have_merged(
            simulator._jobs.address, simulator._sim.address, twin._jobs.address, twin._sim.address
        )

    assert have_merged()
    CHANGED[what](twin._sim.fields)
    assert not have_merged()


@pytest.mark.skipif(IS_COMPILED, reason="calls a kernel within others")
def test_estimates_that_differ_keep_states_apart():
    settings = {"policy": "SAF", "correction": "reqtime", "estimates": "recent"}
    simulator = simulator_of(drawn(4, n_jobs=30), settings)
    assert simulator.run() and simulator.state.n_running[0]
    waits, runs = simulator.waiting[-1], simulator.running[-1]
    for name, where in [
        ("estimate", (0, waits)),
        ("estimate", (0, runs)),
        ("feature", (0, waits, s.FEATURE_ESTIMATE)),
    ]:
        twin = simulator.copy()
        twin.state.arrays[name][where] += 1
        own = simulator._jobs.address, simulator._sim.address
        assert not kernels.have_merged(*own, twin._jobs.address, twin._sim.address)


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


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_what_the_base_does_anyway_changes_nothing(settings):
    simulator = simulator_of(drawn(11), settings)
    branches = Branches(simulator)
    for _ in decisions_of(simulator):
        jobs = branches.decisions().jobs
        order = simulator.waiting[np.lexsort((simulator.waiting, scores(simulator)))]
        is_overdue = simulator.waiting < simulator.state.next_overdue[0]
        order = [*np.sort(simulator.waiting[is_overdue]), *order]
        assert jobs.tolist() == list(dict.fromkeys(int(job) for job in order))
        own = [first(jobs[0]), last(jobs[-1]), under(simulator.episode.policy)]
        for until in ("merge", "horizon", "end"):
            found = branches.branch(own, until=until, horizon=3000)
            assert not found.slowdown.any() and not found.total.any()


def test_a_branch_reads_the_simulation_and_leaves_it_as_it_is():
    workload = drawn(12)
    settings = {"policy": "SMITH-REG", "threshold": 3000}
    simulator = simulator_of(workload, settings)
    branches = Branches(simulator)
    for _ in decisions_of(simulator, most=99):
        jobs = branches.decisions().jobs
        for future in ("same", "jitter", "resample"):
            branches.branch([first(jobs[-1]), under("LCFS")], 5000, future=future)
    assert (
        simulator.start_time.tolist() == hpcgym.simulate(workload, **settings).start_time.tolist()
    )


def test_a_horizon_counts_waiting_jobs_as_if_they_started_then():
    workload = drawn(3)
    simulator = simulator_of(workload, {"policy": "SAF"})
    branches = Branches(simulator)
    for _ in decisions_of(simulator):
        jobs, limit = branches.decisions().jobs, simulator.now + 700
        submitted = workload.submit_time <= limit
        options = [first(job) for job in jobs]
        for duration in (0, 4000):
            found = branches.branch(options, duration, until="horizon", horizon=700)
            base = np.minimum(twin_of(simulator), limit)
            for row, option in enumerate(options):
                starts = np.minimum(twin_of(simulator, option, duration), limit)
                change = slowdown(workload, starts) - slowdown(workload, base)
                np.testing.assert_allclose(found.slowdown[row], np.where(submitted, change, 0))


@pytest.mark.parametrize("policy", ["SAF", "SMITH-REG"])
@pytest.mark.parametrize(
    "future", [Future(0.3, seed=2), Future(jitter=900), Future("records", 900, seed=5)], ids=str
)
def test_another_future_is_another_workload_with_the_same_past(policy, future):
    settings = {"policy": policy}
    for seed in range(2):
        workload = drawn(seed)
        simulator = simulator_of(workload, settings)
        branches = Branches(simulator)
        for _ in decisions_of(simulator):
            jobs = branches.decisions().jobs
            options = [first(job) for job in jobs]
            found = branches.branch(options, 1000, until="end", future=future)
            merged = branches.branch(options, 1000, future=future)
            np.testing.assert_allclose(merged.slowdown, found.slowdown, atol=1e-9)
            table, source = branches._plan(branches._ready(1)[0], future)
            other = hpcgym.Workload.from_arrays(
                table.submit_time,
                table.run_time,
                table.requested_time,
                table.processors,
                user=workload.user[source],
                machine_processors=8,
            )
            played = simulator_of(other, settings)
            while played.run() and played.now < simulator.now:
                pass
            back = np.argsort(source)
            assert played.now == simulator.now
            assert played.waiting.tolist() == simulator.waiting.tolist()
            assert found.base_start_time.tolist() == twin_of(played)[back].tolist()
            for row, option in enumerate(options):
                starts = twin_of(played, option, 1000)[back]
                assert found.start_time[row].tolist() == starts.tolist()
            ended = played.start_time + workload.run_time <= simulator.now
            ended &= simulator.start_time >= 0
            assert (table.run_time == workload.run_time[source])[ended].all()
            assert (np.sort(source) == np.arange(len(workload))).all()
            if future.run_times == "exact":
                assert (table.run_time == workload.run_time[source]).all()


def test_drawn_run_times_are_those_of_the_users_records_or_the_request():
    workload = drawn(5, n_jobs=60)
    simulator = simulator_of(workload, {"policy": "SAF"})
    branches = Branches(simulator)
    for _ in decisions_of(simulator, every=5, most=6):
        plan, source = branches._plan(branches._ready(1)[0], Future("records"))
        started = simulator.start_time
        ended = (started >= 0) & (started + workload.run_time <= simulator.now)
        for row, job in enumerate(source):
            if not ended[job]:
                known = workload.run_time[ended & (workload.user == workload.user[job])]
                allowed = {*np.minimum(known, workload.requested_time[job])}
                assert plan.run_time[row] in allowed | {workload.requested_time[job]}


def test_features_know_nothing_of_what_is_to_come():
    workload = drawn(6, n_jobs=40)
    for policy in ("SAF", "SMITH-REG", "SMITH-HISTORY"):
        simulator = simulator_of(workload, {"policy": policy})
        branches, seen = Branches(simulator), 0
        for _ in decisions_of(simulator, every=2, most=5):
            shown = branches.decisions()
            assert shown.features.shape == (len(shown.jobs), len(FEATURES))
            assert np.isfinite(shown.features).all()
            started = simulator.start_time
            left = (started < 0) | (started + workload.run_time > simulator.now)
            run_time = np.where(left, workload.requested_time, workload.run_time)
            coming = workload.submit_time > simulator.now
            columns = workload.columns(~coming | (np.arange(len(workload)) % 2 == 0))
            kept = np.flatnonzero(~coming | (np.arange(len(workload)) % 2 == 0))
            other = hpcgym.Workload.from_arrays(
                **columns | {"run_time": run_time[kept], "wait_time": None}, machine_processors=8
            )
            again = simulator_of(other, {"policy": policy})
            while again.run() and again.now < simulator.now:
                pass
            repeated = Branches(again).decisions()
            assert repeated.jobs.tolist() == shown.jobs.tolist()
            np.testing.assert_array_equal(repeated.features, shown.features)
            seen += len(shown.jobs)
        assert seen > 10


def test_threads_find_the_same():
    simulator = simulator_of(drawn(8), {"policy": "SAF"})
    alone, together = Branches(simulator), Branches(simulator, threads=3)
    for _ in decisions_of(simulator):
        options = [first(job) for job in alone.decisions().jobs] + [under("LCFS")]
        one, other = alone.branch(options, 900), together.branch(options, 900)
        np.testing.assert_array_equal(one.slowdown, other.slowdown)
        np.testing.assert_array_equal(one.merged_at, other.merged_at)


def test_another_policy_to_the_end_is_its_schedule_from_now_on():
    workload = drawn(9)
    simulator = simulator_of(workload, {"policy": "SAF"})
    branches = Branches(simulator)
    for _ in decisions_of(simulator):
        found = branches.rollout("LCFS")
        assert found.start_time[0].tolist() == twin_of(simulator, under("LCFS"), 10**9).tolist()


def at_decision(**settings):
    simulator = simulator_of(drawn(1), {"policy": "SAF", **settings})
    assert simulator.run()
    return simulator


def test_what_cannot_be_is_refused_with_what_is_allowed():
    branches = Branches(at_decision())
    job = branches.decisions().jobs[0]
    for options, keywords, text in [
        (first(25), {}, "job 25 does not wait; waiting: "),
        (Option("middle", job), {}, "made by first, last or under"),
        ("first", {}, "made by first, last or under"),
        (under("PLANNER"), {}, "PLANNER decides in Python"),
        (first(job), {"duration": -1}, "duration, in s, must be a whole number from 0"),
        (first(job), {"until": "merged"}, "unknown until 'merged'; did you mean 'merge'"),
        (first(job), {"until": "horizon", "horizon": 0}, "horizon, in s, must be"),
        (first(job), {"future": "sane"}, "unknown future 'sane'; did you mean 'same'"),
    ]:
        with pytest.raises(PolicyError, match=text):
            branches.branch(options, **keywords)
    with pytest.raises(PolicyError, match="run_times must be 'exact', 'records' or a share"):
        Future("drawn")
    with pytest.raises(PolicyError, match="jitter, in s, must be"):
        Future(jitter=-1)
    fresh = simulator_of(drawn(1), {"policy": "SAF"})
    with pytest.raises(PolicyError, match=r"at no decision at 0 s; make it with decide="):
        Branches(fresh).decisions()
    plain = hpcgym.Simulator(drawn(1), decide="contested")
    assert plain.run()
    with pytest.raises(PolicyError, match=r"extra_policies=\[hpcgym.as_policy"):
        Branches(plain).rollout(future="resample")
    with pytest.raises(PolicyError, match="another future needs"):
        Branches(at_decision(backfill="easy+trial")).rollout(future="jitter")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"policy": "DYNP"}, "policy DYNP decides in Python"),
        ({"policy": lambda jobs: jobs.area}, "decides in Python"),
        ({"estimates": lambda job: 60}, "a predictor works in Python"),
        ({"events": "outage:processors=1,from=0,to=9"}, "branches know no event"),
    ],
)
def test_simulations_that_cannot_branch_are_refused(settings, text):
    simulator = hpcgym.Simulator(drawn(1), hpcgym.SchedulerSettings(**settings))
    with pytest.raises(PolicyError, match=text):
        Branches(simulator)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["SAF", "SMITH-REG"])
def test_an_option_taken_in_the_simulation_is_its_branch(policy):
    for take_it in (first, last):
        simulator = simulator_of(drawn(2), {"policy": policy})
        branches = Branches(simulator)
        for _ in decisions_of(simulator, most=2):
            option = take_it(branches.decisions().jobs[len(simulator.waiting) // 2])
            found = branches.branch(option, until="end")
            went_on = deepcopy(simulator)
            Branches(went_on).take(option)
            while went_on.run():
                pass
            assert went_on.start_time.tolist() == found.start_time[0].tolist()
