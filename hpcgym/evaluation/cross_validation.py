"""Cross-validation: agents are trained on some weeks, and run on weeks they have never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.contest import UNKNOWN, contest_of
from hpcgym.agent.own import is_own, own_agent_or_trainer
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import agent_names, known_agents, load_agent
from hpcgym.agent.trainers import TRAINERS, load_trainer
from hpcgym.agent.training_weeks import open_weeks, refuse_training_weeks
from hpcgym.core.policy import policy_names
from hpcgym.errors import CardError, EvaluationError, refuse_unless_whole, unknown_name
from hpcgym.evaluation import runner
from hpcgym.evaluation.baselines import BASELINES, HINDSIGHT, HINDSIGHT_ON_COPIES, RULES
from hpcgym.evaluation.card_results import REPLICAS
from hpcgym.evaluation.cv_plan import AgentOrTrainer, CrossValidationPlan, PlannedRuns
from hpcgym.evaluation.cv_result import CrossValidationResult, mean_over_seeds
from hpcgym.evaluation.cv_training import TrainedAgent, TrainingTask, train_all
from hpcgym.evaluation.folds import FOLDS, refuse_one_log_twice, time_blocks
from hpcgym.evaluation.results import Evaluation
from hpcgym.evaluation.store import Row, Store
from hpcgym.evaluation.waits import waits_of
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.spec import Scenario
from hpcgym.trace.resample import JITTER_S

if TYPE_CHECKING:
    import pandas as pd

SEEDS = 5
"""Training seeds of the evaluation protocol."""

Weeks: TypeAlias = str | Path | Scenario | Episodes
"""What names the weeks of a log."""


def load_agent_or_trainer(name: str) -> AgentOrTrainer:
    """Return a trainer by its name, file or module, or an agent as `load_agent` does.

    Raises:
        CardError: There is neither, or a card is not understood.
        PolicyError: Weights that are not understood.

    Example:
        >>> load_agent_or_trainer("weights").name, load_agent_or_trainer("saf").name
        ('w*train', 'SAF')
    """
    if is_own(name):
        return own_agent_or_trainer(name)
    if name.casefold() in TRAINERS:
        return load_trainer(name)
    is_name = "=" not in name and not name.endswith(".toml")
    own = (*agent_names(), *policy_names())
    if is_name and name.casefold() not in map(str.casefold, own):
        known = (*TRAINERS, *known_agents())
        if name.casefold() not in map(str.casefold, known):
            raise CardError(unknown_name("trainer or agent", name, known))
    return load_agent(name)


def cross_validate(
    agent: str | AgentOrTrainer | Sequence[str | AgentOrTrainer],
    scenario: Weeks | Sequence[Weeks] = runner.DEFAULT_SCENARIO,
    *,
    folds: int = FOLDS,
    blocks: Sequence[int] | None = None,
    seeds: int = SEEDS,
    jitter: int = JITTER_S,
    replicas: int = REPLICAS,
    seed: int = 0,
    processes: int = 1,
    baselines: Sequence[str] = BASELINES,
    resume: str | Path | None = None,
    progress: bool = True,
) -> CrossValidationResult:
    """Run agents on weeks they have not been trained on, and compare them with baselines.

    A trainer gets the training weeks of each fold, once per training seed, and nothing else of the
    log. The agent it trains runs on the weeks held out. Over several logs a fold holds out a block
    of each, and one agent is trained on the rest of all.

    An agent that was trained before runs on the weeks its card leaves open, any other on all weeks.
    Of several agents, all run on the weeks that are open to each, and so do the baselines. Weeks
    are run as they are and on jittered copies, the same for all.

    Args:
        agent: A trainer or an agent, or the name of one; or several, no name twice.
        scenario: Weeks of a log; or several, no log twice. Trainers get them in this order.
        folds: Contiguous blocks of each log's weeks, each held out once.
        blocks: Which of them to hold out and run, by number from 1; None = all.
        seeds: Trainings of each fold, with seeds 0, 1 and so on; a week's metric is their mean.
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies, of the bootstrap and of the search for w*.
        processes: How many processes share trainings, searches and runs. The result is the same,
            except for trainings that a clock ends, such as those of `ppo`. With more than one, a
            training has one thread, trainers must be picklable, and a script must guard its entry
            with `if __name__ == "__main__"`.
        baselines: Which of `hpcgym.evaluation.baselines.BASELINES` to add. Those that count
            processors are left out where a machine has nodes; the evaluations name them.
        resume: File that keeps finished trainings and runs, and from which a cross-validation that
            was interrupted goes on. It is unpickled: use no one else's.
        progress: Whether to show progress: bars on a terminal, elsewhere a line a minute.

    Raises:
        EvaluationError: A number out of range, too few weeks for so many folds, an unknown
            baseline, no agent, an agent or a log twice, an agent under the name of a baseline that
            it is not, no week open to all agents, or a trainer whose result is no agent, cannot be
            kept or cannot be sent.
        CardError: No such trainer or agent, or its card leaves no week open.
        ScenarioError: No such scenario, or its episodes are not weeks.

    Source: Specification, section 10, "Evaluation protocol".

    Example:
        >>> weeks = Episodes("synthetic-256-weeks").select("1-4")
        >>> plain = {"jitter": 0, "replicas": 0, "progress": False}
        >>> found = cross_validate("SPF", weeks, baselines=["SAF"], **plain)
        >>> found.summary()[["agent", "kind", "n_weeks"]]
          agent        kind  n_weeks
        0   SPF  achievable        4
        1   SAF  achievable        4
    """
    runner.check_numbers(jitter, replicas, seed, processes)
    refuse_unless_whole("seeds", seeds, 1, error=EvaluationError)
    for name in baselines:
        if name not in BASELINES:
            raise EvaluationError(unknown_name("baseline", name, BASELINES))
    entrants, logs = _agents_and_trainers(agent), _logs(scenario)
    tested = [_open_to_all(entrants, log) for log in logs]
    if blocks is not None:
        tested = [
            _within_blocks(numbers, log, folds, blocks)
            for numbers, log in zip(tested, logs, strict=True)
        ]
    store = None if resume is None else Store(resume)
    plan = CrossValidationPlan(logs, tested, folds, seeds, seed)
    rules = [load_agent(name) for name in baselines if name in RULES]
    left_out = {name: why for log in logs for name, why in runner.misfits(rules, log).items()}
    kept = [name for name in baselines if name not in left_out]
    planned = list(plan.planned_runs(entrants, kept))
    tasks_by_key = {
        runs.training_key: runs.agent for runs in planned if isinstance(runs.agent, TrainingTask)
    }
    trained = train_all(
        list(tasks_by_key.values()), store=store, processes=processes, progress=progress
    )
    frames = []
    for log, episodes in enumerate(logs):
        own = [runs for runs in planned if runs.log == log and runs.numbers]
        agents = [runs.agent_of(trained) for runs in own]
        made = runner.Runner(agents, episodes, jitter, replicas, seed)
        tasks = _tasks(own, episodes, tested[log])
        done = runner.run_tasks(made, tasks, store=store, processes=processes, progress=progress)
        frames.append(_frame(own, tasks, done))
    return _result(plan, planned, trained, frames, (jitter, replicas), left_out)


def _agents_and_trainers(
    agent: str | AgentOrTrainer | Sequence[str | AgentOrTrainer],
) -> list[AgentOrTrainer]:
    """Return the agents and trainers that are given or named; no name twice."""
    several = cast(Any, agent if isinstance(agent, (list, tuple)) else [agent])
    chosen = [load_agent_or_trainer(one) if isinstance(one, str) else one for one in several]
    if not chosen:
        raise EvaluationError("give at least one trainer or agent to cross-validate")
    runner.refuse_one_name_twice(chosen)
    return chosen


def _logs(scenario: Weeks | Sequence[Weeks]) -> list[Episodes]:
    """Return the weeks of each log; one log twice would train on weeks that are held out."""
    several = cast(Any, scenario if isinstance(scenario, (list, tuple)) else [scenario])
    logs = [one if isinstance(one, Episodes) else Episodes(one) for one in several]
    if not logs:
        raise EvaluationError("give at least one scenario to cross-validate on")
    refuse_one_log_twice([log.scenario for log in logs])
    return logs


def _open_to_all(agents: Sequence[AgentOrTrainer], log: Episodes) -> tuple[int, ...]:
    """Return the weeks that no agent was trained on before, and that are next to no such week."""
    numbers = log.numbers
    for one in agents:
        if not isinstance(one, (RuleAgent, NamedAgent)) or one.training is None:
            continue
        allowed = open_weeks(one.training, log)
        if not allowed:
            refuse_training_weeks(one, log, log.numbers)
        numbers = tuple(number for number in numbers if number in allowed)
    if not numbers:
        names = ", ".join(one.name for one in agents)
        raise EvaluationError(f"no week of {log.scenario.name} is open to all of {names}")
    return numbers


def _within_blocks(
    numbers: Sequence[int], log: Episodes, folds: int, blocks: Sequence[int]
) -> tuple[int, ...]:
    """Return those weeks that are in some blocks of a log."""
    cut = {fold.number: fold for fold in time_blocks(log.numbers, folds)}
    for number in blocks:
        if number not in cut:
            raise EvaluationError(f"blocks have numbers from 1 to {folds}, got {number}")
    chosen = {week for number in blocks for week in cut[number].test}
    found = tuple(number for number in numbers if number in chosen)
    if not found:
        raise EvaluationError(f"no week of {log.scenario.name} in blocks {list(blocks)} is open")
    return found


_TRAINING_COLUMNS = (
    *("agent", "scenario", "fold", "seed", "test_weeks", "training_weeks", "left_out_weeks"),
    *("seconds", "ended_at_start", "steps", "made"),
)
"""Columns of `CrossValidationResult.trainings`."""


def _result(
    plan: CrossValidationPlan,
    planned: Sequence[PlannedRuns],
    trained: Mapping[str, TrainedAgent],
    frames: Sequence[pd.DataFrame],
    copies: tuple[int, int],
    left_out: Mapping[str, str],
) -> CrossValidationResult:
    """Return the result of all logs; `copies` is their jitter and replicas."""
    import pandas as pd

    trainings = [
        plan.training_row(runs, trained[runs.training_key])
        for runs in planned
        if runs.fold is not None
    ]
    names = [log.scenario.name for log in plan.logs]
    jitter, replicas = copies
    evaluations = [
        Evaluation(
            waits=waits_of(frame, frame.pop(runner.WAITS)),
            frame=mean_over_seeds(frame),
            scenario=log.scenario.name,
            threshold=log.settings.threshold,
            contests=_contests_of([one for one in planned if one.log == place], trained, log),
            baseline=runner.RATIO_BASELINE,
            jitter=jitter,
            replicas=replicas,
            seed=plan.seed,
            left_out=left_out,
        )
        for place, (log, frame) in enumerate(zip(plan.logs, frames, strict=True))
    ]
    for name, frame in zip(names, frames, strict=True):
        frame.insert(0, "scenario", name)
    return CrossValidationResult(
        evaluations=tuple(evaluations),
        runs=pd.concat(frames, ignore_index=True),
        trainings=pd.DataFrame(trainings, columns=list(_TRAINING_COLUMNS)).astype(
            {"steps": "Int64"}
        ),
        kinds=_with_copies({runs.name: runs.kind for runs in planned}),
    )


def _contests_of(
    planned: Sequence[PlannedRuns], trained: Mapping[str, TrainedAgent], log: Episodes
) -> dict[str, str]:
    """Return the contest of every agent on a log; unknown where what is trained differs in it."""
    found: dict[str, str] = {}
    for runs in planned:
        contest = contest_of(runs.agent_of(trained), log.settings)
        found[runs.name] = contest if found.get(runs.name, contest) == contest else UNKNOWN
    return _with_copies(found)


def _with_copies(found: dict[str, Any]) -> dict[str, Any]:
    """Add the agent that replays on copies what w* found, if w* is there."""
    return found | ({HINDSIGHT_ON_COPIES: found[HINDSIGHT]} if HINDSIGHT in found else {})


def _tasks(
    planned: Sequence[PlannedRuns], log: Episodes, tested: Sequence[int]
) -> list[runner.Task]:
    """Return the tasks of one log, week by week, in the order of the planned runs."""
    return [
        (log.position(number), position)
        for number in tested
        for position, runs in enumerate(planned)
        if number in runs.numbers
    ]


def _frame(
    planned: Sequence[PlannedRuns], tasks: Sequence[runner.Task], done: Sequence[Sequence[Row]]
) -> pd.DataFrame:
    """Return one row per run of one log."""
    import pandas as pd

    rows = []
    for (_, position), some in zip(tasks, done, strict=True):
        runs = planned[position]
        fold = None if runs.fold is None else runs.fold.number
        for row in some:
            copied = runs.name == HINDSIGHT and row["replica"] > 0
            name = HINDSIGHT_ON_COPIES if copied else runs.name
            rows.append({**row, "agent": name, "fold": fold, "seed": runs.seed})
    frame = pd.DataFrame(rows).astype({"fold": "Int64", "seed": "Int64"})
    first = ["agent", "week", "label", "fold", "seed"]
    return frame[[*first, *(name for name in frame if name not in first)]]
