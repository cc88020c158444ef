"""How near a simulation is to what a site recorded: the setting, the misfit and its noise.

The setting is the one whose mean, median and 90th percentile are together nearest to the recorded
ones on the first half of the log's time. What is said of it is said of the second half.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import steps
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.evaluation.store import Store
from hpcgym.schedule.recorded import overfull
from hpcgym.schedule.simulate import simulate
from hpcgym.site.causes import ineligible_share, missed, waiting_by_cause
from hpcgym.site.fit import Fit, Trial
from hpcgym.site.live.ranges import in_words
from hpcgym.site.live.replay import Jobs, replay
from hpcgym.site.log import SiteLog
from hpcgym.site.outcome import (
    HOUR_S,
    BoolArray,
    FloatArray,
    Outcome,
    Try,
    distance_h,
    outcomes,
    queue_lengths,
    wait_summary,
)
from hpcgym.site.told import Told
from hpcgym.trace.resample import jitter

JITTER_S = 60
COPIES = 4  # how far submissions are moved for the noise floor, and how often
TOGETHER = 2.3  # how long search, noise and options may take, in times of the search
NOISE_SHARE = 0.4  # of the time of noise and options

SHOWN = 20  # settings that were tried, the nearest; those that the site told are, however far
STEPS = 100  # of the queue, at the least, where its length is compared

CLASSES_H = (1 / 60, 1 / 6, 1.0, 8.0)
CLASS_NAMES = ("< 1 min", "< 10 min", "< 1 h", "< 8 h", "more")
"""Classes of waits, by their upper bounds in h; a scheduler's own delay is within the first."""

NEAR, ROUGH = 0.1, 1 / 3  # misfits of at most these shares of the recorded mean wait are called so


@dataclass(frozen=True, eq=False)
class Fidelity:
    """What the simulation of today's scheduler is, and how far it may be trusted."""

    recorded: Outcome  # what the log says
    fit: Fit  # the search for the scheduler that is nearest to the site's
    # By job, how far its wait moves at most when submissions move by a minute, one row for each
    # copy that ended in time, shape (n_copies, n_jobs), as differences to `simulated`, h.
    noise_h: FloatArray
    together_s: float = inf  # how long search, noise and options may take

    @property
    def until(self) -> float:
        """When options are to end, s of `time.monotonic`."""
        return self.fit.begin + self.together_s

    @property
    def settings(self) -> SchedulerSettings:
        """The scheduler that is nearest to the site's."""
        return self.fit.nearest.candidate.settings

    @property
    def simulated(self) -> Outcome:
        """What the simulation says."""
        return self.fit.nearest.outcome

    @property
    def simulations(self) -> tuple[Outcome, Outcome]:
        """The nearest, and the nearest without holds: read off the log, they make none nearer."""
        return self.simulated, self.fit.without_holds.outcome

    def misfit_h(self, jobs: BoolArray) -> float:
        """Return how far simulated waits of some jobs are from recorded ones, as `distance_h`."""
        waits = self.recorded.wait_h
        return max(distance_h(each.wait_h, waits, {"": jobs}) for each in self.simulations)


def find_setting(
    log: SiteLog,
    basis: SchedulerSettings,
    told: Told | None = None,
    store: Store | None = None,
    fit_s: float | None = None,
) -> Fidelity:
    """Find the setting nearest to a site's scheduler, and measure what it misses."""
    recorded = Outcome.recorded(log.workload)
    fit = Fit(log, basis, told or Told(), store, fit_s)
    assert fit.fit_s is not None  # it sets it
    together_s = TOGETHER * fit.fit_s
    used_s = time.monotonic() - fit.begin
    noise_until = fit.begin + used_s + NOISE_SHARE * (together_s - used_s)
    return Fidelity(recorded, fit, _noise(fit.nearest, store, noise_until), together_s)


def partitions(log: SiteLog, among: BoolArray) -> dict[str, BoolArray]:
    """Return which jobs of some are in each partition, largest first."""
    names, counts = np.unique(log.names["partition"][among].astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(names[at]): among & (log.names["partition"] == names[at]) for at in order}


def _noise(nearest: Trial, store: Store | None, until: float) -> FloatArray:
    """Return how much longer each job waits in copies with moved submissions, h.

    Copies but the first end at an instant, and are left out.
    """
    outcome, settings = nearest.outcome, nearest.candidate.settings
    numbered = replace(outcome.workload, source_row=np.arange(len(outcome.workload)))
    copies = [jitter(numbered, np.random.default_rng(copy), JITTER_S) for copy in range(COPIES)]
    noise: list[FloatArray] = []
    doing = "measuring the noise"
    tries = [Try(doing, moved, settings, at == 0) for at, moved in enumerate(copies)]
    with steps(COPIES, doing, "simulations") as progress:
        made = outcomes(tries, store, progress, until)
    for moved, again in zip(copies, made, strict=True):
        if isinstance(again, HpcgymError):
            raise again
        if again is not None:
            assert moved.source_row is not None  # stated above
            waits = np.empty(len(numbered))
            waits[moved.source_row] = again.wait_h
            noise.append(waits - outcome.wait_h)
    return np.stack(noise)


