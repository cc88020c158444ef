"""The tables of a scenario: trace, machine, episode and scheduler, with units in the names.

The field names are the keys of a scenario file. A scenario written in Python passes the same checks
as one read from a file: each class raises a `ScenarioError` for a value of another type or out of
range, and for keys that contradict each other.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from hpcgym.base.errors import LARGEST_WHOLE, PolicyError, ScenarioError, unknown_name
from hpcgym.base.ranges import parse_numbers
from hpcgym.core.policy import as_policy
from hpcgym.core.predictor import as_predictor
from hpcgym.core.setting_list import SETTINGS, Setting
from hpcgym.core.settings import SchedulerSettings
from hpcgym.machine import Machine
from hpcgym.trace.sessions import LONGEST_S

MissingRequest = Literal["run", "max", "tsafrir", "drop"]
GeneratorName = Literal["sessions"]
OnBadLine = Literal["raise", "drop"]
OnWideJob = Literal["raise", "drop"]

NODE_KEYS = ("nodes", "requested_memory", "placement")
"""Fields of the tables that have a meaning on machines of nodes only."""


def _check_type(table: str, key: str, value: object, hint: Any) -> None:
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return
    (wanted,) = (option for option in options if option is not type(None))
    if get_origin(wanted) is Literal:
        if value not in get_args(wanted):
            raise ScenarioError(f"[{table}] {unknown_name(key, value, get_args(wanted))}")
    elif type(value) is not wanted:
        words = {int: "a whole number", str: "a text", bool: "true or false", Machine: "a Machine"}
        words[float] = "a number with a decimal point"
        raise ScenarioError(
            f"[{table}] {key} must be {words[wanted]}, got {type(value).__name__} {value!r}"
        )


class _Table:
    """One table of a scenario file; `TABLE` is its name there, `LEAST` the least of its numbers."""

    TABLE: ClassVar[str]
    LEAST: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for key in (declared.name for declared in fields(self)):  # type: ignore[arg-type]
            _check_type(self.TABLE, key, getattr(self, key), hints[key])
        for key, lowest in self.LEAST.items():
            value = getattr(self, key)
            if value is not None and value > LARGEST_WHOLE:
                raise self.contradiction(f"{key} is {value}; allowed: up to {LARGEST_WHOLE}")
            if value is not None and value < lowest:
                raise self.contradiction(f"{key} is {value}; at least {lowest} is needed")
        self.check()

    def check(self) -> None:
        """Refuse values that contradict each other."""

    def contradiction(self, text: str) -> ScenarioError:
        """Return the error of keys in this table that contradict each other, or are refused."""
        return ScenarioError(f"[{self.TABLE}] {text}")


@dataclass(frozen=True)
class TraceSpec(_Table):
    """Which log, and how it is cleaned; or which generator makes logs.

    Source: Specification, section 1, "Reading SWF".
    """

    TABLE: ClassVar[str] = "trace"
    LEAST: ClassVar = {
        "tsafrir_seed": 0,
        "max_request_s": 1,
        "minimum_run_time_s": 0,
        "seed": 0,
        "population_weeks": 1,
    }

    # Replacement of a request that the log lacks: "run", "max", "tsafrir", or "drop" to leave the
    # job out.
    missing_request: MissingRequest
    # Name in the catalogue or on the shelf; None where `file` or `generator` is given.
    name: str | None = None
    file: str | None = None  # path of a log, in a scenario file relative to that file, or None
    # Seed of the synthetic requests of "tsafrir", for no other replacement.
    tsafrir_seed: int | None = None
    max_request_s: int | None = None  # longer requests are cut to this, s; None = no cut
    minimum_run_time_s: int = 0  # jobs that ran shorter are dropped, s
    on_bad_line: OnBadLine = "raise"  # "raise" for malformed lines, or "drop" to leave them out
    # "raise" for jobs wider than the machine, or "drop" to leave them out. So are jobs that a
    # machine of nodes can never run.
    on_wide_job: OnWideJob = "raise"
    # Whether a record of an SWF log asks for the memory of its field 10, on a machine of nodes.
    requested_memory: bool = False
    timezone: str | None = None  # zone of accounting's local times; None = this machine's
    # "sessions", logs of users who work in sessions (`hpcgym.trace.populations`), or None. It needs
    # the next three keys, which belong to no other log.
    generator: GeneratorName | None = None
    seed: int | None = None
    load: float | None = None  # usual share of the machine that a week's jobs need, 0.1 to 2
    # Weeks of each log. Week n is week (n - 1) mod `population_weeks` + 1 of log (n - 1) //
    # `population_weeks`, and each log has other users.
    population_weeks: int | None = None
    # Share of the programs but tests that take half of the machine or more, beside those of the
    # model; None = 0.
    wide: float | None = None
    # Mean jobs of a session, 1 to 100; None = 4. More are a burst.
    session_jobs: float | None = None
    # First digits of the sha256 of the logs that the parts of `[episode]` need, by number; None =
    # not on record.
    digests: str | None = None

    def check(self) -> None:
        """Refuse values that contradict each other."""
        sources = {key: getattr(self, key) for key in ("name", "file", "generator")}
        given = [key for key, value in sources.items() if value is not None]
        if len(given) != 1:
            came = " and ".join(given) or "none"
            raise self.contradiction(f"needs one of name, file and generator, got {came}")
        self._check_generator()
        synthetic = self.missing_request == "tsafrir"
        if synthetic and self.tsafrir_seed is None:
            raise self.contradiction(
                'missing_request = "tsafrir" makes synthetic requests and needs tsafrir_seed'
            )
        if not synthetic and self.tsafrir_seed is not None:
            raise self.contradiction(
                f'tsafrir_seed contradicts missing_request = "{self.missing_request}"; '
                'it belongs to "tsafrir"'
            )

    def _check_generator(self) -> None:
        """Refuse keys of generators beside a log, and a generator without them or out of range."""
        stated = {key for key in NOT_GENERATED if getattr(self, key) is not None}
        if self.generator is None:
            if stated:
                raise self.contradiction(f"{', '.join(sorted(stated))}: only with a generator")
            return
        if missing := {"seed", "load", "population_weeks"} - stated:
            raise self.contradiction(f"generator needs {', '.join(sorted(missing))}")
        if not 0.1 <= float(self.load or 0) <= 2:
            raise self.contradiction(f"load is {self.load}; allowed: 0.1 to 2")
        if not 0 <= float(self.wide or 0) <= 1:
            raise self.contradiction(f"wide is {self.wide}; allowed: 0 to 1")
        if self.session_jobs is not None and not 1 <= float(self.session_jobs) <= 100:
            raise self.contradiction(f"session_jobs is {self.session_jobs}; allowed: 1 to 100")
        if self.missing_request != "drop" or self.minimum_run_time_s or self.max_request_s:
            raise self.contradiction(
                'generated jobs are not cleaned: state missing_request = "drop", and neither '
                "max_request_s nor minimum_run_time_s"
            )

    @property
    def log(self) -> str:
        """The name or the path of the log, or what generates it."""
        if self.generator is not None:
            parameters = f"seed={self.seed},load={self.load},weeks={self.population_weeks}"
            mix = {"wide": self.wide, "session_jobs": self.session_jobs}
            more = "".join(f",{key}={value}" for key, value in mix.items() if value is not None)
            return f"{self.generator}:{parameters}{more}"
        return str(self.name if self.file is None else self.file)


NOT_GENERATED: dict[str, Any] = dict.fromkeys(
    ("generator", "seed", "load", "population_weeks", "wide", "session_jobs", "digests")
)
"""Keys of generators, as they are beside a log."""


@dataclass(frozen=True)
class MachineSpec(_Table):
    """The machine."""

    TABLE: ClassVar[str] = "machine"
    LEAST: ClassVar = {"processors": 1, "largest_request_s": 1}

    processors: int  # its size; the cpus of all nodes where it has nodes
    # Largest request of the whole cleaned log, s. It scales observations and weights, so every
    # episode of a scenario has the same scale.
    largest_request_s: int
    # Its nodes and partitions, or None where processors are counted. A file states them in place of
    # `processors`, as tables `[[machine.nodes]]` and `[[machine.partitions]]`, or in a file of its
    # own: `file = "FILE.toml"`, relative to the scenario's.
    nodes: Machine | None = None

    def check(self) -> None:
        """Refuse values that contradict each other."""
        if self.nodes is not None and self.nodes.cpus != self.processors:
            raise self.contradiction(
                f"processors is {self.processors}, yet the nodes have {self.nodes.cpus} cpus"
            )


@dataclass(frozen=True)
class WholeEpisode(_Table):
    """The whole log is one episode."""

    TABLE: ClassVar[str] = "episode"

    kind: Literal["whole"] = "whole"


NUMBERS = range(1, 100_001)  # numbers that weeks and windows may have


@dataclass(frozen=True, kw_only=True)
class PartedEpisodes(_Table):
    """Episodes of fixed numbers, which a file may deal out to train, to choose and to judge on."""

    # Numbers of the episodes to train on; None = by shares, as `scenario.splits` says.
    train: str | None = None
    validation: str | None = None  # numbers of the episodes to choose on
    test: str | None = None  # numbers of the episodes to judge on; all three are stated, or none

    def check(self) -> None:
        """Refuse one part without the others, and an episode in two parts."""
        if len(self.parts) not in (0, 3):
            raise self.contradiction("needs all of train, validation and test, or none")
        numbers = [number for part in self.parts.values() for number in part]
        if len({*numbers}) < len(numbers):
            raise self.contradiction("an episode stands in two of train, validation and test")

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Numbers of the episodes of each part; none where shares make the parts."""
        return {
            part: parse_numbers(stated, NUMBERS, what=f"[episode] {part}")
            for part in ("train", "validation", "test")
            if (stated := getattr(self, part)) is not None
        }


