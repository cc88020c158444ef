"""The search for a site's setting: what it infers from recorded starts, and how it halves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.core.events import as_events
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.workload import Workload
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate_under
from hpcgym.site import fit, outcome
from hpcgym.site.causes import misfit_text
from hpcgym.site.comparison import compare
from hpcgym.site.fidelity import COPIES, SHOWN, Fidelity, find_setting, trust
from hpcgym.site.log import SiteLog, read_site_log
from hpcgym.site.outcome import Outcome
from hpcgym.site.told import Told

WEEK = 604_800


def drawn(seed: int, n_jobs: int = 60) -> Workload:
    """Draw jobs with recorded waits, without regard to any machine."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 3 * WEEK, n_jobs))
    run, request = rng.integers(1, 90_000, n_jobs), rng.integers(1, 4, n_jobs) * 30_000
    jobs = Workload.from_arrays(
        submit - submit[0], run, request, rng.integers(1, 5, n_jobs), machine_processors=400
    )
    waits = rng.integers(0, 2, n_jobs) * rng.integers(0, 200_000, n_jobs)
    return replace(jobs, wait_time=waits, user=rng.integers(0, 4, n_jobs))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("end", [2**62, WEEK])
def test_jobs_are_held_until_the_last_later_one_that_asks_for_no_less(seed: int, end: int) -> None:
    jobs = drawn(seed)
    kinds = np.random.default_rng(seed).choice(["a", "b"], len(jobs))
    start = jobs.submit_time + jobs.wait_time
    found = fit.held_until(jobs, kinds, end)
    for job in range(len(jobs)):
        passing = [
            start[other]
            for other in range(len(jobs))
            if jobs.submit_time[other] > jobs.submit_time[job]
            and start[other] < min(start[job], end)
            and jobs.processors[other] >= jobs.processors[job]
            and jobs.requested_time[other] >= jobs.requested_time[job]
            and kinds[other] == kinds[job]
        ]
        assert found[job] == max([*passing, jobs.submit_time[job]])
    assert (found > jobs.submit_time).any()


