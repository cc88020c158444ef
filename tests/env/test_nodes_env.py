"""The environment on machines of nodes, beside its plain-Python twin and beside itself."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from random import Random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, note
from hypothesis import strategies as st

import reference_nodes
from env_cases import (
    ACTIONS,
    assert_tells,
    check_with_stable_baselines,
    env_of,
    plain_env,
    plain_vector,
    random_action,
)
from env_twin import Rules
from env_twin_nodes import NodesTwin
from hpcgym.base.errors import ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.observation import CLUSTER_FIELDS, FIELDS, NODES_FIELDS
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import parse_scenario
from hpcgym.env.scenario.spec import MachineSpec
from hpcgym.env.scheduling import Observation, SchedulingEnv
from hpcgym.machine import Machine, NodeType, Partition
from nodes_env_cases import HETERO, Case, busy_case, drawn
from nodes_of_kernels import workload_of


def name_of(part: str, place: int) -> str:
    """Name a number of an observation."""
    names = (*FIELDS, *NODES_FIELDS)
    if part == "jobs":
        return f"slot {place // len(names)} {names[place % len(names)]}"
    return CLUSTER_FIELDS[place] if part == "cluster" else f"{part}[{place}]"


def differing(shown: Observation, expected: dict[str, list[Any]]) -> list[str]:
    """Name what differs by more than the rounding of float32."""
    assert shown.keys() == expected.keys()
    found = []
    for part, values in expected.items():
        wanted = np.array(values)
        assert shown[part].dtype == np.float32 and shown[part].shape == wanted.shape
        far = ~(np.abs(shown[part] - wanted) <= 2.0**-23 * np.maximum(np.abs(wanted), 2.0**-3))
        found += [
            f"{name_of(part, place)}: {shown[part].flat[place]!r}, twin {wanted.flat[place]!r}"
            for place in np.flatnonzero(far)
        ]
    return found


def assert_alike(env: SchedulingEnv, twin: NodesTwin, shown: Observation, expected: Any) -> None:
    """Compare the clock, the slots, what is seen, and all starts and nodes so far."""
    assert env.now == twin.sim.now
    assert env.observation_space.contains(shown)
    assert env._slot.tolist() == [-1 if j is None else j for j in twin.slots]
    assert differing(shown, expected) == []
    made = env.schedule()
    starts = [-1 if s is None else s.start_time for s in twin.sim.starts]
    assert made.start_time.tolist() == starts
    nodes = [made.placement.of(j) for j in range(len(starts))]
    assert nodes == twin.sim.nodes.result.placements


def play_both(case: Case) -> int:
    """Play an episode in both with the same random actions; return the number of steps."""
    env, twin = env_of(case.workload, case.rules), NodesTwin(case.table, case.machine, case.rules)
    generator = np.random.default_rng(case.seed)
    shown, info = env.reset()
    assert_alike(env, twin, shown, twin.reset())
    assert_tells(info, twin, "begin")
    terminated, steps, ledger = False, 0, 1.0
    while not terminated:
        action = random_action(case.rules, generator)
        shown, reward, terminated, _, info = env.step(action)
        expected, paid, over = twin.step(action)
        assert terminated == over
        ledger += sum(map(abs, twin.terms.values()))
        assert np.isclose(reward, paid, rtol=1e-9, atol=1e-12 * ledger)
        assert_tells(info, twin, "end" if over else "step", ledger)
        assert_alike(env, twin, shown, expected)
        steps += 1
    flags = [(s.backfilled, s.thresholded) for s in twin.sim.starts]
    made = env.schedule()
    assert list(zip(made.backfilled.tolist(), made.thresholded.tolist(), strict=True)) == flags
    return steps


@pytest.mark.parametrize("action", ACTIONS)
@given(random=st.randoms(use_true_random=False))
def test_every_step_on_drawn_nodes_is_that_of_the_twin(action: str, random: Random) -> None:
    """At passes without a decision the twin takes another order, which must make no difference."""
    case = drawn(random, action=action)
    note(str(case))
    play_both(case)


@pytest.mark.long
def test_drawn_episodes_have_decisions_in_several_components_and_on_exclusive_nodes() -> None:
    """So that the test above compares what it says."""
    cases = [drawn(Random(seed), decide="contested") for seed in range(60)]
    split = [case for case in cases if len(set(reference_nodes.components(case.machine))) > 1]
    assert sum(play_both(case) for case in split) > 20
    assert any(job.exclusive for case in split for job in case.table)


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "backfill", "placement"),
    [
        ("weights", "easy", "lowest"),
        ("policy", "conservative:planned=5", "tightest"),
        ("order", "depth:k=2", "best-effort-local"),
        ("job", "easy", "fewest-groups"),
    ],
)
def test_every_step_with_a_long_queue_is_that_of_the_twin(
    action: str, backfill: str, placement: str
) -> None:
    case = busy_case(action=action, backfill=backfill, placement=placement)
    assert play_both(case) > 30


def small_env(rows: list[reference_nodes.Job], **keywords: Any) -> SchedulingEnv:
    """Make an environment on two nodes of 4 cpus, each a partition and component of its own."""
    parts = [reference_nodes.Partition(f"p{v}", frozenset((v,))) for v in (0, 1)]
    machine = reference_nodes.Machine((reference_nodes.Node(4),) * 2, tuple(parts))
    return env_of(workload_of(machine, rows), Rules(8, 1_000, **keywords))


def decisions_as_fcfs(env: SchedulingEnv) -> list[int]:
    """Play as FCFS; return when decisions were due."""
    env.reset()
    instants, terminated = [env.now], False
    while not terminated:
        _, _, terminated, _, _ = env.step(np.zeros(6, dtype=np.float32))
        instants.append(env.now)
    return instants[:-1]


def test_only_components_with_an_event_of_their_own_are_contested() -> None:
    """At 50 a job of the other component comes, while a job that fits waits behind the head."""
    job = reference_nodes.Job
    rows = [job(0, 100, 100, 2), job(1, 50, 50, 4), job(2, 900, 900, 2)]
    other = job(50, 10, 10, 1, partition=1)
    assert decisions_as_fcfs(small_env([*rows, other])) == [2, 100]
    assert decisions_as_fcfs(small_env([*rows, other._replace(partition=0)])) == [2, 50, 60, 100]


def test_a_pass_is_contested_even_if_all_jobs_fit_together_but_not_across_components() -> None:
    pair = [reference_nodes.Job(5, 10, 10, 1, partition=p) for p in (1, 1)]
    assert decisions_as_fcfs(small_env(pair)) == [5]
    apart = [pair[0]._replace(partition=0), pair[1]]
    assert decisions_as_fcfs(small_env(apart, decide="event")) == [5]
    env = small_env(apart)
    env.reset()
    assert env.step(np.zeros(6, dtype=np.float32))[2]
    assert env.schedule().start_time.tolist() == [5, 5]


def test_a_number_of_seconds_decides_at_each_multiple_of_it() -> None:
    rows = [reference_nodes.Job(5, 100, 100, 4), reference_nodes.Job(6, 10, 10, 4)]
    assert decisions_as_fcfs(small_env(rows, decide=30)) == [0, 30, 60, 90]


@given(random=st.randoms(use_true_random=False))
def test_run_times_of_jobs_that_have_not_ended_change_nothing_seen_before(random: Random) -> None:
    case = drawn(random, estimates="requested", reward="bsld", baseline=None)
    env = env_of(case.workload, case.rules)
    generator = np.random.default_rng(case.seed)
    seen, actions = [env.reset()[0]], []
    clock, past = [env.now], [env.schedule()]
    while not env.schedule().complete:
        actions.append(random_action(case.rules, generator))
        seen.append(env.step(actions[-1])[0])
        clock.append(env.now)
        past.append(env.schedule())
    turn = random.randrange(len(seen))
    now, made = clock[turn], past[turn]
    run_time = case.workload.run_time.copy()
    for j in np.flatnonzero((made.start_time < 0) | (made.start_time + made.run_time > now)):
        passed = now - made.start_time[j] + 1 if made.start_time[j] >= 0 else 0
        run_time[j] = passed + random.randrange(100)
    other = env_of(replace(case.workload, run_time=run_time), case.rules)
    again = [other.reset()[0], *(other.step(action)[0] for action in actions[:turn])]
    assert other.now == now
    for before, after in zip(seen, again, strict=False):
        assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.mark.long
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_made_in_an_episode_goes_on_alike(duplicate: Any) -> None:
    env = plain_env(HETERO, action="job", n_slots=8, baseline="SAF")
    generator = np.random.default_rng(2)
    env.reset(options={"episode": 1})
    for _ in range(100):
        env.step(int(generator.integers(3)))
    other, terminated = duplicate(env), False
    while not terminated:
        action = int(generator.integers(3))
        shown, reward, terminated, _, info = env.step(action)
        again, *rest = other.step(action)
        assert all(np.array_equal(shown[key], again[key]) for key in shown)
        np.testing.assert_equal(rest, [reward, terminated, False, info])
    assert all(map(np.array_equal, env.schedule().placement, other.schedule().placement))


def test_jobs_made_for_another_machine_are_refused() -> None:
    env = plain_env(HETERO)
    week = env.episodes.workload(0)
    nodes = week.machine.nodes
    other = replace(week.machine, nodes=(replace(nodes[0], gpus=1), *nodes[1:]))
    columns = {key: getattr(week, key) for key in ("submit_time", "run_time", "requested_time")}
    counted = Workload.from_arrays(**columns, processors=week.processors, machine_processors=2432)
    for jobs in (replace(week, machine=other), counted):
        with pytest.raises(ScenarioError, match=r"was made for .*; the scenario has 64 nodes"):
            env.reset(options={"workload": jobs})
    env.reset(options={"workload": week})
    assert env.workload is week


@pytest.mark.parametrize("action", ACTIONS)
def test_the_ecosystem_s_checkers_have_nothing_to_say(action: str) -> None:
    env = gymnasium.make("HPCBatch-v0", scenario=HETERO, action=action, n_slots=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    check_with_stable_baselines(env)


def test_scenarios_with_and_without_nodes_are_refused_in_one_vector():
    with pytest.raises(ScenarioError, match="hetero-64-weeks and tiny show different observations"):
        plain_vector(["hetero-64-weeks", "tiny"], num_envs=2)


def ten_partitions() -> Workload:
    """Return jobs on ten nodes, each node a partition of its own, later ones of a higher tier."""
    parts = tuple(Partition(f"p{v}", f"{v}", tier=v) for v in range(10))
    machine = Machine((NodeType(10, cpus=4, gpus=2),), parts)
    n = 30
    return Workload.from_arrays(
        [0] * n, [500 if j % 10 else 50 for j in range(n)], [600] * n, [3] * n, machine=machine,
        chunks=[1] * n, partition=[j % 10 for j in range(n)],
    )  # fmt: skip


def episodes_of(workload: Workload) -> Episodes:
    """Return one episode of some jobs, as a scenario's."""
    assert workload.machine is not None
    text = (
        'description = "Drawn."\n[trace]\nname = "tiny"\nmissing_request = "drop"\n'
        '[machine]\nprocessors = 1\nlargest_request_s = 3600\n[episode]\nkind = "whole"\n'
        '[scheduler]\npolicy = "SAF"\n'
    )
    scenario = parse_scenario(text, name="drawn")
    size = MachineSpec(workload.machine.cpus, 3600, nodes=workload.machine)
    return Episodes(replace(scenario, machine=size), workload=workload)


