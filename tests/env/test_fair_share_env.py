"""What environments make of fair share and limits: sight, choice, fields and pay."""

from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_fair_share
import reference_limits
from engines import jobs_of
from env_cases import (
    Case,
    assert_vector_plays_alike,
    busy_workload,
    cases,
    env_of,
    episodes_of,
    play_at_random,
    random_action,
    rules_for,
    starts_under,
    twin_of,
)
from env_twin import EnvTwin, Simulation
from hpcgym.base.errors import HpcgymError
from hpcgym.core.orders.fair_share import fair_share
from hpcgym.core.parts.fair_share import CLASSIC, FAIR_TREE, FairShare
from hpcgym.core.policy import register_policy, unregister_policy
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.machine.accounts import Accounts
from reference_profile import Planner
from strategies import one_of

FIELDS = ("user_share", "user_usage", "user_fair_share")


# --- Limits ---------------------------------------------------------------------------------------


class LimitedSimulation(reference_limits.LimitedMachine, Simulation):
    """The agent's machine, where jobs beyond a limit are out of sight."""

    stopped = False

    def is_seen(self, j):
        """Say whether no limit holds a waiting job now."""
        return not self.beyond(j)

    def next_pass(self):
        """Return the next instant that has a pass; minutes have some, too."""
        self.let_in = self.next_let_in()
        return min(super().next_pass(), self.let_in)

    def handle_events(self, t):
        """Say whether anything happens."""
        return super().handle_events(t) or t == self.let_in

    def is_contested(self):
        """Say whether two jobs within the threshold may start, and one of those fits."""
        seen = list(filter(self.is_seen, self.waiting()))
        within = [j for j in seen if not self.is_thresholded(j, self.now)]
        fits = any(self.jobs[j].processors <= self.free for j in seen)
        return len(within) >= 2 and fits

    def in_order(self, ranking, t):
        """Yield the waiting jobs within limits in order, up to the one that was picked."""
        for j in super().in_order(ranking, t):
            yield j
            if ranking is self.primary and j == self.pick and self.starts[j] is not None:
                self.stopped = True
                return

    def schedule_until_pick(self, t):
        """Make a pass; say whether the picked job started and so ended it."""
        self.stopped = False
        if self.rank is None:
            self.rank = partial(self.score, "SAF")
        self.schedule(t)
        if not isinstance(self.rules.decide, int):
            self.rank = None
        self.pick = None
        return self.stopped


class LimitedPlanner(reference_limits.LimitedMachine, Planner):
    """The machine of SAF and of the baseline."""


def limited_twin(case: Case, limits: list[reference_limits.Limit]) -> EnvTwin:
    """Make the twin of an environment with limits."""
    held = {"limits": limits, "held": {}}
    kinds = {
        "SIMULATION": type("Agent", (LimitedSimulation,), held),
        "PLANNER": type("Rule", (LimitedPlanner,), held),
    }
    return twin_of(case.workload, case.rules, type("Twin", (EnvTwin,), kinds))


def play_within(case: Case, events: str, limits: list[reference_limits.Limit]) -> None:
    """Play an episode in both: clock, slots, sight, pay and starts are equal at each step."""
    env, twin = env_of(case.workload, case.rules, events), limited_twin(case, limits)
    generator = np.random.default_rng(case.seed)
    (shown, _), expected = env.reset(), twin.reset()
    terminated = False
    while True:
        assert env.now == twin.sim.now
        assert env._slot.tolist() == [-1 if j is None else j for j in twin.slots]
        for part, values in expected.items():
            np.testing.assert_allclose(shown[part], values, rtol=2.0**-22, atol=2.0**-26)
        starts = [-1 if s is None else s.start_time for s in twin.sim.starts]
        assert env.schedule().start_time.tolist() == starts
        if terminated:
            break
        action = random_action(case.rules, generator)
        shown, reward, terminated, _, info = env.step(action)
        expected, paid, over = twin.step(action)
        assert terminated == over
        assert reward == pytest.approx(paid, rel=1e-9, abs=1e-9)
    told = twin.end_info()
    for key, value in told.items():
        assert info[key] == pytest.approx(value), key


