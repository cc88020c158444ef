"""Networks without torch: jobs are treated alike, a rule is the start, files are read strictly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.agent.card import read_card
from hpcgym.agent.network import EMPTY, NetworkAgent, NetworkSpec, read_network, write_network
from hpcgym.base.errors import CardError
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation import evaluate
from hpcgym.schedule.simulate import simulate

N_SLOTS = 8
ACTIONS = {"order": 0, "job": 0, "policy": 3, "weights": 6, "controls": 4, "index": 5, "trials": 8}


def spec_of(action: str, **changes: Any) -> NetworkSpec:
    """A small network."""
    spec = NetworkSpec(action, n_slots=N_SLOTS, n_outputs=ACTIONS[action], hidden=16)
    return replace(spec, **changes)


def drawn(spec: NetworkSpec, seed: int = 0) -> NetworkAgent:
    """A network of random weights."""
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in spec.shapes.items()
    }
    return NetworkAgent(spec, weights)


def started(spec: NetworkSpec) -> NetworkAgent:
    """A network whose output layer is zero, as at the start of a training."""
    agent = drawn(spec)
    for name in ("output.weight", "output.bias"):
        agent.weights[name][...] = 0.0
    return agent


def shown(
    counts: tuple[int, ...] = (8, 3, 5, 2, 1), seed: int = 0, action: str = "order"
) -> dict[str, Any]:
    """Random observations with so many jobs."""
    rng = np.random.default_rng(seed)
    mask = (np.arange(N_SLOTS) < np.array(counts)[:, None]).astype(np.float32)
    n_of_job, n_of_cluster = spec_of(action).n_fields
    jobs = rng.uniform(-1, 1, (len(counts), N_SLOTS, n_of_job)) * mask[:, :, None]
    cluster = rng.uniform(-1, 1, (len(counts), n_of_cluster))
    return {
        "jobs": jobs.astype(np.float32),
        "cluster": cluster.astype(np.float32),
        "action_mask": mask,
    }


@pytest.mark.parametrize("action", ACTIONS)
def test_jobs_are_treated_alike_whatever_slots_they_are_in(action: str) -> None:
    agent, seen = drawn(spec_of(action)), shown((8, 8), action=action)
    permutation = np.random.default_rng(1).permutation(N_SLOTS)
    moved = seen | {"jobs": seen["jobs"][:, permutation]}
    before, after = agent.output(seen), agent.output(moved)
    moved = before[:, permutation] if agent.spec.scores_jobs else before
    assert np.allclose(moved, after, atol=1e-5)
    assert np.ptp(before) > 0.1


def test_empty_slots_change_nothing_and_come_last() -> None:
    agent, seen = drawn(spec_of("order")), shown()
    alone = {key: array[1:2] for key, array in seen.items()}
    assert np.allclose(agent.output(seen)[1], agent.output(alone)[0], atol=1e-5)
    assert (agent.output(seen)[seen["action_mask"] == 0] == EMPTY).all()
    ranks = (agent.predict(seen)[0] + 1) / 2 * (N_SLOTS - 1)
    assert np.allclose(np.sort(ranks, axis=1), np.arange(N_SLOTS))
    assert (ranks[1, :3] < 3).all()


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_one_observation_gets_what_it_gets_in_a_batch(action: str, deterministic: bool) -> None:
    agent, seen = drawn(spec_of(action)), shown((4,), action=action)
    (batch,), _ = agent.predict(seen, deterministic=deterministic)
    again = drawn(spec_of(action))
    one, state = again.predict({k: a[0] for k, a in seen.items()}, deterministic=deterministic)
    assert np.array_equal(batch, one)
    assert state is None


def test_a_sampled_job_is_one_that_waits_and_a_likely_one() -> None:
    agent = drawn(spec_of("job", temperature=1.0))
    seen = {key: np.repeat(array[1:2], 4_000, axis=0) for key, array in shown().items()}
    share = np.bincount(agent.predict(seen, deterministic=False)[0], minlength=N_SLOTS) / 4_000
    score = agent.output(seen)[0].astype(np.float64)
    expected = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
    assert np.allclose(share, expected, atol=0.04)


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "start"),
    [
        *((action, "saf") for action in ("order", "job", "policy", "weights")),
        *((action, "smith-history") for action in ("order", "job", "policy")),
        ("order", "smith-reg"),
        ("order", "smith-urgent"),
        ("controls", "smith-urgent"),
        ("trials", "smith-urgent"),
    ],
)
def test_a_network_without_corrections_schedules_as_its_start_to_the_second(
    action: str, start: str
) -> None:
    rule = start.upper()
    spec = spec_of(action, n_slots=512, start=start)
    shows = spec.expectations
    keywords: dict[str, Any] = {"action": action, "n_slots": 512, "expectations": shows}
    if action == "policy":
        spec, keywords["policies"] = replace(spec, start_output=1), ["FCFS", rule, "SPF"]
    if action == "weights":
        spec = replace(spec, start_output=5)
    if action == "job":
        keywords["backfill_order"] = rule
    agent = started(spec)
    envs = SchedulingVectorEnv(
        "synthetic-256-weeks", num_envs=2, autoreset_mode="NEXT_STEP", **keywords
    )
    seen, _ = envs.reset(options={"episode": ["week 3", "week 9"]})
    left, n_steps = {0, 1}, 0
    while left:
        assert seen["action_mask"].sum(axis=1).max() < 512
        seen, _, terminated, _, _ = envs.step(agent.predict(seen)[0])
        n_steps += 1
        for env in left & set(np.flatnonzero(terminated).tolist()):
            left.remove(env)
            view = envs.envs[env]
            settings = vars(view.settings) | {"policy": rule}  # of controls, with their mode
            theirs = simulate(view.workload, **settings)
            assert np.array_equal(view.schedule().start_time, theirs.start_time)
    assert n_steps > 100


def test_an_observation_of_other_slots_is_refused() -> None:
    agent = drawn(spec_of("order"))
    seen = shown()
    with pytest.raises(CardError, match="sees 8 slots, the environment shows 5"):
        agent.predict(seen | {"action_mask": seen["action_mask"][:, :5]})


# --- Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_written_is_read_again(tmp_path: Path, action: str) -> None:
    agent = drawn(spec_of(action))
    write_network(agent, tmp_path / "a.npz")
    again = read_network(tmp_path / "a.npz")
    assert again.spec == agent.spec
    assert all(np.array_equal(again.weights[name], agent.weights[name]) for name in agent.weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": np.array(1)}, "format is 1; this hpcgym reads 2"),
        ({"spec.action": np.array("index")}, "format is 2; this hpcgym reads 3"),
        ({"format": None}, "format is missing"),
        ({"spec.hidden": np.array(8)}, "must be float32 of shape"),
        ({"spec.hidden": np.array("16")}, "spec.hidden must be one int"),
        ({"spec.hidden": np.array([16, 16])}, "spec.hidden must be one int"),
        ({"spec.action": np.array("ordre")}, "did you mean 'order'"),
        ({"spec.temperature": np.array(np.nan)}, "and temperature must be finite and above 0"),
        ({"output.bias": None}, "'output.bias' is missing"),
        ({"output.biases": np.zeros(1, np.float32)}, "did you mean 'output.bias'"),
        ({"output.bias": np.zeros(2, np.float32)}, r"shape \(1,\), got float32 of \(2,\)"),
        ({"output.bias": np.zeros(1)}, "got float64"),
        ({"output.bias": np.full(1, np.nan, np.float32)}, "not finite"),
        ({"output.bias": np.array([{}])}, "Object arrays cannot be loaded"),
    ],
)
def test_a_malformed_file_is_refused_with_what_is_wrong(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_network(drawn(spec_of("order")), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as file:
        arrays = dict(file) | changes
    kept = {key: array for key, array in arrays.items() if array is not None}
    np.savez(tmp_path / "b.npz", **kept)
    with pytest.raises(CardError, match=message) as refusal:
        read_network(tmp_path / "b.npz")
    assert "b.npz" in str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"weights", b"\x80\x04]\x94."])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(CardError, match="not a file of named arrays"):
        read_network(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(CardError, match="not a file of named arrays"):
        read_network(tmp_path / "one.npy")
    with pytest.raises(CardError, match="no such file"):
        read_network(tmp_path / "none.npz")


CARD = """
name = "NET"
title = "A network"
kind = "network"
source = "a test"
description = "Drawn by a test."

