"""Policies that a user registers run through the same dynamics; the reference checks them."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
from engines import by_reference, first_difference
from hpcgym.base.errors import PolicyError, WorkloadError
from hpcgym.core import policy as policy_module
from hpcgym.core.features import Features
from hpcgym.core.policy import register_policy, unregister_policy
from hpcgym.core.workload import Workload
from strategies import THRESHOLDS_S, policies, workloads


@pytest.fixture(autouse=True, scope="module")
def registry() -> Iterator[None]:
    """Register three policies for this file, here and in the reference."""
    register_policy("LONG-AND-WIDE", keys=lambda jobs: -jobs.requested_time * jobs.processors**2)
    register_policy("OLD-AND-SMALL", formula=old_and_small)
    register_policy("BY-USER", formula=lambda features: features.user)
    reference.STILL_RULES["LONG-AND-WIDE"] = lambda r, e, q: -e * q**2
    reference.MOVING_RULES["OLD-AND-SMALL"] = lambda wait, e, q, M: e * q / (1 + wait) ** 2
    yield
    del reference.STILL_RULES["LONG-AND-WIDE"], reference.MOVING_RULES["OLD-AND-SMALL"]
    for name in ("LONG-AND-WIDE", "OLD-AND-SMALL", "BY-USER"):
        unregister_policy(name)


def old_and_small(features: Features) -> np.ndarray:
    """The area, which counts less the longer a job waits."""
    return features.e * features.q / (1 + features.wait) ** 2


own = st.sampled_from(("LONG-AND-WIDE", "OLD-AND-SMALL"))


@given(
    workload=workloads(),
    policy=own,
    backfill=st.just({"backfill": "none"})
    | st.fixed_dictionaries({"backfill_order": st.none() | own | policies}),
    threshold=st.sampled_from(THRESHOLDS_S),
    event_semantics=st.sampled_from(("batch", "pyss")),
)
def test_registered_policy_schedules_as_the_reference_does(
    workload: Workload, policy: str, backfill: dict[str, object], **settings: object
) -> None:
    assert first_difference(workload, policy=policy, **backfill, **settings) == ""


@given(workload=workloads(), policy=policies, backfill_order=own)
def test_registered_policy_may_order_the_backfill_alone(
    workload: Workload, policy: reference.Policy, backfill_order: str
) -> None:
    assert first_difference(workload, policy=policy, backfill_order=backfill_order) == ""


def test_formula_sees_users_and_the_clock() -> None:
    seen = []

    def spy(features: Features) -> np.ndarray:
        seen.append(features)
        return features.user

    register_policy("SPY", formula=spy)
    try:
        jobs = Workload.from_arrays(
            [0, 3, 4, 5], [10] * 4, [20] * 4, [2, 1, 2, 1], user=[7, 9, 8, 7], machine_processors=2
        )
        made = hpcgym.simulate(jobs, "SPY")
        assert made.start_time.tolist() == [0, 10, 20, 10]  # 3, then 2 is the head, 1 backfills
    finally:
        unregister_policy("SPY")
    first = seen[0]
    assert first.q.tolist() == [1.0, 2.0, 1.0]
    assert first.e.tolist() == [20.0] * 3
    assert first.submit_time.tolist() == [3.0, 4.0, 5.0]
    assert first.wait.tolist() == [7.0, 6.0, 5.0]
    assert first.user.tolist() == [2, 1, 0]


def test_example_of_the_documentation() -> None:
    """Widest first, by keys: the order of LQF."""
    register_policy("WIDEST", keys=lambda workload: -workload.processors)
    try:
        jobs = hpcgym.load_workload("tiny")
        made = hpcgym.simulate(jobs, "widest")
        assert made.start_time.tolist() == [s.start_time for s in by_reference(jobs, policy="LQF")]
    finally:
        unregister_policy("WIDEST")
    with pytest.raises(PolicyError, match="WIDEST"):
        hpcgym.simulate(jobs, "WIDEST")


@pytest.mark.parametrize(
    ("name", "rules", "message"),
    [
        ("SAF", {"keys": len}, "taken"),
        ("saf", {"keys": len}, "taken"),
        ("2ND", {"keys": len}, "a letter, then"),
        ("a=b", {"keys": len}, "a letter, then"),
        ("NEITHER", {}, "exactly one of keys, formula, chooser and score"),
        ("BOTH", {"keys": len, "formula": len}, "exactly one of keys, formula, chooser and score"),
    ],
)
def test_bad_registration_is_refused(name: str, rules: dict, message: str) -> None:
    before = hpcgym.policy_names()
    with pytest.raises(PolicyError, match=message):
        register_policy(name, **rules)
    assert hpcgym.policy_names() == before
    with pytest.raises(PolicyError):
        unregister_policy("SAF")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"keys": lambda workload: [1.0]}, "must give 8 keys"),
        ({"keys": lambda workload: np.full(len(workload), np.nan)}, "not NaN"),
        ({"formula": lambda features: 1.0}, "scores that are not NaN"),
        ({"formula": lambda features: features.q * np.nan}, "scores that are not NaN"),
    ],
)
def test_rule_that_cannot_order_the_jobs_is_an_error(
    rules: dict, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_module, "_POLICIES", policy_module._POLICIES.copy())
    register_policy("BROKEN", **rules)
    with pytest.raises((PolicyError, WorkloadError), match=message):
        hpcgym.simulate(hpcgym.load_workload("tiny"), "BROKEN")


def test_infinite_keys_order_jobs_but_never_before_the_thresholded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_module, "_POLICIES", policy_module._POLICIES.copy())
    late_first = np.array([0.0, np.inf, -np.inf])
    register_policy("INFINITE", keys=lambda workload: late_first)
    jobs = Workload.from_arrays([0, 1, 50], [60] * 3, [60] * 3, [1] * 3, machine_processors=1)
    assert hpcgym.simulate(jobs, "INFINITE").start_time.tolist() == [0, 120, 60]
    assert hpcgym.simulate(jobs, "INFINITE", threshold=30).start_time.tolist() == [0, 60, 120]
