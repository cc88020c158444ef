"""What evaluations cost: agents by log, workers side by side, and the one process that leads them.

Whoever leads hands tasks out, keeps what comes back and works keys out, alone. So its time for a
task says how many workers it can keep busy. Tasks that do nothing measure that.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import EvaluationError, TraceError
from hpcgym.core.threads import cores, keep_to_threads
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.chunks import Work, results
from hpcgym.evaluation.executors import executor_of
from hpcgym.evaluation.runner import AnyAgent, Copies, Runner, misfits
from hpcgym.evaluation.store import Row, Store, versions
from hpcgym.evaluation.suite.definition import load_suite
from hpcgym.evaluation.suite.record import Player
from hpcgym.evaluation.workers import LocalExecutor

Cells = dict[str, str]
"""A row of a table in Markdown, by column."""

N_NOTHING = 2_000
"""Tasks that do nothing."""

N_KEPT = 300
"""Results that are kept, one after the other."""

N_LARGE = 64
"""Results of a MB each, so that reading a store takes a while."""

LONG_CHUNK_S = 20.0
"""Ray's chunks take so long; Slurm's are longer."""

SPEED_LOGS = ("sdsc-sp2-weeks", "kth-sp2-weeks", "synthetic-busy-weeks")
"""On the first of these that is here, workers share the work of rules."""


@dataclass(frozen=True)
class LogCost:
    """What agents cost on one log of the suite.

    Attributes:
        name: The scenario.
        n_weeks: Its weeks.
        seconds: CPU time of each agent on all weeks and copies, s; of those that can schedule it.
        longest: Longest week of any of them, copies included, s.
        read: CPU time to read, clean and cut the log, s.
        keys: CPU time of the keys of all weeks, for the first agent and for the next, s.
        n_bytes: What is kept of a week and its copies: by `evaluate`, by `suite run`.
    """

    name: str
    n_weeks: int
    seconds: Mapping[str, float]
    longest: float
    read: float
    keys: tuple[float, float]
    n_bytes: tuple[int, int]


@dataclass(frozen=True)
class Rates:
    """What the leading process needs for a task, s.

    Attributes:
        alone: To hand out a task as a chunk of its own, and take its result.
        in_chunks: The same in chunks of 20 s.
        keep: To keep a result on disk, by itself.
        keep_together: The same for one of 300 that are kept together.
        find: To find that nothing is kept yet.
        open_mb: How much of a store is read a second as it is opened, MB.
        start: Until a first worker has its first result.
    """

    alone: float
    in_chunks: float
    keep: float
    keep_together: float
    find: float
    open_mb: float
    start: float

    @property
    def local(self) -> float:
        """Of each task, where so many processes of this machine work that some end together."""
        return self.alone + self.keep_together + self.find

    @property
    def remote(self) -> float:
        """Of each task, where chunks are long."""
        return self.in_chunks + self.keep_together + self.find


def machine() -> Cells:
    """Say what everything ran on."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
        model = text.partition("model name")[2].partition(":")[2].partition("\n")[0].strip()
    except OSError:
        model = platform.processor()
    return {
        "processor": model or platform.machine(),
        "cores": str(cores()),
        "load before": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        **{name: text.partition(" (")[0] for name, text in versions().items()},
    }