def test_of_many_partitions_the_eight_of_the_highest_tiers_are_shown():
    env = plain_env(episodes_of(ten_partitions()), decide="event")
    shown, _ = env.reset()
    assert shown["machine"].shape == (24,)
    assert shown["machine"].tolist() == [1, 1, 0] * 8  # nothing runs yet
    shown, *_ = env.step(np.zeros(6, dtype=np.float32))
    assert (
        shown["machine"].tolist() == [0.25, 1, 0] * 8
    )  # p0 has a free node again, but is not shown


def test_an_environment_goes_on_while_another_of_its_vector_needs_more_room():
    few = ten_partitions().select(np.arange(12))
    episodes = episodes_of(ten_partitions())
    alone = plain_env(episodes, decide="event")
    envs = plain_vector(episodes, num_envs=2, decide="event")
    shown, _ = alone.reset(options={"workload": few})
    together, _ = envs.reset(options={"workload": [few, few]})
    action = np.array([0, 0, 0, 0, 0, 1], dtype=np.float32)
    envs.reset(
        options={"workload": [few, episodes.workload(0)], "reset_mask": np.array([0, 1], bool)}
    )
    over = False
    while not over:
        shown, _, over, _, _ = alone.step(action)
        together, _, ended, _, _ = envs.step(np.stack([action, action]))
        assert bool(ended[0]) == over
        assert all(np.array_equal(together[key][0], shown[key]) for key in shown)
    started = envs.envs[0].schedule()
    assert started.start_time.tolist() == alone.schedule().start_time.tolist()
