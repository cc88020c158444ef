"""Episodes that stay prepared between draws."""

import numpy as np

from hpcgym.core.workload import Workload
from hpcgym.env import config
from hpcgym.env.config import EnvConfig


def workload_of(n_jobs: int) -> Workload:
    times = np.arange(n_jobs)
    return Workload.from_arrays(times, times + 1, times + 1, np.ones(n_jobs), machine_processors=4)


def test_an_episode_drawn_again_is_the_same_object():
    kept, jobs = EnvConfig("tiny"), workload_of(3)
    assert kept.episode_of(jobs) is kept.episode_of(jobs)


def test_no_more_jobs_are_kept_than_the_bound_and_the_latest_episode_always_is(monkeypatch):
    monkeypatch.setattr(config, "KEPT_JOBS", 10)
    kept, parts = EnvConfig("tiny"), [workload_of(n) for n in (4, 5, 6, 40)]
    first = [kept.episode_of(part) for part in parts[:2]]
    assert [kept.episode_of(part) for part in parts[:2]] == first
    kept.episode_of(parts[2])
    assert kept.episode_of(parts[0]) is not first[0]
    large = kept.episode_of(parts[3])
    assert kept.episode_of(parts[3]) is large
