"""Environments in which jobs wait for others: what they schedule, pay and show."""

import pickle
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hpcgym
from dependent_cases import conditional_tables, ending_later, tables, workload_of
from env_cases import plain_env
from hpcgym.core.compiler.struct import IS_COMPILED
from hpcgym.core.dependencies import cancelled_jobs
from hpcgym.core.parts.dependencies import Dependencies
from hpcgym.env import buffers
from hpcgym.env.rendering import snapshot
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WholeEpisode
from hpcgym.env.scheduling import SchedulingEnv
from strategies import one_of

KINDS = ("ignore", "start", "feedback")
ORDERS = ("FCFS", "SAF", "SPF", "LCFS", "SMITH")
MODES = ("none", "easy", "depth:k=2", "conservative", "easy:cap=0.5,long=10", "slack:c=1")


def episodes_of(jobs, largest=None, **scheduler):
    """Return one episode of a workload, whose scenario has requests of `largest` s at most."""
    largest = max(jobs.largest_request, 2) if largest is None else largest
    return Episodes(
        Scenario(
            name="drawn",
            description="Drawn by a test.",
            trace=TraceSpec(name="tiny", missing_request="drop"),
            machine=MachineSpec(jobs.machine_processors, largest, nodes=jobs.machine),
            episode=WholeEpisode(),
            scheduler=SchedulerSpec(**scheduler),
        ),
        workload=jobs,
    )


def env_of(jobs, policies, keywords, **scheduler):
    """Return an environment that chooses among policies."""
    return gymnasium.make(
        "HPCBatch-v0",
        scenario=episodes_of(jobs, **scheduler),
        action="policy",
        policies=policies,
        disable_env_checker=True,
        **keywords,
    ).unwrapped


def play(env, choose=lambda: 0):
    """Play an episode; return the sum of rewards and all that was shown."""
    shown, _ = env.reset(seed=0)
    seen, total, is_over = [shown], 0.0, False
    while not is_over:
        shown, reward, is_over, _, _ = env.step(choose())
        seen.append(shown)
        total += reward
    return total, seen


@given(
    rows=tables() | conditional_tables(),
    kind=one_of(KINDS),
    threshold=one_of((None, 5)),
    action=one_of(("order", "job", "weights")),
    expectations=one_of((None, "records", "regression")),
    n_slots=one_of((2, 128)),
    seed=st.integers(0, 99),
)
def test_what_is_shown_is_what_a_log_shows_that_has_each_job_when_it_was_eligible(
    rows, kind, threshold, action, expectations, n_slots, seed
):
    """So nothing is shown of jobs that are not eligible, nor of how those before them will end."""
    rows = ending_later(rows)
    jobs = workload_of(rows)
    keywords = {"action": action, "expectations": expectations, "n_slots": n_slots}
    keywords |= {"decide": "event", "baseline": None}
    largest = jobs.largest_request

    def env_for(workload, dependencies):
        scheduler = {"threshold_s": threshold, "dependencies": dependencies}
        return plain_env(episodes_of(workload, largest, **scheduler), **keywords)

    env, seen, actions = env_for(jobs, kind), [], []
    env.action_space.seed(seed)
    shown, _ = env.reset(seed=0)
    is_over = False
    while not is_over:
        actions.append(env.action_space.sample())
        seen.append((shown, env.now))
        shown, reward, is_over, _, _ = env.step(actions[-1])
        seen[-1] += (reward,)
    got = env.schedule()
    ran = np.ones(len(rows), dtype=bool) if got.cancelled is None else ~got.cancelled
    alone = [
        job._replace(after=-1, eligible=-1, condition=0, fails=False, think_time=0) for job in rows
    ]
    eligible = got.jobs.submit_time
    again = workload_of(alone).select(ran).resubmitted(eligible[ran])
    order = np.flatnonzero(ran)[np.argsort(eligible[ran], kind="stable")]
    other = env_for(again, "ignore")
    shown, _ = other.reset(seed=0)
    total = 0.0
    for taken, (was_shown, was_now, was_paid) in zip(actions, seen, strict=True):
        assert other.now == was_now
        for key, array in shown.items():
            np.testing.assert_array_equal(array, was_shown[key], key)
        shown, reward, is_over, _, _ = other.step(taken)
        assert reward == pytest.approx(was_paid, abs=1e-12)
        total += reward
        if is_over:  # what follows in the other cancels jobs only
            break
    theirs = other.schedule()
    for key in ("start_time", "backfilled", "thresholded"):
        np.testing.assert_array_equal(getattr(got, key)[order], getattr(theirs, key), key)
    assert total == pytest.approx(-got.metrics()["mean_bsld"])


