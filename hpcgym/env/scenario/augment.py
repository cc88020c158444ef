"""Changed episodes for training: shorter, denser, jittered, resampled, generated, filtered."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from hpcgym.base.errors import ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes, settings_but_policy
from hpcgym.env.scenario.slicing import LabelledWorkload
from hpcgym.env.scenario.spec import ResampledEpisodes, WeekEpisodes
from hpcgym.schedule.batch import simulate_many
from hpcgym.trace.lublin import SMALLEST_MACHINE, lublin_workload
from hpcgym.trace.resample import jitter, join_weeks, resample_week, scale_load
from hpcgym.trace.split import WEEK_S, Past
from hpcgym.trace.synthetic import synthetic_workload

Maker: TypeAlias = Callable[[np.random.Generator], Workload]  # makes a random week of jobs

REDRAWS = 20  # attempts to draw an episode that the filter accepts, before the last one is used

KEPT_DRAWS = 128  # draws kept for other environments with the same seed

SAMPLE_JOBS = 20_000
"""Jobs of the workload model whose mean area determines how many make a week's load."""


@dataclass(frozen=True)
class Augmentation:
    """How training episodes are made of a scenario's; the defaults change nothing.

    A draw takes an episode of the scenario, or makes a week. It then cuts a window out, divides
    the gaps between submissions, and shakes them. The filter may refuse it, and then the draw is
    made again.

    Attributes:
        jitter: Every submission is moved by up to this many s to either side.
        load: Least and greatest factor by which jobs arrive faster, drawn log-uniformly.
        window: Shortest and longest stretch of time, s, drawn log-uniformly; None = whole
            episodes. A window starts at a submission, on an empty machine, with what is known of
            users by then. Episodes that are not longer stay whole.
        growing: Whether windows grow from the shortest to the longest with `progress` instead, so
            that short windows come before long ones.
        resampled: Share of draws that are made of one random week of each user.
        generated: Share of draws from the Lublin-Feitelson model with Tsafrir's estimates, for
            the scenario's machine and largest request. They last one week, have on average the
            load of a random week of the scenario, and as many users as a week.
        easiest: Draws whose mean bounded slowdown under SAF, with the scenario's scheduler, is
            not above this are trivial and drawn again; 0 = none.
        hardest: Draws for which it is not below this are hopeless and drawn again.

    Raises:
        ScenarioError: A value out of range.

    Source: Specification, section 10, "Learnability kit"; filter: Zhang et al. 2020 (RLScheduler);
    input shaking: Tsafrir, Ouaknine and Feitelson 2007; resampling: Carastan-Santos 2019,
    Algorithm 1.

    Example:
        >>> Augmentation(load=(0.8, 1.25), window=(86_400, 259_200), easiest=2).jitter
        0
    """

    jitter: int = 0
    load: tuple[float, float] = (1.0, 1.0)
    window: tuple[int, int] | None = None
    growing: bool = False
    resampled: float = 0.0
    generated: float = 0.0
    easiest: float = 0.0
    hardest: float = math.inf

    def __post_init__(self) -> None:
        if self.jitter < 0:
            raise ScenarioError(f"jitter must be at least 0 s, got {self.jitter}")
        if not 0 < self.load[0] <= self.load[1] < math.inf:
            raise ScenarioError(f"load must be two factors > 0, the least first, got {self.load}")
        if self.window is not None and not 1 <= self.window[0] <= self.window[1]:
            raise ScenarioError(
                f"window must be two times of at least 1 s, the shortest first, got {self.window}"
            )
        if self.growing and self.window is None:
            raise ScenarioError("growing is for windows; say window=(shortest, longest) in s")
        if not 0 <= min(self.resampled, self.generated) <= self.resampled + self.generated <= 1:
            raise ScenarioError(
                "resampled and generated must be shares of the draws, together at most 1, got "
                f"{self.resampled} and {self.generated}"
            )
        if not self.easiest < self.hardest:
            came = f"{self.easiest} and {self.hardest}"
            raise ScenarioError(f"easiest must lie below hardest, got {came}")

    @property
    def filters(self) -> bool:
        """Whether any draw may be refused."""
        return self.easiest > 0 or self.hardest < math.inf


