"""Judging agents that learn: trained on some weeks, run on weeks they have never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.shelf import agent_names, load_agent
from hpcgym.agent.trainers import TRAINERS, load_trainer
from hpcgym.agent.training_weeks import open_weeks, refuse_training_weeks
from hpcgym.core.policy import policy_names
from hpcgym.errors import CardError, EvaluationError, unknown_name
from hpcgym.evaluation.baselines import BASELINES, HINDSIGHT, HINDSIGHT_ON_COPIES, Kind
from hpcgym.evaluation.card_results import REPLICAS
from hpcgym.evaluation.cv_plan import Contestant, LineUp, Play
from hpcgym.evaluation.cv_result import CrossValidationResult, averaged
from hpcgym.evaluation.cv_training import Made, Making, make_all
from hpcgym.evaluation.folds import FOLDS, refuse_one_log_twice, time_blocks
from hpcgym.evaluation.results import Evaluation
from hpcgym.evaluation.run_cache import Journal, Row
from hpcgym.evaluation.runner import (
    DEFAULT_SCENARIO,
    REFERENCE,
    Runner,
    Task,
    check_numbers,
    run_tasks,
)
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.spec import Scenario
from hpcgym.trace.resample import JITTER_S

if TYPE_CHECKING:
    import pandas as pd

SEEDS = 5
"""Training seeds of the evaluation protocol."""

Weeks: TypeAlias = str | Path | Scenario | Episodes
"""What names the weeks of a log."""


def load_contestant(name: str) -> Contestant:
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


def cross_validate(
    agent: str | Contestant | Sequence[str | Contestant],
    scenario: Weeks | Sequence[Weeks] = DEFAULT_SCENARIO,
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
    """Judge agents on weeks they have not been trained on, among baselines.

    A trainer is handed the training weeks of each fold, which carry their jobs and nothing else of
    the log, once per training seed; what it makes is run on the weeks held out. Over several logs,
    a fold holds out a block of each, and one agent is made of what it leaves of all. An agent that
    was trained before is run on the weeks its card leaves open, any other on all weeks; with
    several, all are run on the weeks that are open to each, and so are the baselines.
    Weeks are run as they are and on jittered copies, the same for all.

    Args:
        agent: A trainer or an agent, or the name of one; or several, no name twice.
        scenario: A name, a path, a scenario, or its episodes; weeks of a log. Or several, no log
            twice; trainers get them in this order.
        folds: Contiguous blocks of each log's weeks, each held out once.
        blocks: Which of them to hold out and run, by number from 1; None = all.
        seeds: Trainings of each fold, with seeds 0, 1 and so on; a week's figure is their mean.
        jitter: Largest shift of a submit time in a copy, s.
        replicas: Jittered copies of each week, besides the original.
        seed: Seed of the copies, of the bootstrap and of the search for w*.
        processes: How many processes to spread trainings, searches and runs over; the result is the
            same but for trainings that the clock ends, as that of `ppo` by its minutes. With more
            than one, each training works in a process of one thread, and trainers must be
            picklable. A script must then guard its entry with `if __name__ == "__main__"`.
        baselines: Which baselines to add, of `hpcgym.evaluation.baselines.BASELINES`.
        resume: File in which finished trainings and runs are kept, and from which a judgement that
            was cut off goes on. It is unpickled: take no one else's.
        progress: Whether to show progress bars, on a terminal.

    Returns:
        Every run, and its summary, table and CSV.

    Raises:
        EvaluationError: A number out of range, too few weeks for so many folds, an unknown line of
            reference, nothing to judge, an agent or a log twice, an agent under the name of a line
            of reference that it is not, no week open to all agents, or a trainer whose work is no
            agent, cannot be kept or cannot be sent.
        CardError: No such trainer or agent, or its card leaves no week open.
        ScenarioError: No such scenario, or its episodes are not weeks.

    Source:
        Specification, section 10, "Evaluation protocol".

    Example:
        >>> weeks = Episodes("synthetic-256-weeks").select("1-4")
        >>> plain = {"jitter": 0, "replicas": 0, "progress": False}
        >>> found = cross_validate("SPF", weeks, baselines=["SAF"], **plain)
        >>> found.summary()[["agent", "kind", "n_weeks"]]
          agent        kind  n_weeks
        0   SPF  achievable        4
        1   SAF  achievable        4
    """
    check_numbers(jitter, replicas, seed, processes)
    if seeds < 1:
        raise EvaluationError(f"at least 1 training seed is needed, got {seeds}")
    for name in baselines:
        if name not in BASELINES:
            raise EvaluationError(unknown_name("baseline", name, BASELINES))
    contestants, logs = _contestants(agent), _logs(scenario)
    tested = [_open_to_all(contestants, log) for log in logs]
    if blocks is not None:
        tested = [
            _within_blocks(numbers, log, folds, blocks)
            for numbers, log in zip(tested, logs, strict=True)
        ]
    journal = None if resume is None else Journal(resume)
    lineup = LineUp(logs, tested, folds, seeds, seed)
    plays = list(lineup.plays(contestants, baselines))
    makings = {play.made_of: play.agent for play in plays if isinstance(play.agent, Making)}
    made = make_all(list(makings.values()), journal=journal, processes=processes, progress=progress)
    frames = []
    for log, episodes in enumerate(logs):
        own = [play for play in plays if play.log == log and play.numbers]
        agents = [play.agent_of(made) for play in own]
        made_of = [play.made_of for play in own]
        runner = Runner(agents, episodes, jitter, replicas, seed, made_of)
        tasks = _tasks(own, runner, tested[log])
        done = run_tasks(runner, tasks, journal=journal, processes=processes, progress=progress)
        frames.append(_frame(own, tasks, done))
    return _result(lineup, plays, made, frames, (jitter, replicas))


def _contestants(agent: str | Contestant | Sequence[str | Contestant]) -> list[Contestant]:
    """Return what is judged, by name or as it came; no name twice."""
    several = cast(Any, agent if isinstance(agent, (list, tuple)) else [agent])
    chosen = [load_contestant(one) if isinstance(one, str) else one for one in several]
    names = [one.name for one in chosen]
    if not names:
        raise EvaluationError("give at least one trainer or agent to cross-validate")
    for name in names:
        if names.count(name) > 1:
            raise EvaluationError(f"two agents are called {name}; each name may stand once")
    return chosen


def _logs(scenario: Weeks | Sequence[Weeks]) -> list[Episodes]:
    """Return the weeks of each log; one log twice would train on weeks that are held out."""
    several = cast(Any, scenario if isinstance(scenario, (list, tuple)) else [scenario])
    logs = [one if isinstance(one, Episodes) else Episodes(one) for one in several]
    if not logs:
        raise EvaluationError("give at least one scenario to cross-validate on")
    refuse_one_log_twice([log.scenario for log in logs])
    return logs


def _open_to_all(contestants: Sequence[Contestant], log: Episodes) -> tuple[int, ...]:
    """Return the weeks that no contestant was trained on before, nor next to."""
    numbers = log.numbers
    for one in contestants:
        if not isinstance(one, (RuleAgent, NamedAgent)) or one.training is None:
            continue
        allowed = open_weeks(one.training, log)
        if not allowed:
            refuse_training_weeks(one, log, log.numbers)
        numbers = tuple(number for number in numbers if number in allowed)
    if not numbers:
        names = ", ".join(one.name for one in contestants)
        raise EvaluationError(f"no week of {log.scenario.name} is open to all of {names}")
    return numbers


def _within_blocks(
    numbers: Sequence[int], log: Episodes, folds: int, blocks: Sequence[int]
) -> tuple[int, ...]:
    """Return those weeks that stand in some blocks of a log."""
    cut = {fold.number: fold for fold in time_blocks(log.numbers, folds)}
    for number in blocks:
        if number not in cut:
            raise EvaluationError(f"blocks have numbers from 1 to {folds}, got {number}")
    chosen = {week for number in blocks for week in cut[number].test}
    found = tuple(number for number in numbers if number in chosen)
    if not found:
        raise EvaluationError(f"no week of {log.scenario.name} in blocks {list(blocks)} is open")
    return found


_TRAINING = (
    *("agent", "scenario", "fold", "seed", "test_weeks", "training_weeks", "left_out_weeks"),
    *("seconds", "steps", "made"),
)
"""Columns of `CrossValidationResult.trainings`."""


def _result(
    lineup: LineUp,
    plays: Sequence[Play],
    made: Mapping[str, Made],
    frames: Sequence[pd.DataFrame],
    copies: tuple[int, int],
) -> CrossValidationResult:
    """Put together what was found."""
    import pandas as pd

    trainings = [
        lineup.training_row(play, made[play.made_of]) for play in plays if play.fold is not None
    ]
    names = [log.scenario.name for log in lineup.logs]
    jitter, replicas = copies
    evaluations = [
        Evaluation(averaged(frame), name, REFERENCE, jitter, replicas, lineup.seed)
        for name, frame in zip(names, frames, strict=True)
    ]
    for name, frame in zip(names, frames, strict=True):
        frame.insert(0, "scenario", name)
    return CrossValidationResult(
        evaluations=tuple(evaluations),
        runs=pd.concat(frames, ignore_index=True),
        trainings=pd.DataFrame(trainings, columns=list(_TRAINING)).astype({"steps": "Int64"}),
        kinds=_kinds_of(plays),
    )


def _kinds_of(plays: Sequence[Play]) -> dict[str, Kind]:
    """Return the kind of everything that stands in the table."""
    kinds = {play.name: play.kind for play in plays}
    return kinds | ({HINDSIGHT_ON_COPIES: kinds[HINDSIGHT]} if HINDSIGHT in kinds else {})


def _tasks(plays: Sequence[Play], runner: Runner, tested: Sequence[int]) -> list[Task]:
    """Return every run on one log, by week and in the order of the plays."""
    return [
        (runner.episodes.position(number), position)
        for number in tested
        for position, play in enumerate(plays)
        if number in play.numbers
    ]


def _frame(
    plays: Sequence[Play], tasks: Sequence[Task], done: Sequence[Sequence[Row]]
) -> pd.DataFrame:
    """Return one row per run."""
    import pandas as pd

    rows = []
    for (_, position), some in zip(tasks, done, strict=True):
        play = plays[position]
        fold = None if play.fold is None else play.fold.number
        for row in some:
            copied = play.name == HINDSIGHT and row["replica"] > 0
            name = HINDSIGHT_ON_COPIES if copied else play.name
            rows.append({**row, "agent": name, "fold": fold, "seed": play.seed})
    frame = pd.DataFrame(rows).astype({"fold": "Int64", "seed": "Int64"})
    first = ["agent", "week", "label", "fold", "seed"]
    return frame[[*first, *(name for name in frame if name not in first)]]