@given(
    rows=tables() | conditional_tables(),
    kind=one_of(("start", "feedback")),
    baseline=one_of(("FCFS", "LCFS", "SAF")),
    policy=one_of(("SPF", "LCFS")),
    reward=one_of(("bsld", "bsld_start", "bsld_end", "wait", "pp_bsld", "ratio", "relative")),
)
def test_a_paired_reward_compares_with_the_baseline_as_it_plays_by_itself(
    rows, kind, baseline, policy, reward
):
    jobs = workload_of(rows)
    keywords = {"reward": reward, "baseline": baseline, "decide": "event"}
    total, _ = play(env_of(jobs, [policy], keywords, dependencies=kind))
    agent, other = (
        hpcgym.simulate(jobs, name, dependencies=kind).metrics() for name in (policy, baseline)
    )
    named = {"wait": "mean_wait_time", "pp_bsld": "mean_pp_bsld"}.get(reward, "mean_bsld")
    one, two = agent[named], other[named]
    by = {"ratio": two, "relative": max(one, two)}.get(reward, 1)
    assert total == pytest.approx((two - one) / by, abs=1e-9)


@given(rows=tables(), kind=one_of(KINDS), limit=st.integers(1, 6))
def test_at_a_time_limit_the_jobs_that_wait_count_as_if_they_started_then(rows, kind, limit):
    jobs = workload_of(rows)
    env = env_of(jobs, ["SAF"], {"decide": "event", "reward": "wait"}, dependencies=kind)
    limited = gymnasium.wrappers.TimeLimit(env, limit)
    limited.reset(seed=0)
    total, is_over, info = 0.0, False, {}
    while not is_over:
        _, reward, terminated, truncated, info = limited.step(0)
        is_over = terminated or truncated
        total += reward
    made = env.schedule()
    came = made.eligible_time if made.eligible_time is not None else jobs.submit_time
    waits = np.where(made.start_time >= 0, made.start_time, env.now) - came
    counted = waits[came <= env.now]
    assert total == pytest.approx(-counted.sum() / len(rows))
    assert info["n_jobs"] == len(counted) == env.metrics()["n_jobs"]
    assert info["mean_wait_time"] == pytest.approx(counted.mean())


@settings(max_examples=8, phases=(Phase.generate,))  # uncompiled, to shrink takes minutes
@given(
    tables_=st.lists(conditional_tables(), min_size=2, max_size=2),
    kind=one_of(KINDS),
    mode=one_of(("NextStep", "SameStep")),
    present=one_of((1, 2, 112)),
    seed=st.integers(0, 99),
)
def test_a_vector_plays_as_single_environments_do(tables_, kind, mode, present, seed):
    """Two environments of each workload, which share its episode, by other actions each."""
    every = [episodes_of(workload_of(rows), 200, dependencies=kind) for rows in tables_]
    keywords = {"action": "order", "n_slots": 4, "baseline": "SAF"}
    n_envs = 2 * len(every)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "PRESENT_JOBS", present)
        vector = gymnasium.make_vec(
            "HPCBatch-v0", n_envs, scenario=every, autoreset_mode=mode, threads=1, **keywords
        )
        alone = [SchedulingEnv(every[env % len(every)], **keywords) for env in range(n_envs)]
        vector.action_space.seed(seed)
        shown, _ = vector.reset(seed=seed)
        theirs = [env.reset(seed=seed)[0] for env in alone]
        over = np.zeros(n_envs, dtype=bool)
        for step in range(12):
            for key, array in shown.items():
                expected = np.stack([one[key] for one in theirs])
                np.testing.assert_array_equal(array, expected, key)
            if step == 6:
                vector = pickle.loads(pickle.dumps(vector))
                alone = pickle.loads(pickle.dumps(alone))
            actions = vector.action_space.sample()
            shown, rewards, ended, _, info = vector.step(actions)
            for env, single in enumerate(alone):
                if over[env]:  # this step has reset it
                    theirs[env] = single.reset()[0]
                    assert (rewards[env], ended[env]) == (0, False)
                    continue
                theirs[env], reward, is_over, _, own = single.step(actions[env])
                assert (reward, is_over) == (rewards[env], ended[env])
                if is_over:
                    final = info if mode == "NextStep" else info["final_info"]
                    for key in ("n_jobs", "mean_bsld", "makespan", "complete"):
                        assert final[key][env] == own[key], key
                    if mode == "SameStep":
                        theirs[env] = single.reset()[0]
                else:
                    one, other = single.schedule(), vector.envs[env].schedule()
                    assert one.start_time.tolist() == other.start_time.tolist()
                    expected = pytest.approx(single.metrics(), nan_ok=True)
                    assert vector.envs[env].metrics() == expected
            over = ended.copy() if mode == "NextStep" else np.zeros_like(ended)


