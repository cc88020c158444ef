"""Comparisons of agents on the weeks of logs: as they are, or trained on weeks apart from those.

`cross_validate` plans who is trained on what and who runs where; `evaluate` is the same without
trainings. One path runs what is planned and makes the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.blind import controls_of
from hpcgym.agent.contest import UNKNOWN, contest_of
from hpcgym.agent.own import is_own, own_agent_or_trainer
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import agent_names, known_agents, load_agent
from hpcgym.agent.trainers import TRAINERS, load_trainer
from hpcgym.agent.training_weeks import open_weeks, refuse_training_weeks
from hpcgym.base.errors import (
    CardError,
    EvaluationError,
    refuse_unless_a,
    refuse_unless_whole,
    unknown_name,
)
from hpcgym.core.policy import policy_names
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import Scenario
from hpcgym.evaluation.baselines import BASELINES, HINDSIGHT, HINDSIGHT_ON_COPIES, RULES
from hpcgym.evaluation.cv_plan import AgentOrTrainer, CrossValidationPlan, PlannedRuns
from hpcgym.evaluation.cv_result import CrossValidationResult, mean_over_seeds
from hpcgym.evaluation.cv_training import TrainedAgent, TrainingTask, train_all
from hpcgym.evaluation.execution import Execution
from hpcgym.evaluation.executors import AnyExecutor, executor_of
from hpcgym.evaluation.folds import FOLDS, refuse_one_log_twice, time_blocks
from hpcgym.evaluation.gap import gaps_of
from hpcgym.evaluation.priced import with_priced
from hpcgym.evaluation.results import Evaluation
from hpcgym.evaluation.runner import (
    RATIO_BASELINE,
    WAITS,
    AnyAgent,
    Copies,
    Runner,
    loaded,
    misfits,
    refuse_namesake,
)
from hpcgym.evaluation.waits import waits_of
from hpcgym.trace.resample import JITTER_S

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SCENARIO = "synthetic-256-weeks"  # scenario of a comparison that names none; bundled

SEEDS, REPLICAS = 5, 10
"""Training seeds, and jittered copies of each week, of the evaluation protocol."""

Weeks: TypeAlias = str | Path | Scenario | Episodes  # what names the weeks of a log


def evaluate(
    agents: Sequence[str | AnyAgent],
    scenario: Weeks = DEFAULT_SCENARIO,
    *,
    weeks: str | None = None,
    jitter: int = 0,
    replicas: int = 0,
    seed: int = 0,
    baseline: str = RATIO_BASELINE,
    controls: bool = False,
    executor: AnyExecutor = None,
    resume: str | Path | None = None,
    progress: bool = True,
) -> Evaluation:
    """Run agents on the weeks of a scenario, and compare each with SAF in pairs.

    Each week is run as it is and on `replicas` copies whose submit times are jittered, the same
    copies for every agent. The scenario's threshold, backfilling and estimates hold for all, except
    what an agent's card states. Rules run in the simulator, all other agents through the
    environment, which would give a rule the same schedule. SAF is added where it is not named.
    Agents that count processors are left out where the machine has nodes; the result names them.

    Args:
        agents: Names on the shelf, names of registered policies, weights such as "e=1,q=0.5", or
            agents; no name twice.
        scenario: A name, a path, a scenario, or its episodes.
        weeks: Numbers of the weeks to run, such as "65-100"; default all.
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies.
        baseline: Agent that ratios are taken to; added where it is not among the agents, as SAF is.
        controls: Whether to set beside each agent that takes actions two that look at nothing: its
            mean action, and its actions shuffled; see `hpcgym.agent.blind`.
        executor: Whose workers share the weeks; the result is the same. A text such as "local:8",
            "ray" or "slurm:jobs=100", any `concurrent.futures.Executor`, or None for this process.
            With local ones a script must guard its entry with `if __name__ == "__main__"`.
        resume: File that keeps finished weeks, and from which an interrupted run goes on; see
            `hpcgym.evaluation.store`.
        progress: Whether to show progress: a bar on a terminal, elsewhere a line a minute.

    Raises:
        EvaluationError: No such executor, no agent, one name twice, another agent under the name
            SAF, copies without jitter or jitter without copies, a negative seed, or a `resume` that
            is no store. Or none of the agents can schedule the scenario's machine.
        CardError: No such agent, or a week is one it was trained on or adjacent to one.
        ScenarioError: No such scenario or week.

    Source: Specification, section 10, "Evaluation protocol", steps 2 to 4; input shaking: Tsafrir,
        Ouaknine, Feitelson 2007.

    Example:
        >>> evaluate(["FCFS"], "tiny", progress=False).frame[["agent", "n_jobs"]]
          agent  n_jobs
        0  FCFS       8
        1   SAF       8
    """
    copies = Copies(jitter, replicas, seed)
    every = scenario if isinstance(scenario, Episodes) else Episodes(scenario)
    episodes = every if weeks is None else every.select(weeks)
    given = _with_baseline(_with_baseline(agents), baseline)
    left_out = misfits(given, episodes)
    named = [agent for agent in given if agent.name not in left_out]
    if len(left_out) == len(agents):
        reasons = "; ".join(left_out.values())
        raise EvaluationError(f"no agent can schedule {episodes.scenario.name}: {reasons}")
    for agent in named:
        refuse_training_weeks(agent, every, episodes.numbers)
        if agent.name == RATIO_BASELINE:
            refuse_namesake(agent, episodes.settings)
    if controls:
        blind = [controls_of(agent, episodes, seed=seed) for agent in named]
        named = loaded([*named, *(control for pair in blind for control in pair)], load_agent)
    planned = [PlannedRuns(0, agent.name, "achievable", agent, episodes.numbers) for agent in named]
    with executor_of(executor) as workers:
        execution = Execution(workers, resume, progress)
        evaluation = _run(planned, {}, episodes, copies, execution, left_out)[1]
    return evaluation.against(baseline)


LISTED_BY = ("hpcgym agents list", "hpcgym cross-validate --help")
"""What prints the names of agents, and those of trainers."""


def load_agent_or_trainer(name: str) -> AgentOrTrainer:
    """Return a trainer by its name, file or module, or an agent as `load_agent` does.

    Raises:
        CardError: There is neither, or a card is not understood.
        PolicyError: Weights that are not understood.
    """
    if is_own(name):
        return own_agent_or_trainer(name)
    if name.casefold() in TRAINERS:
        return load_trainer(name)
    is_name = "=" not in name and not name.endswith(".toml")
    names = (*agent_names(), *policy_names())
    if is_name and name.casefold() not in map(str.casefold, names):
        known = (*TRAINERS, *known_agents())
        if name.casefold() not in map(str.casefold, known):
            raise CardError(unknown_name("trainer or agent", name, known, *LISTED_BY))
    return load_agent(name)


def cross_validate(
    agent: str | AgentOrTrainer | Sequence[str | AgentOrTrainer],
    scenario: Weeks | Sequence[Weeks] = DEFAULT_SCENARIO,
    *,
    folds: int = FOLDS,
    blocks: Sequence[int] | None = None,
    seeds: int = SEEDS,
    jitter: int = JITTER_S,
    replicas: int = REPLICAS,
    seed: int = 0,
    executor: AnyExecutor = None,
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
        seed: Seed of the copies and of the search for w*.
        executor: As of `evaluate`, for trainings, searches and runs. The result is the same, except
            for trainings that a clock ends, such as those of `ppo`. With one, a training has one
            thread, and trainers must be picklable.
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
    copies = Copies(jitter, replicas, seed)
    refuse_unless_whole("seeds", seeds, 1, error=EvaluationError)
    for name in baselines:
        if name not in BASELINES:
            raise EvaluationError(unknown_name("baseline", name, BASELINES))
    several = cast(Any, agent if isinstance(agent, (list, tuple)) else [agent])
    entrants, logs = loaded(several, load_agent_or_trainer), _logs(scenario)
    if not entrants:
        raise EvaluationError("give at least one trainer or agent to cross-validate")
    tested = [_open_to_all(entrants, log) for log in logs]
    if blocks is not None:
        pairs = zip(tested, logs, strict=True)
        tested = [_within_blocks(numbers, log, folds, blocks) for numbers, log in pairs]
    plan = CrossValidationPlan(logs, tested, folds, seeds, seed)
    rules = [load_agent(name) for name in baselines if name in RULES]
    left_out = {name: why for log in logs for name, why in misfits(rules, log).items()}
    kept = [name for name in baselines if name not in left_out]
    planned = list(plan.planned_runs(entrants, kept))
    tasks = [runs.agent for runs in planned if isinstance(runs.agent, TrainingTask)]
    frames, evaluations = [], []
    with executor_of(executor) as workers:
        execution = Execution(workers, resume, progress)
        trained = train_all(list({task.key: task for task in tasks}.values()), execution)
        for position, log in enumerate(logs):
            on_log = [runs for runs in planned if runs.log == position]
            frame, evaluation = _run(on_log, trained, log, copies, execution, left_out)
            frame.insert(0, "scenario", log.scenario.name)
            frames.append(frame)
            evaluations.append(evaluation)
    of_folds = [
        plan.training_row(runs, runs.made(trained)) for runs in planned if runs.fold is not None
    ]
    import pandas as pd

    trainings = pd.DataFrame(of_folds, columns=list(_TRAINING_COLUMNS)).astype({"steps": "Int64"})
    kinds = _with_copies({runs.name: runs.kind for runs in planned})
    runs = pd.concat(frames, ignore_index=True)
    return CrossValidationResult(tuple(evaluations), runs, trainings, kinds)


def _with_baseline(
    agents: Sequence[str | AnyAgent], baseline: str = RATIO_BASELINE
) -> list[AnyAgent]:
    refuse_unless_a(Iterable, "agents", agents, "a list of at least one agent", EvaluationError)
    if isinstance(agents, (str, bytes)) or not len(agents):
        raise EvaluationError(f"give a list of at least one agent, got {agents!r}")
    for agent in agents:
        if not isinstance(agent, str) and not hasattr(agent, "name"):
            raise EvaluationError(
                f"an agent must be a name or have one (NamedAgent), got {agent!r}"
            )
    named: list[AnyAgent] = loaded(agents, load_agent)
    has_baseline = any(agent.name.casefold() == baseline.casefold() for agent in named)
    return named if has_baseline else [*named, load_agent(baseline)]


def _logs(scenario: Weeks | Sequence[Weeks]) -> list[Episodes]:
    """Return the weeks of each log; one log twice would train on weeks that are held out."""
    several = cast(Any, scenario if isinstance(scenario, (list, tuple)) else [scenario])
    logs = [weeks if isinstance(weeks, Episodes) else Episodes(weeks) for weeks in several]
    if not logs:
        raise EvaluationError("give at least one scenario to cross-validate on")
    refuse_one_log_twice([log.scenario for log in logs])
    return logs


def _open_to_all(agents: Sequence[AgentOrTrainer], log: Episodes) -> tuple[int, ...]:
    """Return the weeks that no agent was trained on before, and that are next to no such week."""
    numbers = log.numbers
    for agent in agents:
        if not isinstance(agent, (RuleAgent, NamedAgent)) or agent.training is None:
            continue
        allowed = open_weeks(agent.training, log)
        if not allowed:
            refuse_training_weeks(agent, log, log.numbers)
        numbers = tuple(number for number in numbers if number in allowed)
    if not numbers:
        names = ", ".join(agent.name for agent in agents)
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
    within = tuple(number for number in numbers if number in chosen)
    if not within:
        raise EvaluationError(f"no week of {log.scenario.name} in blocks {list(blocks)} is open")
    return within


_TRAINING_COLUMNS = (
    *("agent", "scenario", "fold", "seed", "test_weeks", "training_weeks", "left_out_weeks"),
    *("seconds", "ended_at_start", "steps", "made"),
)
"""Columns of `CrossValidationResult.trainings`."""


def _run(
    planned: Sequence[PlannedRuns],
    trained: Mapping[str, TrainedAgent],
    log: Episodes,
    copies: Copies,
    execution: Execution,
    left_out: Mapping[str, str],
) -> tuple[pd.DataFrame, Evaluation]:
    """Run what is planned on one log, week by week; return one row per run, and the evaluation."""
    import pandas as pd

    with_weeks = [runs for runs in planned if runs.numbers]
    runner = Runner([runs.made(trained).agent for runs in with_weeks], log, copies)
    tasks = [
        (week, position)
        for week, number in enumerate(log.numbers)
        for position, runs in enumerate(with_weeks)
        if number in runs.numbers
    ]
    shown_as = (log.scenario.name, "runs")
    made = execution.rows(runner.run, tasks, runner.key, named=runner.named, shown_as=shown_as)
    rows = []
    for (_, position), some in zip(tasks, made, strict=True):
        runs = with_weeks[position]
        fold = None if runs.fold is None else runs.fold.number
        for row in some:
            copied = runs.kind == "hindsight" and row["replica"] > 0
            name = HINDSIGHT_ON_COPIES if copied else runs.name
            rows.append({**row, "agent": name, "fold": fold, "seed": runs.seed})
    frame = pd.DataFrame(rows).astype({"fold": "Int64", "seed": "Int64"})
    first = ["agent", "week", "label", "fold", "seed"]
    frame = frame[[*first, *(name for name in frame if name not in first)]]
    waits = waits_of(frame, frame.pop(WAITS))
    averaged = with_priced(mean_over_seeds(frame), log.settings, RATIO_BASELINE)
    agents = {runs.name: runs.made(trained).agent for runs in with_weeks}
    return frame, Evaluation(
        waits=waits,
        frame=averaged,
        scenario=log.scenario.name,
        threshold=log.settings.threshold,
        contests=_contests(planned, trained, log),
        baseline=RATIO_BASELINE,
        left_out=left_out,
        gaps=gaps_of(averaged, agents, log),
        **vars(copies),
    )


def _contests(
    planned: Sequence[PlannedRuns], trained: Mapping[str, TrainedAgent], log: Episodes
) -> dict[str, str]:
    """Return the contest of every agent on a log; unknown where what is trained differs in it."""
    contests: dict[str, str] = {}
    for runs in planned:
        contest = contest_of(runs.made(trained).agent, log.settings)
        contests[runs.name] = contest if contests.get(runs.name, contest) == contest else UNKNOWN
    return _with_copies(contests)


def _with_copies(by_agent: dict[str, Any]) -> dict[str, Any]:
    """Add the agent that replays on copies what w* found, if w* is there."""
    return by_agent | ({HINDSIGHT_ON_COPIES: by_agent[HINDSIGHT]} if HINDSIGHT in by_agent else {})