[parameters]
weights = "net.npz"

[environment]
action = "order"
n_slots = 8
"""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """The card of a network, with its weights."""
    write_network(drawn(spec_of("order")), tmp_path / "net.npz")
    path = tmp_path / "net.toml"
    path.write_text(CARD, encoding="utf-8")
    return path


def test_a_card_makes_a_network_with_the_keywords_it_needs(card: Path) -> None:
    agent = read_card(card).agent
    assert agent.name == "NET"
    assert agent.env_keywords == {"action": "order", "n_slots": 8}
    frame = evaluate([agent], "tiny", progress=False).frame
    assert sorted(frame["agent"]) == ["NET", "SAF"]


def test_a_card_of_a_network_that_corrects_an_index_asks_for_what_it_is_made_of(card: Path) -> None:
    write_network(
        drawn(spec_of("order", start="smith-history")), card.with_suffix(".npz"), force=True
    )
    with pytest.raises(CardError, match="expectations must be 'records'"):
        read_card(card)
    card.write_text(CARD + 'expectations = "records"\n', encoding="utf-8")
    assert read_card(card).agent.env_keywords["expectations"] == "records"


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('"net.npz"', '"other.npz"', "under its name, net.npz"),
        ("n_slots = 8", "n_slots = 16", "environment.n_slots is 16, yet the weights are for 8"),
        ('"order"', '"job"', "environment.action is 'job', yet the weights are for 'order'"),
        ("n_slots = 8", "n_slot = 8", "did you mean 'n_slots'"),
        ("weights =", "weight =", "did you mean 'weights'"),
    ],
)
def test_a_card_that_does_not_fit_its_weights_is_refused(
    card: Path, was: str, now: str, message: str
) -> None:
    card.write_text(CARD.replace(was, now), encoding="utf-8")
    with pytest.raises(CardError, match=message):
        read_card(card)


def test_a_card_without_its_weights_is_refused(card: Path) -> None:
    card.with_suffix(".npz").unlink()
    with pytest.raises(CardError, match=r"net\.npz: no such file"):
        read_card(card)
