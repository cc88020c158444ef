"""Fair share and multifactor priorities: against the reference, and cases worked by hand."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_fair_share as reference
from engines import jobs_of, whole, workload_of
from fair_share_cases import factors_of
from hpcgym.base.errors import PolicyError, WorkloadError
from hpcgym.core.orders.fair_share import Shares, fair_share
from hpcgym.core.orders.priority import Multifactor
from hpcgym.core.parts.fair_share import CLASSIC, FAIR_TREE, FairShare
from hpcgym.core.policy import compiled_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.machine.accounts import Accounts, Association
from hpcgym.schedule.policies.bandit import Bandit
from reference_fair_share import Line, Rule, flat
from strategies import one_of, workloads

KINDS = {"tree": FAIR_TREE, "classic": CLASSIC}
USERS = ("0", "1", "2", "7")


@st.composite
def trees(draw):
    """Draw accounts below one another, and users 0, 1, 2 and 7 in any of them."""
    lines, accounts = [Association("root")], ["root"]
    for name in "abc"[: draw(st.integers(0, 3))]:
        above = draw(st.sampled_from(accounts))
        lines.append(Association(name, "", above, draw(one_of((0, 1, 1, 2, 3)))))
        accounts.append(name)
    for user in USERS:
        shares, usage = draw(one_of((0, 1, 1, 2))), draw(one_of((0, 0, 3, 40)))
        lines.append(Association(draw(st.sampled_from(accounts)), user, "", shares, usage))
    return Accounts(tuple(lines))


@st.composite
def tables(draw):
    """Draw jobs of users 0, 1 and 2, and the machine's processors."""
    drawn = draw(workloads())
    rows = [row._replace(user=row.user % 3) for row in jobs_of(drawn)]
    return rows, drawn.machine_processors


@st.composite
def rules(draw):
    """Draw how usage decays and how often the order is made, perhaps beside other factors."""
    rule = Rule(
        draw(st.sampled_from(("tree", "classic"))),
        draw(one_of((0, 5, 7, 20, 100))),
        draw(one_of((1, 4, 7, 30))),
        draw(one_of((1, 1, 4, 7, 25))),
        draw(one_of((1, 3))),
    )
    rule = rule._replace(passed=draw(st.integers(0, rule.interval - 1)))
    if draw(st.booleans()):
        return rule
    weights = {"age": draw(one_of((0, 5, 100))), "max_age": 30}
    return rule._replace(weights=weights | {"fairshare": draw(one_of((0, 10, 1000)))})


def twin_of(tree):
    """Return a tree as the reference has it."""
    rows = zip((-1, *tree.parents[1:]), tree.lines, strict=True)
    return [Line(above, bool(line.user), line.shares, int(line.usage)) for above, line in rows]


def policy_of(rule, tree):
    """Return the policy that a rule of the reference means."""
    kept = FairShare(KINDS[rule.kind], *rule[1:6], tree)
    if rule.weights is None:
        return compiled_policy("SHARES", fair_share, keeps=kept)
    made = Multifactor(**rule.weights).policy
    return replace(made, keeps=kept if rule.weights["fairshare"] else None)


@given(tables(), trees(), rules(), st.sampled_from(("easy", "none")), st.booleans(), st.data())
def test_orders_by_usage_start_every_job_as_the_reference_does(
    table, tree, rule, mode, backfills, data
):
    rows, processors = table
    backfills = backfills and mode == "easy"
    threshold = data.draw(one_of((None, None, 5, 30)))
    nice = data.draw(st.lists(one_of((0, 0, 3, -20)), min_size=len(rows), max_size=len(rows)))
    workload = replace(workload_of(rows, processors), nice=np.array(nice))
    order = {"backfill_order" if backfills else "policy": policy_of(rule, tree)}
    ours = hpcgym.simulate(workload, backfill=mode, threshold=threshold, **order)
    theirs = reference.simulate(
        rows,
        processors,
        twin_of(tree),
        [tree.row_of("", str(row.user)) for row in rows],
        rule,
        constants=[-lowered for lowered in nice],
        backfill=mode,
        threshold=threshold,
        backfills=backfills,
    )
    assert ours.start_time.tolist() == [start.start_time for start in theirs]


