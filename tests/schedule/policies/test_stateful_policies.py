"""Policies that remember: what they are told, how they order, and that each run begins anew."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import workload_of
from hpcgym.agent import RuleAgent
from hpcgym.base.errors import PolicyError
from hpcgym.core.policy import as_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.schedule.policies.stateful import StatefulPolicy
from strategies import THRESHOLDS_S, workloads

PAGE = Path(__file__).parents[3] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def fair_share():
    """The class that the documentation shows."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (shown,) = (block for block in blocks if "class FairShare" in block)
    session = {"hpcgym": hpcgym}
    exec(shown.partition("\n\n\nworkload")[0], session)
    return session["FairShare"]


class Spy(StatefulPolicy):
    """First come first served; keeps what it is told in a list that all copies share."""

    told: list = []  # noqa: RUF012

    def submitted(self, job):
        self.told.append(("submitted", *job))

    def started(self, job):
        self.told.append(("started", *job))

    def ended(self, job):
        self.told.append(("ended", *job))

    def scores(self, queue):
        self.told.append(("asked", queue.now, queue.free_processors, queue.job_id.tolist()))
        return queue.submit_time


def test_fair_share_orders_a_hand_worked_case(fair_share):
    """Users 1 and 2 share 4 processors.

    At 10 s user 1 has used 40 processor-seconds and user 2 none: job 2 goes first. At 20 s user 2
    has used 30. After 10 s the 40 of user 1 count 20: job 3 goes before job 4. Without that decay
    the 40 would count more than the 30.
    """
    jobs = workload_of([(0, 10, 10, 4, 1), (1, 10, 10, 3, 2), (2, 5, 5, 4, 1), (2, 5, 5, 4, 2)], 4)
    assert hpcgym.simulate(jobs, fair_share(half_life=10)).start_time.tolist() == [0, 10, 20, 25]
    assert hpcgym.simulate(jobs, fair_share(half_life=1e9)).start_time.tolist() == [0, 10, 25, 20]
    assert hpcgym.simulate(jobs, "FCFS").start_time.tolist() == [0, 10, 20, 25]
    late = workload_of([(0, 10, 10, 4, 1), (1, 5, 5, 4, 1), (2, 5, 5, 4, 2)], 4)
    assert hpcgym.simulate(late, fair_share).start_time.tolist() == [0, 15, 10]


def test_a_policy_is_told_of_submissions_starts_and_ends_in_order(monkeypatch):
    monkeypatch.setattr(Spy, "told", [])
    jobs = workload_of([(0, 3, 9, 3, 7), (1, 0, 9, 1, 8), (2, 5, 9, 2, 7)], 4)
    assert hpcgym.simulate(jobs, Spy()).start_time.tolist() == [0, 1, 3]
    assert Spy.told == [
        ("submitted", 0, 1, 7, 3, 9, 0, -1, 4),
        ("asked", 0, 4, [1]),
        ("started", 0, 1, 7, 3, 9, 0, 0, 1),
        ("submitted", 1, 2, 8, 1, 9, 1, -1, 1),
        ("asked", 1, 1, [2]),
        ("started", 1, 2, 8, 1, 9, 1, 1, 0),
        ("ended", 1, 2, 8, 1, 9, 1, 1, 1),
        ("submitted", 2, 3, 7, 2, 9, 2, -1, 1),
        ("asked", 2, 1, [3]),
        ("ended", 3, 1, 7, 3, 9, 0, 0, 4),
        ("asked", 3, 4, [3]),
    ]


@given(
    workload=workloads(max_jobs=30),
    threshold=st.sampled_from(THRESHOLDS_S),
    event_semantics=st.sampled_from(("batch", "pyss")),
)
def test_what_is_told_adds_up_and_the_order_is_that_of_the_scores(workload, **settings):
    Spy.told.clear()
    made = hpcgym.simulate(workload, Spy(), **settings)
    expected = hpcgym.simulate(workload, "FCFS", **settings)
    assert made.start_time.tolist() == expected.start_time.tolist()
    events = [row for row in Spy.told if row[0] != "asked"]
    assert [row[1] for row in events] == sorted(row[1] for row in events)
    ids = {kind: [row[2] for row in events if row[0] == kind] for kind, *_ in events}
    assert sorted(ids["submitted"]) == workload.job_id.tolist()
    assert all(len(set(some)) == len(some) for some in ids.values())
    starts = dict(zip(workload.job_id.tolist(), made.start_time.tolist(), strict=True))
    ends = dict(zip(workload.job_id.tolist(), made.end_time.tolist(), strict=True))
    for kind, time, job_id, *_, free in events:
        assert 0 <= free <= workload.machine_processors
        assert kind != "started" or time == starts[job_id]
        assert kind != "ended" or time == ends[job_id]


@pytest.mark.long
def test_each_run_begins_with_what_the_policy_was_given(fair_share):
    workload = hpcgym.load_workload("synthetic-256")
    policy = fair_share()
    first = hpcgym.simulate(workload, policy).start_time.tolist()
    assert not policy.usage
    assert hpcgym.simulate(workload, policy).start_time.tolist() == first
    assert first != hpcgym.simulate(workload).start_time.tolist()


def test_a_copied_simulation_remembers_on_its_own(fair_share):
    workload = hpcgym.load_workload("tiny")
    simulator = Simulator(workload, SchedulerSettings(policy=fair_share()))
    twin = simulator.copy()
    assert not simulator.run() and not twin.run()
    assert twin.start_time.tolist() == simulator.start_time.tolist()


def test_policies_of_ones_own_go_wherever_policies_go(fair_share):
    def narrow_first(jobs):
        return jobs.q

    assert as_policy(fair_share).name == as_policy(fair_share()).name == "FairShare"
    workload = hpcgym.load_workload("tiny")
    by_function = hpcgym.simulate(workload, narrow_first)
    assert by_function.start_time.tolist() == hpcgym.simulate(workload, "SQF").start_time.tolist()
    agents = [RuleAgent(fair_share()), RuleAgent(narrow_first)]
    found = hpcgym.evaluate(agents, "tiny", progress=False).summary()
    assert set(found["agent"]) == {"FairShare", "narrow_first", "SAF"}
    with pytest.raises(PolicyError, match="class Path is no policy"):
        as_policy(Path)


@pytest.mark.parametrize(
    ("given", "said"),
    [([0.0], "2 jobs wait: give as many keys"), (["a"] * 2, "Own: scores must be numbers, got")],
)
def test_scores_of_another_number_or_that_are_no_numbers_are_refused(given, said):
    class Own(StatefulPolicy):
        def scores(self, queue):
            return given

    with pytest.raises(PolicyError, match=said):
        hpcgym.simulate(workload_of([(0, 1, 1, 1), (0, 1, 1, 1)], 1), Own)