@st.composite
def limited(draw: st.DrawFn, **fixed: Any) -> tuple[Case, str, list[reference_limits.Limit]]:
    """Draw an environment with limits of each user, or of one."""
    mode, order = draw(one_of((("easy", None), ("easy", "SPF"), ("none", None))))
    fixed |= {"backfill": mode, "backfill_order": order, "event_semantics": "batch"}
    case = draw(cases(**fixed))
    users, texts, limits = case.workload.user.tolist(), [], []
    for _ in range(draw(st.integers(1, 2))):
        name = draw(one_of(("", "0")))
        jobs, submitted = draw(one_of((None, 1, 1, 2))), draw(one_of((None, None, 1, 2)))
        most = max((case.workload.processors * case.workload.requested_time).tolist(), default=1)
        minutes = draw(one_of((None, -(-most // 60), most // 30 + 1)))
        cpus = draw(one_of((None, 8))) if jobs or submitted or minutes else 8
        stated = {"jobs": jobs, "cpus": cpus, "submitted": submitted, "minutes": minutes}
        stated["name"] = name or None
        keys = (f"{key}={each}" for key, each in stated.items() if each is not None)
        texts.append(f"limit:per=user,{','.join(keys)}")
        of = [user if user >= 0 and (not name or user == 0) else None for user in users]
        limits.append(reference_limits.Limit(of, jobs, cpus, submitted, minutes=minutes))
    return case, ";".join(texts), limits


@pytest.mark.parametrize("action", ["weights", "policy", "order", "job"])
@given(data=st.data())
def test_jobs_that_limits_hold_are_out_of_sight_as_in_the_twin(action, data):
    play_within(*data.draw(limited(action=action, expectations=None)))


@pytest.mark.long
@pytest.mark.parametrize("action", ["order", "job"])
def test_long_queues_of_which_limits_hold_most(action):
    workload = busy_workload(4, n=150)
    rules = rules_for(workload, action=action, n_slots=8, reward="ratio")
    limits = [reference_limits.Limit(workload.user.tolist(), jobs=2)]
    play_within(Case(workload, rules, 3), "limit:per=user,jobs=2", limits)


@pytest.mark.parametrize("scenario", ["synthetic-256-weeks", "hetero-64-weeks"])
def test_no_slot_ever_holds_a_job_beyond_a_limit(scenario):
    """Of each user at most two jobs run, so whoever has two running is not seen."""
    loaded = hpcgym.load_scenario(scenario)
    loaded = replace(loaded, scheduler=replace(loaded.scheduler, events="limit:per=user,jobs=2"))
    env = gymnasium.make("HPCBatch-v0", scenario=loaded, action="job").unwrapped
    env.action_space.seed(2)
    env.reset(seed=2)
    hidden, over = 0, False
    for _ in range(400):
        made = env.schedule()
        begun = made.start_time >= 0
        runs = begun & (made.start_time + made.run_time > env.now)
        full = np.flatnonzero(np.bincount(env.workload.user[runs], minlength=1) >= 2)
        shown = env._slot[env._slot >= 0]
        assert not np.isin(env.workload.user[shown], full).any()
        waits = ~begun & (env.workload.submit_time <= env.now)
        hidden += int(np.isin(env.workload.user[waits], full).sum())
        *_, over, _, _ = env.step(env.action_space.sample(env.action_masks()))
        if over:
            break
    assert hidden > 50


def test_a_schedule_of_an_environment_says_which_limit_held_each_job():
    text = "limit:per=user,jobs=1"
    loaded = hpcgym.load_scenario("tiny")
    loaded = replace(loaded, scheduler=replace(loaded.scheduler, events=text))
    env, over = SchedulingEnv(loaded), False
    env.reset(seed=2)
    while not over:
        *_, over, _, _ = env.step(np.zeros(env.action_space.shape, np.float32))
    made = env.schedule()
    user = made.workload.user.tolist()
    limit = reference_limits.Limit([each if each >= 0 else None for each in user], 1)
    ends = (made.start_time + made.run_time).tolist()
    held = reference_limits.held_last(
        jobs_of(made.workload), made.start_time.tolist(), ends, [limit]
    )
    assert made.limited_by.tolist() == ["" if each is None else text for each in held]
    assert (made.limited_by != "").any()


@pytest.mark.parametrize(("decide", "backfilled"), [("contested", False), ("event", True)])
def test_a_pass_without_a_decision_goes_in_saf_order(decide, backfilled):
    """User 0 may run one job. At 2 the last job starts beside the first, and the second waits.

    FCFS has the second job before the last, SAF behind it: of two jobs one may start, so that no
    decision is due but by `"event"`.
    """
    jobs = hpcgym.Workload.from_arrays(
        [0, 1, 2], [9, 9, 5], [9, 9, 5], [1, 1, 1], machine_processors=2, user=[0, 0, 1]
    )
    rules = rules_for(jobs, action="policy", policies=["FCFS"], policy="FCFS", decide=decide)
    env = env_of(jobs, rules, "limit:per=user,jobs=1")
    assert starts_under(env, 0) == [0, 9, 2]
    assert env.schedule().backfilled.tolist() == [False, False, backfilled]


def test_the_usual_action_within_limits_is_weights():
    loaded = hpcgym.load_scenario("tiny")
    loaded = replace(loaded, scheduler=replace(loaded.scheduler, events="limit:per=user,jobs=1"))
    assert SchedulingEnv(loaded)._config.action == "weights"
    assert_vector_plays_alike(scenario=loaded)


# --- Fields ---------------------------------------------------------------------------------------

USERS = [("a", "0", 2), ("a", "1", 1), ("b", "2", 1), ("b", "3", 5), ("b", "4", 1)]
TREE = Accounts.of([("a", "", 3), ("b", "", 1), *USERS])
LINES = [reference_fair_share.Line(-1, False)]
LINES += [reference_fair_share.Line(0, False, 3), reference_fair_share.Line(0, False, 1)]
LINES += [reference_fair_share.Line(1, True, 2), reference_fair_share.Line(1, True, 1)]
LINES += [reference_fair_share.Line(2, True, shares) for shares in (1, 5, 1)]
SHARES_OF_TREE = [3 / 4 * 2 / 3, 3 / 4 / 3, 1 / 4 / 7, 1 / 4 * 5 / 7, 1 / 4 / 7]


@pytest.fixture(scope="module", autouse=True)
def _policies_of_a_tree():
    """Register two policies that go by the tree."""
    kept = {
        "TREE-SHARES": FairShare(FAIR_TREE, 7200.0, accounts=TREE),
        "TREE-CLASSIC": FairShare(CLASSIC, accounts=TREE),
    }
    for name, keeps in kept.items():
        register_policy(name, score=fair_share, keeps=keeps)
    yield
    for name in kept:
        unregister_policy(name)


KINDS = {
    "SAF": (reference_fair_share.flat(5), "tree", 604_800, [1 / 5] * 5),
    "multifactor:fairshare=9,period=60": (reference_fair_share.flat(5), "tree", 604_800, [0.2] * 5),
    "TREE-SHARES": (LINES, "tree", 7200, SHARES_OF_TREE),
    "TREE-CLASSIC": (LINES, "classic", 604_800, SHARES_OF_TREE),
}


@pytest.mark.long
@pytest.mark.parametrize(("policy", "action"), zip(KINDS, ("weights", "job") * 2, strict=True))
def test_fields_of_shares_are_those_of_plain_python(policy, action):
    """Usage is added up from the runs so far, at the begin of the period."""
    workload = busy_workload(5, n=120)
    tree, kind, half_life, given = KINDS[policy]
    period = 60 if "60" in policy else 300
    first = len(tree) - 5
    env = env_of(workload, rules_for(workload, action=action, policy=policy), fields=FIELDS)
    plain = env_of(workload, rules_for(workload, action=action))
    generator, seen = np.random.default_rng(1), set()
    shown, _ = env.reset()
    assert shown["jobs"].shape[1] == plain.reset()[0]["jobs"].shape[1] + 3
    terminated = False
    while not terminated:
        begin = env.now // period * period
        rule = reference_fair_share.Rule(kind, half_life, period, period)
        usage = reference_fair_share.Usage(tree, rule)
        made = env.schedule()
        for job in np.flatnonzero((made.start_time >= 0) & (made.start_time < begin)):
            end = int(min(made.start_time[job] + made.run_time[job], begin))
            run = first + int(workload.user[job]), int(workload.processors[job])
            usage.runs.append(reference_fair_share.Run(*run, int(made.start_time[job]), end))
        used = usage.at(begin)
        factor, total = reference_fair_share.shares(tree, used, kind), sum(used.values())
        for slot, job in enumerate(env._slot.tolist()):
            if job >= 0:
                user = int(workload.user[job])
                mine = used[first + user] / total if total else 0.0
                expected = [given[user], mine, factor[first + user]]
                np.testing.assert_allclose(shown["jobs"][slot, -3:], expected, rtol=1e-6)
                seen.add(round(mine, 4))
        shown, _, terminated, _, _ = env.step(random_action(env_rules(action), generator))
    assert len(seen) > 20


def env_rules(action):
    """Return rules of which only the action matters."""
    return rules_for(busy_workload(5, n=5), action=action)


@pytest.mark.long
def test_scenarios_that_go_by_usage_play_alike_alone_and_in_vectors():
    loaded = hpcgym.load_scenario("tiny")
    for policy in ("fair-share", "multifactor:age=10,fairshare=1000"):
        ruled = replace(loaded, scheduler=replace(loaded.scheduler, policy=policy))
        for action in ("job", "order"):
            assert_vector_plays_alike(
                scenario=ruled, action=action, fields=FIELDS, reward="user_ratio"
            )


def test_an_empty_slot_stands_for_the_first_by_usage():
    """The base order is fair share: it equals the schedule of that policy without backfilling."""
    workload = busy_workload(11, n=120)
    rules = rules_for(workload, action="job", policy="fair-share", backfill="none", n_slots=128)
    env = env_of(workload, rules)
    env.reset()
    terminated = False
    while not terminated:
        empty = int(np.argmin(env._slot >= 0))
        *_, terminated, _, _ = env.step(empty)
    made = hpcgym.simulate(workload, "fair-share", backfill="none")
    assert env.schedule().start_time.tolist() == made.start_time.tolist()


# --- Pay ------------------------------------------------------------------------------------------


@given(cases(reward="user_ratio", event_semantics="batch"))
def test_an_episode_pays_minus_the_root_mean_square_of_users(case):
    env = env_of(case.workload, case.rules)
    total = sum(play_at_random(env, case))
    metrics = env.metrics()
    bsld, user = env.schedule().bsld(), case.workload.user
    means = [bsld[user == each].mean() for each in set(user.tolist())]
    assert metrics["user_rms_bsld"] == pytest.approx(np.sqrt(np.mean(np.square(means))))
    saf = hpcgym.simulate(case.workload, "SAF", **case.rules.scheduler).metrics()["mean_bsld"]
    assert total == pytest.approx(-metrics["user_rms_bsld"] / saf, rel=1e-9)


def test_unfairness_by_hand():
    """One processor; user 0 has A and B, user 1 has C, all of 10 s and submitted at 0.

    In the order A, B, C users' means are (1 + 2)/2 and 3; SAF makes the same schedule, mean 2.
    """
    jobs = hpcgym.Workload.from_arrays(
        [0, 0, 0], [10] * 3, [10] * 3, [1] * 3, user=[0, 0, 1], machine_processors=1
    )
    env = SchedulingEnv(episodes_of(jobs), action="weights", reward="user_ratio", decide="event")
    env.reset()
    rewards, terminated = [], False
    while not terminated:
        _, reward, terminated, _, _ = env.step(np.zeros(6, dtype=np.float32))
        rewards.append(reward)
    # F at 10, 20: means (1 + 2)/2 and 2, then 3; the first step pays F(0) = 1, too.
    at_10, at_20 = np.sqrt((1.5**2 + 2**2) / 2), np.sqrt((1.5**2 + 3**2) / 2)
    assert rewards == pytest.approx([-at_10 / 2, -(at_20 - at_10) / 2, 0])


def test_user_ratio_takes_no_baseline_and_may_be_cut_short():
    with pytest.raises(HpcgymError, match="'user_ratio' compares users, and takes no baseline"):
        gymnasium.make("HPCBatch-v0", reward="user_ratio", baseline="SAF")
    env = gymnasium.make(
        "HPCBatch-v0", scenario="synthetic-256-weeks", reward="user_ratio", max_episode_steps=3
    )
    env.reset(seed=1)
    assert [env.step(env.action_space.sample())[3] for _ in range(3)] == [False, False, True]


def test_fields_of_usage_beside_trials_are_refused():
    with pytest.raises(HpcgymError, match="fields of usage know no trials"):
        gymnasium.make("HPCBatch-v0", action="trials", fields=["user_usage"])
    with pytest.raises(HpcgymError, match="did you mean 'user_usage'"):
        gymnasium.make("HPCBatch-v0", fields=["user_usages"])