def test_classic_shares_are_those_of_slurms_example():
    """Accounts of Slurm's page on classic fair share; a sixth, without shares, used the rest."""
    above = {"A": "root", "D": "root", "G": "root", "B": "A", "C": "A", "E": "D", "F": "D"}
    shares = {"A": 40, "B": 30, "C": 10, "D": 60, "E": 25, "F": 35, "G": 0}
    used = {"1": ("B", 200), "2": ("C", 250), "3": ("C", 0), "4": ("E", 250), "5": ("F", 0)}
    lines = [Association("root")]
    lines += [Association(name, "", above[name], shares[name]) for name in above]
    lines += [Association(account, user, "", 1, usage) for user, (account, usage) in used.items()]
    lines.append(Association("G", "6", "", 1, 300))
    factor = factors_of(Accounts(tuple(lines)), CLASSIC)
    expected = {"1": 0.408479, "2": 0.022097, "3": 0.125, "4": 0.5}
    for user, value in expected.items():
        assert round(factor[used[user][0], user], 6) == value
    assert round(factor["F", "5"], 3) == 0.749


def test_users_of_equal_accounts_are_compared_as_siblings():
    """Accounts a and b, and z beside them, have used twice their shares; y has used nothing."""
    tree = Accounts.of(
        [
            *(("a", "", 1), ("b", "", 1), ("root", "z", 1, 40), ("root", "y", 1)),
            *(("a", "p", 1, 10), ("a", "q", 1, 30), ("b", "r", 1, 20), ("b", "s", 1, 20)),
        ]
    )
    factor = {name: each for (_, name), each in factors_of(tree).items()}
    # y first; z as the first below a and b, which is p; then r and s alike; q last.
    assert factor == {"y": 1, "z": 5 / 6, "p": 5 / 6, "r": 3 / 6, "s": 3 / 6, "q": 1 / 6}


def starts(policy, jobs, processors=1, **settings):
    """Return the starts of jobs (submit, run, processors, user) that are known exactly."""
    rows = [(submit, run, run, q, user) for submit, run, q, user in jobs]
    schedule = hpcgym.simulate(workload_of(rows, processors), policy, **settings)
    return schedule.start_time.tolist()


def test_who_has_used_least_goes_first_and_usage_fades():
    """User 0 uses 100 s, user 1 then 60 s; after nine hours of rest the 60 s weigh more."""
    early = [(0, 100, 1, 0), (100, 60, 1, 1), (160, 10, 1, 2), (165, 10, 1, 0), (166, 10, 1, 1)]
    assert starts("fair-share", early) == [0, 100, 160, 180, 170]
    late = [(0, 100, 1, 0), (36_000, 60, 1, 1), (36_060, 9, 1, 2), (36_061, 9, 1, 0)]
    late.append((36_062, 9, 1, 1))
    kept = "fair-share:interval=86400"
    fades = "fair-share:interval=3600"
    assert starts(kept, late)[3:] == [36_078, 36_069]
    assert starts(fades, late)[3:] == [36_069, 36_078]
    # The first interval may end anywhere: here between both users' jobs, and once only.
    assert starts("fair-share:first=35000", late)[3:] == [36_069, 36_078]


@pytest.mark.parametrize("gap", [10**5, 10**6, 10**9])
def test_usage_of_thousands_of_half_lives_ago_is_nothing(gap):
    """User 0 used much long ago; user 1 runs a second, then goes behind. A half-life is 60 s."""
    jobs = [(0, 10_000, 4, 0), (gap, 60, 4, 2), (gap + 1, 1, 4, 1), (gap + 2, 9, 4, 2)]
    jobs += [(gap + 3, 9, 4, 1), (gap + 4, 9, 4, 0)]
    begun = starts("fair-share:interval=60", jobs, processors=4)
    assert [start - gap for start in begun[1:]] == [0, 60, 79, 70, 61]


def test_shares_hold_until_the_next_period():
    """User 1 runs within the period in which both were equal; user 0's job goes by that."""
    jobs = [(0, 50, 1, 1), (10, 5, 1, 1), (11, 5, 1, 0)]
    assert starts("fair-share:period=1000", jobs) == [0, 50, 55]
    assert starts("fair-share", jobs) == [0, 55, 50]
    assert starts("fair-share:period=20", jobs) == [0, 55, 50]


