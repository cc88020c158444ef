"""The trainer on counterfactuals: what it labels, that it learns, and what becomes of the agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.agent.card_writer import write_agent
from hpcgym.agent.shelf import load_agent
from hpcgym.agent.trainers import load_trainer
from hpcgym.agent.training_weeks import Training
from hpcgym.base.errors import HpcgymError
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scheduling import SchedulingEnv

pytest.importorskip("torch")
credit = pytest.importorskip("hpcgym.agent.learn.credit")
Score = pytest.importorskip("hpcgym.agent.validation").Score

WEEK = 3
SAF = {"policy": "SAF", "threshold": 200_000}


@pytest.fixture(scope="module")
def env() -> SchedulingEnv:
    keywords = credit.CreditTrainer(n_slots=16).env_keywords
    return SchedulingEnv("synthetic-busy-weeks", **keywords)


@pytest.fixture(scope="module")
def labels(env: SchedulingEnv):
    return credit.CreditTrainer(n_slots=16)._labels_of(env, WEEK)


@pytest.mark.long
def test_what_was_played_beside_the_branches_is_saf(env, labels) -> None:
    expected = hpcgym.simulate(env.workload, **SAF)
    assert env.schedule().start_time.tolist() == expected.start_time.tolist()


def test_the_first_job_changes_nothing_and_only_jobs_are_tried(labels) -> None:
    assert (labels.change[:, 0] == 0).all()
    tried = np.isfinite(labels.change)
    assert (labels.action_mask[tried] == 1).all()
    assert tried.sum(axis=1).max() == 1 + credit.N_OPTIONS
    seen = labels.action_mask.sum(axis=1)
    assert (tried.sum(axis=1) == np.minimum(seen, 1 + credit.N_OPTIONS)).all()


@pytest.mark.long
def test_a_label_is_what_the_environment_finds_where_an_option_lasts_one_pass(env, monkeypatch):
    """The picked job goes first at one decision; SAF, by the first slot, takes all others."""
    monkeypatch.setattr(credit, "DURATION_S", 0)
    monkeypatch.setattr(credit, "PAUSE_S", 40_000)
    trainer = credit.CreditTrainer(n_slots=16)
    found = trainer._labels_of(env, WEEK)
    checked = 0
    for row in range(0, len(found.change), 2):
        base = played(env, found.jobs[row], 0)
        for slot in np.flatnonzero(np.isfinite(found.change[row]))[:4]:
            changed = played(env, found.jobs[row], int(slot)) / base - 1
            assert changed == pytest.approx(found.change[row, slot], abs=1e-6)
            checked += changed != 0
    assert checked > 3


def played(env: SchedulingEnv, jobs: np.ndarray, slot: int) -> float:
    """Return the mean bounded slowdown of SAF, but for one pick where these jobs are shown."""
    shown, _ = env.reset(options={"episode": WEEK})
    is_over, taken = False, False
    while not is_over:
        is_here = not taken and np.array_equal(shown["jobs"], jobs)
        taken |= is_here
        shown, _, is_over, _, info = env.step(slot if is_here else 0)
    assert taken
    return float(info["mean_bsld"])


@pytest.mark.long
def test_a_network_learns_what_the_labels_say(labels) -> None:
    """Fitted to the labels of one week, it expects a gain there."""
    trainer = credit.CreditTrainer(n_slots=16, epochs=40)
    change = np.clip(labels.change / np.nanmax(abs(labels.change)), -1, 1)
    rows = np.arange(len(change))

    judge: Any = SimpleNamespace()

    def score(agent):
        judge.agent = agent
        return Score(1.0, 0.0, 1.0)

    judge.score = score
    credit.torch.manual_seed(0)
    before = credit._loss(credit.Scorer(trainer.spec), labels, change, rows).item()
    best, is_start = trainer._fitted(labels, judge, 0)
    assert is_start and not best.weights["output.weight"].any()
    scorer = credit.Scorer(trainer.spec)
    for name, array in judge.agent.weights.items():
        with credit.torch.no_grad():
            scorer.arrays[name.replace(".", "_")].copy_(credit.torch.as_tensor(array))
    assert credit._loss(scorer, labels, change, rows).item() < min(before, 0) - 1e-4


@pytest.mark.long
def test_its_agent_has_a_card_and_is_the_same_for_one_seed(tmp_path: Path) -> None:
    weeks = Episodes("synthetic-busy-weeks").select("1-3")
    trainer = credit.CreditTrainer(n_slots=16, epochs=2, copies=0)
    agent, again = (trainer.train([weeks], 4) for _ in range(2))
    for name, array in agent.agent.weights.items():
        assert np.array_equal(array, again.agent.weights[name])
    training = Training({"synthetic-busy-weeks": (1, 2, 3)}, 4, 1.0, "abc", "a test")
    card = write_agent(agent, "MINE", tmp_path, training)
    read = load_agent(str(card))
    assert read.env_keywords == agent.env_keywords
    assert read.agent.spec == trainer.spec


def test_another_order_than_saf_and_weeks_without_a_choice_are_refused() -> None:
    assert load_trainer("credit") == credit.CreditTrainer()
    tiny = load_scenario("tiny")
    fcfs = replace(tiny, scheduler=replace(tiny.scheduler, policy="FCFS"))
    with pytest.raises(HpcgymError, match=r"tiny: .* policy is FCFS, and CREDIT corrects SAF"):
        load_trainer("credit").train([Episodes(fcfs)], 0)
    nothing = np.zeros((2, 3), np.float32)
    with pytest.raises(HpcgymError, match="no option changes any week"):
        load_trainer("credit")._fitted(credit.Labels(nothing, nothing, nothing, nothing), None, 0)