@given(rows=conditional_tables(), kills=st.booleans(), kind=one_of(KINDS))
def test_which_jobs_are_cancelled_is_known_beforehand(rows, kills, kind):
    jobs = workload_of(rows)
    found = cancelled_jobs(jobs, Dependencies(kind, kills))
    schedule = hpcgym.simulate(jobs, kill_at_limit=kills, dependencies=kind)
    expected = np.zeros(len(rows), dtype=bool)
    if schedule.cancelled is not None:
        expected = schedule.cancelled
    assert found.tolist() == expected.tolist()


@given(rows=tables(), kind=one_of(KINDS))
def test_an_episode_can_be_drawn_at_any_time(rows, kind):
    """Text and image show the jobs by their rows in the job table."""
    jobs = workload_of(rows)
    env = plain_env(episodes_of(jobs, dependencies=kind), render_mode="ansi", decide="event")
    env.action_space.seed(1)
    env.reset(seed=0)
    is_over = False
    while not is_over:
        made = env.schedule()
        came = jobs.submit_time if made.eligible_time is None else made.eligible_time
        frame = snapshot.take_snapshot(
            "t", env._begun_episode, env._jobs, env._begun_state, 0, env._sim
        )
        waits = np.flatnonzero((came <= env.now) & (made.start_time < 0))
        assert sorted(frame.waiting.job_id.tolist()) == jobs.job_id[waits].tolist()
        ends = frame.started.start_time + jobs.requested_time[frame.started.job]
        running = frame.started.running
        assert (frame.started.end_time[running] == np.maximum(ends, env.now)[running]).all()
        assert env.render()
        is_over = env.step(env.action_space.sample())[2]


@pytest.mark.long
@pytest.mark.skipif(not IS_COMPILED, reason="takes minutes uncompiled")
@pytest.mark.parametrize("kind", ["start", "feedback"])
def test_a_whole_log_with_drawn_dependencies_is_played_as_it_is_simulated(kind):
    """A third of the jobs of 10,000 are after a drawn one of their user, under any condition."""
    log = hpcgym.load_workload("synthetic-256")
    generator, n = np.random.default_rng(1), len(log)
    last: dict[int, int] = {}
    after = np.full(n, -1)
    for job, user in enumerate(log.user.tolist()):
        if generator.random() < 1 / 3:
            after[job] = last.get(user, -1)
        last[user] = job
    jobs = replace(
        log,
        after=after,
        think_time=generator.integers(0, 3_600, n),
        condition=generator.choice([0, 0, 0, 1, 2], n),
        fails=generator.random(n) < 0.3,
        eligible=np.where(generator.random(n) < 0.1, log.submit_time + 7_200, -1),
    )
    scheduler = {"threshold_s": 100_000, "dependencies": kind}
    env = env_of(jobs, ["SPF"], {"baseline": "SAF", "reward": "bsld"}, **scheduler)
    total, _ = play(env)
    got, settings = env.schedule(), {"threshold": 100_000, "dependencies": kind}
    expected, saf = (hpcgym.simulate(jobs, name, **settings) for name in ("SPF", "SAF"))
    for key in ("start_time", "backfilled", "thresholded", "eligible_time", "cancelled"):
        np.testing.assert_array_equal(getattr(got, key), getattr(expected, key), key)
    assert got.cancelled.sum() > 300 and (got.eligible_time > jobs.submit_time).sum() > 2_000
    paid = saf.metrics()["mean_bsld"] - expected.metrics()["mean_bsld"]
    assert total == pytest.approx(paid, rel=1e-9)
    many = hpcgym.simulate_many([jobs], ["SPF", "SAF", "SPF"], **settings)["mean_bsld"][0]
    alone = [one.metrics()["mean_bsld"] for one in (expected, saf, expected)]
    assert many == pytest.approx(alone)
