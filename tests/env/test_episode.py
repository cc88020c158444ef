"""Episodes kept ready between draws."""

import numpy as np

from hpcgym.core.workload import Workload
from hpcgym.env import episode
from hpcgym.env.episode import Preparer
from hpcgym.scenario.episodes import Episodes


def workload_of(n_jobs: int) -> Workload:
    times = np.arange(n_jobs)
    return Workload.from_arrays(times, times + 1, times + 1, np.ones(n_jobs), machine_processors=4)


def preparer() -> Preparer:
    episodes = Episodes("tiny")
    return Preparer(
        episodes,
        episodes.settings,
        decide="contested",
        policies=[],
        reward="bsld",
        baseline=None,
        expectations=None,
    )


def test_an_episode_drawn_again_is_the_same_object():
    kept, jobs = preparer(), workload_of(3)
    assert kept.of(jobs) is kept.of(jobs)


def test_no_more_jobs_are_kept_than_the_bound_and_the_latest_episode_always_is(monkeypatch):
    monkeypatch.setattr(episode, "KEPT_JOBS", 10)
    kept, parts = preparer(), [workload_of(n) for n in (4, 5, 6, 40)]
    first = [kept.of(part) for part in parts[:2]]
    assert [kept.of(part) for part in parts[:2]] == first
    kept.of(parts[2])
    assert kept.of(parts[0]) is not first[0]
    large = kept.of(parts[3])
    assert kept.of(parts[3]) is large
