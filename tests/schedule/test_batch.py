"""Many cells in one call: each is the schedule that `simulate` gives, however they are shared."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from hpcgym.base.errors import HpcgymError, PolicyError, WorkloadError
from hpcgym.core.policy import mixed_policy, register_policy, unregister_policy
from hpcgym.core.workload import Workload
from hpcgym.env.action import unit_divisors
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.schedule.batch import METRICS, simulate_many
from hpcgym.schedule.simulate import simulate
from hpcgym.trace.split import weeks
from strategies import policies, settings_for, weights, workloads

SUMS = [metric for metric in METRICS if metric.startswith(("mean", "sum"))]
"""Figures whose last digits depend on the order of a sum."""


@pytest.fixture(scope="module")
def log_weeks() -> list[Workload]:
    """Three weeks of the bundled log, whose users are known from the weeks before."""
    return weeks(hpcgym.load_workload("synthetic-256"))[3:6]


@pytest.fixture(scope="module", autouse=True)
def registry() -> Iterator[None]:
    """Register one policy of each kind."""
    register_policy("BY-ID", keys=lambda jobs: -jobs.job_id)
    register_policy("BY-WIDTH", keys=lambda jobs: jobs.processors)
    register_policy("BY-HAND", formula=lambda features: features.q)
    yield
    for name in ("BY-ID", "BY-WIDTH", "BY-HAND"):
        unregister_policy(name)


def assert_equals_simulate(result, jobs, chosen, **settings):
    """Compare every figure of every cell with that of the schedule `simulate` gives."""
    per_workload = settings.pop("estimates", "requested")
    for row, workload in enumerate(jobs):
        own = per_workload if isinstance(per_workload, str) else per_workload[row]
        for column, policy in enumerate(chosen):
            schedule = simulate(workload, policy, estimates=own, **settings)
            expected = schedule.metrics()
            expected["sum_wait_time"] = schedule.wait_time.sum()
            expected["sum_bsld"] = schedule.bsld().sum()
            expected["sum_pp_bsld"] = schedule.pp_bsld().sum()
            for metric in result.metrics:
                got = result[metric][row, column]
                where = workload.name, policy, metric
                if metric in SUMS:
                    assert got == pytest.approx(expected[metric], rel=1e-12, abs=0), where
                else:
                    assert got == expected[metric], where


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_every_policy_of_the_shelf_gives_the_figures_of_simulate(log_weeks, threads):
    chosen = [name for name in hpcgym.policy_names() if not hpcgym.as_policy(name).is_python]
    result = simulate_many(log_weeks, chosen, threshold=200_000, threads=threads)
    assert result.policies == tuple(chosen)
    assert result.workloads == tuple(workload.name for workload in log_weeks)
    assert result.n_jobs.tolist() == [len(workload) for workload in log_weeks]
    assert_equals_simulate(result, log_weeks, chosen, threshold=200_000)


@pytest.mark.parametrize("mode", ["easy", "cost-benefit:cap=0.9+trial:young=1800", "slurm"])
def test_machines_of_nodes_give_the_figures_of_simulate(mode):
    """Other parts make their passes than where processors are counted."""
    jobs = [Episodes("hetero-64-weeks").workload(number) for number in range(2)]
    result = simulate_many(jobs, ["FCFS", "SAF"], backfill=mode)
    assert_equals_simulate(result, jobs, ["FCFS", "SAF"], backfill=mode)


@given(
    data=st.data(),
    jobs=st.lists(workloads(), min_size=1, max_size=3),
    chosen=st.lists(policies, min_size=1, max_size=5),
    threads=st.integers(1, 3),
)
def test_drawn_cells_give_the_figures_of_simulate(data, jobs, chosen, threads):
    settings = data.draw(settings_for(jobs[0]))
    if not isinstance(settings.get("estimates", ""), str):
        settings["estimates"] = [
            np.array(data.draw(st.lists(st.integers(1, 60), min_size=n, max_size=n)))
            for n in map(len, jobs)
        ]
    result = simulate_many(jobs, chosen, threads=threads, **settings)
    assert_equals_simulate(result, jobs, chosen, **settings)


@given(
    jobs=st.lists(workloads(), min_size=1, max_size=3),
    vectors=st.lists(weights, min_size=1, max_size=8),
    scale=st.sampled_from((None, "unit")),
)
def test_weight_vectors_are_the_mixed_policies_they_stand_for(jobs, vectors, scale):
    divisors = None if scale is None else unit_divisors(8, 120, None)
    chosen = [mixed_policy(vector, divisors=divisors) for vector in vectors]
    result = simulate_many(jobs, weights=np.array(vectors), divisors=divisors)
    assert result.policies == tuple(policy.name for policy in chosen)
    assert_equals_simulate(result, jobs, chosen)


@given(data=st.data(), jobs=st.lists(workloads(), min_size=1, max_size=3))
def test_given_keys_order_the_jobs_as_a_policy_given_by_keys(data, jobs):
    n_policies = data.draw(st.integers(1, 5))
    values = st.sampled_from((-np.inf, -2.0, 0.0, 0.5, 3.0, np.inf))
    keys = [
        np.array(data.draw(st.lists(values, min_size=n, max_size=n))).reshape(n_policies, -1)
        for n in (n_policies * len(workload) for workload in jobs)
    ]
    threshold = data.draw(st.sampled_from((None, 5)))
    fill = data.draw(st.sampled_from((None, "SPF", "BY-ID")))
    result = simulate_many(jobs, keys=keys, threshold=threshold, backfill_order=fill)
    for row, workload in enumerate(jobs):
        for column in range(n_policies):
            policy = register_policy("GIVEN", keys=lambda _, own=keys[row][column]: own)
            unregister_policy("GIVEN")
            made = simulate(workload, policy, threshold=threshold, backfill_order=fill)
            assert result["max_bsld"][row, column] == made.metrics()["max_bsld"]
            assert result["sum_wait_time"][row, column] == made.wait_time.sum()


@pytest.mark.parametrize(
    "settings",
    [
        {"backfill": "none"},
        {"backfill_order": "SPF"},
        {"backfill_order": "BY-WIDTH", "threshold": 3_600},
        {"backfill_order": "SMITH"},
        {"backfill_order": "WFP3", "threshold": 0},
        {"event_semantics": "pyss", "estimates": "exact"},
        {"kill_at_limit": False},
    ],
    ids=str,
)
def test_settings_hold_for_every_cell(log_weeks, settings):
    chosen = ["FCFS", "BY-ID", "WFP3", "SMITH", (0.1, 0.2, -0.3, 0, -0.1, 0.3), "BY-WIDTH"]
    result = simulate_many(log_weeks, chosen, threads=2, **settings)
    assert_equals_simulate(result, log_weeks, chosen, **settings)


def test_workloads_may_be_of_any_length_and_on_any_machine(log_weeks):
    jobs = [hpcgym.load_workload("tiny"), *log_weeks, hpcgym.load_workload("tiny")]
    chosen = ["SMITH", "SAF", "MULTIFACTOR"]
    result = simulate_many(jobs, chosen, threads=1)
    assert_equals_simulate(result, jobs, chosen)
    assert result["makespan"][0].tolist() == result["makespan"][-1].tolist()


def test_a_cell_does_not_depend_on_its_neighbours(log_weeks):
    chosen = ["SMITH", "SAF", "SMITH", "SMITH"]
    result = simulate_many([*log_weeks, *log_weeks], chosen, threads=2)
    for values in result.metrics.values():
        assert (values[:3] == values[3:]).all()
        assert (values[:, [0]] == values[:, 2:]).all()


def test_calls_from_several_threads_at_once_do_not_meet(log_weeks):
    alone = simulate_many(log_weeks, ["SAF", "SMITH"], threads=1)
    with ThreadPoolExecutor(4) as pool:
        together = list(
            pool.map(lambda _: simulate_many(log_weeks, ["SAF", "SMITH"], threads=2), range(8))
        )
    for result in together:
        assert all((result[metric] == alone[metric]).all() for metric in METRICS)


def _sum_of_waits(workload):
    """Simulate in another process."""
    return simulate_many([workload], ["SAF"] * 20, threads=2)["sum_wait_time"].sum()


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_may_call_it_too(log_weeks, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    expected = _sum_of_waits(log_weeks[0])
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_sum_of_waits, [log_weeks[0]] * 3) == [expected] * 3


def test_jobs_that_came_read_only_are_simulated_alike(log_weeks):
    columns = ("submit_time", "run_time", "requested_time", "processors", "user_index")
    frozen = replace(log_weeks[0], **{name: getattr(log_weeks[0], name).copy() for name in columns})
    for array in (*(getattr(frozen, name) for name in columns), *frozen.history):
        array.flags.writeable = False
    try:
        one, two = (simulate_many([jobs], ["SMITH"]) for jobs in (log_weeks[0], frozen))
    finally:
        for array in frozen.history:
            array.flags.writeable = True
    assert one["sum_bsld"] == two["sum_bsld"]


def test_only_the_metrics_asked_for_are_kept(log_weeks):
    result = simulate_many(log_weeks, ["SAF", "SPF"], metrics=["mean_bsld"])
    assert list(result.metrics) == ["mean_bsld"]
    frame = result.to_frame("mean_bsld")
    assert frame.columns.tolist() == ["SAF", "SPF"]
    assert frame.loc[log_weeks[1].name, "SPF"] == result["mean_bsld"][1, 1]
    with pytest.raises(HpcgymError, match="did you mean 'mean_bsld'"):
        result["mean_blsd"]


def test_an_error_in_a_thread_reaches_the_caller(log_weeks, monkeypatch):
    def broken(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("hpcgym.schedule.batch.entry_points.sweep_policies", broken)
    for threads in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            simulate_many(log_weeks, ["SAF"] * 100, threads=threads)


TINY = hpcgym.load_workload("tiny")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"workloads": []}, HpcgymError, "at least one workload"),
        ({"workloads": TINY}, HpcgymError, "sequence of Workload"),
        ({"workloads": ["tiny"]}, HpcgymError, "sequence of Workload"),
        ({"policies": None}, PolicyError, "exactly one of .* got none"),
        ({"weights": np.ones((1, 6))}, PolicyError, "got policies, weights"),
        ({"keys": [np.ones((1, 8))]}, PolicyError, "got policies, keys"),
        ({"policies": []}, PolicyError, "at least one policy"),
        ({"policies": "SAF"}, PolicyError, "sequence of at least one policy"),
        ({"policies": ["SFA"]}, PolicyError, "did you mean 'SAF'"),
        ({"policies": ["BY-HAND"]}, PolicyError, "orders in Python.*hpcgym.simulate"),
        ({"backfill_order": "BY-HAND"}, PolicyError, "orders in Python"),
        ({"divisors": np.ones(6)}, PolicyError, "divisors go with weights"),
        ({"policies": None, "weights": np.ones(6)}, PolicyError, r"shape \(n_policies, 6\)"),
        ({"policies": None, "weights": np.ones((0, 6))}, PolicyError, "at least one vector"),
        ({"policies": None, "weights": [["a"] * 6]}, PolicyError, "must be numbers"),
        (
            {"policies": None, "weights": [[1.0] * 6, [np.nan] * 6]},
            PolicyError,
            "row 1 is .*1 such row",
        ),
        (
            {"policies": None, "weights": np.ones((1, 6)), "divisors": np.zeros(6)},
            PolicyError,
            "divisors must be",
        ),
        ({"policies": None, "keys": []}, WorkloadError, "each of 1 workloads, got 0"),
        ({"policies": None, "keys": [np.ones((0, 8))]}, PolicyError, "at least one policy"),
        ({"policies": None, "keys": [np.ones(8)]}, WorkloadError, r"shape \(8, 8\).*got \(8,\)"),
        ({"policies": None, "keys": [np.ones((2, 7))]}, WorkloadError, r"\(2, 8\)"),
        (
            {"workloads": [TINY] * 2, "policies": None, "keys": [np.ones((2, 8)), np.ones((3, 8))]},
            WorkloadError,
            r"\(2, 8\)",
        ),
        ({"policies": None, "keys": [np.full((1, 8), np.nan)]}, WorkloadError, "none NaN"),
        ({"policies": None, "keys": [[["a"] * 8]]}, WorkloadError, "must be numbers"),
        ({"metrics": ["mean_blsd"]}, HpcgymError, "did you mean 'mean_bsld'"),
        ({"metrics": "mean_bsld"}, HpcgymError, "sequence of names"),
        ({"threads": 0}, HpcgymError, "whole number >= 1"),
        ({"threads": "2"}, HpcgymError, "whole number >= 1"),
        ({"backfill": "esay"}, PolicyError, "did you mean 'easy'"),
        ({"threshold": -1}, PolicyError, "threshold must be"),
        ({"estimates": "exakt"}, PolicyError, "did you mean 'exact'"),
        ({"estimates": np.ones(8)}, WorkloadError, "each of 1 workloads, got 8"),
        ({"estimates": 5}, WorkloadError, "got 5"),
        ({"estimates": [np.ones(7)]}, WorkloadError, r"shape \(8,\)"),
        ({"estimates": [np.ones(8)], "event_semantics": "pyss"}, PolicyError, "pyss"),
    ],
    ids=str,
)
def test_what_cannot_be_simulated_is_refused(arguments, error, message):
    asked = {"workloads": [TINY], "policies": ["SAF"], **arguments}
    with pytest.raises(error, match=message):
        simulate_many(asked.pop("workloads"), asked.pop("policies"), **asked)
