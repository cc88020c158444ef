"""Action `controls`: against the reference in plain Python, and beside agents that never change."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_capped
import reference_index
from engines import history_of_users, jobs_of, records_of_users
from env_cases import (
    assert_vector_plays_alike,
    burst,
    busy_workload,
    env_with,
    episodes_of,
    starts_under,
)
from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import ScenarioError
from hpcgym.core.actions.controls import CONTROLLED, CONTROLS, controlled
from hpcgym.core.backfill import as_backfill
from hpcgym.core.workload import Workload
from hpcgym.env.observation import CLUSTER_FIELDS, CONTROLS_FIELDS, flat_places
from hpcgym.env.scheduling import SchedulingEnv
from reference_controls import Controlled
from strategies import busy_workloads

OPEN = f"{CONTROLLED},overdue=open"
SHORT = "cost-benefit:kappa=0.5,cap=0.6,long=60"  # A cap that drawn workloads reach

MODES = (SHORT, f"{SHORT},overdue=open", "easy:cap=0.5,long=30", "cost-benefit:kappa=1")
VALUES = (-1.0, -0.5, -0.1, 0.0, 0.0, 0.1, 0.7, 1.0)


# --- The reference --------------------------------------------------------------------------------


def by_reference(
    workload: Workload, mode: str, threshold: int | None, **notes: Any
) -> tuple[list[reference.Start], type[Controlled]]:
    """Schedule with the controls that were decided; return all starts, and the machine's notes."""
    start = workload.time_offset if workload.unix_start is None else workload.unix_start
    kind: Any = reference_index.reader(
        records_of_users(workload),
        start,
        type("Noting", (Controlled,), notes),
        reference_capped.UrgentReader,
    )
    starts = reference.simulate(
        jobs_of(workload),
        workload.machine_processors,
        reference_capped.SMITH_URGENT,
        backfill=mode,
        threshold=threshold,
        history=history_of_users(workload),
        kind=kind,
    )
    return starts, kind


def check_beside_the_reference(
    workload: Workload, mode: str, threshold: int | None, decide: str | int, seed: int
) -> None:
    """Play with random controls; compare decisions, the fields of controls, and all starts."""
    env = env_with(workload, "controls", threshold, backfill=mode, decide=decide)
    generator = np.random.default_rng(seed)
    shown, _ = env.reset()
    decided, seen, over = [], [], False
    while not over:
        controls = generator.choice(VALUES, len(CONTROLS)).tolist()
        if env.schedule().start_time.min() < 0:  # else it was over before any decision
            decided.append((env.now, controls))
            seen.append(shown["cluster"][len(CLUSTER_FIELDS) :])
        shown, _, over, _, _ = env.step(np.array(controls, dtype=np.float32))
    instants = [instant for instant, _ in decided]
    starts, notes = by_reference(
        workload, mode, threshold, epochs=decide, decided=decided, noted=[]
    )
    made = env.schedule()
    columns = made.start_time, made.backfilled, made.thresholded
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == starts
    if not isinstance(decide, int):
        assert [instant for instant, _ in notes.noted] == instants
        for fields, (_, expected) in zip(seen, notes.noted, strict=True):
            np.testing.assert_allclose(fields, expected, rtol=2e-6, atol=2e-7)


@given(
    workload=busy_workloads(),
    mode=st.sampled_from(MODES),
    threshold=st.sampled_from((None, 30, 100, 400)),
    decide=st.sampled_from(("contested", "contested", "event", 7)),
    seed=st.integers(0, 2**16),
)
def test_starts_and_fields_are_those_of_the_reference(workload, mode, threshold, decide, seed):
    check_beside_the_reference(workload, mode, threshold, decide, seed)


@pytest.mark.long
@pytest.mark.parametrize("mode", [SHORT, OPEN])
def test_a_long_queue_starts_as_the_reference_says(mode):
    check_beside_the_reference(burst(3, n=120), mode, 10_000, "contested", 5)


# --- Controls that never change -------------------------------------------------------------------


@given(
    workload=busy_workloads(),
    mode=st.sampled_from(MODES),
    threshold=st.sampled_from((None, 30, 400)),
    values=st.lists(st.sampled_from(VALUES), min_size=4, max_size=4),
)
def test_constant_controls_start_as_the_rule_that_they_name(workload, mode, threshold, values):
    order, changed = controlled(np.float32(values).tolist(), as_backfill(mode))
    schedule = hpcgym.simulate(workload, order, backfill=changed, threshold=threshold)
    env = env_with(
        workload, "controls", threshold, backfill=mode, decide="event"
    )  # none starts undecided
    made = starts_under(env, np.float32(values))
    assert made == schedule.start_time.tolist()


