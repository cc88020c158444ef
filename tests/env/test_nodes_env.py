"""The environment on machines of nodes, beside its plain-Python twin and beside itself."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import reference
import reference_nodes
from drawn_machines import draw_case
from env_cases import ACTIONS, REWARDS, env_of, random_action
from env_twin import Rules
from env_twin_nodes import NodesTwin
from hpcgym.core.workload import Workload
from hpcgym.env.observation import CLUSTER_FIELDS, FIELDS, NODES_FIELDS
from hpcgym.env.scheduling import Observation, SchedulingEnv
from nodes_of_kernels import settings_of, workload_of

HETERO = "hetero-64-weeks"
SOME = ("FCFS", "SPF", "WFP3", "SMITH")
TIME_SCALES = (1, 7, 600, 7_200)


class Case(NamedTuple):
    """A machine, jobs, what the environment is made of, and a seed for its actions."""

    machine: reference_nodes.Machine
    table: list[reference_nodes.Job]
    rules: Rules
    seed: int

    @property
    def workload(self) -> Workload:
        """The jobs as the package holds them."""
        return workload_of(self.machine, self.table)


def drawn(random: Random, **fixed: Any) -> Case:
    """Draw an environment on nodes of any kind; `fixed` rules are taken as given."""
    machine, table, settings = draw_case(random, most_nodes=6, most_jobs=14)
    while not table:
        machine, table, settings = draw_case(random, most_nodes=6, most_jobs=14)
    by = random.choice(TIME_SCALES)
    parts = tuple(one._replace(max_time_s=one.max_time_s * by) for one in machine.partitions)
    table = [
        job._replace(
            submit_time=job.submit_time * by,
            run_time=job.run_time * by,
            requested_time=job.requested_time * by,
            user=random.choice((-1, 0, 0, 1)),
        )
        for job in table
    ]
    given = settings_of(**settings)
    threshold = given["threshold"]
    rules: dict[str, Any] = {
        "processors": machine.cpus,
        "largest_request": max(job.requested_time for job in table) * random.choice((1, 1, 5)),
        "policy": random.choice((*SOME, "SAF")),
        "backfill": given["backfill"],
        "backfill_order": settings.get("backfill_order"),
        "threshold": None if threshold is None else threshold * by,
        "kill_at_limit": given["kill_at_limit"],
        "estimates": random.choice(("requested", "requested", "exact")),
        "placement": given["placement"],
        "action": random.choice(ACTIONS),
        "reward": random.choice(REWARDS),
        "baseline": random.choice((None, "SAF", "WFP3")),
        "n_slots": random.choice((1, 2, 3, 5, 8, 128)),
        "expectations": random.choice((None, "records")),
    } | fixed
    if rules["backfill"] == "none":
        rules["backfill_order"] = None
    if rules["action"] == "job":
        rules["backfill"] = rules["backfill"].partition(":planned")[0]
    if rules["action"] == "policy":
        rules["policies"] = tuple(random.sample(reference.POLICIES, 3))
    epochs = ["contested", "contested", "event"]
    if rules["action"] in ("weights", "policy"):
        epochs += [3 * by, 11 * by]
    rules.setdefault("decide", random.choice(epochs))
    if rules["reward"] in ("log_ratio", "relative") and rules["baseline"] is None:
        rules["baseline"] = "SAF"
    machine = machine._replace(partitions=parts)
    return Case(machine, table, Rules(**rules), random.randrange(2**16))


def name_of(part: str, place: int) -> str:
    """Name a number of an observation."""
    names = (*FIELDS, *NODES_FIELDS)
    if part == "jobs":
        return f"slot {place // len(names)} {names[place % len(names)]}"
    return CLUSTER_FIELDS[place] if part == "cluster" else f"{part}[{place}]"


def differing(shown: Observation, expected: dict[str, list[float]]) -> list[str]:
    """Name what differs by more than the rounding of float32."""
    assert shown.keys() == expected.keys()
    found = []
    for part, values in expected.items():
        wanted = np.array(values)
        assert shown[part].dtype == np.float32 and shown[part].shape == wanted.shape
        far = ~(np.abs(shown[part] - wanted) <= 2.0**-23 * np.maximum(np.abs(wanted), 2.0**-3))
        found += [
            f"{name_of(part, place)}: {shown[part][place]!r}, twin {wanted[place]!r}"
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
    shown, _ = env.reset()
    assert_alike(env, twin, shown, twin.reset())
    terminated, steps, ledger = False, 0, 1.0
    while not terminated:
        action = random_action(case.rules, generator)
        shown, reward, terminated, _, info = env.step(action)
        expected, paid, over = twin.step(action)
        assert terminated == over
        ledger += sum(map(abs, info["reward_terms"].values()))
        assert np.isclose(reward, paid, rtol=1e-9, atol=1e-12 * ledger)
        assert info["invalid_actions"] == twin.invalid_actions
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
