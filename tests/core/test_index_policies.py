"""Index policies: equal to the reference job by job, and terms kept only while they hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_index
from engines import first_difference, index_of, jobs_of, records_of_users
from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core.history import RING_JOBS
from hpcgym.core.index_policy import LARGEST, TERMS, index_policy
from hpcgym.core.kernels.scoring.online_regression import REGRESSOR_COMPLETED
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from research.benchmark import saturated
from strategies import indexes, network_of, policies, settings_for, workloads

BY_NAME = tuple(reference_index.RULES)
STRETCH = 30  # drawn times are short; so stretched, most run times are above the bound of 10 s


def stretched(workload):
    """Return a workload in which all times are longer."""
    history = workload.history
    return replace(
        workload,
        submit_time=workload.submit_time * STRETCH,
        run_time=workload.run_time * STRETCH,
        requested_time=workload.requested_time * STRETCH,
        history=history._replace(
            run_time=history.run_time * STRETCH, requested_time=history.requested_time * STRETCH
        ),
    )


users = workloads(max_jobs=40) | workloads(max_jobs=40).map(stretched)


@given(data=st.data())
def test_an_index_may_order_the_backfill_alone(data):
    workload, policy = data.draw(users), data.draw(policies)
    settings = data.draw(settings_for(workload, "easy")) | {"backfill_order": data.draw(indexes())}
    assert not first_difference(workload, policy=policy, **settings)


KTH, SDSC = "KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln"


# --- What is kept with an entry -------------------------------------------------------------------


def entry_of(state, job):
    """Return the entry of a waiting job, which its place of `start_time` encodes."""
    return -2 - int(state.start_time[0, job])


def check_what_is_kept(workload, seed):
    """Compare network inputs and kept terms with the reference; count the terms kept."""
    policy = index_policy([1, 2, 1, -1, 0.5, -0.5], network_of(seed))
    rule, table, n_kept = index_of(policy), jobs_of(workload), 0
    simulator = Simulator(workload, SchedulerSettings(policy, backfill="none"), decide="event")
    while simulator.run():
        state = simulator.state
        history = workload.history._replace(
            run_time=state.history_run_time[0],
            requested_time=state.history_requested_time[0],
            processors=state.history_processors[0],
            completed=state.history_completed[0],
        )
        known = records_of_users(replace(workload, history=history))
        listed, inputs = simulator.network_inputs()
        for job, seen in zip(listed.tolist(), inputs.tolist(), strict=True):
            row = table[job]
            user = known[row.user]
            assert seen == reference_index.network_inputs(row, row.requested_time, user)
            entry = entry_of(state, job)
            if state.expected_at[0, entry] == user.completed:
                assert state.expected[0, entry, :6].tolist() == [
                    math.log(row.processors),
                    math.log(max(row.requested_time, 10)),
                    *reference_index.by_records(row, row.requested_time, user),
                    *reference_index.by_network(rule.network, seen),
                ]
                n_kept += 1
    return n_kept


@given(data=st.data())
def test_what_is_kept_of_a_waiting_job_is_what_is_computed_anew(data):
    """At every event the reference reads the users' rings; terms out of date are not used."""
    check_what_is_kept(data.draw(users), data.draw(st.integers(0, 99)))


def test_much_is_kept_where_many_jobs_wait():
    assert check_what_is_kept(saturated(30, 30), 5) > 100


def test_an_expectation_moves_when_a_job_of_the_same_user_ends():
    """One processor. A's user turns out to run 10 s of 100 s, so his next job goes before B's."""
    jobs = Workload.from_arrays(
        [0, 1, 2, 3],
        [10, 50, 10, 10],
        [100, 50, 60, 100],
        [1] * 4,
        user=[7, 8, 8, 7],
        machine_processors=1,
    )
    assert hpcgym.simulate(jobs, "SPF").start_time.tolist() == [0, 10, 60, 70]
    assert hpcgym.simulate(jobs, "SPF-HISTORY").start_time.tolist() == [0, 20, 70, 10]


def hours_of(unix_start):
    """One processor. One user's jobs end at once at noon and run to their request at midnight."""
    days, noon = 40, 43_200
    submit = np.repeat(np.arange(days) * 86_400, 2) + np.tile([0, noon], days)
    last = [days * 86_400, days * 86_400 + 1, days * 86_400 + noon]
    jobs = Workload.from_arrays(
        [*submit, *last],
        [*np.tile([3000, 10], days), 86_000, 3000, 10],
        [*np.full(2 * days, 3000), 86_000, 3000, 3000],
        np.ones(2 * days + 3),
        user=np.ones(2 * days + 3),
        machine_processors=1,
        unix_start=unix_start,
    )
    return jobs, hpcgym.simulate(jobs, "SPF-REG").start_time[-2:]


@pytest.mark.parametrize("unix_start", [None, 0, 5 * 3600])
def test_the_regression_learns_the_hour(unix_start):
    """The last two jobs wait together and differ in the hour they came at alone."""
    jobs, (at_midnight, at_noon) = hours_of(unix_start)
    assert at_noon < at_midnight
    by_records = hpcgym.simulate(jobs, "SPF-HISTORY").start_time[-2:]
    assert by_records[0] < by_records[1]