def logs_here(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the logs that are on this machine, and those that are not."""
    here: list[str] = []
    missing = []
    for name in names:
        try:
            Episodes(name)
            here.append(name)
        except TraceError:
            missing.append(name)
    return here, missing


def cpu_s(call: Callable[..., Any], *given: Any) -> float:
    """Return the CPU time of a call, s."""
    begun = time.process_time()
    call(*given)
    return time.process_time() - begun


def reading_s(name: str) -> float:
    """Return the CPU time in which a new process reads a log, s."""
    program = (
        "import sys, time\nfrom hpcgym.env.scenario.episodes import Episodes\n"
        "begun = time.process_time()\nEpisodes(sys.argv[1])\nprint(time.process_time() - begun)"
    )
    command = [sys.executable, "-c", program, name]
    folders = os.pathsep.join(filter(None, sys.path))
    environment = dict(os.environ, PYTHONPATH=folders)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def log_cost(name: str, agents: Sequence[AnyAgent], n_weeks: int) -> LogCost:
    """Measure agents on some weeks of a log, evenly drawn, and scale to all."""
    keep_to_threads(1)
    episodes, copies = Episodes(name), load_suite().copies
    drawn = np.unique(np.linspace(0, len(episodes) - 1, n_weeks).round().astype(int)).tolist()
    seconds, longest = {}, 0.0
    refused = misfits(agents, episodes)
    fitting = [agent for agent in agents if agent.name not in refused]
    if not fitting:
        raise EvaluationError(f"{name}: {'; '.join(refused.values())}")
    for agent in fitting:
        player = Player([Runner([agent], episodes, copies)])
        Player([Runner([agent], episodes, Copies())]).run((0, drawn[0]))  # compiles
        taken = [cpu_s(player.run, (0, week)) for week in drawn]
        longest = max(longest, *taken)
        seconds[agent.name] = sum(taken) * len(episodes) / len(drawn)
    first, second = (Runner([fitting[0]], episodes, copies) for _ in range(2))
    keys = [cpu_s(keys_of, runner) for runner in (first, second)]
    kept = first.run((drawn[0], 0)), Player([first]).run((0, drawn[0]))
    evaluated, recorded = (len(json.dumps(rows)) for rows in kept)
    return LogCost(
        *(name, len(episodes), seconds, longest, reading_s(name)),
        *((keys[0], keys[1]), (evaluated, recorded)),
    )


def keys_of(runner: Runner) -> list[str]:
    """Return the keys of all weeks of the first agent."""
    return [runner.key((week, 0)) for week in range(len(runner.episodes))]


def nothing(task: int) -> list[Row]:
    """Return what a week and its copies come to, without playing them."""
    return [{"week": task, "starts": "0" * 64, "values": [1.234567890123] * 66}]


def key_of(task: int) -> str:
    """Return a key that is worked out at once."""
    return f"{task:064d}"


class _LongChunks(LocalExecutor):
    """Processes of this machine that get chunks as Ray's workers do."""

    chunk_s = LONG_CHUNK_S


def rates() -> Rates:
    """Measure what the leading process does for each task, beside one worker."""
    work, tasks = Work(nothing, key_of, str), range(N_NOTHING)
    handed, start = [], 0.0
    for kind in (LocalExecutor, _LongChunks):
        begun = time.perf_counter()
        with kind(1) as executor:
            list(results(executor, work, [0], [key_of(0)]))
            start = start or time.perf_counter() - begun
            keys = [key_of(task) for task in tasks]
            spent = cpu_s(list, results(executor, work, tasks, keys))
        handed.append(spent / N_NOTHING)
    with TemporaryDirectory(dir=os.getcwd(), prefix=".hpcgym-costs-") as folder:
        store = Store(Path(folder, "kept.sqlite"))
        begun = time.perf_counter()
        for task in range(N_KEPT):
            store.keep(key_of(task), nothing(task))
        keep = (time.perf_counter() - begun) / N_KEPT
        begun = time.perf_counter()
        for task in range(N_KEPT):
            store.find(key_of(-1 - task))
        find = (time.perf_counter() - begun) / N_KEPT
        begun = time.perf_counter()
        store.keep_all({key_of(task): nothing(task) for task in range(N_KEPT, 2 * N_KEPT)})
        together = (time.perf_counter() - begun) / N_KEPT
        store.keep_all({f"large {row}": [{"text": "x" * 2**20}] for row in range(N_LARGE)})
        n_mb = store.path.stat().st_size / 2**20
        begun = time.perf_counter()
        Store(store.path)
        open_mb = n_mb / (time.perf_counter() - begun)
    return Rates(handed[0], handed[1], keep, together, find, open_mb, start)


@dataclass(frozen=True)
class Shared:
    """One evaluation of rules on a log, by some workers.

    Attributes:
        workers: How many; 0 = the leading process did it all.
        n_agents: Rules, SAF among them.
        n_tasks: Weeks of these, with their copies.
        longest: CPU time of the longest task, s.
        start: Until the workers had read the log and had their kernels, s.
        wall: How long the evaluation took then, s.
        led: CPU time of the leading process meanwhile, s.
        serial: CPU time of the same evaluation once all runs are kept, s.
        load: How many processes wanted to run in its last minute, those of others too.
    """

    workers: int
    n_agents: int
    n_tasks: int
    longest: float
    start: float
    wall: float
    led: float
    serial: float
    load: float = 0.0


def many_rules(n_rules: int) -> list[AnyAgent]:
    """Return rules that differ by a weight, since no agent may stand twice."""
    return [load_agent(f"e=1,q={1 + rule / 1_000}") for rule in range(n_rules)]


def speed_up(name: str, workers: Sequence[int], seconds: float) -> Iterator[Shared]:
    """Evaluate rules on a log, without workers in about so many seconds, then with each number."""
    episodes, copies = Episodes(name), load_suite().copies
    runner = Runner(many_rules(1), episodes, copies)
    runner.run((0, 0))  # compiles
    taken = [cpu_s(runner.run, (week, 0)) for week in range(len(episodes))]
    rules = many_rules(max(2, round(seconds / sum(taken))))
    for number in (0, *workers):
        with (
            TemporaryDirectory(dir=os.getcwd(), prefix=".hpcgym-costs-") as folder,
            executor_of(f"local:{number}" if number else None) as executor,
        ):
            how: dict[str, Any] = {"executor": executor, "progress": False}
            begun = time.perf_counter()
            if number:  # each gets several tasks, so that all of them start
                evaluate(many_rules(2 + 4 * number // len(episodes)), episodes, **how)
            start = time.perf_counter() - begun
            how |= {"resume": Path(folder, "kept.sqlite"), **vars(copies)}
            begun, spent = time.perf_counter(), time.process_time()
            evaluate(rules, episodes, **how).summary()
            wall, led = time.perf_counter() - begun, time.process_time() - spent
            spent = time.process_time()
            evaluate(rules, episodes, **how).summary()
            serial = time.process_time() - spent
            counts = len(rules) + 1, (len(rules) + 1) * len(episodes)
            load = os.getloadavg()[0]
            yield Shared(number, *counts, max(taken), start, wall, led, serial, load)


def speed_rows(alone: Shared, shared: Sequence[Shared]) -> Iterator[Cells]:
    """Yield a row of each number of workers, beside what bounds it."""
    for run in shared:
        played = (alone.wall - alone.serial) / min(run.workers, cores())
        bound = alone.serial + max(played, run.longest)
        yield {
            "workers": str(run.workers),
            "start, s": f"{run.start:.1f}",
            "then, s": f"{run.wall:.1f}",
            "speed-up": f"{alone.wall / run.wall:.2f}",
            "at most": f"{alone.wall / bound:.2f}",
            "leading process, CPU s": f"{run.led:.1f}",
            "of it at the end, s": f"{run.serial:.1f}",
            "longest task, s": f"{run.longest:.3f}",
            "load": f"{run.load:.1f}",
        }


def agents_of(costs: Sequence[LogCost]) -> dict[str, list[LogCost]]:
    """Return the logs that each agent was measured on."""
    names = dict.fromkeys(name for cost in costs for name in cost.seconds)
    return {name: [cost for cost in costs if name in cost.seconds] for name in names}


def cost_rows(costs: Sequence[LogCost]) -> Iterator[Cells]:
    """Yield a row of each log."""
    for cost in costs:
        yield {
            "log": cost.name,
            "weeks": str(cost.n_weeks),
            **{
                f"{agent}, s": f"{cost.seconds[agent]:.2f}" if agent in cost.seconds else ""
                for agent in agents_of(costs)
            },
            "longest week, s": f"{cost.longest:.3f}",
            "reading, s": f"{cost.read:.2f}",
            "keys, ms": f"{1e3 * cost.keys[0]:.1f}, {1e3 * cost.keys[1]:.1f}",
            "kept of a week, kB": "{:.1f}, {:.1f}".format(*(n / 1e3 for n in cost.n_bytes)),
        }


def rate_rows(measured: Rates, alone: Shared) -> Iterator[Cells]:
    """Yield a row of each thing that the leading process does."""
    for what, seconds in {
        "hand a task out, take its result": measured.alone,
        "the same in chunks of 20 s": measured.in_chunks,
        "look whether a result is kept": measured.find,
        "keep a result on disk": measured.keep,
        "the same, of 300 together": measured.keep_together,
    }.items():
        yield {"what": what, "ms": f"{1e3 * seconds:.3f}"}
    for what, seconds in {
        "the first worker starts, and gives its first result": measured.start,
        "a store is read when it is opened, each GB": 1e3 / measured.open_mb,
        "rows, intervals and table of `evaluate`, each agent": alone.serial / alone.n_agents,
    }.items():
        yield {"what": what, "ms": f"{1e3 * seconds:.0f}"}


@dataclass(frozen=True)
class Campaign:
    """Agents on logs, each week with its copies.

    Attributes:
        n_agents: How many agents.
        n_logs: How many logs, each as those measured are on average.
        cores: Numbers of cores that may share it.
    """

    n_agents: int
    n_logs: int
    cores: Sequence[int]


def estimate_rows(costs: Sequence[LogCost], measured: Rates, campaign: Campaign) -> Iterator[Cells]:
    """Yield each term of what a campaign would take, for each agent as if all were like it."""
    n_runs = campaign.n_agents * campaign.n_logs
    n_weeks = mean(cost.n_weeks for cost in costs)
    reading = campaign.n_logs * mean(cost.read for cost in costs)
    keys = n_runs * mean(cost.keys[1] for cost in costs)
    n_kb = [mean(cost.n_bytes[which] / 1e3 for cost in costs) for which in (0, 1)]
    for agent, played in agents_of(costs).items():
        playing = n_runs * mean(cost.seconds[agent] for cost in played)
        leading = keys + n_runs * n_weeks * measured.remote
        row = {
            "all agents like": agent,
            "tasks": f"{n_runs * n_weeks:,.0f}",
            "playing, core-hours": f"{playing / 3600:,.0f}",
            "keys, core-hours": f"{keys / 3600:,.1f}",
            "leading process, hours": f"{leading / 3600:.1f}",
            "kept, GB": f"{n_runs * n_weeks * n_kb[0] / 1e6:.1f}, "
            f"{n_runs * n_weeks * n_kb[1] / 1e6:.1f}",
        }
        for n_cores in campaign.cores:
            worked = (playing + keys) / n_cores + reading
            longest = max(cost.longest for cost in costs)
            hours = max(worked + longest, leading) / 3600
            least = "leading process" if leading > worked else "workers"
            row[f"{n_cores:,} cores, hours"] = f"{hours:.1f} ({least})"
        yield row


def limit_rows(costs: Sequence[LogCost], measured: Rates, run: Shared) -> Iterator[Cells]:
    """Yield how many workers each way of handing out keeps busy, by agent.

    Of an evaluation it is what was measured of `run`, whose results are large.
    """
    n_weeks = sum(cost.n_weeks for cost in costs)
    of_keys = sum(cost.keys[1] for cost in costs) / n_weeks
    for how, leading in {
        "`suite run`, local: chunks of one task": measured.local + of_keys,
        "`suite run`, Ray and Slurm: chunks of 20 s and more": measured.remote + of_keys,
        "`evaluate`, local, as it ran above": (run.led - run.serial) / run.n_tasks,
    }.items():
        row = {"command and workers": how, "leading process, ms a task": f"{1e3 * leading:.2f}"}
        for agent, played in agents_of(costs).items():
            n_tasks = sum(cost.n_weeks for cost in played)
            task = sum(cost.seconds[agent] for cost in played) / n_tasks
            row[agent] = f"{task / leading:,.0f}"
        yield row


def mean(values: Iterator[float]) -> float:
    """Return the mean of some numbers."""
    return float(np.mean(list(values)))
