"""What each kind of action does to a pass, and what is refused without a trace."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hpcgym
from env_cases import Case, busy_workload, cases, env_of, episodes_of, plain_env, play, rules_for
from hpcgym.base.errors import ActionError, HpcgymError
from hpcgym.core import policy as policy_module
from hpcgym.core.actions.policy import AFTER_V0
from hpcgym.core.policy import register_policy
from hpcgym.env.scheduling import SchedulingEnv

BUSY = busy_workload(5)


def jobs(*rows: tuple[int, int, int], processors: int) -> hpcgym.Workload:
    """Rows of (submit time, run time, processors), requests exact."""
    submit_time, run_time, sizes = zip(*rows, strict=True)
    return hpcgym.Workload.from_arrays(
        submit_time, run_time, run_time, sizes, machine_processors=processors
    )


def starts(env: SchedulingEnv) -> list[int]:
    return env.schedule().start_time.tolist()


# --- job ------------------------------------------------------------------------------------------


def contest() -> hpcgym.Workload:
    """Four processors; R holds two until 10 s; at 1 s A, B, C and D ask for 4, 1, 1 and 2."""
    rows = (0, 10, 2), (1, 5, 4), (1, 100, 1), (1, 9, 1), (1, 20, 2)
    return jobs(*rows, processors=4)


def test_picked_job_starts_and_the_next_pick_is_at_the_same_instant() -> None:
    """By SAF: C 9, A 20, D 40, B 100; one after the other goes first while it fits."""
    env = plain_env(episodes_of(contest()), action="job", n_slots=8)
    env.reset()
    assert (env.now, starts(env)) == (1, [0, -1, -1, -1, -1])
    assert env._slot.tolist() == [3, 1, 4, 2, -1, -1, -1, -1]
    _, reward, _, _, _ = env.step(3)  # B, the last by SAF
    assert (env.now, starts(env)) == (1, [0, -1, 1, -1, -1])
    assert reward == -5 / 5  # the five that have arrived, once
    _, reward, _, _, _ = env.step(0)  # C; then none fits, and the clock moves on
    assert starts(env)[3] == 1
    assert env.now == 10


def test_picked_job_that_does_not_fit_holds_the_reservation_of_this_pass() -> None:
    """A picked: C ends by 10 s and backfills; B would delay A, so would D."""
    env = plain_env(episodes_of(contest()), action="job", n_slots=8)
    env.reset()
    _, _, _, _, _ = env.step(1)
    assert starts(env) == [0, -1, -1, 1, -1]
    assert env.schedule().backfilled.tolist() == [False, False, False, True, False]
    assert env.now == 10


@pytest.mark.parametrize("policy", ["SAF", "SPF"])
def test_backfill_order_stays_whatever_the_primary_order_is(policy: str) -> None:
    """A is first by LAF and does not fit; behind it SAF takes B, LAF would take C."""
    rows = (0, 10, 2), (1, 50, 4), (1, 6, 2), (1, 9, 2)
    for backfill_order, started in ((policy, 2), (None, 3)):
        env = plain_env(
            episodes_of(jobs(*rows, processors=4), policy=policy),
            action="policy",
            policies=["LAF"],
            backfill_order=backfill_order,
        )
        env.reset()
        env.step(0)
        assert starts(env)[started] == 1


def test_rest_backfills_in_the_order_of_the_scenario() -> None:
    """Two processors are free before A: C and D may both go; one of them takes the room of E."""
    rows = (0, 100, 2), (1, 5, 4), (1, 8, 2), (1, 30, 1), (1, 9, 1)
    for order, started in ((None, [3, 4]), ("SPF", [2])):
        env = plain_env(
            episodes_of(jobs(*rows, processors=4), policy="SQF", backfill_order=order),
            action="job",
            n_slots=8,
        )
        env.reset()
        env.step(env._slot.tolist().index(1))
        assert [job for job in (2, 3, 4) if starts(env)[job] == 1] == started


def ended(env: SchedulingEnv, *actions: int) -> dict[str, Any]:
    """Take actions from the beginning, the last of them to the end; return the last info."""
    env.reset()
    for action in actions:
        *_, over, _, info = env.step(action)
    while not over:
        *_, over, _, info = env.step(int(env.action_masks().argmax()))
    return info


def test_empty_slot_stands_for_the_first_job_of_the_base_order_and_is_counted() -> None:
    env, proper = (
        plain_env(episodes_of(contest(), policy="LPF"), action="job", n_slots=8) for _ in range(2)
    )
    env.reset()
    proper.reset()
    env.step(7)
    proper.step(3)  # B runs longest
    assert starts(env) == starts(proper) == [0, -1, 1, -1, -1]
    counts = [ended(env, *actions)["invalid_actions"] for actions in ((7, 6), (7,), (0,))]
    assert counts == [2, 1, 0]


@pytest.mark.parametrize("base", ["FCFS", "SAF", "LPF", "WFP3", "SMITH"])
def test_picking_empty_slots_all_along_follows_the_base_order(base: str) -> None:
    """The first of the base order, one at a time, is the base order."""
    env = env_of(BUSY, rules_for(BUSY, action="job", policy=base, n_slots=128))
    play(env, 127)
    expected = hpcgym.simulate(BUSY, base)
    assert starts(env) == expected.start_time.tolist()


@pytest.mark.parametrize("action", ["weights", "policy", "order", "job"])
def test_thresholded_jobs_go_first_whatever_the_action_says(action: str) -> None:
    """A waited since 0 s for both processors and is beyond the threshold when C and D come."""
    rows = (0, 50, 1), (0, 5, 2), (40, 1, 1), (40, 100, 1)
    against: Any = {
        "weights": np.array([0, 0, 1, 0, 0, 0], dtype=np.float32),
        "policy": 0,
        "order": np.linspace(1, -1, 8, dtype=np.float32),
        "job": 1,
    }[action]
    env = plain_env(
        episodes_of(jobs(*rows, processors=2), threshold=30),
        action=action,
        policies=["LCFS"] if action == "policy" else None,
        n_slots=8,
    )
    shown, _ = env.reset()
    while env.now < 40:
        shown, _, _, _, _ = env.step(against)
    assert env._slot[0] == 1
    assert shown["jobs"].reshape(8, -1)[:3, 8].tolist() == [1, 0, 0]
    play_on(env, against)
    assert starts(env) == [0, 50, 40, 55]
    assert env.schedule().thresholded.tolist() == [False, True, False, False]


def play_on(env: SchedulingEnv, action: Any) -> None:
    while not env.step(action)[2]:
        pass


@given(cases(action="job"))
def test_masks_name_the_slots_that_hold_a_job(case: Case) -> None:
    env = env_of(case.workload, case.rules)
    shown, _ = env.reset()
    terminated = False
    while not terminated:
        mask = env.action_masks()
        assert (mask.dtype, mask.shape) == (np.int8, (case.rules.n_slots,))
        if not env.schedule().complete:
            assert np.array_equal(mask, shown["action_mask"] == 1)
        else:
            assert mask.any()
        is_shown = bool(shown["action_mask"].any())
        shown, _, terminated, _, info = env.step(int(np.flatnonzero(mask)[-1]))
        assert np.array_equal(info["action_mask"], env.action_masks())
    assert info["invalid_actions"] == 0 or not is_shown


# --- order ----------------------------------------------------------------------------------------


def test_order_starts_jobs_by_score_and_keeps_ties_by_arrival() -> None:
    env = plain_env(episodes_of(contest()), action="order", n_slots=8)
    env.reset()
    scores = np.array([0.5, 0.5, -0.5, 0.5, -1, -1, -1, -1], dtype=np.float32)
    env.step(scores)  # slots C A D B: D first, then A by arrival, who holds the reservation
    assert starts(env) == [0, -1, -1, -1, 1]
    env.reset()
    env.step(-scores)  # A, B and C tie before D, and A is the head: C ends in time
    assert starts(env) == [0, -1, -1, 1, -1]


def test_scores_of_empty_slots_are_ignored() -> None:
    one, other = (plain_env(episodes_of(BUSY), action="order", n_slots=16) for _ in range(2))
    generator = np.random.default_rng(0)
    shown, _ = one.reset()
    other.reset()
    terminated = False
    while not terminated:
        scores = generator.uniform(-1, 1, 16).astype(np.float32)
        changed = np.where(shown["action_mask"] == 1, scores, generator.uniform(-1, 1, 16))
        shown, reward, terminated, _, _ = one.step(scores)
        assert other.step(changed)[1] == reward
    assert starts(one) == starts(other)


def test_jobs_without_a_slot_follow_in_the_base_order() -> None:
    """The one slot shows C; then B fits by LPF, while by FCFS A does not and is the head."""
    for base, expected in (("LPF", [0, -1, 1, 1, -1]), ("FCFS", [0, -1, -1, 1, -1])):
        for score in (-1.0, 1.0):
            env = plain_env(episodes_of(contest(), policy=base), action="order", n_slots=1)
            env.reset()
            env.step(np.array([score], dtype=np.float32))
            assert starts(env) == expected


def test_jobs_with_a_slot_go_before_those_without_one() -> None:
    """The three slots show C, A and D; D takes both processors before C, the first by SAF."""
    env = plain_env(episodes_of(contest()), action="order", n_slots=3)
    env.reset()
    env.step(np.array([0.5, 0.5, -0.5], dtype=np.float32))
    assert starts(env) == [0, -1, -1, -1, 1]


# --- weights --------------------------------------------------------------------------------------


def test_weights_count_by_their_direction_only() -> None:
    env = plain_env(episodes_of(BUSY))
    weights = np.array([0.5, -0.25, -1.0, 0.5, 0.25, 1.0], dtype=np.float32)
    totals = {sum(play(env, factor * weights)) for factor in (1.0, 0.5, 2.0**-20)}
    assert len(totals) == 1
    assert sum(play(env, -weights)) not in totals


# --- policy ---------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget policies registered in a test."""
    monkeypatch.setattr(policy_module, "_POLICIES", policy_module._POLICIES.copy())
    yield


