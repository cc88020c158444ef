"""Judging agents that learn: trained on some weeks, run on weeks they have never seen."""

from __future__ import annotations

import base64
import copy
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import agent_names, load_agent
from hpcgym.agent.trained import open_weeks, refuse_training_weeks
from hpcgym.agent.training import TRAINERS, Trainer, load_trainer
from hpcgym.core.policy import policy_names
from hpcgym.errors import CardError, EvaluationError, unknown_name
from hpcgym.evaluation.folds import FOLDS, Fold, time_blocks
from hpcgym.evaluation.journal import Journal, Row, digest
from hpcgym.evaluation.judgement import Judgement, averaged
from hpcgym.evaluation.protocol import (
    DEFAULT_SCENARIO,
    REFERENCE,
    Runner,
    check_numbers,
    progress_bar,
    run_tasks,
)
from hpcgym.evaluation.references import (
    HINDSIGHT,
    HINDSIGHT_EVALUATIONS,
    HINDSIGHT_ON_COPIES,
    REFERENCES,
    RULES,
    TRAINED,
    Kind,
    best_of_week,
    clairvoyant,
)
from hpcgym.evaluation.shelf_results import JITTER_S, REPLICAS
from hpcgym.evaluation.table import Evaluation
from hpcgym.scenario.build import Episodes
from hpcgym.scenario.select import number_ranges

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.scenario.spec import Scenario

SEEDS = 5
"""Training seeds of the evaluation protocol."""

AnyAgent: TypeAlias = RuleAgent | NamedAgent


def load_contestant(name: str) -> AnyAgent | Trainer:
    """Find what is to be judged by its name.

    Args:
        name: Name of a trainer, or whatever `hpcgym.agent.shelf.load_agent` takes.

    Returns:
        The trainer, or the agent.

    Raises:
        CardError: There is neither, or a card is not understood.
        PolicyError: Weights that are not understood.

    Source:
        House rule: an error names the nearest valid name.

    Example:
        >>> load_contestant("weights").name, load_contestant("saf").name
        ('w*train', 'SAF')
    """
    if name.casefold() in TRAINERS:
        return load_trainer(name)
    known = dict.fromkeys((*TRAINERS, *agent_names(), *policy_names()))
    is_name = "=" not in name and not name.endswith(".toml")
    if is_name and name.casefold() not in map(str.casefold, known):
        raise CardError(unknown_name("trainer or agent", name, known))
    return load_agent(name)


def judge(
    agent: str | AnyAgent | Trainer,
    scenario: str | Path | Scenario | Episodes = DEFAULT_SCENARIO,
    *,
    folds: int = FOLDS,
    seeds: int = SEEDS,
    jitter: int = JITTER_S,
    replicas: int = REPLICAS,
    seed: int = 0,
    processes: int = 1,
    references: Sequence[str] = REFERENCES,
    resume: str | Path | None = None,
    progress: bool = True,
) -> Judgement:
    """Judge an agent on weeks it has not been trained on, among lines of reference.

    A trainer is handed the training weeks of each fold, which carry their jobs and nothing else of
    the log, once per training seed; what it makes is run on the weeks held out. An agent that was
    trained before is run on the weeks its card leaves open, any other on all weeks, and so are the
    lines of reference. Weeks are run as they are and on jittered copies, the same for all.

    Args:
        agent: A trainer or an agent, or the name of one.
        scenario: A name, a path, a scenario, or its episodes; weeks of a log.
        folds: Contiguous blocks of weeks, each held out once.
        seeds: Trainings of each fold, with seeds 0, 1 and so on; a week's figure is their mean.
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies, of the bootstrap and of the search for w*.
        processes: How many processes to spread the runs over, not the trainings; the result is the
            same.
        references: Which lines of reference to add, of `hpcgym.evaluation.references.REFERENCES`.
        resume: File in which finished trainings and runs are kept, and from which a judgement that
            was cut off goes on. It is unpickled: take no one else's.
        progress: Whether to show progress bars, on a terminal.

    Returns:
        Every run, and its summary, table and CSV.

    Raises:
        EvaluationError: A number out of range, too few weeks for so many folds, an unknown line of
            reference, or a trainer whose work is no agent or cannot be kept.
        CardError: No such trainer or agent, or its card leaves no week open.
        ScenarioError: No such scenario, or its episodes are not weeks.

    Source:
        Specification, section 10, "Evaluation protocol".

    Example:
        >>> weeks = Episodes("synthetic-256-weeks").select("1-4")
        >>> found = judge("SPF", weeks, jitter=0, replicas=0, references=["SAF"], progress=False)
        >>> found.summary()[["agent", "kind", "n_weeks"]]
          agent        kind  n_weeks
        0   SPF  achievable        4
        1   SAF  achievable        4
    """
    check_numbers(jitter, replicas, seed, processes)
    if seeds < 1:
        raise EvaluationError(f"at least 1 training seed is needed, got {seeds}")
    for name in references:
        if name not in REFERENCES:
            raise EvaluationError(unknown_name("line of reference", name, REFERENCES))
    chosen = load_contestant(agent) if isinstance(agent, str) else agent
    every = scenario if isinstance(scenario, Episodes) else Episodes(scenario)
    tested = every.numbers
    if isinstance(chosen, (RuleAgent, NamedAgent)) and chosen.training is not None:
        tested = open_weeks(chosen.training, every)
        if not tested:
            refuse_training_weeks(chosen, every, every.numbers)
    journal = None if resume is None else Journal(resume)
    workshop = _Workshop(every, tested, folds, seeds, seed, journal, progress)
    plays = list(workshop.plays(chosen, references))
    runs = _run(plays, workshop, jitter, replicas, processes)
    import pandas as pd

    return Judgement(
        evaluation=Evaluation(
            frame=averaged(runs),
            scenario=every.scenario.name,
            reference=REFERENCE,
            jitter=jitter,
            replicas=replicas,
            seed=seed,
        ),
        runs=runs,
        trainings=pd.DataFrame(workshop.trainings, columns=list(_TRAINING)),
        kinds=_kinds_of(plays),
    )