@pytest.mark.parametrize("seed", range(4))
def test_what_users_held_at_most_and_what_a_week_had_is_counted_second_by_second(seed: int) -> None:
    jobs = drawn(seed)
    start = jobs.submit_time + jobs.wait_time
    end = start + jobs.run_time
    among = jobs.submit_time < WEEK

    def held(at: int, of: Any) -> int:
        return int(jobs.processors[of & (start <= at) & (at < end)].sum())

    found = fit.peaks(jobs, jobs.user, jobs.processors, among)
    for user in set(jobs.user[among].tolist()):
        mine = among & (jobs.user == user)
        assert found[user] == max(held(at, mine) for at in start[mine])
    instants = [*start.tolist(), *range(0, int(end.max()), WEEK)]
    most = [
        max((held(at, True) for at in instants if at // WEEK == week), default=0)
        for week in range(int(end.max()) // WEEK + 1)
    ]
    stated = {event.from_: event.processors for event in as_events(fit.capacity_by_week(jobs))}
    assert stated == {
        jobs.time_offset + week * WEEK: 400 - each for week, each in enumerate(most) if each
    }


def test_of_a_long_log_only_the_nearest_and_what_is_told_are_tried_on_all_jobs(
    fcfs_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "MOST", 800)
    log = read_site_log(fcfs_log)
    found = fit.Fit(log, SchedulerSettings(kill_at_limit=False), Told("LPF", "none"), None)
    (told,) = (trial for trial in found.tried if trial.candidate.is_told)
    assert told.candidate.settings.policy == "LPF"
    lengths = [len(trial.outcome.workload) for trial in found.tried]
    assert len(told.outcome.workload) == len(log.workload)
    assert lengths.count(len(log.workload)) == fit.KEPT + 1
    assert lengths.count(800) == len(lengths) - fit.KEPT - 1 > 20
    nearest = str(found.nearest.candidate), found.nearest.apart
    assert nearest == ("FCFS, backfill easy, no threshold", 0)
    assert found.nearest is found.without_holds


@pytest.mark.parametrize(
    ("order", "backfill"),
    [
        ("multifactor:age=1000,jobsize=1000", "slurm"),
        ("WFP3", "none"),
        ("MULTIFACTOR", "conservative"),
    ],
)
def test_an_order_and_a_mode_that_are_usual_together_are_found_untold(
    site_log: Callable[..., Path], order: str, backfill: str
) -> None:
    found = settings_in_time(read_site_log(site_log(order, backfill=backfill)), 1e6, Told())
    alike = [str(trial.candidate) for trial in found.tried if trial.apart == 0]
    assert f"{order}, backfill {backfill}, no threshold" in alike
    assert len(found.tried) == len({str(trial.candidate) for trial in found.tried})


def test_of_orders_and_modes_together_one_that_is_near_by_chance_stands_behind() -> None:
    def trial(apart: float, by_job_h: float, is_crossed: bool) -> fit.Trial:
        candidate = fit.Candidate(SchedulerSettings(), is_crossed=is_crossed)
        return fit.Trial(candidate, np.full(3, apart), by_job_h, SimpleNamespace())  # type: ignore[arg-type]

    made = [trial(0.1, 9.1, True), trial(0.4, 5.0, False), trial(0.3, 10.0, False)]
    made += [trial(0.2, 8.9, True)]
    order = [(each.by_job_h, each.is_chance) for each in fit.ranked(made)]
    assert order == [(8.9, False), (10.0, False), (5.0, False), (9.1, True)]


def test_no_setting_is_tried_twice(fcfs_log: Path) -> None:
    log, basis = read_site_log(fcfs_log), SchedulerSettings(kill_at_limit=False)
    every = [str(each) for each in fit.candidates(log, basis, Told("fair-share"))]
    assert len(set(every)) == len(every) > 20


def test_a_simulation_ends_when_its_time_is_over() -> None:
    jobs, settings = hpcgym.load_workload("tiny"), SchedulerSettings("SAF")
    in_time = simulate_under(jobs, settings, 60.0)
    assert (in_time.start_time == hpcgym.simulate(jobs, "SAF").start_time).all()
    with pytest.raises(TimeoutError, match="tiny: no end within 0 s"):
        simulate_under(jobs, settings, 0.0)


def settings_in_time(log: SiteLog, fit_s: float | None, told: Told) -> fit.Fit:
    return fit.Fit(log, SchedulerSettings(kill_at_limit=False), told, None, fit_s)


@pytest.mark.long
def test_a_search_that_has_time_is_the_same_on_any_threads_and_any_day(
    fcfs_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "MOST", 800)
    log = read_site_log(fcfs_log)
    found = []
    for threads, fit_s in ((1, None), (3, 1e6)):
        monkeypatch.setattr(outcome, "checked_threads", lambda _, threads=threads: threads)
        found.append(settings_in_time(log, fit_s, Told()))
    for one, other in zip(*(each.tried for each in found), strict=True):
        assert (str(one.candidate), one.apart) == (str(other.candidate), other.apart)
        assert (one.outcome.start_time == other.outcome.start_time).all()
    assert not found[0].cut + found[1].cut
    assert [each.fit_s for each in found] == [fit.FIT_S, 1e6]


@pytest.mark.long
@pytest.mark.parametrize("tries", [0, 36, 1_000])
def test_a_search_ends_when_its_time_is_over_and_says_how_many_it_tried(
    fcfs_log: Path, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    clock = count()  # a second for each look at it
    for name in ("fit", "outcome", "fidelity", "comparison"):
        now = SimpleNamespace(monotonic=lambda: next(clock))
        monkeypatch.setattr(f"hpcgym.site.{name}.time", now)
    monkeypatch.setattr(fit, "MOST", 800)
    log = read_site_log(fcfs_log)
    told = Told("LPF", "none")
    n_all = len(list(fit.candidates(log, SchedulerSettings(kill_at_limit=False), told)))
    fit_s = min(tries, n_all + 5)
    fidelity = find_setting(log, SchedulerSettings(kill_at_limit=False), told, None, fit_s)
    found = fidelity.fit
    whole = [trial for trial in found.tried if len(trial.outcome.workload) == len(log.workload)]
    assert any(trial.candidate.is_told for trial in whole)
    assert found.nearest in whole and len(whole) < fit.KEPT
    assert len({str(trial.candidate) for trial in found.tried}) == len(found.tried)
    if fit_s < n_all:
        assert fit_s / 6 <= len(found.tried) < fit_s / 2 + 10  # three looks at the clock for each
    if fit_s == 0:
        compared = compare(log, fidelity)
        assert len(fidelity.noise_h) == 1 and not compared.options
        n, names = len(compared.untried), "; ".join(compared.untried)
        said = (
            "noise and options ended 0 s after the search began: of 4 copies for the noise 1 were "
            f"simulated, and of {n} options 0; left out: {names}"
        )
        assert n > 10 and compared.cut == [said]
    n_of = len(found.tried) + found.n_untried
    n_more = sum(most for most, _ in fit.CROSSED)
    # With holds, where time is over before they are tried.
    assert n_all <= n_of <= n_all + n_more or 2 * n_all <= n_of <= 2 * (n_all + n_more)
    of_all = f"{len(found.tried)} of {n_of}" if found.n_untried else f"all {n_of}"
    said = (
        f"the search for today's setting ended after {fit_s} s: it tried {of_all} settings, and "
        f"{len(whole)} of them on the whole log"
    )
    trusted = trust(log, fidelity)
    assert trusted["told"][-1] == said
    ((at, trial),) = (each for each in enumerate(found.tried) if each[1].candidate.is_told)
    shown = [row["apart"] for row in trusted["candidates"] if row["told"]]
    assert shown == [trial.apart]
    place = f"{trial.apart:.0%} apart, place {at + 1} of {len(found.tried)}"
    assert trusted["told"][-2] == f"told was {trial.candidate}: {place}"
    assert len(trusted["candidates"]) <= SHOWN + (at >= SHOWN)


@pytest.mark.parametrize("fit_s", [100, 20])
def test_an_option_that_takes_long_keeps_no_other_from_its_turn(
    fcfs_log: Path, monkeypatch: pytest.MonkeyPatch, fit_s: int
) -> None:
    log = read_site_log(fcfs_log)
    plain = settings_in_time(log, 1e6, Told())
    passed = [plain.begin]

    def simulated(jobs: Workload, settings: SchedulerSettings, seconds: float) -> Schedule:
        needed = 100.0 if str(settings.policy) == "SQF" else 0.5
        passed[0] += min(needed, seconds)
        if needed > seconds:
            raise TimeoutError
        return simulate_under(jobs, settings)

    for name in ("outcome", "comparison"):
        now = SimpleNamespace(monotonic=lambda: passed[0])
        monkeypatch.setattr(f"hpcgym.site.{name}.time", now)
    monkeypatch.setattr(outcome, "checked_threads", lambda _: 1)
    monkeypatch.setattr("hpcgym.site.comparison.compile_ahead", lambda *_: None)
    monkeypatch.setattr(outcome, "simulate_under", simulated)
    recorded = Outcome.recorded(log.workload)
    none = np.zeros((COPIES, len(log.workload)))
    compared = compare(log, Fidelity(recorded, plain, none, 2.0 * fit_s))
    assert compared.untried == (() if fit_s == 100 else ("SQF",))
    assert len(compared.options) > 10


def test_what_is_told_is_tried_first_and_limits_are_in_every_candidate(
    site_log: Callable[..., Path],
) -> None:
    limits = as_events("limit:per=user,jobs=3")
    order = "multifactor:age=10,jobsize=1000"
    log = read_site_log(site_log(order, backfill="slurm:interval=300", events=limits, n_jobs=1_000))
    told = Told(order, "slurm:interval=300", limits)
    found = fit.Fit(log, SchedulerSettings(kill_at_limit=False), told, None)
    assert found.nearest.apart == 0
    assert str(found.nearest.candidate).startswith(f"{order}, backfill slurm:interval=300")
    assert all(limits[0] in trial.candidate.settings.events for trial in found.tried)
    modes = {str(trial.candidate.settings.backfill).partition(":")[0] for trial in found.tried}
    assert modes == {"easy", "none", "slurm"}


def test_a_limit_that_the_log_shows_is_tried_in_the_order_that_is_told(
    site_log: Callable[..., Path],
) -> None:
    order, limits = "multifactor:age=10,jobsize=1000", as_events("limit:per=user,jobs=3")
    log = read_site_log(site_log(order, backfill="slurm:interval=300", events=limits, n_jobs=1_000))
    told = Told(order, "slurm:interval=300")
    found = fit.Fit(log, SchedulerSettings(kill_at_limit=False), told, None).nearest
    assert (found.apart, found.candidate.is_told) == (0, False)
    assert str(found.candidate).startswith(f"{order}, backfill slurm:interval=300")
    assert str(found.candidate).endswith("at most 3 jobs of a user")


@pytest.mark.long
def test_a_hold_that_no_setting_explains_is_found_and_its_share_is_told(fcfs_log: Path) -> None:
    jobs = read_site_log(fcfs_log).workload
    late = np.zeros(len(jobs), dtype=np.int64)
    late[::3] = 400_000
    log = read_site_log(fcfs_log)
    log = replace(log, workload=replace(jobs, wait_time=jobs.wait_time + late))
    fidelity = find_setting(log, SchedulerSettings(kill_at_limit=False))
    trusted = trust(log, fidelity)
    assert trusted["setting"].endswith("jobs held as recorded")
    held = fit.held_until(log.workload, log.names["partition"].astype(str), 2**62)
    judged = log.is_judged
    share = (held - log.workload.submit_time)[judged].sum() / log.workload.wait_time[judged].sum()
    assert trusted["held_share"] == pytest.approx(share) and 0.3 < share < 1
    assert not trusted["without_holds"]["setting"].endswith("held as recorded")
    # Holds are read off what is judged, so they make no simulation nearer.
    plain, judged = (
        fidelity.fit.without_holds.outcome.wait_h[judged],
        log.workload.wait_time[judged],
    )
    assert trusted["misfit_h"] == pytest.approx(
        np.abs(np.sort(plain) - np.sort(judged / 3600)).mean()
    )
    assert trusted["verdict"] == "far" and trusted["misfit_is_plain"]
    assert misfit_text(trusted).endswith(" without holds")