def compiled_names() -> list[str]:
    """Return the policies that a step can run, but for newer ones than the environment."""
    names = [name for name in hpcgym.policy_names() if name not in AFTER_V0]
    return [name for name in names if not hpcgym.as_policy(name).is_python]


def test_every_ordering_rule_can_be_chosen_by_default() -> None:
    env = plain_env("tiny", action="policy")
    compiled = compiled_names()
    assert env.action_space.n == len(compiled) == 29
    named = plain_env("tiny", action="policy", policies=[*compiled, *AFTER_V0])
    assert named.action_space.n == 29 + len(AFTER_V0)
    for index, name in enumerate(compiled):
        play(env, index)
        assert starts(env) == hpcgym.simulate(env.workload, name).start_time.tolist()


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("decide", ["contested", "event", 1_800])
def test_registered_policy_with_keys_can_be_chosen(decide: str | int) -> None:
    """Two of them, so that each must find its own keys; one also orders the backfill."""
    register_policy("LEAST-USER", keys=lambda workload: workload.user)
    register_policy("WIDEST-FIRST", keys=lambda workload: -workload.processors)
    for backfill_order in (None, "LEAST-USER"):
        env = plain_env(
            episodes_of(BUSY),
            action="policy",
            policies=["SAF", "WIDEST-FIRST", "least-user", "SMITH"],
            decide=decide,
            backfill_order=backfill_order,
        )
        for index, name in enumerate(["SAF", "LQF", "LEAST-USER", "SMITH"]):
            play(env, index)
            expected = hpcgym.simulate(BUSY, name, backfill_order=backfill_order)
            assert starts(env) == expected.start_time.tolist()