_TRAINING = (
    *("agent", "fold", "seed", "test_weeks", "training_weeks", "left_out_weeks"),
    *("seconds", "made"),
)
"""Columns of `Judgement.trainings`."""


@dataclass(frozen=True)
class _Play:
    """An agent with the weeks it is run on, and what its runs are called."""

    name: str
    kind: Kind
    agent: AnyAgent
    numbers: tuple[int, ...]
    fold: int | None = None
    seed: int | None = None
    made_of: str = ""


@dataclass
class _Workshop:
    """Makes what a table needs: trains, searches, and keeps what it has made."""

    episodes: Episodes
    tested: tuple[int, ...]
    n_folds: int
    seeds: int
    seed: int
    journal: Journal | None
    progress: bool
    trainings: list[Row] = field(default_factory=list)

    def plays(self, chosen: AnyAgent | Trainer, references: Sequence[str]) -> Iterator[_Play]:
        """Yield all that is run: what is judged first, then the lines of reference."""
        if isinstance(chosen, (RuleAgent, NamedAgent)):
            yield self._everywhere(chosen, _kind_of(chosen))
        else:
            yield from self._trained(chosen)
        for name in dict.fromkeys((*references, REFERENCE)):
            if name == chosen.name:
                continue
            if name in RULES:
                yield self._everywhere(load_agent(name), "achievable")
            elif name == TRAINED:
                yield from self._trained(load_trainer("weights"))
            elif name == HINDSIGHT:
                yield from self._hindsight()
            else:
                agent = clairvoyant(name, self.episodes.settings)
                yield self._everywhere(agent, "clairvoyant")

    def _everywhere(self, agent: AnyAgent, kind: Kind) -> _Play:
        """Run an agent on all weeks that are tested."""
        return _Play(agent.name, kind, agent, self.tested)

    def _trained(self, trainer: Trainer) -> Iterator[_Play]:
        """Train on what each fold leaves, and run on what it holds out."""
        folds = time_blocks(self.episodes.numbers, self.n_folds)
        folds = tuple(fold for fold in folds if set(fold.test) & set(self.tested))
        with progress_bar(
            len(folds) * self.seeds, f"{trainer.name}: training", shown=self.progress
        ) as advance:
            for fold in folds:
                handed = self.episodes.set_apart(fold.training, held_out=fold.test)
                jobs = [digest(handed.workload(week)) for week in range(len(handed))]
                for seed in range(self.seeds):
                    made_of = digest(
                        handed.workload(0),
                        jobs,
                        handed.settings,
                        repr(trainer),
                        seed,
                        fold.training,
                    )
                    agent = self._kept(made_of, trainer, fold, seed, handed)
                    advance()
                    numbers = tuple(n for n in fold.test if n in self.tested)
                    yield _Play(
                        trainer.name, "achievable", agent, numbers, fold.number, seed, made_of
                    )

    def _kept(
        self, made_of: str, trainer: Trainer, fold: Fold, seed: int, handed: Episodes
    ) -> AnyAgent:
        """Train, or take what was trained before; note what came out.

        A copy of the trainer works, so that it cannot remember another fold's training weeks.
        """
        fresh = copy.deepcopy(trainer)
        agent, seconds = self._once(made_of, trainer.name, lambda: fresh.train([handed], seed))
        self.trainings.append(
            {
                "agent": trainer.name,
                "fold": fold.number,
                "seed": seed,
                "test_weeks": number_ranges(fold.test),
                "training_weeks": number_ranges(fold.training),
                "left_out_weeks": number_ranges(fold.left_out),
                "seconds": round(seconds, 3),
                "made": agent.policy.name if isinstance(agent, RuleAgent) else "",
            }
        )
        return agent

    def _hindsight(self) -> Iterator[_Play]:
        """Search the best weights of each week, and run them on it."""
        with progress_bar(
            len(self.tested), f"{HINDSIGHT}: searching", shown=self.progress
        ) as advance:
            for number in self.tested:
                week = self.episodes.workload(self.episodes.position(number))
                what = (HINDSIGHT, HINDSIGHT_EVALUATIONS, number, self.seed)
                made_of = digest(week, what, self.episodes.settings)

                def search(number: int = number) -> AnyAgent:
                    return best_of_week(self.episodes, number, self.seed)

                agent, _ = self._once(made_of, HINDSIGHT, search)
                advance()
                yield _Play(HINDSIGHT, "hindsight", agent, (number,), made_of=made_of)

    def _once(self, key: str, name: str, make: Callable[[], AnyAgent]) -> tuple[AnyAgent, float]:
        """Make an agent and keep it, or take the one kept; and say in how many seconds."""
        kept = None if self.journal is None else self.journal.find(key)
        if kept is not None:
            return pickle.loads(base64.b64decode(kept[0]["agent"])), kept[0]["seconds"]
        begun = time.perf_counter()
        agent = make()
        seconds = time.perf_counter() - begun
        if not isinstance(agent, (RuleAgent, NamedAgent)):
            raise EvaluationError(f"{name} made {agent!r}, which is no RuleAgent or NamedAgent")
        if self.journal is not None:
            try:
                text = base64.b64encode(pickle.dumps(agent)).decode()
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise EvaluationError(
                    f"{name} made an agent that cannot be kept in {self.journal.path} ({error}); "
                    "judge it without a file to resume from"
                ) from None
            self.journal.keep(key, [{"agent": text, "seconds": seconds}])
        return agent, seconds


