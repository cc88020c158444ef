"""Action `index`: against the reference in plain Python, and beside the rules that it contains."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_index
from engines import history_of_users, jobs_of, records_of_users
from env_cases import burst, busy_workload, env_with, episodes_of, slowed, starts_under
from hpcgym.base.errors import ActionError, HpcgymError, ScenarioError
from hpcgym.core.actions.index import SAF
from hpcgym.core.workload import Workload
from hpcgym.env.scheduling import SchedulingEnv
from reference_controls import AREA, AreaReader, Indexed
from strategies import busy_workloads

SMITH = np.array([0.5, 1, 0, 1, -1], dtype=np.float32)
NONE = np.array([-0.5, -1, -1, 0, -1], dtype=np.float32)
VALUES = (-1.0, -0.5, -0.1, 0.0, 0.0, 0.3, 0.7, 1.0)
WITHOUT = "cost-benefit:kappa=0"
EPOCHS = ("contested", "event", 14_400)
THRESHOLDS_S = (None, 30, 100, 400)


# --- The reference --------------------------------------------------------------------------------


def by_reference(
    workload: Workload, threshold: int | None, mode: str, order: str | None, **notes: Any
) -> list[reference.Start]:
    """Schedule with the numbers that were decided; return all starts."""
    start = workload.time_offset if workload.unix_start is None else workload.unix_start
    return reference.simulate(
        jobs_of(workload),
        workload.machine_processors,
        AREA,
        backfill=mode,
        backfill_order=order,
        threshold=threshold,
        history=history_of_users(workload),
        kind=reference_index.reader(
            records_of_users(workload), start, type("Noting", (Indexed,), notes), AreaReader
        ),
    )


def check_beside_the_reference(
    workload: Workload, threshold: int | None, decide: str | int, seed: int, **keywords: Any
) -> int:
    """Play with random numbers; compare decisions and all starts; return how many decisions."""
    env = env_with(workload, "index", threshold, decide=decide, **keywords)
    generator = np.random.default_rng(seed)
    env.reset()
    decided, over = [], False
    while not over:
        numbers = generator.choice(VALUES, 5)
        if generator.random() < 0.25:
            numbers[:4] = SAF[:4]  # by area, whose ties are exact
        if env.schedule().start_time.min() < 0:  # else it was over before any decision
            decided.append((env.now, numbers.tolist()))
        over = env.step(numbers.astype(np.float32))[2]
    notes: dict[str, Any] = {"epochs": decide, "decided": list(decided), "noted": []}
    mode, order = keywords.get("backfill", WITHOUT), keywords.get("backfill_order")
    starts = by_reference(workload, threshold, mode, order, **notes)
    made = env.schedule()
    columns = made.start_time, made.backfilled, made.thresholded
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == starts
    if isinstance(decide, int):
        assert [instant for instant, _ in decided] == [k * decide for k in range(len(decided))]
    else:
        assert [instant for instant, _ in notes["noted"]] == [instant for instant, _ in decided]
    return len(decided)


@given(
    workload=busy_workloads(),
    by=st.sampled_from((1, 60, 600)),
    threshold=st.sampled_from(THRESHOLDS_S),
    decide=st.sampled_from(EPOCHS),
    mode=st.sampled_from((WITHOUT, "cost-benefit:kappa=2", "cost-benefit:overdue=open")),
    order=st.sampled_from((None, None, "SPF")),
    seed=st.integers(0, 2**16),
)
def test_starts_are_those_of_the_reference(workload, by, threshold, decide, mode, order, seed):
    late = threshold and threshold * by
    keywords = {"backfill": mode, "backfill_order": order}
    check_beside_the_reference(slowed(workload, by), late, decide, seed, **keywords)


@pytest.mark.parametrize("decide", EPOCHS)
def test_a_long_queue_starts_as_the_reference_says(decide):
    workload = slowed(burst(3, n=120), 10)
    assert check_beside_the_reference(workload, 100_000, decide, 5) > 5


# --- The rules that it contains -------------------------------------------------------------------


@given(
    workload=busy_workloads(),
    threshold=st.sampled_from(THRESHOLDS_S),
    decide=st.sampled_from(EPOCHS),
    action=st.sampled_from(((SAF, "SAF"), (SMITH, "SMITH-REG"), (NONE, "FCFS"))),
)
def test_some_numbers_are_known_rules_under_easy(workload, threshold, decide, action):
    numbers, policy = action
    schedule = hpcgym.simulate(workload, policy, backfill="easy", threshold=threshold)
    env = env_with(workload, "index", threshold, decide=decide)
    assert starts_under(env, numbers) == schedule.start_time.tolist()
    made = env.schedule()
    assert made.backfilled.tolist() == schedule.backfilled.tolist()
    assert made.thresholded.tolist() == schedule.thresholded.tolist()


def ties(seed: int, n: int = 80) -> Workload:
    """Return jobs of one area each, by many requests and processors; in bursts."""
    generator = np.random.default_rng(seed)
    processors = generator.choice([1, 2, 3, 4, 6, 12], n)
    requested = 10_080 // processors
    return Workload.from_arrays(
        generator.integers(0, 300, n).cumsum() // 10,
        (requested * generator.choice([0.3, 0.6, 1.0], n)).astype(np.int64),
        requested,
        processors,
        machine_processors=16,
        user=generator.integers(0, 4, n),
    )


@given(seed=st.integers(0, 2**16), decide=st.sampled_from(EPOCHS))
def test_saf_is_exact_where_all_areas_tie(seed, decide):
    workload = ties(seed)
    area = workload.requested_time * workload.processors
    assert set(area.tolist()) == {10_080}
    pairs = zip(workload.processors.tolist(), workload.requested_time.tolist(), strict=True)
    assert len({math.log(q) + math.log(e) for q, e in pairs}) > 1  # not so for sums of logarithms
    schedule = hpcgym.simulate(workload, "SAF", backfill="easy")
    env = env_with(workload, "index", decide=decide)
    assert starts_under(env, SAF) == schedule.start_time.tolist()


@pytest.mark.parametrize(("numbers", "policy"), [(SAF, "SAF"), (SMITH, "SMITH-REG")])
def test_some_numbers_are_known_rules_on_weeks(numbers, policy):
    env = SchedulingEnv("synthetic-busy-weeks")
    for week in (4, 11):
        env.reset(options={"episode": week})
        instants, over = [env.now], False
        while not over:
            over = env.step(numbers)[2]
            instants.append(env.now)
        settings = vars(env.episodes.scenario.scheduler.settings) | {"policy": policy}
        expected = hpcgym.simulate(env.workload, **settings).start_time
        np.testing.assert_array_equal(env.schedule().start_time, expected)
        assert all(instant % 14_400 == 0 for instant in instants[:-1])
        assert 20 < len(instants) < 80


def test_every_number_moves_a_start():
    workload = busy_workload(4, n=150)
    env = env_with(workload, "index", 40_000, decide="event")
    middle = starts_under(env, SMITH / 2)
    for place, value in product(range(5), (-1, 1)):
        action = SMITH / 2
        action[place] = value
        assert starts_under(env, action) != middle, (place, value)


def test_kappa_is_the_square_of_its_number_and_one():
    workload = busy_workload(4, n=150)
    env = env_with(workload, "index", decide="event")
    for number, kappa in ((-1.0, 0), (-0.5, 0.25), (0.0, 1), (1.0, 4)):
        action = np.float32([*SMITH[:4], number])
        expected = hpcgym.simulate(workload, "SMITH-REG", backfill=f"cost-benefit:kappa={kappa}")
        assert starts_under(env, action) == expected.start_time.tolist()


# --- Where it is the usual action, and where it is refused ----------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "keywords", "action", "mode"),
    [
        ({}, {}, "index", WITHOUT),
        ({}, {"action": "index"}, "index", WITHOUT),
        ({}, {"action": "weights"}, "weights", "easy"),
        ({}, {"backfill": "easy"}, "weights", "easy"),
        ({}, {"backfill": "cost-benefit:kappa=1"}, "index", "cost-benefit:kappa=1"),
        ({"backfill": "cost-benefit:kappa=2"}, {}, "index", "cost-benefit:kappa=2"),
        ({"backfill": "conservative"}, {}, "weights", "conservative"),
        ({"backfill": "none"}, {}, "weights", "none"),
        ({"backfill": "easy:cap=0.5"}, {}, "weights", "easy:cap=0.5"),
        ({"backfill": "none"}, {"backfill": WITHOUT}, "index", WITHOUT),
    ],
)
def test_the_mode_decides_whether_it_is_the_usual_action(scheduler, keywords, action, mode):
    env = SchedulingEnv(episodes_of(busy_workload(n=20), **scheduler), **keywords)
    assert (env.action, str(env.settings.backfill)) == (action, mode)
    assert env._config.decide == (14_400 if action == "index" else "contested")
    assert env.action_space.shape == ((5,) if action == "index" else (6,))


def test_on_nodes_weights_are_the_usual_action():
    env = SchedulingEnv("hetero-64-weeks")
    assert (env.action, env.action_space.shape) == ("weights", (6,))
    with pytest.raises(HpcgymError, match="counts processors"):
        SchedulingEnv("hetero-64-weeks", action="index").reset()


@pytest.mark.parametrize("backfill", ["easy", "none", "conservative", "depth:k=2", "easy:cap=0.5"])
def test_modes_without_kappa_are_refused(backfill):
    with pytest.raises(ScenarioError, match=r"sets the kappa .* choose 'cost-benefit:kappa=0', or"):
        SchedulingEnv("tiny", action="index", backfill=backfill)
    if backfill != "easy":
        episodes = episodes_of(busy_workload(n=20), backfill=backfill)
        with pytest.raises(ScenarioError, match="sets the kappa"):
            SchedulingEnv(episodes, action="index")


@pytest.mark.parametrize("wrong", [np.full(5, 1.5), np.full(5, np.nan), np.zeros(6), 3, "SAF"])
def test_numbers_that_are_none_are_refused(wrong):
    env, calm = (SchedulingEnv("tiny", action="index", decide="event") for _ in range(2))
    for one in (env, calm):
        one.reset()
    with pytest.raises(ActionError, match="action 'index' must"):
        env.step(wrong)
    one, other = env.step(SMITH), calm.step(SMITH)
    assert one[1:] == other[1:]
    assert all(one[0][key].tobytes() == other[0][key].tobytes() for key in one[0])
