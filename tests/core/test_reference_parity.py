"""The package against the plain-Python reference: every start time and both flags, job by job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_index
from engines import first_difference, first_jobs, part_or_whole, whole
from research.benchmark import saturated
from strategies import long_workloads, policies, settings_for, weights, workloads

KTH = "KTH-SP2-1996-2.1-cln"
CTC = "CTC-SP2-1996-3.1-cln"
SDSC = "SDSC-SP2-1998-4.2-cln"

WEEK_S = 604_800


def test_reference_and_package_know_the_same_policies():
    names = [name for name in hpcgym.policy_names() if hpcgym.as_policy(name).chooser is None]
    urgent = "SMITH-URGENT"  # in reference_capped, which adds a rule to those of an index
    families = [name for name in reference.POLICIES if ":" in name]
    assert {*reference.POLICIES, *reference_index.RULES, urgent} == {*names, *families}


@pytest.mark.parametrize("policy", reference.POLICIES)
@given(data=st.data())
def test_policy_starts_every_drawn_job_as_the_reference_does(policy, data):
    workload = data.draw(workloads())
    settings = data.draw(settings_for(workload))
    assert not first_difference(workload, policy=policy, **settings)


@given(data=st.data())
def test_weights_start_every_drawn_job_as_the_reference_does(data):
    workload = data.draw(workloads())
    settings = data.draw(settings_for(workload))
    assert not first_difference(workload, policy=data.draw(weights), **settings)


@given(data=st.data())
def test_crowded_workloads_start_as_the_reference_does(data):
    workload = data.draw(workloads(max_jobs=60))
    settings = data.draw(settings_for(workload))
    assert not first_difference(workload, policy=data.draw(policies), **settings)


@given(data=st.data())
def test_jobs_of_any_length_start_as_the_reference_does(data):
    workload = data.draw(long_workloads())
    settings = data.draw(settings_for(workload))
    assert not first_difference(workload, policy=data.draw(policies), **settings)


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"policy": "FCFS"}, marks=pytest.mark.slow),
        pytest.param({"policy": "SAF"}, marks=pytest.mark.slow),
        {"policy": "LPF", "backfill_order": "SQF"},
        {"policy": "SAF", "threshold": 100_000},
        {"policy": "FCFS", "backfill_order": "LAF", "threshold": 50_000},
    ],
    ids=str,
)
def test_thousands_of_waiting_jobs_start_as_the_reference_does(settings):
    assert not first_difference(saturated(2_000, 500), **settings)


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"policy": (0.1, 0.2, -0.3, 0.1, 0.2, 0.1)},
        {"policy": "WFP3", "threshold": 20_000},
        {"policy": "UNICEF", "backfill_order": "SPF"},
        {"policy": "SAF", "backfill_order": "WFP3"},
        {"policy": "LEXP", "backfill_order": "MULTIFACTOR", "threshold": 50_000},
    ],
    ids=str,
)
def test_long_queues_in_changing_orders_start_as_the_reference_does(settings):
    assert not first_difference(saturated(500, 500), **settings)


PAIRS = [(order, threshold) for order in (None, "SPF") for threshold in (None, 72_000, 200_000)]
"""Backfill orders and thresholds: each policy has one of these every day, and all under `slow`."""


@pytest.mark.parametrize(
    ("policy", "backfill_order", "threshold"),
    [
        pytest.param(policy, *pair, marks=() if k == n % len(PAIRS) else pytest.mark.slow)
        for n, policy in enumerate(reference.POLICIES)
        for k, pair in enumerate(PAIRS)
    ],
)
@part_or_whole
def test_kth_starts_as_the_reference_does(real_log, n, policy, backfill_order, threshold):
    settings = {"policy": policy, "backfill_order": backfill_order, "threshold": threshold}
    assert not first_difference(first_jobs(real_log(KTH), n), **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"event_semantics": "pyss"},
        {"event_semantics": "pyss", "estimates": "exact", "policy": "SAF"},
        {"event_semantics": "pyss", "backfill_order": "SPF"},
        {"kill_at_limit": False, "policy": "SAF", "threshold": 200_000},
        {"kill_at_limit": False, "policy": "WFP3", "backfill_order": "SMITH"},
        {"estimates": "exact", "policy": "LEXP"},
        {"backfill": "none", "policy": "SMITH"},
        {"policy": (0.1, 0.2, -0.3, 0.1, 0.2, 0.1), "threshold": 200_000},
        {"policy": "FCFS", "backfill_order": "LEXP", "threshold": 72_000},
    ],
    ids=str,
)
@part_or_whole
def test_kth_under_other_rules_starts_as_the_reference_does(real_log, n, settings):
    assert not first_difference(first_jobs(real_log(KTH), n), **settings)


FILLED = {"policy": "SAF", "backfill_order": "SPF", "threshold": 200_000}
LEARNT = {"policy": "SMITH", "threshold": 72_000}


@pytest.mark.parametrize(
    ("log", "settings"),
    [
        (CTC, FILLED),
        (SDSC, LEARNT),
        pytest.param(CTC, LEARNT, marks=pytest.mark.slow),
        pytest.param(SDSC, FILLED, marks=pytest.mark.slow),
        pytest.param(CTC, {"policy": "FCFS"}, marks=pytest.mark.slow),
        pytest.param(SDSC, {"policy": "FCFS"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
@part_or_whole
def test_larger_logs_start_as_the_reference_does(real_log, n, log, settings):
    assert not first_difference(first_jobs(real_log(log), n), **settings)


@pytest.mark.parametrize("policy", ["SMITH", "SAF", "LEXP"])
def test_a_week_with_warm_history_starts_as_the_reference_does(real_log, policy):
    log = whole(real_log(SDSC))
    end_time = log.submit_time + log.wait_time + log.run_time
    for week in (3, 40, 77):
        start = week * WEEK_S
        ended = end_time <= start
        part = log.select(
            (log.submit_time >= start) & (log.submit_time < start + WEEK_S),
            start=start,
            past={
                "user": log.user[ended],
                "run_time": log.run_time[ended],
                "requested_time": log.requested_time[ended],
                "processors": log.processors[ended],
                "end_time": end_time[ended],
            },
        )
        assert part.history.completed.sum() > 0
        assert not first_difference(part, policy=policy, threshold=200_000)