def _kind_of(agent: AnyAgent) -> Kind:
    """Tell whether a scheduler could be this agent."""
    exact = isinstance(agent, RuleAgent) and agent.estimates == "exact"
    return "clairvoyant" if exact else "achievable"


def _kinds_of(plays: Sequence[_Play]) -> dict[str, Kind]:
    """Return the kind of everything that stands in the table."""
    kinds = {play.name: play.kind for play in plays}
    return kinds | ({HINDSIGHT_ON_COPIES: kinds[HINDSIGHT]} if HINDSIGHT in kinds else {})


def _run(
    plays: Sequence[_Play], workshop: _Workshop, jitter: int, replicas: int, processes: int
) -> pd.DataFrame:
    """Run everything, and return one row per run, by week and in the order of the plays."""
    import pandas as pd

    episodes = workshop.episodes
    runner = Runner(
        [play.agent for play in plays],
        episodes,
        jitter,
        replicas,
        workshop.seed,
        made_of=[play.made_of for play in plays],
    )
    tasks = [
        (episodes.position(number), position)
        for number in workshop.tested
        for position, play in enumerate(plays)
        if number in play.numbers
    ]
    done = run_tasks(
        runner,
        tasks,
        journal=workshop.journal,
        processes=processes,
        progress=workshop.progress,
    )
    rows = []
    for (_, position), some in zip(tasks, done, strict=True):
        play = plays[position]
        for row in some:
            copied = play.name == HINDSIGHT and row["replica"] > 0
            name = HINDSIGHT_ON_COPIES if copied else play.name
            rows.append({**row, "agent": name, "fold": play.fold, "seed": play.seed})
    frame = pd.DataFrame(rows).astype({"fold": "Int64", "seed": "Int64"})
    return frame[["agent", "week", "label", "fold", "seed", *_figures(frame)]]


def _figures(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a frame of runs from the replica on."""
    return [name for name in frame if name not in ("agent", "week", "label", "fold", "seed")]
