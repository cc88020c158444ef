"""The environment where processors are down: what is shown, and what is refused."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import PolicyError
from hpcgym.core.observation_fields import ClusterField, JobField
from hpcgym.core.parts.outages import Outage
from hpcgym.env.rendering.snapshot import take_snapshot
from hpcgym.env.scenario.load import load_scenario

DAY_S = 86_400
DAILY = [
    Outage(at, at + 20_000, 200, announced=at - DAY_S * known)
    for at, known in zip(range(DAY_S, 120 * DAY_S, DAY_S), [1, 0] * 60, strict=False)
]
HORIZONS_S = (300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)


def scenario(events=DAILY, **changes):
    """Return weeks of a bundled log with outages."""
    plain = load_scenario("synthetic-256-weeks")
    spec = replace(plain.scheduler, events=";".join(map(str, events)), **changes)
    return replace(plain, scheduler=spec)


def shown_of(env, made, horizons):
    """Return what is free after each of some seconds, by what is known now."""
    now, jobs = int(env.unwrapped._sim.fields.now), made.workload
    events = [
        (one.from_ - jobs.time_offset, one.to - jobs.time_offset, one.processors)
        for one in DAILY
        if one.announced - jobs.time_offset <= now
    ]
    runs = (made.start_time >= 0) & (made.end_time > now)
    ends = made.start_time + jobs.requested_time

    def free_at(until):
        held = jobs.processors[runs & (ends > until)].sum()
        return 256 - held - sum(q for begin, end, q in events if begin <= until < end)

    return now, [free_at(now + ahead) for ahead in horizons], free_at


@pytest.mark.long
def test_what_is_shown_counts_known_outages():
    env = gymnasium.make("HPCBatch-v0", scenario=scenario(), action="policy")
    observation, _ = env.reset(options={"episode": "week 4"})
    is_over, n_ahead, n_refused = False, 0, 0
    while not is_over:
        made = env.unwrapped.schedule()
        now, free, free_at = shown_of(env, made, (0, *HORIZONS_S))
        first = ClusterField.FREE_PROCESSORS
        shown = observation["cluster"][first : first + len(free)]
        np.testing.assert_allclose(shown * 256, np.maximum(free, 0), atol=1e-3)
        n_ahead += env.unwrapped._sim.fields.looks_ahead
        slots = env.unwrapped._slot
        rows = observation["jobs"].reshape(len(slots), -1)
        for row, job in zip(rows, slots[slots >= 0], strict=False):
            until, wanted = now + made.workload.requested_time[job], made.workload.processors[job]
            begins = [one.from_ - made.workload.time_offset for one in DAILY]
            fits = all(free_at(u) >= wanted for u in [now, *begins] if now <= u < until)
            assert row[JobField.FITS_NOW] == fits
            n_refused += not fits and wanted <= free[0]
        observation, _, is_over, *_ = env.step(1)
    assert n_ahead > 100 and n_refused > 10


def test_jobs_that_an_outage_would_lose_are_refused_since_rewards_count_all():
    env = gymnasium.make("HPCBatch-v0", scenario=scenario(), action="policy")
    env.reset(options={"episode": "week 4"})
    jobs = env.unwrapped.schedule().workload
    losing = replace(jobs, requeue=np.arange(len(jobs)) > 0)
    with pytest.raises(PolicyError, match="must not be started again"):
        env.reset(options={"workload": losing})
    env.reset(options={"workload": replace(jobs, requeue=np.arange(len(jobs)) >= 0)})


def test_a_picture_shows_the_head_that_a_known_outage_makes_wait():
    """All 256 processors are down from 100 on; the second job would run into that."""
    jobs = hpcgym.Workload.from_arrays(
        [0, 0, 0], [50, 50, 50], [50, 300, 60], [100, 156, 200], machine_processors=256
    )
    given = scenario([Outage(100, 1000, 256)], policy="FCFS")
    env = gymnasium.make("HPCBatch-v0", scenario=given, action="policy", decide="event")
    env.reset(options={"workload": jobs})
    base = env.unwrapped
    episode = base._begun_episode
    shown = take_snapshot("", episode, base._jobs, base._begun_state, 0, base._sim)
    assert shown.reservation.job_id == 2
    assert shown.reservation.shadow_time == 1000
    assert shown.reservation.extra_processors == 100