def test_accounts_charge_each_other():
    """User 2 has used nothing; an account that has not used its shares goes before its account."""
    tree = Accounts.of([("a", "", 1), ("b", "", 1), ("a", "1", 1), ("a", "2", 1), ("b", "3", 1, 9)])
    jobs = [(0, 50, 1, 1), (1, 5, 1, 2), (2, 5, 1, 3)]
    assert starts(Shares(accounts=tree).policy, jobs) == [0, 55, 50]
    assert starts("fair-share", jobs) == [0, 50, 55]


def test_unknown_users_of_a_tree_are_refused_by_name():
    tree = Accounts.of([("a", "", 1), ("a", "1", 1), ("b", "", 1), ("b", "1", 1)])
    with pytest.raises(WorkloadError, match="no user '2' with a single account"):
        starts(Shares(accounts=tree).policy, [(0, 5, 1, 2)])
    with pytest.raises(WorkloadError, match="no user '1' with a single account"):
        starts(Shares(accounts=tree).policy, [(0, 5, 1, 1)])
    jobs = replace(workload_of([(0, 5, 5, 1, 1)], 1), account=np.array([3]))
    with pytest.raises(WorkloadError, match="no user '1' of account '3'"):
        hpcgym.simulate(jobs, Shares(accounts=tree).policy)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "no user"),
        ([("a", "", 1)], "no user"),
        ([("a", "1", 1)], "unknown account 'a'"),
        ([("a", "", 1), ("a", "1", 1), ("a", "1", 1)], "user '1' of account 'a' is there 2 times"),
        ([("a", "", -1), ("a", "1", 1)], "shares of a must be whole"),
        ([("a", "", 1), ("a", "1", 1, -3)], "usage of user '1'"),
    ],
)
def test_what_is_no_tree_is_refused(lines, said):
    with pytest.raises(PolicyError, match=said):
        Accounts.of(lines)


def running_by_line(simulator):
    """Return the processors that each user's jobs hold, by the line of the tree."""
    state, jobs = simulator.state, simulator.workload
    running = state.ending_job[0, : int(state.n_running[0])]
    held = np.zeros(state.used_by.shape[1], dtype=np.int64)
    np.add.at(held, 1 + jobs.user_index[running], jobs.processors[running])
    return held


def test_jobs_that_an_outage_takes_off_are_charged_until_then():
    """Users 0 and 1 run two jobs each; the outage takes off those that started last."""
    rows = [(0, 100, 100, 1, 0), (0, 100, 100, 1, 1), (10, 90, 90, 1, 0), (20, 90, 90, 1, 1)]
    settings = SchedulerSettings(
        "fair-share", events="outage:from=50,to=60,processors=2,announced=50"
    )
    simulator = Simulator(workload_of([*rows, (60, 5, 5, 1, 2)], 4), settings, decide="event")
    while simulator.run() and simulator.now < 60:
        pass
    state = simulator.state
    assert simulator.now == 60
    assert state.used_by[0, :4].tolist() == running_by_line(simulator)[:4].tolist() == [0, 1, 1, 0]
    charged = state.used_now[0, 1:4] + state.used_by[0, 1:4] * (60 - state.used_at[0, 1:4])
    assert charged.tolist() == [60 + 40, 60 + 30, 0]
    assert state.active[0, : state.n_active[0]].tolist() == [1, 2]


@pytest.mark.long
def test_holds_and_dependencies_keep_users_with_their_jobs():
    """Rows change places where jobs wait out of sight; the same jobs as if they came then."""
    drawn = hpcgym.load_workload("synthetic-256")
    jobs = drawn.select(np.arange(800))
    held = np.where(np.arange(800) % 3 == 0, jobs.submit_time + 5_000, -1)
    ours = hpcgym.simulate(replace(jobs, eligible=held), "fair-share").start_time
    comes = np.maximum(jobs.submit_time, held)
    order = np.argsort(comes, kind="stable")
    rows = [jobs_of(jobs)[row]._replace(submit_time=int(comes[row])) for row in order]
    theirs = hpcgym.simulate(workload_of(rows, jobs.machine_processors), "fair-share").start_time
    assert ours[order].tolist() == theirs.tolist()
    assert ours.tolist() != hpcgym.simulate(jobs, "fair-share").start_time.tolist()


