"""The package against the plain-Python reference: every start time and both flags, job by job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_index
from engines import first_difference
from strategies import long_workloads, policies, settings_for, workloads


def test_reference_and_package_know_the_same_policies():
    names = [name for name in hpcgym.policy_names() if hpcgym.as_policy(name).chooser is None]
    urgent = "SMITH-URGENT"  # in reference_capped, which adds a rule to those of an index
    families = [name for name in reference.POLICIES if ":" in name]
    assert {*reference.POLICIES, *reference_index.RULES, urgent} == {*names, *families}


@pytest.mark.parametrize("policy", [*reference.POLICIES, *reference_index.RULES, "SMITH-URGENT"])
@given(data=st.data())
def test_policy_starts_every_drawn_job_as_the_reference_does(policy, data):
    workload = data.draw(workloads())
    settings = data.draw(settings_for(workload))
    assert not first_difference(workload, policy=policy, **settings)


@given(data=st.data())
def test_jobs_of_any_length_start_as_the_reference_does(data):
    workload = data.draw(long_workloads())
    settings = data.draw(settings_for(workload))
    assert not first_difference(workload, policy=data.draw(policies), **settings)


"""Backfill orders and thresholds: each policy has one of these every day, and all under `slow`."""
