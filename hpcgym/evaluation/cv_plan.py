"""The plan of a cross-validation: which agent runs on which weeks of which log, and the trainings.

A trainer is trained once per fold and seed, on what the fold leaves of all logs. Any other agent
runs on all weeks that are tested.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.own import Trainer
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import load_agent
from hpcgym.agent.trainers import load_trainer
from hpcgym.base.errors import EvaluationError
from hpcgym.base.ranges import number_ranges
from hpcgym.core.predictor import as_predictor
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.baselines import (
    HINDSIGHT,
    HINDSIGHT_EVALUATIONS,
    RULES,
    TRAINED,
    UNACHIEVABLE,
    Kind,
    best_of_week,
    clairvoyant,
)
from hpcgym.evaluation.cv_training import TrainedAgent, TrainingTask
from hpcgym.evaluation.folds import Fold, time_blocks
from hpcgym.evaluation.runner import RATIO_BASELINE, AnyAgent, refuse_namesake
from hpcgym.evaluation.store import Row, digest, digest_of_weeks

AgentOrTrainer: TypeAlias = AnyAgent | Trainer

KNOWS_RUN_TIMES = ("exact", "f-model")  # kinds of estimates that no scheduler could make


@dataclass(frozen=True)
class PlannedRuns:
    """The runs of one agent on some weeks of one log."""

    log: int  # position of the log
    name: str  # name of the agent in tables
    kind: Kind  # whether a scheduler could be it
    agent: AnyAgent | TrainingTask  # the agent, or how it is trained
    numbers: tuple[int, ...]
    fold: Fold | None = None  # the fold of this log it is trained on, or None
    seed: int | None = None  # its training seed, or None

    def made(self, trained: Mapping[str, TrainedAgent]) -> TrainedAgent:
        """Return the agent, taken from the trained ones by key where it is one of them."""
        if isinstance(self.agent, TrainingTask):
            return trained[self.agent.key]
        return TrainedAgent(self.agent, 0.0)


@dataclass(frozen=True)
class CrossValidationPlan:
    """Plans the runs and the trainings."""

    logs: Sequence[Episodes]
    tested: Sequence[tuple[int, ...]]  # numbers of each log's weeks that are run
    n_folds: int  # blocks of each log
    n_seeds: int  # trainings of each fold
    seed: int  # seed of the search for w*

    def planned_runs(
        self, agents: Sequence[AgentOrTrainer], baselines: Sequence[str]
    ) -> Iterator[PlannedRuns]:
        """Yield the runs of every agent on every log, then those of baselines not among them.

        Raises:
            EvaluationError: Too few weeks for so many folds, or an agent has the name of a rule
                among the baselines and is not that rule, or of a baseline that no scheduler could
                be.

        Source: Specification, section 10, "Evaluation protocol", steps 1 and 5.
        """
        for agent in agents:
            if agent.name in UNACHIEVABLE:
                raise EvaluationError(
                    f"{agent.name} is a baseline that no scheduler could be; an agent needs "
                    "another name"
                )
            if agent.name in RULES:
                for log in self.logs:
                    refuse_namesake(agent, log.settings)
            if isinstance(agent, (RuleAgent, NamedAgent)):
                yield from self._on_all_weeks([agent] * len(self.logs), self._kind_of(agent))
            else:
                yield from self._of_trainer(agent)
        names = {agent.name for agent in agents}
        for name in dict.fromkeys((*baselines, RATIO_BASELINE)):
            if name not in names:
                yield from self._baseline(name)

    def _baseline(self, name: str) -> Iterator[PlannedRuns]:
        if name in RULES:
            agent = load_agent(name)
            yield from self._on_all_weeks([agent] * len(self.logs), self._kind_of(agent))
        elif name == TRAINED:
            yield from self._of_trainer(load_trainer("weights"))
        elif name == HINDSIGHT:
            yield from self._hindsight()
        else:
            agents = [clairvoyant(name, log.settings) for log in self.logs]
            yield from self._on_all_weeks(agents, "clairvoyant")

    def _on_all_weeks(self, agents: Sequence[AnyAgent], kind: Kind) -> Iterator[PlannedRuns]:
        """Yield the runs of each log's agent on all its weeks that are tested."""
        for log, (agent, numbers) in enumerate(zip(agents, self.tested, strict=True)):
            yield PlannedRuns(log, agent.name, kind, agent, numbers)

    def _of_trainer(self, trainer: Trainer) -> Iterator[PlannedRuns]:
        """Yield the runs of what is trained on each fold, on the weeks that the fold holds out."""
        kind = self._kind_of()
        cut = [time_blocks(log.numbers, self.n_folds) for log in self.logs]
        for folds in zip(*cut, strict=True):
            numbers = [
                tuple(number for number in fold.test if number in tested)
                for fold, tested in zip(folds, self.tested, strict=True)
            ]
            if not any(numbers):
                continue
            handed = [
                log.set_apart(fold.training, held_out=fold.test)
                for log, fold in zip(self.logs, folds, strict=True)
            ]
            for seed in range(self.n_seeds):
                given = trainer, handed, seed
                task = TrainingTask(trainer.name, partial(_train, *given), partial(_key, *given))
                for log, fold in enumerate(folds):
                    yield PlannedRuns(log, trainer.name, kind, task, numbers[log], fold, seed)

    def _hindsight(self) -> Iterator[PlannedRuns]:
        """Yield the run of each week's best weights on that week."""
        for log, (episodes, tested) in enumerate(zip(self.logs, self.tested, strict=True)):
            for number in tested:
                given = episodes, number, self.seed
                search = partial(best_of_week, *given)
                task = TrainingTask(HINDSIGHT, search, partial(_key_of_search, *given))
                yield PlannedRuns(log, HINDSIGHT, "hindsight", task, (number,))

    def _kind_of(self, agent: AnyAgent | None = None) -> Kind:
        """Return whether a scheduler could be the agent, or would have to know run times.

        An agent that states no estimates uses those of the logs' scenarios.
        """
        stated = agent.estimates if isinstance(agent, RuleAgent) else None
        used = [log.settings.predictor for log in self.logs]
        if stated is not None:
            used = [as_predictor(stated)]
        knows = any(
            predictor is not None and predictor.kind in KNOWS_RUN_TIMES for predictor in used
        )
        return "clairvoyant" if knows else "achievable"

    def training_row(self, runs: PlannedRuns, trained: TrainedAgent) -> Row:
        """Return the row of `CrossValidationResult.trainings` of a fold of one log."""
        assert runs.fold is not None
        return {
            "agent": runs.name,
            "scenario": self.logs[runs.log].scenario.name,
            "fold": runs.fold.number,
            "seed": runs.seed,
            "test_weeks": number_ranges(runs.fold.test),
            "training_weeks": number_ranges(runs.fold.training),
            "left_out_weeks": number_ranges(runs.fold.left_out),
            "seconds": round(trained.seconds, 3),
            "ended_at_start": trained.agent.ended_at_start,
            "steps": trained.agent.steps if isinstance(trained.agent, NamedAgent) else None,
            "made": trained.agent.policy.name if isinstance(trained.agent, RuleAgent) else "",
        }


def _train(trainer: Trainer, handed: Sequence[Episodes], seed: int) -> object:
    """Train a copy of a trainer, which cannot remember another fold's training weeks."""
    return copy.deepcopy(trainer).train(list(handed), seed)


def _key(trainer: Trainer, handed: Sequence[Episodes], seed: int) -> str:
    """Digest what decides a training."""
    weeks = [digest_of_weeks(log) for log in handed]
    return digest(handed[0].workload(0), weeks, trainer, seed)


def _key_of_search(episodes: Episodes, number: int, seed: int) -> str:
    """Digest what decides the search of a week's best weights."""
    week = episodes.workload(episodes.position(number))
    what = (HINDSIGHT, HINDSIGHT_EVALUATIONS, number, seed)
    return digest(week, what, episodes.settings)
