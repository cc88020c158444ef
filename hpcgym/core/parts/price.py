"""A price of energy for each hour, known ahead: it shows, charges and may hold jobs back.

A job *pays to wait* where some start at a full hour within 48 h of its submission would save more
money than `kappa` times its delay over its request. It is then *held*, out of sight of the pass,
until the next hour. Besides, a job with a long request starts only where no more than a share of
the machine is busy then, and reserves likewise. Passes are those within limits
(`hpcgym.core.parts.limits`). Without kappa and cap the event only charges, and all starts are those
of the mode.

Cost: O(n) at the beginning of an hour for n waiting jobs, each of which looks at 48 hours at most;
O(1) for a start or an end. An observation costs a step for each waiting and each running job.

Source: Specification, section 17.
"""

from __future__ import annotations

import math

import numpy as np

from hpcgym.core import constants as s
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.moments import event_number
from hpcgym.core.kernels.passes.easy_dynamic import left_free, work_within
from hpcgym.core.kernels.queue.entries import entry_of
from hpcgym.core.kernels.queue.ordered_queue import list_jobs
from hpcgym.core.kernels.types import Counter, Gauge, IntVector, Jobs, Sim, empty
from hpcgym.core.observation_fields import N_PRICE_FIELDS, PriceField
from hpcgym.core.price import (
    CAP,
    IS_NOISY,
    KAPPA,
    LONG,
    N_HOURS,
    N_NUMBERS,
    N_SPAN,
    PATIENCE_H,
    POWER,
)
from hpcgym.machine.prices import DAY_H, HOUR_S, MILLIONTHS

HEARS = s.ON_START

CLASSES_H = (0.25, 1.0, 4.0, 12.0)  # bounds of the classes of requests that observations show, h
HORIZONS_H = (1, 4, 12)  # how far ahead they show which processors are released, h

LARGEST_SHOWN = 5.0


class PriceSim(Sim):
    """What a price adds to a simulation."""

    hours_begun: Counter  # hours whose beginning has been heard of
    hold_round: Counter  # how often who is held was asked anew
    usual_kappa: Gauge  # kappa of this hour by the event's parameters, inf = nobody is held
    hour_kappa: Gauge  # kappa that holds

    hold_until: IntVector = empty("entries")
    """Of each waiting job twice the round in which it was asked last, plus 1 if it is held."""


@kernel(inlined=True)
def price_before(jobs: Jobs, sim: PriceSim, hour: int) -> int:
    """Return the summed price of the hours before one, in millionths."""
    return event_number(jobs, sim, N_NUMBERS + hour)


@kernel(inlined=True)
def paid_before(jobs: Jobs, sim: PriceSim, instant: int) -> int:
    """Return the price summed over all seconds before an instant, in millionths."""
    hour, n_hours = instant // HOUR_S, event_number(jobs, sim, N_HOURS)
    if hour >= n_hours:
        span = event_number(jobs, sim, N_SPAN)
        mean = price_before(jobs, sim, span) // span
        return price_before(jobs, sim, n_hours) * HOUR_S + (instant - n_hours * HOUR_S) * mean
    begun = price_before(jobs, sim, hour)
    price = price_before(jobs, sim, hour + 1) - begun
    return begun * HOUR_S + (instant - hour * HOUR_S) * price