@dataclass(frozen=True)
class WeekEpisodes(PartedEpisodes):
    """Each week of the log is an episode on an empty machine, numbered from 1.

    Source: Specification, section 6, "Weeks", and section 10, "Episodes".
    """

    TABLE: ClassVar[str] = "episode"
    LEAST: ClassVar = {"offset_s": 0}

    kind: Literal["week"] = "week"
    # "whole" takes every job submitted in the week; "rr9212" leaves out jobs that the log shows
    # ending in another week.
    rule: Literal["whole", "rr9212"] = "whole"
    offset_s: int = 0  # start of week 0, s after the log's first submission
    weeks: str | None = None  # numbers such as "1-100" or "1,3,5-7"; None = all
    warm_history: bool = True  # whether each user's earlier jobs in the log are known at the start


@dataclass(frozen=True)
class WindowEpisodes(PartedEpisodes):
    """Each run of `n_jobs` consecutive jobs is an episode, without overlap, numbered from 1.

    The last, shorter run is left out.

    Source: Zhang et al. 2020 (RLScheduler), there with overlap.
    """

    TABLE: ClassVar[str] = "episode"
    LEAST: ClassVar = {"n_jobs": 1}

    n_jobs: int
    kind: Literal["window"] = "window"
    warm_history: bool = True  # as of `WeekEpisodes`


