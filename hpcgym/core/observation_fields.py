"""The fields of an observation, each declared once: name, meaning, formula, bounds and place.

A member of `JobField` or `ClusterField` is its own place, so `shown[first + JobField.FITS_NOW]`
stores that field, also in compiled code. The space of observations and the names in
`hpcgym.env.observation` are made from these lists, and so are the tables of the data sheet in
`hpcgym.env.scheduling`.

M is the processors of the machine, E the largest request of the scenario in s, b = max(e, 10 s),
D = max(run time, 10 s), log natural, and squash(x, h) = x / (x + h).

Source: Specification, section 10, "Observation".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hpcgym.base.errors import ScenarioError
from hpcgym.core.loaders import ByName


class ObservationField(IntEnum):
    """A field of an observation; as a number it is its place."""

    meaning: str  # what is measured, with its unit
    formula: str  # how that becomes the number shown
    low: float  # the least number shown
    high: float  # the largest number shown

    def __new__(
        cls, meaning: str, formula: str, low: float = 0, high: float = 1
    ) -> ObservationField:
        """Give the next place to a field, whose bounds are 0 and 1 unless it states others."""
        position = len(cls.__members__)
        field = int.__new__(cls, position)
        field._value_ = position
        field.meaning, field.formula, field.low, field.high = meaning, formula, low, high
        return field

    @property
    def field_name(self) -> str:
        """Return the name that tables and agents use."""
        return self.name.lower()


WIDE = -5, 5  # bounds of fields that may be far from 0


class JobField(ObservationField):
    """What is shown of each visible job."""

    LOG_ESTIMATE = "estimate e, s", "log e / log E"
    LOG_PREDICTED_TIME = "predicted time, s; equal to the estimate", "as log_estimate"
    PROCESSORS = "processors q", "q / M"
    LOG_AREA = "area, processor-s", "log(e q) / log(E M)"
    LOG_WAIT_TIME = "wait w, s", "log(1 + w/60) / log(1 + 43200), at most 1"
    LOG_WAIT_BY_ESTIMATE = "w / e", "log(w/e) / log 10^4, clipped; -1 at w = 0", -1, 1
    FITS_NOW = "q <= free processors, and not held by a delay", "0 or 1"
    ENDS_BEFORE_SHADOW = (
        "now + e <= shadow time, by running jobs, of the first job in SAF order that does not fit",
        "0 or 1; 1 where all fit",
    )
    IS_THRESHOLDED = "the wait is beyond the threshold", "0 or 1"
    USER_LOG_COMPLETED = "n, jobs the user has completed", "log(1 + n) / log 1001, at most 1"
    USER_LOG_LAST_RUN_TIME = (
        "run time p of the user's last completed job, s",
        "log max(p, 1) / log E, at most 1; -1 = none",
        -1,
        1,
    )
    USER_LOG_LAST_BUT_ONE_RUN_TIME = (
        "run time of the last but one, s",
        "as user_log_last_run_time",
        -1,
        1,
    )
    USER_MEAN_RUN_BY_REQUEST = (
        "mean of p / request over the last 20",
        "itself, at most 1; -1 = none",
        -1,
        1,
    )
    USER_LOG_EXPECTED_BOUND = (
        "expected 1/D, D = max(p, 10 s), 1/s",
        "-log(expected 1/D) / log E, at most 1",
    )
    USER_LOG_RECENCY = "time since the user's last end, s", "as log_wait_time; -1 = none", -1, 1
    LOG_EXPECTED_RUN_TIME_RATIO = "expected D / b", "log ratio / log E, at least -1", -1, 0
    LOG_EXPECTED_SPEED = "expected b / D", "log speed / log E, at most 1"
    LOG_EXPECTED_INDEX = (
        "index i of Smith's rule, q b^2 ratio / speed",
        "log i / log(E^2 M), at most 1",
    )


class NodesField(ObservationField):
    """What is shown besides of each visible job, on a machine of nodes."""

    GPUS = "GPUs of a chunk", "by those of the node with most, at most 1"
    MEMORY = "memory of a chunk, MB", "by that of the node with most, at most 1"
    PARTITION = "place of the partition in the machine's list, from 0", "by the partitions"
    ROOM = "chunks that free nodes can take now", "by the job's chunks, at most 1"


class ClusterField(ObservationField):
    """What is shown of the cluster."""

    FREE_PROCESSORS = "x, free processors", "x / M"
    FREE_PROCESSORS_IN_300_S = "free processors in 5 min, by estimate", "as free_processors"
    FREE_PROCESSORS_IN_900_S = "in 15 min", "as free_processors"
    FREE_PROCESSORS_IN_1800_S = "in 30 min", "as free_processors"
    FREE_PROCESSORS_IN_3600_S = "in 1 h", "as free_processors"
    FREE_PROCESSORS_IN_10800_S = "in 3 h", "as free_processors"
    FREE_PROCESSORS_IN_21600_S = "in 6 h", "as free_processors"
    FREE_PROCESSORS_IN_43200_S = "in 12 h", "as free_processors"
    FREE_PROCESSORS_IN_86400_S = "in 24 h", "as free_processors"
    QUEUED_PROCESSORS = "x, processors of the waiting jobs", "squash(x, M)"
    QUEUED_AREA = "x, area of the waiting jobs, processor-s", "squash(x, 3600 M)"
    SUBMITTED_LAST_HOUR = "x, submissions in the last hour", "squash(x, 10)"
    SUBMITTED_LAST_DAY = "x, submissions in the last day", "squash(x, 100)"
    HOUR_OF_WEEK_SIN = (
        "h, hour of the week (UTC; of the log where it gives no date)",
        "sin(2 pi h / 168)",
        -1,
        1,
    )
    HOUR_OF_WEEK_COS = "the same", "cos(2 pi h / 168)", -1, 1
    HIDDEN_JOBS = "x, jobs without a slot", "squash(x, n_slots)"
    HIDDEN_AREA = "x, their area, processor-s", "squash(x, 3600 M)"
    HIDDEN_LEAST_AREA = "least area among them", "as log_area of `jobs`; 0 = none"
    HIDDEN_LARGEST_AREA = "largest area among them", "as log_area of `jobs`; 0 = none"


class ControlsField(ObservationField):
    """What is shown besides of the cluster, with action `controls`."""

    CAPPED_PROCESSORS = (
        "x, processors of running jobs that counted under the cap when they started",
        "x / M",
    )
    EXPECTED_FREE_IN_3600_S = (
        "x, free processors in 1 h, if jobs end when they were expected to at their starts",
        "x / M",
    )
    EXPECTED_FREE_IN_10800_S = "in 3 h", "as expected_free_in_3600_s"
    EXPECTED_FREE_IN_43200_S = "in 12 h", "as expected_free_in_3600_s"
    LONG_PROCESSORS = (
        "x, processors of the waiting jobs that would count under the cap",
        "squash(x, M)",
    )
    WIDE_PROCESSORS = (
        "x, processors of the waiting jobs that are wider than what is free",
        "squash(x, M)",
    )
    WIDE_RATE = "x, their summed expected 1/D, 1/s", "squash(x, 0.01)"
    WIDE_LOG_WAIT_TIME = "their longest wait, s", "as log_wait_time of `jobs`; 0 = none"
    LOG_TIME_TO_SHADOW = (
        "time to the shadow time of ends_before_shadow of `jobs`, s",
        "as log_wait_time of `jobs`; 0 where all fit",
    )
    EXTRA_PROCESSORS = (
        "x, processors left over at that time; the free ones where all fit",
        "x / M",
    )


class JobTrialField(ObservationField):
    """What is shown besides of each visible job, with action `trials`."""

    IS_ON_TRIAL = "the job is on trial", "0 or 1"
    TRIED = "x, trials of the job that ended in vain", "x / 9"
    GAVE_WAY = "x, how often it gave way", "x / 9"
    LOG_RAN = "longest run of these attempts and of its present trial, s", "as log_wait_time"
    MAY_BE_LENT = "it may go on trial once the pass has ended", "0 or 1"
    CHANCE_TO_END = (
        "P(run time <= limit | run time > ran), the limit of trials and ran as in log_ran, by the "
        "user's last jobs and all completed ones",
        "itself",
    )


class TrialField(ObservationField):
    """What is shown besides of the cluster, with action `trials`."""

    IDLE_PROCESSORS = "x, processors that no job is on", "x / M"
    TRIAL_PROCESSORS = "x, processors of jobs on trial", "x / M"
    GUARANTEED_PROCESSORS = "x, of these, those of guaranteed trials", "x / M"
    YOUNG_PROCESSORS = "x, processors of running jobs that may give way now", "x / M"


class RunningField(ObservationField):
    """What is shown of running jobs with this action, in rows behind `TrialField`.

    The rows are of SHOWN_RUNNING jobs that run, off trial, and may be killed: those first that have
    run least by processors times age, in which order jobs give way.
    """

    LOG_AGE = "age, s", "as log_wait_time of `jobs`"
    RUNNING_PROCESSORS = "processors q", "q / M"
    LOG_TIME_LEFT = "time to the end by estimate, s", "as log_age"
    LOG_REQUEST = "requested time, s", "as log_age"
    RUNNING_GAVE_WAY = "x, how often it gave way", "x / 9"


class PriceField(ObservationField):
    """What is shown, in place of all else, with action `price`.

    Each is at most 5 either side of 0. A day and a week begin with the hours of the episode.
    """

    DAY_SIN = "h, hour of the day", "sin(2 pi h / 24)", *WIDE
    DAY_COS = "the same", "cos(2 pi h / 24)", *WIDE
    WEEK_SIN = "h, hour of the week, as hour_of_week_sin of `cluster`", "sin(2 pi h / 168)", *WIDE
    WEEK_COS = "the same", "cos(2 pi h / 168)", *WIDE
    PRICE = "price p of this hour, and d, the mean over the next 24 h", "p / d - 1", *WIDE
    RANK = "x, which of the 23 h behind this one are cheaper", "x / 12 - 1", *WIDE
    PRICE_FROM_0_H = "mean price p of this hour and the next", "p / d - 1", *WIDE
    PRICE_FROM_2_H = "of the two hours 2 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_4_H = "4 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_6_H = "6 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_8_H = "8 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_10_H = "10 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_12_H = "12 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_14_H = "14 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_16_H = "16 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_18_H = "18 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_20_H = "20 h later", "as price_from_0_h", *WIDE
    PRICE_FROM_22_H = "22 h later", "as price_from_0_h", *WIDE
    BUSY = "x, processors that jobs hold", "x / M", *WIDE
    QUEUE = "n, waiting jobs, held ones too", "log(1 + n) / 3", *WIDE
    WORK = "x, their area, hours of the whole machine", "log(1 + x) / 2", *WIDE
    JOBS_TO_15_MIN = "n, those of an estimate up to 15 min", "log(1 + n) / 2", *WIDE
    JOBS_TO_1_H = "of more, up to 1 h", "as jobs_to_15_min", *WIDE
    JOBS_TO_4_H = "of more, up to 4 h", "as jobs_to_15_min", *WIDE
    JOBS_TO_12_H = "of more, up to 12 h", "as jobs_to_15_min", *WIDE
    JOBS_BEYOND = "of more", "as jobs_to_15_min", *WIDE
    WORK_TO_15_MIN = "x, as work, of those up to 15 min", "log(1 + x) / 2", *WIDE
    WORK_TO_1_H = "of more, up to 1 h", "as work_to_15_min", *WIDE
    WORK_TO_4_H = "of more, up to 4 h", "as work_to_15_min", *WIDE
    WORK_TO_12_H = "of more, up to 12 h", "as work_to_15_min", *WIDE
    WORK_BEYOND = "of more", "as work_to_15_min", *WIDE
    LONG_WAIT = "x, mean wait of those of more than 1 h, h", "x / 12", *WIDE
    RELEASED_IN_1_H = (
        "x, processors of running jobs that end within 1 h, by estimate",
        "x / M",
        *WIDE,
    )
    RELEASED_IN_4_H = "within 4 h", "as released_in_1_h", *WIDE
    RELEASED_IN_12_H = "within 12 h", "as released_in_1_h", *WIDE
    URGENCY = (
        "x, the sum over waiting jobs of 1 / max(estimate in h, 0.05)",
        "log(1 + x) / 3",
        *WIDE,
    )
    DAY_MEAN = "d, by the mean m of the span", "d / m - 1", *WIDE
    PROGRESS = "x, time since the beginning, by the span", "x - 0.5", *WIDE


N_PRICE_FIELDS = len(PriceField)  # numbers shown with action `price`


class SmallField(ObservationField):
    """What is shown with `observation="small"`, in place of jobs and cluster."""

    BUSY_PROCESSORS = "x, processors that are not free", "x / M"
    FREE_IN_1_H = "free processors in 1 h, by estimate", "x / M"
    FREE_IN_4_H = "in 4 h", "as free_in_1_h"
    FREE_IN_12_H = "in 12 h", "as free_in_1_h"
    WAITING_PROCESSORS = "x, processors of the waiting jobs", "squash(x, M)"
    JOBS_TO_15_MIN = "x, waiting jobs of an estimate up to 15 min", "squash(x, 10)"
    JOBS_TO_1_H = "of more, up to 1 h", "as jobs_to_15_min"
    JOBS_TO_4_H = "of more, up to 4 h", "as jobs_to_15_min"
    JOBS_TO_12_H = "of more, up to 12 h", "as jobs_to_15_min"
    JOBS_BEYOND = "of more", "as jobs_to_15_min"
    AREA_TO_15_MIN = "x, area of those up to 15 min, processor-s", "squash(x, 3600 M)"
    AREA_TO_1_H = "of more, up to 1 h", "as area_to_15_min"
    AREA_TO_4_H = "of more, up to 4 h", "as area_to_15_min"
    AREA_TO_12_H = "of more, up to 12 h", "as area_to_15_min"
    AREA_BEYOND = "of more", "as area_to_15_min"
    WIDEST = "processors q of the widest waiting job", "q / M"
    LOG_LONGEST_WAIT_TIME = "longest wait, s", "as log_wait_time of `jobs`"
    LOG_MEAN_WAIT_TIME = "mean wait of the waiting jobs, s", "as log_wait_time of `jobs`"
    SUBMITTED_LAST_HOUR = "x, submissions in the last hour", "squash(x, 10)"
    SUBMITTED_LAST_DAY = "x, submissions in the last day", "squash(x, 100)"
    HOUR_OF_DAY_SIN = "h, hour of the day, as of the week in `cluster`", "sin(2 pi h / 24)", -1, 1
    HOUR_OF_DAY_COS = "the same", "cos(2 pi h / 24)", -1, 1
    HOUR_OF_WEEK_SIN = "h, hour of the week, likewise", "sin(2 pi h / 168)", -1, 1
    HOUR_OF_WEEK_COS = "the same", "cos(2 pi h / 168)", -1, 1


SHOWN_RUNNING = 16  # running jobs that are shown one by one


@dataclass(frozen=True)
class OwnField:
    """A field that is shown if it is named, behind all others; most are a user's own.

    Attributes are as of `ObservationField`, and:
    """

    field_name: str
    meaning: str
    formula: str
    low: float
    high: float
    # Its kernel: `show(jobs, sim, job)` of a visible job, or `show(jobs, sim)`.
    show: Callable[..., float]
    # The event that keeps what it shows, unless a policy goes by the like; None = none.
    keeps: Any = None

    @property
    def is_of_job(self) -> bool:
        """Return whether it is one of each visible job, rather than of the cluster."""
        return len(inspect.signature(self.show).parameters) == 3


OWN_FIELDS: ByName[OwnField] = ByName(
    "field",
    ScenarioError,
    {
        name: f"hpcgym.core.parts.share_fields:{name}"
        for name in ("user_share", "user_usage", "user_fair_share")
    },
)
"""Fields that are shown if they are named, and what `register_field` has added, by name."""


def register_field(
    name: str,
    show: Callable[..., float],
    *,
    meaning: str,
    formula: str,
    low: float = 0,
    high: float = 1,
) -> OwnField:
    """Let the keyword `fields=` of environments name a field of your own; a name may come again.

    Args:
        name: A letter, then letters, digits, `_` or `-`.
        show: A function `show(jobs, sim, job)` of a waiting job, or `show(jobs, sim)` of the
            cluster, which returns a number. It is compiled, as kernels are, and writes nothing but
            `sim.scratch`. Arguments are as `hpcgym.core.kernels.types` says.
        meaning: As of `ObservationField`, like `formula`.
        formula: How that becomes the number shown.
        low: The least number shown, also in place of less or of NaN.
        high: The largest number shown, also in place of more.

    Raises:
        ScenarioError: A malformed name or one of a field that ships, no bounds, no such function.
    """
    if not inspect.isfunction(show) or len(inspect.signature(show).parameters) not in (2, 3):
        raise ScenarioError(
            f"field {name!r}: show must be a function of (jobs, sim, job) or (jobs, sim), without "
            f"a decorator; got {show!r}"
        )
    if not -1e30 <= low < high <= 1e30:  # observations are float32
        raise ScenarioError(
            f"field {name!r}: low must be below high, both within +-1e30; got {low} and {high}"
        )
    shipped = [field.field_name for kind in ObservationField.__subclasses__() for field in kind]
    return OWN_FIELDS.register(name, OwnField(name, meaning, formula, low, high, show), shipped)


N_STATIC_FIELDS = JobField.LOG_WAIT_TIME - JobField.LOG_ESTIMATE
"""Fields of a job that never change, the first ones."""

N_HISTORY_FIELDS = JobField.LOG_EXPECTED_RUN_TIME_RATIO - JobField.USER_LOG_COMPLETED
"""Fields of a job that are frozen at its submission, from `USER_LOG_COMPLETED` on."""

N_KEPT_FIELDS = JobField.USER_LOG_EXPECTED_BOUND - JobField.USER_LOG_COMPLETED
"""Those of them, the first ones, that only a completion of the user changes."""

N_TRIAL_FIELDS = len(TrialField) + SHOWN_RUNNING * len(RunningField)
"""Fields of the cluster about trials."""
