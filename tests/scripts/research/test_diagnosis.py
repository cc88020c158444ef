"""The diagnosis by counterfactuals: trees that learn, a planner that keeps what it takes."""

import numpy as np
import pytest

import hpcgym
from hpcgym.agent.rule import RuleAgent
from hpcgym.schedule.counterfactual import Future
from hpcgym.schedule.features import FEATURES
from research import diagnosis, trees


def week(seed=0, n_jobs=24):
    generator = np.random.default_rng(seed)
    run_time = np.ceil(generator.lognormal(6, 1.5, n_jobs)).astype(int)
    workload = hpcgym.Workload.from_arrays(
        np.sort(generator.integers(0, 6000, n_jobs)),
        run_time,
        run_time * generator.integers(1, 8, n_jobs),
        generator.choice([1, 2, 4, 8], n_jobs),
        user=generator.integers(0, 3, n_jobs),
        machine_processors=8,
    )
    return workload


def weeks(n=3):
    settings = hpcgym.SchedulerSettings()
    return diagnosis.weeks_of([week(seed) for seed in range(n)], RuleAgent("SAF"), settings)


def test_trees_find_a_step_and_ignore_noise():
    generator = np.random.default_rng(1)
    features = generator.random((4000, 3))
    target = np.where(features[:, 1] > 0.5, 2.0, -1.0)
    fitted = trees.fit(features, target + generator.normal(size=4000))
    fresh = generator.random((500, 3))
    error = fitted.predict(fresh) - np.where(fresh[:, 1] > 0.5, 2.0, -1.0)
    assert abs(error).mean() < 0.2


def test_the_sum_of_a_week_is_that_of_its_metrics():
    for one in weeks():
        schedule = hpcgym.simulate(one.workload, "SAF")
        total = schedule.metrics()["mean_bsld"] * len(one.workload)
        assert one.base == pytest.approx(total)


def test_a_planner_that_knows_all_to_the_end_is_never_worse():
    reached = [diagnosis.planned(one, [Future()]) for one in weeks()]
    base = [one.base for one in weeks()]
    assert all(np.array(reached) <= np.array(base) + 1e-6)
    assert sum(reached) < sum(base)


def test_labels_are_changes_with_features_of_their_jobs():
    labels = diagnosis.label(weeks())
    assert labels.features.shape == (len(labels.change), len(FEATURES))
    assert labels.truth.shape == (len(labels.change), 2)
    assert set(labels.week) == {0, 1, 2} and labels.change.any()
    told = diagnosis.share_of_decisions(labels, sum(one.base for one in weeks()))
    assert told["decisions"] == len(set(labels.at)) and told["options tried"] == len(labels.change)


def test_a_learner_that_flips_nothing_is_its_base():
    one = weeks(1)[0]
    fitted = trees.fit(np.zeros((100, len(FEATURES))), np.zeros(100))
    assert diagnosis.play(one, fitted, -1.0, False) == pytest.approx(one.base)
