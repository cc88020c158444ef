"""Environments whose queue is much longer than the slots: what is shown, against plain formulas."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reference_nodes
from env_cases import ACTIONS, burst, env_of, random_action, rules_for
from env_twin import Rules
from hpcgym.core import constants as s
from hpcgym.core.kernels.passes.easy import LOWEST_KEY
from hpcgym.core.kernels.queue.selection import SHORT_LIST
from hpcgym.core.observation_fields import ClusterField, JobField
from hpcgym.core.workload import Workload
from hpcgym.env.scheduling import Observation, SchedulingEnv
from nodes_of_kernels import workload_of


def waiting_in_base_order(env: SchedulingEnv) -> NDArray[np.int64]:
    """Return the waiting jobs, sorted by key and index."""
    state = env._begun_state
    start = state.start_time[0, : state.next_job[0]]
    waiting = np.flatnonzero(start <= s.FIRST_ENTRY)
    key = state.key[0, s.BASE_ORDER, s.FIRST_ENTRY - start[waiting]]
    return waiting[np.lexsort((waiting, key))]


def shadow_time(env: SchedulingEnv, job: int) -> int:
    """Return when enough processors are free for a job by the estimated ends."""
    state, processors = env._begun_state, env.workload.processors
    n = state.n_releases[0]
    free = int(state.free[0])
    for end, running in zip(
        state.release_time[0, :n][::-1], state.release_job[0, :n][::-1], strict=True
    ):
        free += processors[running]
        if free >= processors[job]:
            return max(int(end), env.now)
    raise AssertionError("a job wider than the machine")


def assert_shown(env: SchedulingEnv, shown: Observation) -> bool:
    """Compare slots and fields with those of all waiting jobs; say whether the queue is long."""
    state, table = env._begun_state, env._begun_episode.table
    base, n_slots = waiting_in_base_order(env), len(env._slot)
    n_oldest = n_slots // 4
    rest = np.sort(base[n_slots - n_oldest :])
    visible = [*base[: n_slots - n_oldest], *rest[:n_oldest]]
    assert env._slot.tolist() == visible + [-1] * (n_slots - len(visible))
    hidden = rest[n_oldest:]
    expected = np.zeros(4, dtype=np.float32)
    if len(hidden) > 0:
        area = float((table.processors[hidden] * table.estimate[hidden]).sum())
        expected[0] = len(hidden) / (len(hidden) + n_slots)
        expected[1] = area / (area + 3_600.0 * env.workload.machine_processors)
        expected[2] = table.field[hidden, JobField.LOG_AREA].min()
        expected[3] = table.field[hidden, JobField.LOG_AREA].max()
    first = ClusterField.HIDDEN_JOBS
    assert shown["cluster"][first : first + 4].tobytes() == expected.tobytes()
    if env.workload.machine is None:
        wide = base[table.processors[base] > state.free[0]]
        ends_before = np.ones(len(visible), dtype=bool)
        if len(wide) > 0:
            ends_before = env.now + table.estimate[visible] <= shadow_time(env, wide[0])
        rows = shown["jobs"].reshape(n_slots, -1)[: len(visible)]
        assert rows[:, JobField.ENDS_BEFORE_SHADOW].astype(bool).tolist() == ends_before.tolist()
    return len(base) > max(n_slots, SHORT_LIST)


def play_and_compare(env: SchedulingEnv, rules: Any, steps: int = 1_500) -> None:
    """Play two episodes by chance, and compare every observation; most are of long queues."""
    generator = np.random.default_rng(0)
    n_long, over = 0, True
    for step in range(steps):
        if over or step == 100:
            shown, _ = env.reset()
        shown, _, over, _, _ = env.step(random_action(rules, generator))
        n_long += assert_shown(env, shown)
    assert n_long > steps // 3


@pytest.mark.long
@pytest.mark.parametrize("n_slots", [1, 3, 4, 12, 100])
@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_shown_is_that_of_a_walk_over_the_queue(action: str, n_slots: int) -> None:
    workload = burst(n_slots, n=1_500)
    policies = ("SPF", "SAF", "LAF") if action == "policy" else ()
    rules = rules_for(workload, action=action, n_slots=n_slots, policies=policies)
    play_and_compare(env_of(workload, rules), rules)


@pytest.mark.parametrize("n_slots", [3, 12])
@pytest.mark.parametrize(
    "changes",
    [
        {"threshold": 2_000},
        {"threshold": 2_000, "backfill_order": "SPF", "decide": "event"},
        {"event_semantics": "pyss", "estimates": "doubled"},
        {"backfill": "conservative", "threshold": 5_000},
        {"backfill": "multi-queue:delay=2500"},
        {"policy": "WFP3", "decide": "event"},
    ],
    ids=str,
)
def test_what_is_shown_is_that_of_a_walk_under_any_settings(
    changes: dict[str, Any], n_slots: int
) -> None:
    workload = burst(7, n=1_000)
    rules = rules_for(workload, action="job", n_slots=n_slots, **changes)
    play_and_compare(env_of(workload, rules), rules, 600)


def test_the_very_first_job_is_shown_among_the_oldest_while_it_waits() -> None:
    workload = burst(7, n=300).resubmitted(np.zeros(300, dtype=np.int64))
    rules = rules_for(workload, action="job", n_slots=4, policy="LCFS")
    env = env_of(workload, rules)
    assert assert_shown(env, env.reset()[0])
    for _ in range(20):
        assert assert_shown(env, env.step(0)[0])


def test_the_very_first_job_is_reserved_for_if_it_alone_does_not_fit() -> None:
    """Job 1 runs to 100 s beside three idle processors; 298 jobs of one go before job 0 of four."""
    run = [200, 100, *[200] * 298]
    workload = Workload.from_arrays([0] * 300, run, run, [4, *[1] * 299], machine_processors=4)
    env = env_of(workload, rules_for(workload, action="job", n_slots=4, policy="SQF"))
    env.reset()
    assert assert_shown(env, env.step(0)[0])
    assert (env._begun_state.free[0], env._slot[-1]) == (3, 0)


def test_what_is_shown_is_that_of_a_walk_on_nodes() -> None:
    everything = reference_nodes.Partition("all", frozenset(range(4)))
    machine = reference_nodes.Machine((reference_nodes.Node(4),) * 4, (everything,))
    drawn = np.random.default_rng(2).integers(1, 5, (300, 2)).tolist()
    rows = [reference_nodes.Job(i, 100 * t, 200 * t, q) for i, (t, q) in enumerate(drawn)]
    rules = Rules(16, 800, action="job", n_slots=4)
    play_and_compare(env_of(workload_of(machine, rows), rules), rules, 300)


def test_a_copy_in_mid_episode_goes_on_like_the_original() -> None:
    workload = burst(5, n=600)
    rules = rules_for(workload, action="job", n_slots=4)
    env = env_of(workload, rules)
    env.reset()
    for _ in range(150):
        env.step(1)
    copied = pickle.loads(pickle.dumps(env))
    for _ in range(100):
        for one in (env, copied):
            shown, *_ = one.step(3)
            assert assert_shown(one, shown)


@pytest.mark.parametrize(("run_time", "starts"), [(20, [0, 100, 40, 20]), (200, [0, 100, 20, 110])])
def test_a_picked_job_is_tried_first_behind_a_head_beyond_the_threshold(
    run_time: int, starts: list[int]
) -> None:
    """Job 1 is the head. Job 3 is picked: it starts before 2, or has its old place afterwards."""
    times = np.array([100, 10, 10, run_time])
    workload = Workload.from_arrays(
        np.array([0, 1, 20, 20]), times, times, np.array([3, 4, 1, 1]), machine_processors=4
    )
    env = env_of(workload, rules_for(workload, action="job", threshold=10, n_slots=4))
    env.reset()
    assert env._slot.tolist() == [1, 2, 3, -1]
    over = False
    while not over:
        place = env._slot.tolist().index(3) if 3 in env._slot else 0
        over = env.step(place)[2]
        state = env._begun_state
        entry = s.FIRST_ENTRY - state.start_time[0, 3]
        assert entry < 0 or state.key[0, s.BASE_ORDER, entry] != LOWEST_KEY
    assert env.schedule().start_time.tolist() == starts