@pytest.mark.long
def test_the_regression_begins_half_way_to_the_records():
    simulator = Simulator(saturated(30, 30), SchedulerSettings("SMITH-REG"), decide="event")
    assert simulator.run()
    _, term = simulator.terms()
    columns = dict(zip(TERMS, term.T, strict=True))
    most = columns["request"] - math.log(10)
    half = np.maximum(columns["run_time_ratio"] / 2, -most), np.minimum(columns["speed"] / 2, most)
    assert np.allclose(columns["regressed_run_time_ratio"], half[0], rtol=1e-12)
    assert np.allclose(columns["regressed_speed"], half[1], rtol=1e-12)


def test_only_terms_that_are_asked_for_are_worked_out():
    by_network = index_policy([1, 2, 0, 0, 1, -1], network_of(1))
    found = {}
    for asked, extra in (
        ("SMITH-HISTORY", []),
        (by_network, []),
        ("SMITH-REG", []),
        ("SMITH-REG", [by_network]),
    ):
        settings = SchedulerSettings(asked)
        simulator = Simulator(saturated(30, 30), settings, decide="event", extra_policies=extra)
        for _ in range(20):
            assert simulator.run()
        term = simulator.terms()[1].T
        assert term[:4].any(axis=1).all()
        found[str(asked), len(extra)] = [bool(term[part].any()) for part in ((4, 5), (6, 7))]
    assert list(found.values()) == [[False, False], [True, False], [False, True], [True, True]]


def test_a_ring_forgets_what_lies_further_back():
    """Twenty-one jobs of 100 s, then as many of 10 s: only the latter are remembered."""
    n = 2 * RING_JOBS + 2
    run_time = np.repeat([100, 10], n // 2)
    jobs = Workload.from_arrays(
        np.arange(n + 2) * 200,
        [*run_time, 5, 5],
        [100] * (n + 2),
        [1] * (n + 2),
        user=[1] * (n + 2),
        machine_processors=1,
    )
    simulator = Simulator(jobs, SchedulerSettings("SPF-HISTORY"), decide="event")
    for _ in range(n):
        assert simulator.run()
    [inputs] = simulator.network_inputs()[1]
    assert inputs[2] == pytest.approx(np.log(1 + n - 1) / 7)
    assert inputs[3] == pytest.approx(np.log(1 + RING_JOBS) / 3)
    assert inputs[4] * 5 == pytest.approx(np.log(0.1))


# --- Copies, vectors of cells, and decisions ------------------------------------------------------


@given(data=st.data())
def test_many_cells_give_the_figures_of_single_simulations(data):
    """Cells with records, with networks and with neither, one after the other on one row."""
    network, other = (network_of(data.draw(st.integers(0, 99))) for _ in range(2))
    names = [
        *(index_policy([1, 2, 0, 0, 1, -1], network, name="BY-NETWORK"), "SAF", "SMITH-HISTORY"),
        index_policy([0, 1, 0.5, 0, 0.5, 0], network, name="BY-BOTH"),
        *(index_policy([1, 2, 0, 0, 1, -1], other, name="BY-ANOTHER"), "SMITH-REG", "SMITH-RECENT"),
        *("SMITH", "SPF-HISTORY", "WFP3"),
    ]
    logs = [data.draw(users), data.draw(users)]
    order = data.draw(st.permutations(names))
    settings = {"threshold": data.draw(st.sampled_from((None, 60)))}
    many = hpcgym.simulate_many(logs, order, metrics=["mean_bsld", "makespan"], **settings)
    for row, workload in enumerate(logs):
        for column, policy in enumerate(order):
            figures = hpcgym.simulate(workload, policy, **settings).metrics()
            assert many["makespan"][row, column] == figures["makespan"]
            assert many["mean_bsld"][row, column] == pytest.approx(figures["mean_bsld"], rel=1e-12)


def test_many_cells_may_backfill_by_a_network():
    log, fill = saturated(200, 200), index_policy([1, 2, 0, 0, 1, -1], network_of(2))
    many = hpcgym.simulate_many([log], ["FCFS", "SMITH-HISTORY"], backfill_order=fill)
    for column, policy in enumerate(["FCFS", "SMITH-HISTORY"]):
        figures = hpcgym.simulate(log, policy, backfill_order=fill).metrics()
        assert many["mean_bsld"][0, column] == pytest.approx(figures["mean_bsld"], rel=1e-12)


@pytest.mark.parametrize("fill", ["SMITH-HISTORY", "SMITH-REG", "SMITH-RECENT"])
def test_a_rollout_backfills_by_what_is_expected_now(fill):
    """Where estimates are true and nothing is learnt any more, the plan is what comes."""
    log = saturated(60, 60)
    exact = replace(log, run_time=log.requested_time)
    settings = SchedulerSettings("FCFS", backfill_order=fill)
    simulator = Simulator(exact, settings, decide="event")
    while simulator.run() and simulator.now < exact.submit_time[-1]:
        pass
    waiting = simulator.waiting
    [predicted] = simulator.predict(["FCFS"])
    [again] = simulator.predict(["FCFS"])
    assert predicted == again and len(waiting) > 10
    frozen = simulator.copy()
    frozen.state.keep_history[0] = 0  # no more is learnt
    while frozen.run():
        pass
    flow = frozen.start_time[waiting] - exact.submit_time[waiting] + exact.run_time[waiting]
    bounded = np.maximum(exact.run_time[waiting], 10)
    assert predicted == pytest.approx(np.maximum(flow / bounded, 1).mean(), rel=1e-12)


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [[], [1] * 10, [[1, 2]], [1, 2, np.nan], [np.inf] * 6])
def test_weights_that_no_index_can_have_are_refused(weights):
    with pytest.raises(PolicyError, match="needs 1 to 9 weights"):
        index_policy(weights)