def trust(log: SiteLog, fidelity: Fidelity) -> dict[str, Any]:
    """Return the trust strip: recorded beside simulated on the judged half."""
    judged = log.is_judged
    recorded, simulated = fidelity.recorded.wait_h[judged], fidelity.simulated.wait_h[judged]
    misfit, mean = fidelity.misfit_h(judged), float(recorded.mean())
    classes = [np.searchsorted(CLASSES_H, waits, side="right") for waits in (recorded, simulated)]
    both, plain = _both(recorded, simulated), _without_holds(log, fidelity)
    return {
        "verdict": verdict(misfit, mean),
        "told": [*log.told, *fidelity.fit.of_told, *fidelity.fit.cut],
        "setting": str(fidelity.fit.nearest.candidate),
        "chosen_among": len(fidelity.fit.tried),
        **both,
        "misfit_h": misfit,
        "misfit_is_plain": misfit > distance_h(simulated, recorded, {"": recorded >= 0}),
        "noise_h": float(np.abs(fidelity.noise_h[:, judged].mean(axis=1)).max()),
        "correlation": _correlation(log, fidelity.recorded, fidelity.simulated),
        "without_holds": None if fidelity.fit.without_holds is fidelity.fit.nearest else plain,
        "forecasts": _forecasts(log.workload),
        "same_class": float((classes[0] == classes[1]).mean()),
        "fixed_share": ineligible_share(log),
        "missed": missed(both["recorded"], plain["simulated"], plain["correlation"]),
        "causes": waiting_by_cause(log, fidelity.simulations[1].wait_h),
        "held_share": _held_share(log, fidelity),
        "overfull_jobs": overfull(simulate(log.workload, "recorded", kill_at_limit=False)).n_jobs,
        "partitions": [
            {
                "name": name,
                "n": int(np.count_nonzero(jobs)),
                **_both(fidelity.recorded.wait_h[jobs], fidelity.simulated.wait_h[jobs]),
                "misfit_h": fidelity.misfit_h(jobs),
            }
            for name, jobs in partitions(log, judged).items()
        ],
        "classes": {
            "labels": list(CLASS_NAMES),
            **{
                name: (np.bincount(numbers, minlength=len(CLASS_NAMES)) / len(numbers)).tolist()
                for name, numbers in zip(("recorded", "simulated"), classes, strict=True)
            },
        },
        "candidates": [
            {
                "setting": str(trial.candidate),
                "apart": trial.apart,
                "n_jobs": len(trial.outcome.workload),
                "chosen": trial is fidelity.fit.nearest,
                "told": trial.candidate.is_told,
            }
            for at, trial in enumerate(fidelity.fit.tried)
            if at < SHOWN or trial.candidate.is_told
        ],
    }


def verdict(misfit_h: float, mean_h: float) -> str:
    """Say how near a simulation is whose mean wait misses the recorded one."""
    if misfit_h <= NEAR * mean_h:
        return "near"
    return "rough" if misfit_h <= ROUGH * mean_h else "far"


def _both(recorded: FloatArray, simulated: FloatArray) -> dict[str, dict[str, float]]:
    return {"recorded": wait_summary(recorded), "simulated": wait_summary(simulated)}


def _held_share(log: SiteLog, fidelity: Fidelity) -> float | None:
    """Return the share of judged waiting in which jobs are held as recorded; None: none is."""
    jobs, judged = fidelity.simulated.workload, log.is_judged
    waited = int(jobs.wait_time[judged].sum())
    if not fidelity.fit.nearest.candidate.is_held or jobs.eligible is None or not waited:
        return None
    held = np.maximum(jobs.eligible - jobs.submit_time, 0)
    return float(held[judged].sum() / waited)


def _without_holds(log: SiteLog, fidelity: Fidelity) -> dict[str, Any]:
    """Return the nearest setting whose jobs are not held."""
    plain = fidelity.fit.without_holds
    return {
        "setting": str(plain.candidate),
        "simulated": wait_summary(plain.outcome.wait_h[log.is_judged]),
        "correlation": _correlation(log, fidelity.recorded, plain.outcome),
    }


def _forecasts(jobs: Workload) -> str:
    """Say how often ranges of starts, as `hpcgym advise` gives them, would have held."""
    start = jobs.submit_time + jobs.wait_time
    end = start + jobs.run_time
    past = Jobs(jobs.submit_time, start, end, jobs.requested_time, jobs.processors)
    return in_words(replay(past, jobs.machine_processors))


def _correlation(log: SiteLog, *outcomes: Outcome) -> float | None:
    """Return how queue lengths go together, by the hour or in 100 steps; None: one is constant."""
    end = int(log.workload.submit_time[-1]) + 1
    instants = np.arange(log.split, end, min(HOUR_S, max(1, (end - log.split) // STEPS)))
    lengths = [queue_lengths(made, instants) for made in outcomes]
    if any(length.std() == 0 for length in lengths):
        return None
    together: FloatArray = np.asarray(np.corrcoef(np.stack(lengths)))
    return float(together[0, 1])