class AugmentedEpisodes(Episodes):
    """Episodes to train on: those of a scenario, changed at every draw.

    They may be used wherever `Episodes` may. Only draws are changed: an episode by name or number,
    as evaluation plays it, is the scenario's own. Draws use nothing of the log but the episodes at
    hand and their users' histories, so held-out episodes stay unseen.

    A draw takes one number from the generator and depends on that number and `progress` only.
    Environments with the same seed (`reset(seed=[1, 1, 1, 2, 2, 2])` of a vector) therefore play
    the same episodes in the same order, and serve as each other's baseline; each draw is made once
    for all of them. Where windows grow, set `progress` when all environments are reset.

    Raises:
        ScenarioError: Weeks are to be made, but the episodes are of another kind, or the machine is
            too small for the workload model.

    Source: Specification, section 10, "Learnability kit".

    Example:
        >>> chosen = Episodes("synthetic-256-weeks").select("1-10")
        >>> days = AugmentedEpisodes(chosen, Augmentation(window=(86_400, 86_400)))
        >>> label, workload = days.draw(np.random.default_rng(1))
        >>> bool(workload.submit_time[-1] < 86_400)
        True
    """

    def __init__(self, episodes: Episodes, augmentation: Augmentation) -> None:
        self.__dict__.update(episodes.__dict__)
        self._augment(augmentation, 0.0)

    def _augment(self, augmentation: Augmentation, progress: float) -> None:
        """Set what draws need."""
        self.augmentation = augmentation
        self.progress = progress
        self._drawn: OrderedDict[tuple[int, float], LabelledWorkload] = OrderedDict()
        self._pasts: WeakKeyDictionary[Workload, Past] = WeakKeyDictionary()
        self._bsld: WeakKeyDictionary[Workload, float] = WeakKeyDictionary()
        kind = self.scenario.episode
        self._is_warm = getattr(kind, "warm_history", not isinstance(kind, ResampledEpisodes))
        self._makers: list[tuple[float, str, Maker]] = []
        if augmentation.resampled + augmentation.generated == 0:
            return
        if not isinstance(kind, WeekEpisodes):
            raise ScenarioError(
                f"{self.scenario.name}: resampled and generated make weeks, for scenarios of weeks;"
                f" this one's episodes are of kind {kind.kind!r}"
            )
        weeks = [self.workload(index) for index in range(len(self))]
        if augmentation.resampled:
            maker: Maker = partial(resample_week, join_weeks(weeks))
            self._makers.append((augmentation.resampled, "resampled week", maker))
        if augmentation.generated:
            if self.settings.dependencies != "ignore":
                raise ScenarioError(
                    f"{self.scenario.name}: generated weeks say of no job which is before it, and "
                    f"[scheduler] dependencies is {self.settings.dependencies!r}; use resampled "
                    "weeks"
                )
            maker = _generated_week_maker(weeks, self.largest_request)
            self._makers.append((augmentation.generated, "generated week", maker))

    @property
    def progress(self) -> float:
        """How much of the training is done, 0 to 1; the trainer sets it where windows grow."""
        return self._progress

    @progress.setter
    def progress(self, progress: float) -> None:
        """Note how much of the training is done."""
        if not 0 <= progress <= 1:
            raise ScenarioError(f"progress must lie in 0 to 1, got {progress}")
        self._progress = float(progress)

    def draw(self, generator: np.random.Generator) -> LabelledWorkload:
        """Return label and jobs of a random, changed episode; one number moves the generator on.

        The same number and `progress` give the same objects again.
        """
        number = int(generator.integers(np.iinfo(np.int64).max))
        key = number, self.progress
        if key not in self._drawn:
            self._drawn[key] = self._chosen(np.random.default_rng(number))
            if len(self._drawn) > KEPT_DRAWS:
                self._drawn.popitem(last=False)
        return self._drawn[key]

    def _chosen(self, generator: np.random.Generator) -> LabelledWorkload:
        """Draw until the filter accepts an episode, or attempts run out."""
        label, workload = self._changed(generator)
        for _ in range(REDRAWS):
            if not self.augmentation.filters or self._passes(workload):
                break
            label, workload = self._changed(generator)
        return label, workload

    def _passes(self, workload: Workload) -> bool:
        """Return whether an episode is neither trivial nor hopeless under SAF; simulated once."""
        if workload not in self._bsld:
            settings = settings_but_policy(self.settings)
            result = simulate_many([workload], ["SAF"], metrics=["mean_bsld"], **settings)
            self._bsld[workload] = float(result["mean_bsld"][0, 0])
        return self.augmentation.easiest < self._bsld[workload] < self.augmentation.hardest

    def _changed(self, generator: np.random.Generator) -> LabelledWorkload:
        label, workload, is_warm = self._source(generator)
        if self.augmentation.window is not None:
            label, workload = self._cut_out(label, workload, is_warm, generator)
        least, greatest = self.augmentation.load
        if greatest != 1 or least != 1:
            factor = least * (greatest / least) ** generator.random()
            label = f"{label} at {factor:.3f} times its load"
            workload = scale_load(workload, factor)
        if self.augmentation.jitter:
            workload = jitter(workload, generator, self.augmentation.jitter)
        return label, workload

    def _source(self, generator: np.random.Generator) -> tuple[str, Workload, bool]:
        """Return label, jobs, and whether windows of them have a history."""
        position = generator.random()
        for share, label, make in self._makers:
            if position < share:
                return label, make(generator), False
            position -= share
        return *super().draw(generator), self._is_warm

    def _cut_out(
        self, label: str, workload: Workload, is_warm: bool, generator: np.random.Generator
    ) -> LabelledWorkload:
        """Cut a window out of an episode that is longer."""
        assert self.augmentation.window is not None
        shortest, longest = self.augmentation.window
        share = self.progress if self.augmentation.growing else generator.random()
        length = round(shortest * (longest / shortest) ** share)
        submit = workload.submit_time
        if submit[-1] < length:
            return label, workload
        latest = max(submit[-1] + 1 - length, submit[0])
        start = int(submit[generator.integers(np.searchsorted(submit, latest, side="right"))])
        first, last = np.searchsorted(submit, [start, start + length])
        what = f"from {start} to {start + length} s"
        part = workload.select(
            np.arange(first, last),
            start=start,
            name=f"{workload.name} {what}",
            past=self._past_of(workload).until(start) if is_warm else None,
        )
        return f"{label} {what}", part

    def _past_of(self, workload: Workload) -> Past:
        """Return the users' past that windows of an episode may see, sorted once."""
        if workload not in self._pasts:
            self._pasts[workload] = Past(workload)
        return self._pasts[workload]

    def __getstate__(self) -> dict[str, Any]:
        """Return what the episodes can be made of again."""
        state = {"augmentation": self.augmentation, "progress": self.progress}
        return super().__getstate__() | state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read and cut the log again, and set what draws need."""
        super().__setstate__(state)
        self._augment(state["augmentation"], state["progress"])


def _generated_week_maker(weeks: Sequence[Workload], largest_request: int) -> Maker:
    """Return a function that draws weeks from the workload model with the loads of these weeks."""
    processors = weeks[0].machine_processors
    if weeks[0].machine is not None:
        raise ScenarioError(
            f"generated weeks ask for counted processors, and {weeks[0].name} is on nodes; use "
            "resampled weeks"
        )
    if processors < SMALLEST_MACHINE:
        raise ScenarioError(
            f"generated weeks come from the Lublin-Feitelson model, which needs {SMALLEST_MACHINE} "
            f"processors or more; {weeks[0].name} has {processors}"
        )
    sample = lublin_workload(
        SAMPLE_JOBS, np.random.default_rng(0), machine_processors=processors, job_types=False
    )
    area = int(np.minimum(sample.run_time, largest_request) @ sample.processors) / SAMPLE_JOBS
    works = [int(np.minimum(w.run_time, w.requested_time) @ w.processors) for w in weeks]
    n_users = round(float(np.mean([len(week.history.completed) for week in weeks])))

    def make(generator: np.random.Generator) -> Workload:
        work = max(works[generator.integers(len(works))], 1)
        week = synthetic_workload(
            max(round(work / area), 1),
            generator,
            machine_processors=processors,
            n_users=n_users,
            load=work / (processors * WEEK_S),
            longest_request=largest_request,
            name="generated",
        )
        last = int(week.submit_time[-1])
        return week.resubmitted(np.rint(week.submit_time * ((WEEK_S - 1) / max(last, 1))))

    return make


DAY_S = 86_400

SHORT = "short"
"""What `chosen_episodes` calls days of the training episodes, for quick first lessons."""


def chosen_episodes(episodes: Episodes, weeks: str) -> Episodes:
    """Return the episodes that a text names: a part, numbers, or `SHORT`.

    Raises:
        ScenarioError: The text is not understood, or names an episode that does not exist.

    Example:
        >>> chosen_episodes(Episodes("synthetic-busy-weeks"), "test").numbers
        (15, 16, 17)
    """
    if weeks == SHORT:
        days = Augmentation(window=(DAY_S, DAY_S), easiest=1.5)
        return AugmentedEpisodes(episodes.select("train"), days)
    return episodes.select(weeks)