@dataclass(frozen=True)
class RandomWindowEpisodes(_Table):
    """Runs of `n_jobs` consecutive jobs that begin at a random job.

    Source: Zhang et al. 2020 (RLScheduler), 10 windows from one seed.
    """

    TABLE: ClassVar[str] = "episode"
    LEAST: ClassVar = {"n_jobs": 1, "episodes": 1, "seed": 0}

    n_jobs: int
    episodes: int  # number of fixed windows for evaluation, numbered from 1; a draw makes a new one
    seed: int  # seed of the fixed ones
    kind: Literal["random_window"] = "random_window"
    warm_history: bool = True  # as of `WeekEpisodes`


@dataclass(frozen=True)
class ResampledEpisodes(_Table):
    """Generated logs of each user's real weeks in another order, without warm history.

    Source: Carastan-Santos et al. 2019, Algorithm 1; specification, section 3, "Resampler".
    """

    TABLE: ClassVar[str] = "episode"
    LEAST: ClassVar = {"episodes": 1, "seed": 0}

    episodes: int  # number of fixed logs for evaluation, numbered from 1; a draw makes a new one
    seed: int  # seed of the fixed ones
    kind: Literal["resampled"] = "resampled"
    # "permute" permutes each user's weeks, "draw" draws them with replacement.
    mode: Literal["permute", "draw"] = "permute"
    part: Literal["whole", "week"] = "whole"  # "whole" log, or one "week" of it, drawn uniformly


EpisodeSpec: TypeAlias = (
    WholeEpisode | WeekEpisodes | WindowEpisodes | RandomWindowEpisodes | ResampledEpisodes
)

EPISODE_KINDS: dict[str, type[EpisodeSpec]] = {
    "week": WeekEpisodes,
    "window": WindowEpisodes,
    "random_window": RandomWindowEpisodes,
    "resampled": ResampledEpisodes,
    "whole": WholeEpisode,
}
"""Every kind of episode, by its name in a file."""


def _type_of(setting: Setting) -> Any:
    """Return the type of a setting in a scenario's file."""
    if isinstance(setting.default, bool):
        return bool
    plain = int if setting.unit else str
    return plain | None if setting.default is None else plain