def test_environments_have_it_as_the_backfill_order():
    """An episode under a constant choice is the schedule under that policy."""
    env = gymnasium.make(
        "HPCBatch-v0",
        scenario="synthetic-256-weeks",
        backfill_order="fair-share",
        action="policy",
        policies=["FCFS"],
    ).unwrapped
    env.reset(seed=3)
    done = False
    while not done:
        *_, done, cut, info = env.step(0)
        done = done or cut
    workload = env.workload
    by_hand = hpcgym.simulate(
        workload, "FCFS", backfill_order="fair-share", threshold=200_000
    ).metrics()
    assert info["mean_bsld"] == pytest.approx(by_hand["mean_bsld"], rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backfill": "easy+trial"}, "knows no trials"),
        ({"event_semantics": "pyss"}, "needs event_semantics 'batch'"),
        ({"backfill": "gang"}, "needs a backfilling mode"),
        ({"backfill_order": "multifactor:fairshare=5"}, "count usage in two ways"),
        ({"policy": "fair-share:factor=1"}, "factor must be above 0 and below 1"),
        ({"policy": "fair-share:first=90000"}, "first must be whole seconds from 1 to interval"),
        ({"policy": "fair-share:period=0"}, "period must be whole seconds >= 1"),
        ({"policy": "fair-share:halflife=3"}, "unknown parameter .* Allowed: interval, factor"),
        ({"policy": "fairshare"}, "did you mean 'fair-share'"),
        ({"policy": "multifactor:age=-1"}, "age must be whole, from 0"),
        ({"policy": "multifactor:qos=5"}, "qos=5 weighs nothing without qoses"),
        ({"policy": "multifactor:qos=5,qoses=high"}, "qoses must be name/number"),
        ({"policy": "multifactor:period=5"}, "period must be whole, from 60"),
    ],
)
def test_what_cannot_be_is_refused(settings, said):
    jobs = workload_of([(0, 5, 5, 1, 0)], 1)
    with pytest.raises(PolicyError, match=said):
        hpcgym.simulate(jobs, **{"policy": "fair-share"} | settings)


def test_it_is_no_choice_among_several():
    jobs = workload_of([(0, 5, 5, 1, 0)], 1)
    with pytest.raises(PolicyError, match="no choice among several"):
        hpcgym.simulate_many([jobs], policies=["fair-share"])
    with pytest.raises(PolicyError, match="no choice among several"):
        gymnasium.make("HPCBatch-v0", action="policy", policies=["SAF", "fair-share"])
    with pytest.raises(PolicyError, match="no choice among several"):
        Simulator(jobs, decide="event").order_by("multifactor:fairshare=5")
    with pytest.raises(PolicyError, match="cannot be an arm"):
        Bandit(("SAF", "fair-share"))


LOGS = ("KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln")
WEIGHTS = {"age": 1000, "max_age": 604_800, "fairshare": 10_000}
ON_LOGS = {
    "multifactor:age=1000,fairshare=10000,half_life=604800,period=3600": Rule(
        "tree", 604_800, 3600, 3600, 1, weights=WEIGHTS
    ),
    "multifactor:age=1000,fairshare=10000,half_life=86400,period=7200,fair_tree=0": Rule(
        "classic", 86_400, 7200, 7200, 1, weights=WEIGHTS
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", ON_LOGS)
@pytest.mark.parametrize("log", LOGS)
def test_whole_logs_start_as_in_the_reference(real_log, log, text):
    workload = whole(real_log(log))
    ours = hpcgym.simulate(workload, text).start_time.tolist()
    theirs = reference.simulate(
        jobs_of(workload),
        workload.machine_processors,
        flat(len(workload.history.completed)),
        (workload.user_index + 1).tolist(),
        ON_LOGS[text],
    )
    assert ours == [start.start_time for start in theirs]