@pytest.mark.usefixtures("registry")
def test_registered_formula_is_left_out_by_default() -> None:
    register_policy("BY-KEYS", keys=lambda workload: workload.user)
    register_policy("BY-FORMULA", formula=lambda features: features.e)
    env = plain_env("tiny", action="policy")
    assert env.action_space.n == len(compiled_names())


# --- What is refused ------------------------------------------------------------------------------

BAD_VECTORS = {
    "nan": lambda n: np.full(n, np.nan, dtype=np.float32),
    "one nan": lambda n: np.r_[np.zeros(n - 1), np.nan],
    "infinity": lambda n: np.r_[np.zeros(n - 1), np.inf],
    "beyond the box": lambda n: np.r_[1.5, np.zeros(n - 1)],
    "far beyond": lambda n: np.r_[-1e30, np.zeros(n - 1)],
    "beyond float32": lambda n: np.full(n, 1e300),
    "a list beyond float32": lambda n: [-1e300] * n,
    "too short": lambda n: np.zeros(n - 1),
    "too long": lambda n: np.zeros(n + 1),
    "two-dimensional": lambda n: np.zeros((1, n)),
    "a number": lambda n: 0.5,
    "nothing": lambda n: None,
    "text": lambda n: "SAF",
    "texts": lambda n: ["a"] * n,
    "numbers as texts": lambda n: ["0"] * n,
    "true or false": lambda n: np.ones(n, dtype=bool),
    "complex": lambda n: np.zeros(n, dtype=complex),
    "ragged": lambda n: [[0.0], [0.0, 0.0]],
    "a dictionary": lambda n: {"weights": np.zeros(n)},
}
BAD_NUMBERS = {
    "below": lambda n: -1,
    "beyond": lambda n: n,
    "far beyond": lambda n: 2**70,
    "a float": lambda n: 1.0,
    "nan": lambda n: float("nan"),
    "a numpy float": lambda n: np.float32(0),
    "text": lambda n: "0",
    "nothing": lambda n: None,
    "true": lambda n: True,
    "numpy's false": lambda n: np.False_,
    "an array of true": lambda n: np.array([True]),
    "a vector of two": lambda n: np.array([0, 0]),
    "an empty vector": lambda n: np.array([], dtype=np.int64),
    "a list": lambda n: [0],
    "a float array": lambda n: np.array(0.0),
    "a vector of one float": lambda n: np.array([0.0]),
    "a vector beyond": lambda n: np.array([n]),
}
BAD = [
    pytest.param(action, make, id=f"{action}: {name}")
    for action, bad in (
        ("weights", BAD_VECTORS),
        ("order", BAD_VECTORS),
        ("policy", BAD_NUMBERS),
        ("job", BAD_NUMBERS),
    )
    for name, make in bad.items()
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("action", "make"), BAD)
def test_bad_action_is_refused_and_leaves_no_trace(action: str, make: Any) -> None:
    env, calm = (plain_env("tiny", action=action, n_slots=5) for _ in range(2))
    good = env.action_space.sample()
    space = env.action_space
    env.reset()
    calm.reset()
    env.step(good)
    calm.step(good)
    before = [array.tobytes() for array in env._state.arrays.values()]
    bad = make(space.shape[0] if space.shape else int(space.n))
    with pytest.raises(ActionError, match=f"action '{action}'"):
        env.step(bad)
    assert [array.tobytes() for array in env._state.arrays.values()] == before
    one, other = env.step(good), calm.step(good)
    assert all(np.array_equal(one[0][key], other[0][key]) for key in one[0])
    assert repr(one[1:]) == repr(other[1:])


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("weights", [0, 0, -1, 0, 0, 0]),
        ("weights", (0.0, 0.0, -1.0, 0.0, 0.0, 0.0)),
        ("weights", np.array([0, 0, -1, 0, 0, 0], dtype=np.int8)),
        ("weights", np.zeros(12)[::2]),
        ("policy", np.int64(0)),
        ("policy", np.array(0)),
        ("policy", np.array([0])),
        ("policy", np.array([[0]], dtype=np.uint8)),
    ],
)
def test_action_may_come_in_any_form_that_means_one(action: str, given: Any) -> None:
    env = plain_env("tiny", action=action, policies=["FCFS"] * 2 if action == "policy" else None)
    play(env, given)
    assert starts(env) == hpcgym.simulate(env.workload, "FCFS").start_time.tolist()


def test_number_of_a_job_may_come_in_an_array_of_one() -> None:
    env, plain = (plain_env(episodes_of(contest()), action="job", n_slots=8) for _ in range(2))
    env.reset()
    plain.reset()
    assert env.step(np.array([3]))[1:4] == plain.step(3)[1:4]
    assert starts(env) == starts(plain)


def test_action_after_the_end_is_refused() -> None:
    env = plain_env("tiny", action="job")
    play(env, 0)
    with pytest.raises(HpcgymError, match="call reset"):
        env.step(0)
