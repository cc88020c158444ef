"""The environment beside its plain-Python twin: decisions, slots, starts, sight and pay."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_cases import (
    ACCRUING,
    ACTIONS,
    KEEPING,
    RESERVING,
    Case,
    assert_tells,
    burst,
    busy_workload,
    cases,
    env_of,
    random_action,
    rules_for,
    terms_of,
    twin_of,
)
from env_twin import EnvTwin
from hpcgym.env.observation import CLUSTER_FIELDS, FIELDS
from hpcgym.env.scheduling import Observation, SchedulingEnv


def differing_fields(shown: Observation, expected: dict[str, list[Any]]) -> list[str]:
    """Name what differs by more than the rounding of float32."""
    found = []
    for part, values in expected.items():
        wanted = np.array(values)
        assert (shown[part].dtype, shown[part].shape) == (np.float32, wanted.shape)
        far = ~(np.abs(shown[part] - wanted) <= 2.0**-23 * np.maximum(np.abs(wanted), 2.0**-3))
        for place in np.flatnonzero(far):
            name = f"action_mask[{place}]"
            if part == "jobs":
                name = f"slot {place // len(FIELDS)} {FIELDS[place % len(FIELDS)]}"
            elif part == "cluster":
                name = CLUSTER_FIELDS[place]
            found.append(f"{name}: {shown[part].flat[place]!r}, twin {wanted.flat[place]!r}")
    return found


def assert_alike(env: SchedulingEnv, twin: EnvTwin, shown: Observation, expected: object) -> None:
    """Compare the clock, the slots, what is seen and all starts so far."""
    assert env.now == twin.sim.now
    assert env.observation_space.contains(shown)
    assert env._slot.tolist() == [-1 if j is None else j for j in twin.slots]
    assert differing_fields(shown, expected) == []
    starts = [-1 if s is None else s.start_time for s in twin.sim.starts]
    assert env.schedule().start_time.tolist() == starts


def play_both(case: Case, max_steps: int | None = None) -> None:
    """Play an episode in both, step by step, with the same random actions."""
    rules = case.rules
    env, twin = env_of(case.workload, rules), twin_of(case.workload, rules)
    generator = np.random.default_rng(case.seed)
    shown, info = env.reset()
    assert_alike(env, twin, shown, twin.reset())
    assert_tells(info, twin, "begin")
    terminated, steps, ledger = False, 0, 1.0
    while not terminated and steps != max_steps:
        action = random_action(rules, generator)
        shown, reward, terminated, truncated, info = env.step(action)
        expected, paid, over = twin.step(action)
        assert (terminated, truncated) == (over, False)
        ledger += sum(map(abs, twin.terms.values()))  # rewards are differences of sums
        assert np.isclose(reward, paid, rtol=1e-9, atol=1e-12 * ledger)
        assert_tells(info, twin, "end" if over else "step", ledger)
        if twin.terms:
            assert np.isclose(sum(terms_of(info)), reward, rtol=1e-12)
        assert_alike(env, twin, shown, expected)
        steps += 1
    made = env.schedule()
    if not terminated:
        assert_tells(env.truncate(), twin, "end", ledger)
        return
    flags = [(s.backfilled, s.thresholded) for s in twin.sim.starts]
    assert list(zip(made.backfilled.tolist(), made.thresholded.tolist(), strict=True)) == flags


@pytest.mark.parametrize("action", ACTIONS)
@given(data=st.data())
def test_every_step_is_that_of_the_twin(action: str, data: st.DataObject) -> None:
    """At passes without a decision the twin takes another order, which must make no difference."""
    play_both(data.draw(cases(action=action)))


@pytest.mark.long
@pytest.mark.parametrize("backfill_order", [None, "SPF"])
@pytest.mark.parametrize(
    ("action", "decide"),
    [*itertools.product(ACTIONS, ["contested", "event"]), ("weights", 1_800), ("policy", 1_800)],
)
def test_every_step_is_that_of_the_twin_with_a_long_queue(
    action: str, decide: str | int, backfill_order: str | None
) -> None:
    workload = busy_workload(9)
    rules = rules_for(
        workload,
        action=action,
        decide=decide,
        backfill_order=backfill_order,
        policies=("SPF", "WFP3", "SMITH", "LAF") if action == "policy" else (),
        policy="SMITH",
        n_slots=12,
        expectations="records",
        threshold=10_000,
        reward="pp_bsld",
        baseline="SAF",
    )
    play_both(Case(workload, rules, seed=1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "backfill"),
    [pair for pair in itertools.product(ACTIONS, RESERVING) if pair != ("job", KEEPING)],
)
def test_every_step_is_that_of_the_twin_where_many_jobs_have_reservations(
    action: str, backfill: str
) -> None:
    workload = busy_workload(3)
    rules = rules_for(
        workload,
        action=action,
        backfill=backfill,
        backfill_order="SPF" if backfill == "depth:k=2" else None,
        policies=("SPF", "WFP3", "SMITH", "LAF") if action == "policy" else (),
        n_slots=12,
        threshold=20_000,
    )
    play_both(Case(workload, rules, seed=2))


@pytest.mark.parametrize("n_slots", [3, 12])
@pytest.mark.parametrize("backfill_order", [None, "SPF"])
@pytest.mark.parametrize("threshold", [None, 3_000])
@pytest.mark.parametrize("action", ["job", "order"])
def test_every_step_is_that_of_the_twin_with_most_jobs_hidden(
    action: str, threshold: int | None, backfill_order: str | None, n_slots: int
) -> None:
    workload = burst(n_slots, n=150)
    rules = rules_for(
        workload,
        action=action,
        decide="event" if n_slots == 3 else "contested",
        backfill_order=backfill_order,
        n_slots=n_slots,
        threshold=threshold,
    )
    play_both(Case(workload, rules, seed=3))


@pytest.mark.parametrize("reward", ACCRUING)
@given(data=st.data())
def test_cut_short_tells_what_the_twin_tells(reward: str, data: st.DataObject) -> None:
    case = data.draw(cases(reward=reward))
    play_both(case, max_steps=1 + case.seed % 5)
