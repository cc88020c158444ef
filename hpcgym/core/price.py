"""The event `price`: what it says, costs and measures. Its kernels are another file.

So scenarios with a price are listed without a compiler.

Source: Specification, section 17.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.backfill import is_number, is_whole, shortest
from hpcgym.core.events import Event
from hpcgym.machine import prices
from hpcgym.machine.prices import DAY_H, HOUR_S, MILLIONTHS

if TYPE_CHECKING:
    from hpcgym.core.workload import Workload

PART = "hpcgym.core.parts.price"  # module of its kernels

PRICED = "priced"
"""What infos and tables call the objective: bsld over SAF's, plus the weight of cost over SAF's."""

PATIENCE_H = 48  # hours after its submission for which a job may be held
BEHIND_H = 264  # hours of the calendar behind the last at which jobs are held back

N_SPAN, N_HOURS, KAPPA, POWER, CAP, LONG, IS_NOISY, N_NUMBERS = range(8)
"""Numbers: hours of the span, and of the calendar; parameters, times `MILLIONTHS`, -1 = none. The
prices of all hours before each hour follow, summed; where forecasts are noisy also the errors of
these hours for each hour ahead, summed, and the errors times the hour, summed."""


@dataclass(frozen=True)
class Price(Event):
    """Energy has a price for each hour, which is known ahead.

    Source: Specification, section 17, "Prices" and "Holding jobs back".
    """

    NAME: ClassVar[str] = "price"
    MAKES_PASSES: ClassVar[bool] = True
    WITHHOLDS: ClassVar[bool] = True

    file: str = ""  # CSV of times and prices; "" = generated prices
    seed: int = 0  # of generated prices, which are drawn for each workload anew
    # What a delay as long as the request must save for a job to wait, by price times
    # processor-hours; `math.inf` = none waits.
    kappa: float = math.inf
    # Kappa is multiplied by (1 + work)^power, with the hours of the machine that wait.
    power: float = 0
    # Share of the machine that may be busy once a job with a long request has started; wider ones
    # wait until the cap is higher, or over. `math.inf` = all.
    cap: float = math.inf
    long: int = 7200  # request that is exceeded by these, s
    idle: float = 0.3  # what an idle processor takes, of a busy one
    weight: float = 20  # what the cost counts for beside the bounded slowdown, both over SAF's
    # Relative standard deviation of a forecast a day ahead; it is in proportion to how far ahead an
    # hour is. Decisions go by forecasts, charges by prices.
    noise: float = 0

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or (self.file and self.seed):
            raise PolicyError(
                f"event 'price': a file or a seed, got {self.file!r} and {self.seed!r}"
            )
        for key in ("seed", "long"):
            value = getattr(self, key)
            if not is_whole(value, 0):
                raise PolicyError(f"event 'price': {key} must be whole, >= 0, got {value!r}")
            object.__setattr__(self, key, int(value))
        most_of = {"kappa": 1e9, "power": 10, "cap": 1, "idle": 1, "weight": 1e9, "noise": 10}
        for key, most in most_of.items():
            value, endless = getattr(self, key), key in ("kappa", "cap")
            is_endless = endless and value == math.inf
            if not is_number(value, 0) or not (value <= most or is_endless):
                what = f"from 0 to {most:g}{' or inf' * endless}"
                raise PolicyError(f"event 'price': {key} must be {what}, got {value!r}")
            object.__setattr__(self, key, value if is_endless else shortest(value))

    @property
    def holds(self) -> bool:
        """Tell whether it holds jobs back."""
        return min(self.kappa, self.cap) < math.inf

    @property
    def number(self) -> int:
        """Return what `Jobs.event_pass` holds for the event."""
        return s.BACKFILL_PART + loaders.place_of(PART)

    @property
    def hears(self) -> int:
        """Return the moments that its part hears of."""
        heard = s.ON_INSTANT | int(loaders.module(PART).HEARS)
        return heard | (s.IS_BLOCKED | s.ON_SUBMIT if self.holds else 0)

    @property
    def demands(self) -> dict[str, str]:
        """Return what it demands: of passes that they know jobs that it holds back."""
        known = "holds jobs back, which passes of backfill 'easy' and 'none' know"
        return super().demands | ({"held jobs": known} if self.holds else {})

    def calendar(self, workload: Workload) -> tuple[int, NDArray[np.int64]]:
        """Return the hours of the span, whole days, and the price of each hour in millionths.

        Raises:
            MachineError: As `hpcgym.machine.prices.prices_of`.
        """
        last = int(workload.submit_time[-1]) if len(workload) else 0
        span = DAY_H * (last // (DAY_H * HOUR_S) + 1)
        n_hours = span + PATIENCE_H + BEHIND_H
        dated = workload.unix_start is not None
        start = int(workload.unix_start or 0) if dated else workload.time_offset
        if self.file:
            return span, prices.prices_of(self.file, start, n_hours)
        days = start // HOUR_S + 3 * DAY_H * dated  # Unix time begins on a Thursday
        return span, prices.generated((self.seed, _crc(workload)), days % prices.WEEK_H, n_hours)

    def numbers(self, workload: Workload) -> Sequence[int]:
        """Return what its kernels read."""
        span, price = self.calendar(workload)
        stated = (-1 if each == math.inf else each for each in (self.kappa, self.power, self.cap))
        parameters = (round(each * MILLIONTHS) for each in stated)
        summed = [np.concatenate([[0], np.cumsum(price)])]
        if self.noise:
            error = self.errors(workload, price)
            of_hours = error, error * np.arange(len(price))
            summed += [np.concatenate([[0], np.cumsum(each)]) for each in of_hours]
        numbers = np.concatenate(summed).tolist()
        return [span, len(price), *parameters, self.long, int(self.noise > 0), *numbers]

    def errors(self, workload: Workload, price: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return by how much forecasts miss each hour, for each hour ahead, in millionths."""
        return prices.errors((self.seed, _crc(workload), 1), self.noise, price)

    def energy(self, workload: Workload, start: Any, run_time: Any) -> tuple[float, float]:
        """Return what a schedule takes: processor-hours, and these times their price.

        A busy processor counts as 1, an idle one as `idle`, throughout the span.
        """
        span, price = self.calendar(workload)
        begun = np.maximum(start, 0)
        paid = integral(price, span, begun + run_time) - integral(price, span, begun)
        ran, machine = start >= 0, workload.machine_processors
        busy = float((workload.processors * run_time)[ran].sum()) / HOUR_S
        charged = float((workload.processors * paid)[ran].sum()) / (HOUR_S * MILLIONTHS)
        always = float(price[:span].sum()) / MILLIONTHS
        return (
            self.idle * machine * span + (1 - self.idle) * busy,
            self.idle * machine * always + (1 - self.idle) * charged,
        )

    def charge(self, workload: Workload) -> NDArray[np.float64]:
        """Return what each job pays for a second at a price of a millionth, shape (n_jobs,)."""
        per_hour = (1 - self.idle) * workload.processors
        charged: NDArray[np.float64] = per_hour / (HOUR_S * MILLIONTHS)
        return charged

    def premium(self, workload: Workload, start: Any, run_time: Any) -> NDArray[np.float64]:
        """Return by how much each job's price exceeds the mean one of the span, in its seconds."""
        span, price = self.calendar(workload)
        paid = integral(price, span, start + run_time) - integral(price, span, start)
        above: NDArray[np.float64] = paid - int(price[:span].sum()) / span * run_time
        return above

    def measure(self, workload: Workload, start: Any, run_time: Any) -> dict[str, float]:
        """Return the energy of a schedule, processor-hours, and its cost."""
        energy, cost = self.energy(workload, start, run_time)
        return {"energy": energy, "energy_cost": cost}


def _crc(workload: Workload) -> int:
    """Return what makes the prices of a workload its own."""
    return crc32(np.ascontiguousarray(workload.submit_time).tobytes())


def integral(price: NDArray[np.int64], span: int, instant: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the price summed over all seconds before instants; behind the hours, the mean one."""
    before = np.concatenate([[0], np.cumsum(price)])
    hour = np.minimum(instant // HOUR_S, len(price))
    later = np.append(price, before[span] // span)
    summed: NDArray[np.int64] = before[hour] * HOUR_S + (instant - hour * HOUR_S) * later[hour]
    return summed