_SchedulerKeys: Any = make_dataclass(
    "_SchedulerKeys",
    [
        (setting.key, _type_of(setting), setting.in_scenarios or setting.default)
        for setting in SETTINGS.values()
    ],
    bases=(_Table,),
    frozen=True,
)


class SchedulerSpec(_SchedulerKeys):  # type: ignore[misc]  # which keys, the settings say
    """The scheduler that agents and baselines share.

    Its keys are the fields of `hpcgym.SchedulerSettings`, all as texts, numbers and truths; the
    threshold is `threshold_s`. The policy, by default "SAF", is the base order: of the jobs that an
    agent does not see, and of the default baseline.

    Source: Specification, sections 1 and 13.
    """

    TABLE: ClassVar[str] = "scheduler"
    LEAST: ClassVar = {setting.key: 0 for setting in SETTINGS.values() if setting.unit}

    def check(self) -> None:
        """Refuse values that contradict each other."""
        for key in ("policy", "backfill_order"):
            value = getattr(self, key)
            if value is not None:
                try:
                    as_policy(value)
                except PolicyError as error:
                    raise ScenarioError(f"[scheduler] {key}: {error}") from None
        try:
            _ = self.settings
        except PolicyError as error:
            raise self.contradiction(str(error)) from None

    @property
    def settings(self) -> SchedulerSettings:
        """Return the settings of the simulator, whose names carry no unit."""
        return SchedulerSettings(
            **{name: getattr(self, setting.key) for name, setting in SETTINGS.items()}
        )


@dataclass(frozen=True)
class Scenario:
    """A named setting: everything that defines the episodes of an experiment.

    Attributes:
        name: Its name in tables and errors; the file's stem.
        description: One or two sentences for a person choosing among scenarios.

    Example:
        >>> Scenario(
        ...     name="mine",
        ...     description="My log, whole.",
        ...     trace=TraceSpec(name="tiny", missing_request="drop"),
        ...     machine=MachineSpec(processors=4, largest_request_s=100),
        ...     episode=WholeEpisode(),
        ... ).scheduler.policy
        'SAF'
    """

    name: str
    description: str
    trace: TraceSpec
    machine: MachineSpec
    episode: EpisodeSpec
    scheduler: SchedulerSpec = field(default_factory=SchedulerSpec)

    def __post_init__(self) -> None:
        missing = self.trace.missing_request
        estimates = as_predictor(self.scheduler.estimates).kind
        if missing == "run" and estimates != "exact":
            raise ScenarioError(
                '[trace] missing_request = "run" shows true run times to the agent; it needs '
                f'[scheduler] estimates = "exact", got "{estimates}". '
                "Allowed otherwise: max, tsafrir, drop"
            )
        if missing == "tsafrir" and estimates == "exact":
            raise ScenarioError(
                '[scheduler] estimates = "exact" contradicts [trace] missing_request = "tsafrir": '
                "synthetic requests that nobody plans with"
            )
        if self.machine.nodes is None:
            if self.trace.requested_memory:
                raise self.trace.contradiction("requested_memory needs nodes: [[machine.nodes]]")
            if self.scheduler.placement != "lowest":
                raise self.scheduler.contradiction("placement needs nodes: [[machine.nodes]]")
        if self.trace.generator is not None:
            self._check_generated()
        cap = self.trace.max_request_s
        if cap is not None and self.machine.largest_request_s > cap:
            raise ScenarioError(
                f"[machine] largest_request_s = {self.machine.largest_request_s} contradicts "
                f"[trace] max_request_s = {cap}, which cuts every request to {cap} s"
            )

    def _check_generated(self) -> None:
        """Refuse what generated weeks cannot be: on nodes, of another kind, without parts."""
        cut = self.episode
        if not isinstance(cut, WeekEpisodes) or not cut.parts:
            raise ScenarioError(
                '[trace] generator makes weeks: [episode] needs kind = "week" with train, '
                "validation and test"
            )
        if (cut.rule, cut.offset_s, cut.weeks) != ("whole", 0, None):
            raise cut.contradiction("generated weeks take no rule, offset_s or weeks")
        if self.machine.nodes is not None:
            raise self.machine.contradiction("generated jobs count processors; leave out the nodes")
        if self.machine.largest_request_s < LONGEST_S:
            raise self.machine.contradiction(
                f"largest_request_s is {self.machine.largest_request_s}, yet generated requests "
                f"reach {LONGEST_S}"
            )
