"""Replays of weeks of a record: does the agent that it holds do what it says?

Weeks are drawn, so that a record is checked in minutes. Of weeks that are altered, 5 % of all are
found with a chance of 95 % by 59 drawn ones. What replay cannot see: that an agent was trained on
the weeks it is judged on, against its card. Weeks that are kept back answer that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from hpcgym.agent.contest import contest_of
from hpcgym.base.errors import EvaluationError, TraceError, refuse_unless_whole
from hpcgym.base.progress import shown, steps
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.runner import AnyAgent, Runner
from hpcgym.evaluation.suite.definition import episodes_of
from hpcgym.evaluation.suite.record import METRICS, Player, weeks_open
from hpcgym.evaluation.suite.record_file import Record, Week

N_DRAWN = 59  # weeks that find 5 % of altered ones with a chance of 95 %


@dataclass(frozen=True)
class Verdict:
    """What replaying found.

    Attributes:
        n_replayed: Weeks replayed.
        n_weeks: Weeks of the logs that are here.
        not_here: Logs of the record that are not on this machine, so that nothing is known of them.
        wrong: What differs, a sentence each.
        changed: Logs of which the record's suite has other jobs than the newest, so not replayed.
    """

    n_replayed: int
    n_weeks: int
    not_here: tuple[str, ...] = ()
    wrong: tuple[str, ...] = field(default=())
    changed: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether something was replayed, and nothing differs."""
        return self.n_replayed > 0 and not self.wrong


def verify_record(
    record: Record,
    *,
    weeks: int = N_DRAWN,
    seed: int = 0,
    code: str | None = None,
    progress: bool = True,
) -> Verdict:
    """Replay drawn weeks of a record on the logs that are here.

    Args:
        record: The record.
        weeks: Weeks to draw, at most all.
        seed: Seed of the draw; take one that the record's author could not know.
        code: File of an agent that is code, as `path/to/file.py:Name`; a sandbox runs it.
        progress: Whether to show progress.

    Raises:
        EvaluationError: The agent cannot be made, or no log of the record can be replayed.
        CardError: The code fails, or there is no sandbox.
    """
    refuse_unless_whole("weeks", weeks, 1, error=EvaluationError)
    refuse_unless_whole("a seed", seed, error=EvaluationError)
    agent = record.agent() if code is None else record.of_file(code)
    here: dict[str, Episodes] = {}
    not_here = []
    changed = tuple(name for name in record.weeks if name in record.suite.changed)
    for name in record.weeks:
        if name not in changed:
            try:
                here[name] = weeks_open(agent, episodes_of(record.suite.log(name), record.suite))
            except TraceError:
                not_here.append(name)
    if not here:
        why = [f"not here: {', '.join(not_here)}"] if not_here else []
        why += [record.suite.note] if changed else []
        raise EvaluationError(f"no log of the record can be replayed: {'; '.join(why)}")
    wrong = list(chain.from_iterable(_wrong_on(record, agent, *item) for item in here.items()))
    player = Player([Runner([agent], episodes, record.suite.copies) for episodes in here.values()])
    names, tasks = list(here), player.tasks
    generator = np.random.default_rng(seed)
    drawn = np.sort(generator.permutation(len(tasks))[: min(weeks, len(tasks))])
    with shown(progress), steps(len(drawn), record.name, "weeks") as work:
        for position in drawn:
            log, week = tasks[position]
            said = record.weeks[names[log]].get(here[names[log]].numbers[week])
            if said is not None:
                wrong += _difference(player, (log, week), said)
            work.advance()
    return Verdict(len(drawn), len(tasks), tuple(not_here), tuple(wrong), changed)


def _wrong_on(record: Record, agent: AnyAgent, log: str, episodes: Episodes) -> Iterator[str]:
    """Say what a record claims about a log that needs no replay to be wrong."""
    missing = sorted(set(episodes.numbers) - set(record.weeks[log]))
    added = sorted(set(record.weeks[log]) - set(episodes.numbers))
    if missing:
        yield f"{log}: weeks {', '.join(map(str, missing))} are missing"
    if added:
        yield f"{log}: weeks {', '.join(map(str, added))} are not its to play"
    contest = contest_of(agent, episodes.settings)
    if contest != record.contests[log]:
        yield f"{log}: the contest is {contest}, not {record.contests[log]}"


def _difference(player: Player, task: tuple[int, int], said: Week) -> Iterator[str]:
    """Replay a week, and say what differs from what a record says of it."""
    (row,) = player.run(task)
    replayed = Week(row["starts"], {name: tuple(row[name]) for name in METRICS})
    if replayed == said:
        return
    where = f"{player.runners[task[0]].episodes.scenario.name}, week {row['week']}"
    if replayed.starts == said.starts:
        names = [name for name in METRICS if replayed.metrics[name] != said.metrics[name]]
        yield f"{where}: the starts are those replayed, {', '.join(names)} not"
    elif player.run(task)[0]["starts"] != replayed.starts:
        yield f"{where}: the agent starts jobs otherwise each time; it must be deterministic"
    else:
        yield f"{where}: other starts than those replayed"