@pytest.mark.parametrize("mode", [CONTROLLED, OPEN])
def test_zeros_are_the_agent_on_the_shelf(mode):
    name = "URGENT-OPEN" if mode == OPEN else "URGENT-BENEFIT"
    env = SchedulingEnv(
        "synthetic-256-weeks", action="controls", backfill=None if mode == CONTROLLED else mode
    )
    env.reset(options={"episode": 1})
    settings = load_agent(name).settings(env.settings)
    expected = hpcgym.simulate(env.workload, **vars(settings)).start_time.tolist()
    over = False
    while not over:
        over = env.step(np.zeros(4))[2]
    assert env.schedule().start_time.tolist() == expected


def test_zeros_are_the_agent_on_the_shelf_on_a_log(real_log):
    real_log("KTH-SP2-1996-2.1-cln")
    for name, backfill in (("URGENT-BENEFIT", None), ("URGENT-OPEN", OPEN)):
        env = SchedulingEnv("kth-sp2-weeks", action="controls", backfill=backfill)
        agent = load_agent(name)
        for week in env.episodes.labels[:8]:
            env.reset(options={"episode": week})
            over = False
            while not over:
                over = env.step(np.zeros(4))[2]
            settings = vars(agent.settings(env.settings))
            expected = hpcgym.simulate(env.workload, **settings).start_time
            np.testing.assert_array_equal(env.schedule().start_time, expected)


def test_every_control_moves_a_start():
    workload = busy_workload(4, n=150)
    env = env_with(workload, "controls", 40_000, backfill="cost-benefit:cap=0.6,long=600")
    middle = starts_under(env, np.zeros(4))
    for place in range(3):
        assert middle != starts_under(env, np.eye(4)[place]), CONTROLS[place]
        assert middle != starts_under(env, -np.eye(4)[place]), CONTROLS[place]
    order, _ = controlled([0, 0, 0, 1], as_backfill(CONTROLLED))
    assert order.parameters[0] == 8


# --- Vectors, forms and refusals ------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("form", "decide"), [("dict", "contested"), ("flat", 300)])
def test_vectors_play_as_single_environments_do(form, decide):
    busy = episodes_of(busy_workload(3, n=90), threshold=1_800)
    keywords = {"action": "controls", "backfill": SHORT, "decide": decide, "n_slots": 8}
    assert_vector_plays_alike(scenario=busy, observation=form, **keywords)


@pytest.mark.parametrize("form", ["dict", "flat"])
def test_observations_have_the_places_of_their_fields(form):
    keywords = {"scenario": "tiny", "action": "controls", "observation": form}
    env = gymnasium.make("hpcgym:HPCBatch-v0", **keywords)
    check_env(env.unwrapped, skip_render_check=True)
    envs = gymnasium.make_vec("hpcgym:HPCBatch-v0", num_envs=2, **keywords)
    assert envs.single_action_space == env.action_space
    shown, _ = env.reset(seed=0)
    if form == "flat":
        places = flat_places(env.unwrapped.n_slots, controls=True)
        assert shown.shape == (places["action_mask"].stop,)
    else:
        assert shown["cluster"].shape == (len(CLUSTER_FIELDS) + len(CONTROLS_FIELDS),)


def test_the_scenario_may_name_the_mode():
    named = episodes_of(busy_workload(), backfill="cost-benefit:kappa=2", threshold=None)
    assert str(SchedulingEnv(named, action="controls").settings.backfill) == "cost-benefit:kappa=2"
    assert str(SchedulingEnv("tiny", action="controls").settings.backfill) == CONTROLLED
    assert str(SchedulingEnv("tiny", action="weights").settings.backfill) == "easy"


@pytest.mark.parametrize("backfill", ["easy", "conservative", "depth:k=2"])
def test_other_modes_are_refused(backfill):
    with pytest.raises(ScenarioError, match=r"choose 'cost-benefit:cap=0\.97' or 'easy:cap=0\.97'"):
        SchedulingEnv("tiny", action="controls", backfill=backfill)


@pytest.mark.long
def test_machines_of_nodes_are_refused():
    with pytest.raises(hpcgym.HpcgymError, match="counts processors"):
        SchedulingEnv("hetero-64-weeks", action="controls").reset()


def test_controls_that_are_none_are_refused():
    env = SchedulingEnv("tiny", action="controls")
    env.reset()
    for wrong in (np.full(4, 1.5), np.full(4, np.nan), np.zeros(3)):
        with pytest.raises(hpcgym.base.errors.ActionError, match="action 'controls' must"):
            env.step(wrong)