def test_weights_that_are_left_out_are_0():
    short, long = index_policy([1, 2]), index_policy([1, 2, 0, 0, 0, 0, 0, 0, 0])
    assert short.name == long.name == "index:processors=1,request=2"
    assert np.array_equal(short.parameters, long.parameters)


def test_weights_of_a_network_without_one_are_refused():
    with pytest.raises(PolicyError, match="need a network"):
        index_policy([1, 2, 0, 0, 1, 0])


@pytest.mark.parametrize(
    "network", [np.zeros(5), np.full(s.N_NETWORK, np.nan), np.full(s.N_NETWORK, 2 * LARGEST)]
)
def test_a_network_of_another_shape_or_without_numbers_is_refused(network):
    with pytest.raises(PolicyError, match=f"a network has {s.N_NETWORK} parameters"):
        index_policy([1, 2, 0, 0, 1, 0], network)


def test_two_networks_in_one_simulation_are_refused():
    one, two = (
        index_policy([1, 2, 0, 0, 1, 0], network_of(seed), name=f"N{seed}") for seed in (1, 2)
    )
    log = hpcgym.load_workload("tiny")
    for call in (
        lambda: hpcgym.simulate(log, one, backfill_order=two),
        lambda: hpcgym.simulate_many([log], [one], backfill_order=two),
    ):
        with pytest.raises(PolicyError, match="share a network"):
            call()


@pytest.mark.parametrize(
    ("base", "chosen"),
    [
        *(({"estimates": "recent"}, f"SMITH{end}") for end in ("", "-RECENT", "-HISTORY", "-REG")),
        ("FCFS", "SMITH-HISTORY"),
        ("SMITH", "SMITH-HISTORY"),
        ("SMITH-HISTORY", index_policy([1, 2, 0, 0, 1, 0], network_of(1))),
        ("SMITH-HISTORY", "SMITH-REG"),
        ("SMITH-REG", index_policy([1, 2, 0, 0, 1, 0], network_of(1))),
        (
            index_policy([1, 2, 0, 0, 1, 0], network_of(2)),
            index_policy([1, 2, 0, 0, 1, 0], network_of(1)),
        ),
    ],
)
def test_a_decision_by_what_is_not_kept_is_refused(base, chosen):
    settings = base if isinstance(base, dict) else {"policy": base}
    simulator = Simulator(saturated(20, 20), SchedulerSettings(**settings), decide="contested")
    assert simulator.run()
    with pytest.raises(PolicyError, match="does not keep of users"):
        simulator.order_by(chosen)


def test_signs_are_refused_where_nothing_is_expected():
    simulator = Simulator(saturated(20, 20), SchedulerSettings("SMITH"), decide="contested")
    assert simulator.run()
    with pytest.raises(PolicyError, match="SMITH expects nothing of users"):
        simulator.network_inputs()


@pytest.mark.parametrize("completed", [999, 1000, 1001])
def test_the_regression_counts_a_thousand_completed_jobs_at_most(completed):
    jobs = Workload.from_arrays([0, 0], [9, 9], [9, 9], [1, 1], machine_processors=1)
    simulator = Simulator(jobs, SchedulerSettings("SMITH-REG"), decide="event")
    simulator.run()
    simulator.state.history_completed[:] = completed
    simulator.terms()
    entry = s.FIRST_ENTRY - simulator.state.start_time[0, 0]
    counted = simulator.state.regressor[0, entry, REGRESSOR_COMPLETED]
    assert counted == pytest.approx(math.log(1 + min(completed, 1000)) / 7)


def test_terms_that_no_policy_reads_are_0_whatever_was_there_before():
    jobs = Workload.from_arrays([0, 0], [9, 9], [9, 9], [1, 1], machine_processors=1)
    simulator = Simulator(jobs, SchedulerSettings("SMITH-HISTORY"), decide="event")
    simulator.run()
    simulator.state.history_alike_term[:] = 7.0
    _, terms = simulator.terms()
    assert not terms[:, s.TERM_NETWORK_RUN_TIME_RATIO : s.TERM_RECENT_RUN_TIME_RATIO].any()