@kernel(inlined=True)
def error_before(jobs: Jobs, sim: PriceSim, instant: int) -> int:
    """Return what this hour's forecast of the same sum is too high by, in millionths."""
    if event_number(jobs, sim, IS_NOISY) == 0:
        return 0
    n_hours, made = event_number(jobs, sim, N_HOURS), sim.now // HOUR_S
    hour, error = min(instant // HOUR_S, n_hours), N_NUMBERS + n_hours + 1
    times_hour = error + n_hours + 1
    before = event_number(jobs, sim, error + hour)
    summed = HOUR_S * (event_number(jobs, sim, times_hour + hour) - made * before)
    if hour < n_hours:
        of_hour = event_number(jobs, sim, error + hour + 1) - before
        summed += (instant - hour * HOUR_S) * (hour - made) * of_hour
    return summed


@kernel(inlined=True)
def forecast(jobs: Jobs, sim: PriceSim, begin: int, end: int) -> int:
    """Return the price summed over the seconds between instants to come, as now foreseen."""
    paid = paid_before(jobs, sim, end) - paid_before(jobs, sim, begin)
    return paid + error_before(jobs, sim, end) - error_before(jobs, sim, begin)


@kernel(inlined=True)
def hour_price(jobs: Jobs, sim: PriceSim, hour: int) -> int:
    """Return the forecast of an hour, the last one's behind the calendar, in millionths."""
    begin = HOUR_S * min(hour, event_number(jobs, sim, N_HOURS) - 1)
    return forecast(jobs, sim, begin, begin + HOUR_S) // HOUR_S


@kernel(inlined=True)
def last_hour(jobs: Jobs, sim: PriceSim) -> int:
    """Return the hour from which on nothing is held back any more."""
    return event_number(jobs, sim, N_SPAN) + PATIENCE_H


@kernel
def pays_to_wait(jobs: Jobs, sim: PriceSim, job: int) -> bool:
    """Tell whether some later hour saves a job more than its delay costs, by its estimate."""
    submit, estimate = jobs.submit_time[job], max(jobs.estimate[job], 60)
    hour = sim.hours_begun - 1
    since = max(submit, hour * HOUR_S)
    now = forecast(jobs, sim, since, since + estimate)
    last = PATIENCE_H - (since - submit + HOUR_S - 1) // HOUR_S
    unit = float(HOUR_S * MILLIONTHS)
    for ahead in range(1, last + 1):
        later = (hour + ahead) * HOUR_S
        paid = forecast(jobs, sim, later, later + estimate)
        saved = jobs.processors[job] * float(now - paid) / unit
        if saved * estimate > sim.hour_kappa * (later - since):
            return True
    return False


@kernel
def is_held_back(jobs: Jobs, sim: PriceSim, job: int) -> bool:
    """Tell whether a waiting job is held in this hour; writes `hold_until`."""
    if sim.hour_kappa == math.inf or sim.hours_begun == 0:
        return False
    entry = entry_of(sim, job)
    if sim.hold_until[entry] // 2 != sim.hold_round:
        sim.hold_until[entry] = 2 * sim.hold_round + int(pays_to_wait(jobs, sim, job))
    return sim.hold_until[entry] % 2 == 1


@kernel(inlined=True)
def is_too_wide(jobs: Jobs, sim: PriceSim, job: int) -> bool:
    """Tell whether a waiting job with a long request is wider than the cap."""
    return int(jobs.processors[job]) + left_free(jobs, sim, job) > sim.machine_processors


@kernel(inlined=True)
def set_cap(sim: PriceSim, cap: float) -> None:
    """Set which share of the machine jobs with long requests fill at most; write `spared`."""
    sim.spared = sim.machine_processors - int(np.rint(cap * sim.machine_processors))


@kernel
def begin_hour(jobs: Jobs, sim: PriceSim) -> int:
    """Set who may be held from now on; tell whether a pass is due.

    Writes `hours_begun`, `hold_round`, kappas and `spared`, at the beginning `looks_ahead`, too.
    """
    if sim.now != sim.hours_begun * HOUR_S:
        return 0  # another event happens
    if sim.hours_begun == 0:
        sim.looks_ahead = sim.event + 1
        sim.spared_by = event_number(jobs, sim, LONG)
    kappa = event_number(jobs, sim, KAPPA) / MILLIONTHS
    cap = event_number(jobs, sim, CAP) / MILLIONTHS
    is_over = sim.hours_begun == last_hour(jobs, sim)
    sim.hours_begun += 1
    sim.hold_round += 1
    work = sim.waiting_area / (HOUR_S * sim.machine_processors)
    power = event_number(jobs, sim, POWER) / MILLIONTHS
    sim.usual_kappa = math.inf if kappa < 0.0 or is_over else kappa * (1.0 + work) ** power
    sim.hour_kappa = sim.usual_kappa
    set_cap(sim, 1.0 if cap < 0.0 or is_over else cap)
    return 1


@kernel
def set_price_controls(sim: PriceSim, kappa: float, cap: float) -> None:
    """Let a factor of kappa and a cap hold until the next hour, unless the calendar is over."""
    if sim.usual_kappa < math.inf:
        sim.hour_kappa = sim.usual_kappa * kappa
        set_cap(sim, cap)
        sim.hold_round += 1


@kernel
def charge(jobs: Jobs, sim: PriceSim, job: int) -> None:
    """Charge a job that starts now, at the price less its mean over the span, where rewards do.

    Writes `accrued` and `started_cost`.
    """
    if len(jobs.reward_charge) > 0:
        end = sim.now + jobs.run_time[job]
        span = event_number(jobs, sim, N_SPAN)
        mean = price_before(jobs, sim, span) / span
        paid = paid_before(jobs, sim, end) - paid_before(jobs, sim, sim.now)
        cost = jobs.reward_charge[job] * (paid - mean * jobs.run_time[job])
        sim.accrued += cost
        sim.started_cost += cost


@kernel
def show_calendar(jobs: Jobs, sim: PriceSim) -> None:
    """Write where in the day and the week it is, and the price of now and of the day to come."""
    now, hour, shown = sim.now, sim.now // HOUR_S, sim.shown_event
    day = 2.0 * math.pi * now / (HOUR_S * DAY_H)
    week = 2.0 * math.pi * (sim.week_start + now) / (HOUR_S * DAY_H * 7)
    shown[PriceField.DAY_SIN] = np.float32(math.sin(day))
    shown[PriceField.DAY_COS] = np.float32(math.cos(day))
    shown[PriceField.WEEK_SIN] = np.float32(math.sin(week))
    shown[PriceField.WEEK_COS] = np.float32(math.cos(week))
    to_come = forecast(jobs, sim, now, now + DAY_H * HOUR_S)
    mean = to_come / (DAY_H * HOUR_S)
    price = hour_price(jobs, sim, hour)
    cheaper = 0
    for ahead in range(1, DAY_H):
        cheaper += int(hour_price(jobs, sim, hour + ahead) < price)
    scale = 1.0 / mean if mean > 0.0 else 0.0
    shown[PriceField.PRICE] = np.float32(price * scale - 1.0)
    shown[PriceField.RANK] = np.float32(cheaper / 12.0 - 1.0)
    for pair in range(12):
        both = hour_price(jobs, sim, hour + 2 * pair) + hour_price(jobs, sim, hour + 2 * pair + 1)
        shown[PriceField.PRICE_FROM_0_H + pair] = np.float32(0.5 * both * scale - 1.0)
    span = event_number(jobs, sim, N_SPAN)
    shown[PriceField.DAY_MEAN] = np.float32(mean * span / price_before(jobs, sim, span) - 1.0)
    shown[PriceField.PROGRESS] = np.float32(now / (HOUR_S * float(span)) - 0.5)


@kernel
def show_waiting(jobs: Jobs, sim: PriceSim) -> None:
    """Write what waits, by class of request; writes `scratch`."""
    shown, n = sim.shown_event, list_jobs(sim, s.BASE_ORDER, sim.scratch)
    work, urgency, waited, n_long = 0.0, 0.0, 0.0, 0
    for column in range(2 * len(CLASSES_H) + 2):
        shown[PriceField.JOBS_TO_15_MIN + column] = np.float32(0.0)
    for position in range(n):
        job = sim.scratch[position]
        hours = jobs.estimate[job] / HOUR_S
        area = jobs.processors[job] * hours / sim.machine_processors
        size = 0
        while size < len(CLASSES_H) and hours > CLASSES_H[size]:
            size += 1
        shown[PriceField.JOBS_TO_15_MIN + size] += np.float32(1.0)
        shown[PriceField.WORK_TO_15_MIN + size] += np.float32(area)
        work += area
        urgency += 1.0 / max(hours, 0.05)
        if hours > 1.0:
            waited += (sim.now - jobs.submit_time[job]) / HOUR_S
            n_long += 1
    for column in range(2 * len(CLASSES_H) + 2):
        at = PriceField.JOBS_TO_15_MIN + column
        shown[at] = np.float32(math.log1p(shown[at]) / 2.0)
    shown[PriceField.QUEUE] = np.float32(math.log1p(float(n)) / 3.0)
    shown[PriceField.WORK] = np.float32(math.log1p(work) / 2.0)
    shown[PriceField.LONG_WAIT] = np.float32(waited / max(n_long, 1) / 12.0)
    shown[PriceField.URGENCY] = np.float32(math.log1p(urgency) / 3.0)


@kernel
def show_running(jobs: Jobs, sim: PriceSim) -> None:
    """Write what share of the machine is busy, and is released soon by estimates."""
    shown, machine = sim.shown_event, sim.machine_processors
    shown[PriceField.BUSY] = np.float32((machine - sim.free) / machine)
    released, position = 0, sim.n_releases - 1  # the soonest is last
    for ahead in range(len(HORIZONS_H)):
        until = sim.now + HORIZONS_H[ahead] * HOUR_S
        while position >= 0 and sim.release_time[position] <= until:
            released += jobs.processors[sim.release_job[position]]
            position -= 1
        shown[PriceField.RELEASED_IN_1_H + ahead] = np.float32(released / machine)


@kernel
def show(jobs: Jobs, sim: PriceSim) -> None:
    """Write `shown_event`; writes `scratch`."""
    show_calendar(jobs, sim)
    show_waiting(jobs, sim)
    show_running(jobs, sim)
    for column in range(N_PRICE_FIELDS):
        shown = min(max(sim.shown_event[column], -LARGEST_SHOWN), LARGEST_SHOWN)
        sim.shown_event[column] = np.float32(shown)


def work(jobs: Jobs, sim: PriceSim, task: int, argument: int) -> int:
    """Do a task; `argument` is a job, an instant, or what a pass goes by."""
    if task == s.IS_BLOCKED:
        return int(is_too_wide(jobs, sim, argument) or is_held_back(jobs, sim, argument))
    if task == s.ON_START:
        charge(jobs, sim, argument)
    elif task == s.ON_SUBMIT:
        sim.hold_until[entry_of(sim, argument)] = 0
    elif task == s.NEXT_INSTANT:
        holds = sim.events_hear & s.IS_BLOCKED != 0
        is_over = sim.hours_begun > last_hour(jobs, sim)
        return s.NEVER if is_over or not holds else sim.hours_begun * HOUR_S
    elif task == s.ON_INSTANT:
        return begin_hour(jobs, sim)
    elif task == s.SHOW:
        show(jobs, sim)
    else:
        return work_within(jobs, sim, task, argument)
    return 0
