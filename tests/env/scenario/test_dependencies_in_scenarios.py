"""Scenarios in which jobs wait for others: what they read, cut, change, and evaluate."""

import gymnasium
import numpy as np
import pytest

import hpcgym
from hpcgym.base.errors import ScenarioError, TraceError
from hpcgym.env.scenario.augment import Augmentation, AugmentedEpisodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import parse_scenario
from hpcgym.evaluation import evaluate

WEEK_S = 604_800

SCENARIO = """
description = "Jobs that follow others."
trace = {{ file = "{file}", missing_request = "max" }}
machine = {{ processors = 4, largest_request_s = 900 }}
episode = {{ {episode} }}
scheduler = {{ dependencies = "{kind}", policy = "SAF" }}
"""


def written(path, seed=0, n_weeks=4, n_jobs=12):
    """Write a log of weeks whose jobs follow others of the log; return its path."""
    generator = np.random.default_rng(seed)
    lines = ["; MaxProcs: 4", "; UnixStartTime: 0"]
    submit = np.repeat(WEEK_S * np.arange(n_weeks), n_jobs)
    submit = np.sort(submit + generator.integers(0, 3_000, len(submit)))  # a busy hour a week
    submit[0] = 0
    for job, at in enumerate(submit.tolist(), 1):
        run_time, size = generator.integers(20, 900), generator.integers(1, 5)
        before = job - 1 if job % 2 == 0 else generator.integers(-1, job)
        before = before if before > 0 else -1
        numbers = (job, at, 0, run_time, size, -1, -1, size, 900, -1, 1, job % 3 + 1)
        lines.append(" ".join(map(str, (*numbers, -1, -1, -1, -1, before, job % 7))))
    path.write_text("\n".join(lines) + "\n")
    return path


def episodes_of(path, kind="start", episode='kind = "week"'):
    """Return the episodes of a log."""
    text = SCENARIO.format(file=path, kind=kind, episode=episode)
    return Episodes(parse_scenario(text, name="drawn"))


@pytest.mark.parametrize("kind", ["start", "feedback"])
def test_a_week_has_the_jobs_before_others_that_are_in_it(tmp_path, kind):
    path = written(tmp_path / "log.swf")
    log = hpcgym.load_workload(path, dependencies=True)
    episodes = episodes_of(path, kind)
    assert episodes_of(path, "ignore").workload(0).after is None
    n_outside = 0
    for index in range(len(episodes)):
        week = episodes.workload(index)
        row = np.searchsorted(log.job_id, week.job_id)
        named = log.after[row]
        inside = np.isin(named, row)
        n_outside += int(((named >= 0) & ~inside).sum())
        got = np.where(week.after >= 0, row[week.after], -1)
        assert got.tolist() == np.where(inside, named, -1).tolist()
        schedule = hpcgym.simulate(week, "SAF", dependencies=kind)
        after = week.after >= 0
        begins = schedule.end_time[week.after] + week.think_time
        assert (schedule.eligible_time >= begins)[after].all()
        assert (schedule.eligible_time == week.submit_time)[~after].all()
    assert n_outside > 0 and (episodes.workload(0).after >= 0).any()


def test_a_week_is_played_as_it_is_simulated(tmp_path):
    episodes = episodes_of(written(tmp_path / "log.swf"), "feedback")
    keywords = {"scenario": episodes, "action": "policy", "policies": ["SPF"]}
    env = gymnasium.make("HPCBatch-v0", **keywords).unwrapped
    for label, index in zip(episodes.labels, range(len(episodes)), strict=True):
        env.reset(options={"episode": label})
        while not env.step(0)[2]:
            pass
        expected = hpcgym.simulate(episodes.workload(index), "SPF", dependencies="feedback")
        assert env.schedule().start_time.tolist() == expected.start_time.tolist()


class Lowest:
    """An agent that always takes its first policy, SPF."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return 0, state


def test_agents_are_evaluated_on_weeks_and_their_jittered_copies(tmp_path):
    from hpcgym.agent.base import NamedAgent

    episodes = episodes_of(written(tmp_path / "log.swf"))
    agent = NamedAgent("LOWEST", Lowest(), {"action": "policy", "policies": ["SPF"]})
    found = evaluate([agent, "SPF", "DYNP"], episodes, jitter=60, replicas=2, progress=False)
    by_agent = dict(list(found.frame.groupby("agent")))
    assert set(by_agent) == {"LOWEST", "SPF", "SAF"}, "DYNP chooses as it goes"
    for key in ("mean_bsld", "mean_wait_time", "makespan"):
        one, other = by_agent["LOWEST"][key].tolist(), by_agent["SPF"][key].tolist()
        assert one == pytest.approx(other)
    assert by_agent["SPF"]["mean_bsld"].nunique() > len(episodes)


def test_changed_episodes_keep_jobs_behind_others_or_are_refused(tmp_path):
    path = written(tmp_path / "log.swf")
    episodes = episodes_of(path)
    changes = {"jitter": 30, "load": (0.9, 1.1), "resampled": 0.5, "window": (1_000, 500_000)}
    changed = AugmentedEpisodes(episodes, Augmentation(**changes, easiest=1))
    env = gymnasium.make(
        "HPCBatch-v0", scenario=changed, action="policy", policies=["SPF"]
    ).unwrapped
    n_after = 0
    for seed in range(12):
        env.reset(seed=seed)
        jobs = env.workload
        n_after += int((jobs.after >= 0).sum())
        assert (jobs.after < len(jobs)).all() and (jobs.after != np.arange(len(jobs))).all()
        while not env.step(0)[2]:
            pass
        expected = hpcgym.simulate(jobs, "SPF", dependencies="start")
        assert env.schedule().start_time.tolist() == expected.start_time.tolist()
    assert n_after > 0
    with pytest.raises(ScenarioError, match="generated weeks say of no job which is before it"):
        AugmentedEpisodes(episodes, Augmentation(generated=0.5))
    sample = 'kind = "resampled", episodes = 3, seed = 1'
    sampled = episodes_of(path, episode=sample)
    assert (sampled.workload(0).after >= 0).any()


def test_a_log_that_names_no_job_before_another_is_refused(tmp_path):
    path = written(tmp_path / "log.swf", n_jobs=1)
    lines = [line.split() for line in path.read_text().splitlines()]
    path.write_text("\n".join(" ".join([*w[:16], "-1", "-1"][: len(w)]) for w in lines) + "\n")
    with pytest.raises(TraceError, match="field 17 names no job before another"):
        episodes_of(path)
