"""Hostile actions: each is refused and leaves no trace, or it means the same as a plain one."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import many
from hpcgym.base.errors import ActionError, HpcgymError
from hpcgym.core.actions.controls import CONTROLS
from hpcgym.core.actions.index import NUMBERS as INDEX
from hpcgym.core.actions.trials import NUMBERS as TRIALS
from hpcgym.env.scheduling import SchedulingEnv

N_SLOTS = 4
KINDS = ("index", "weights", "order", "policy", "job", "controls", "trials")
LENGTHS = {"weights": 6, "order": N_SLOTS, "controls": len(CONTROLS), "trials": len(TRIALS)}
LENGTHS["index"] = len(INDEX)
CHOICES = {"policy": 2, "job": N_SLOTS}
HOSTILE = (
    *("None", "True", "'0'", "b'0'", "0j", "[]", "{}", "[[0], [0, 0]]", "object()", "np.nan"),
    *(
        *("-1", "-0.0", "2**31", "2**63", "2**70", "-2**63", "1e308", "-math.inf", "range(3)"),
        "slice(2)",
    ),
    *("np.int8(1)", "np.uint64(2**64 - 1)", "np.array(None)", "np.array('nan')", "np.float16(1)"),
    *("np.zeros(0)", "np.zeros(6)", "np.zeros(4)", "np.zeros((4, 1))", "np.zeros((6, 6), int)"),
    *("np.ones(4, bool)", "np.zeros(4, complex)", "np.zeros(6, 'M8[s]')", "np.zeros(4, 'S1')"),
    *(
        "np.array([0] * 4, object)",
        "np.array([None] * 6)",
        "np.ma.masked_all(4)",
        "np.zeros(2**16)",
    ),
    *("np.array([[]])", "np.array([np.array(0)], object)", "memoryview(b'0000')", "type", "len"),
)
"""Expressions, so that a failure shows what was given."""

NUMBERS = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, 3e38, 1e39, math.inf, -math.inf, math.nan)


def vectors(kind: str) -> st.SearchStrategy[str]:
    """Draw an array of the shape that an action has, with any numbers."""
    n = LENGTHS.get(kind, 1)
    numbers = st.lists(st.sampled_from(NUMBERS), min_size=n, max_size=n)
    types = st.sampled_from(("float64", "float32", "float16", "longdouble", "object"))
    return st.builds(lambda row, dtype: f"np.array({row!r}, {dtype!r})", numbers, types)


def plain(kind: str) -> st.SearchStrategy[str]:
    """Draw an action that the space has."""
    if kind in CHOICES:
        return st.integers(0, CHOICES[kind] - 1).map(str)
    n = LENGTHS[kind]
    rows = st.lists(st.sampled_from((-1.0, -0.5, 0.0, 0.25, 1.0)), min_size=n, max_size=n)
    return rows.map(lambda row: f"np.array({row!r})")


def value_of(text: str) -> Any:
    """Evaluate a drawn expression."""
    names = {"np": np, "math": math, "nan": math.nan, "inf": math.inf}
    with np.errstate(over="ignore"):
        return eval(text, names)


@st.composite
def plays(draw: st.DrawFn) -> tuple[str, list[tuple[list[str], str]]]:
    """Draw a kind of action, and steps: what is tried, and the action that is taken then."""
    kind = draw(st.sampled_from(KINDS))
    tried = st.lists(st.sampled_from(HOSTILE) | vectors(kind) | plain(kind), max_size=3)
    return kind, draw(st.lists(st.tuples(tried, plain(kind)), min_size=1, max_size=6))


def env_of(kind: str) -> SchedulingEnv:
    """Make an environment of few jobs."""
    policies = {"policies": ("SAF", "FCFS")} if kind == "policy" else {}
    env = SchedulingEnv("tiny", action=kind, n_slots=N_SLOTS, decide="event", **policies)
    env.reset(seed=1)
    return env


def bytes_of(env: SchedulingEnv) -> list[bytes]:
    """Return the state of an environment."""
    return [array.tobytes() for array in env._state.arrays.values()]


def same(one: Any, other: Any) -> bool:
    """Compare two results of a step."""
    shown = all(one[0][key].tobytes() == other[0][key].tobytes() for key in one[0])
    return shown and repr(one[1:]) == repr(other[1:])


@many(3)
@given(plays())
def test_a_hostile_action_is_refused_without_a_trace_or_acts_as_a_plain_one(play: Any) -> None:
    kind, steps = play
    env, calm = env_of(kind), env_of(kind)
    over = False
    for tried, then in steps:
        for text in (*tried, then):
            if over:
                return
            before = bytes_of(env)
            try:
                result = env.step(value_of(text))
            except ActionError as error:
                assert text != then
                assert "\n" not in str(error)
                assert bytes_of(env) == before
                continue
            action = value_of(text)
            plain_one = np.asarray(action, dtype=np.float64)
            calmly = int(plain_one.item()) if kind in CHOICES else plain_one
            assert np.isfinite(plain_one).all()
            assert env.observation_space.contains(result[0])
            assert math.isfinite(result[1])
            assert same(result, calm.step(calmly))
            over = result[2] or result[3]


@many(1)
@given(plays())
def test_a_hostile_action_of_many_is_refused_without_a_trace(play: Any) -> None:
    kind, steps = play
    policies = {"policies": ("SAF", "FCFS")} if kind == "policy" else {}
    envs: Any = gymnasium.make_vec(
        "HPCBatch-v0",
        2,
        vectorization_mode="vector_entry_point",
        scenario="tiny",
        action=kind,
        n_slots=N_SLOTS,
        **policies,
    )
    envs.reset(seed=1)
    for tried, then in steps:
        good = value_of(then)
        for text in tried:
            for pair in ([good, value_of(text)], value_of(text)):
                before = [array.tobytes() for array in envs.buffers.state.arrays.values()]
                try:
                    shown = envs.step(pair)
                except HpcgymError as error:
                    assert "\n" not in str(error)
                    now = [array.tobytes() for array in envs.buffers.state.arrays.values()]
                    assert now == before
                else:
                    assert np.isfinite(shown[1]).all()
        envs.step(np.array([good, good]))
    envs.close()
