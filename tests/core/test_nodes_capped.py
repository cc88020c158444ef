"""A cap, urgency and costs on machines of nodes: against the reference, and what must hold."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given

import hpcgym
import reference_nodes_capped
from drawn_machines import Case, draw_plain_case
from engines import simulator_of
from hpcgym.base.errors import ScenarioError
from hpcgym.core.parts.outages import Outage
from hpcgym.core.workload import Workload
from hpcgym.env.scheduling import SchedulingEnv
from nodes_lived import draw_lived, draws
from nodes_of_kernels import (
    first_difference,
    first_difference_on_log,
    log_on_nodes,
    result_of,
    settings_of,
    workload_of,
)
from reference_nodes import Job, Machine, Node, Partition, one_partition

KTH = "KTH-SP2-1996-2.1-cln"
H = "cost-benefit:cap=0.97"


class Capped(NamedTuple):
    """A case, and the text of its mode."""

    case: Case
    mode: str

    @property
    def given(self) -> dict[str, Any]:
        """Keywords of the reference."""
        return self.case.settings | {"mode": self.mode}


def draw_capped(random: Random) -> Capped:
    """Draw a case in which many jobs wait at once, and a mode that tries none of them."""
    while not (lived := draw_lived(random)).case.jobs:
        pass
    return Capped(lived.case, lived.mode.partition("+")[0])


def check(drawn: Capped) -> None:
    """Check a case against the reference."""
    machine, jobs = drawn.case[:2]
    simulator = simulator_of(workload_of(machine, jobs), **settings_of(**drawn.given))
    assert not simulator.run()
    expected = reference_nodes_capped.simulate(machine, jobs, **drawn.given)
    assert first_difference(expected, result_of(simulator)) == ""


@given(draws)
def test_drawn_machines_are_scheduled_as_by_the_reference(random):
    check(draw_capped(random))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000))
def test_many_drawn_machines_are_scheduled_as_by_the_reference(seed):
    check(draw_capped(Random(seed)))


@given(draws)
def test_the_reference_for_logs_equals_the_slow_one(random):
    drawn = draw_capped(random)
    slow, fast = (
        one(*drawn.case[:2], **drawn.given)
        for one in (reference_nodes_capped.simulate, reference_nodes_capped.simulate_log)
    )
    assert first_difference(slow, fast) == ""


@given(draws)
def test_identical_processors_start_as_where_processors_are_counted(random):
    machine, jobs, settings = draw_plain_case(random)
    if not jobs:
        return
    jobs = [job._replace(user=random.choice((0, 1))) for job in jobs]
    on_nodes = workload_of(machine, jobs)
    counted = Workload.from_arrays(
        *([getattr(j, column) for j in jobs] for column in (*Job._fields[:3], "processors")),
        user=[j.user for j in jobs],
        machine_processors=machine.cpus,
    )
    chosen = settings_of(
        **settings | {"depth": 1, "mode": draw_lived(random).mode.partition("+")[0]}
    )
    del chosen["placement"]
    chosen["policy"] = random.choice(("SMITH-URGENT", chosen["policy"]))
    rule = settings["placement"]
    one, other = (
        hpcgym.simulate(counted, **chosen),
        hpcgym.simulate(on_nodes, placement=rule, **chosen),
    )
    assert one.start_time.tolist() == other.start_time.tolist()
    assert one.backfilled.tolist() == other.backfilled.tolist()


@pytest.mark.long
@pytest.mark.parametrize("mode", ["easy:cap=0.9", "cost-benefit", H])
def test_part_of_a_log_on_nodes_starts_as_the_reference_does(real_log, mode):
    workload = log_on_nodes(real_log(KTH))
    part = workload.select(np.arange(len(workload)) < 700)
    settings = {"order": "SMITH-URGENT", "threshold": 200_000, "placement": "best-effort-local"}
    assert not first_difference_on_log(part, mode=mode, **settings)


@pytest.mark.slow
def test_a_whole_log_on_nodes_starts_as_the_reference_does(real_log):
    settings = {"order": "SMITH-URGENT", "threshold": 200_000, "mode": H}
    assert not first_difference_on_log(log_on_nodes(real_log(KTH)), **settings)


# --- Worked by hand -------------------------------------------------------------------------------


def starts(machine: Machine, jobs: list[Job], mode: str, **more: Any) -> list[int | None]:
    """Return the starts by the package, which are also those of the reference."""
    check(Capped(Case(machine, jobs, {"placement": "lowest", "order": "FCFS"} | more), mode))
    settings = settings_of(mode=mode, **more)
    return hpcgym.simulate(workload_of(machine, jobs), **settings).start_time.tolist()


def two_components() -> Machine:
    """Return four cpus that are a component, and two that are another."""
    parts = Partition("a", frozenset({0})), Partition("b", frozenset({1}))
    return Machine((Node(4), Node(2)), parts)


def test_a_component_has_a_cap_of_its_own():
    """Long jobs may hold two of the four cpus, and one of the two; the others wait, not the short.

    The first long job of a component runs though it is wider than its share.
    """
    cap = "easy:cap=0.5,long=50,by=request"
    asked = [(2, 0), (1, 0), (1, 0), (2, 1), (1, 1)]
    jobs = [Job(0, 100, 100, chunks, partition=part) for chunks, part in asked]
    jobs.insert(3, Job(0, 10, 10, 1, partition=0))
    assert starts(two_components(), jobs, cap) == [0, 100, 100, 0, 0, 100]


def test_a_blocked_job_is_not_reserved_for_and_a_start_ahead_of_it_is_a_backfill():
    """Job 1 is blocked until 100 s, so job 2 of all cpus is the head. Job 3 ends before that."""
    machine = one_partition([Node(4)])
    jobs = [Job(0, 100, 100, 3), Job(0, 100, 100, 1), Job(0, 20, 20, 4), Job(0, 40, 40, 1)]
    mode = "easy:cap=0.5,long=50,by=request"
    assert starts(machine, jobs, mode) == [0, 100, 200, 0]
    short = [jobs[0], jobs[1], Job(0, 20, 20, 1)]
    schedule = hpcgym.simulate(workload_of(machine, short), backfill=mode)
    assert schedule.start_time.tolist() == [0, 100, 0]
    assert schedule.backfilled.tolist() == [False, False, True]


def test_a_short_job_pays_for_a_delay_of_gpus_that_a_count_of_cpus_does_not_see():
    """The head needs the GPU at 10 s. Job 2 takes it; two cpus are left over, and of no use."""
    machine = one_partition([Node(4, gpus=1), Node(4)])
    jobs = [Job(0, 10, 10, 1, 2, 0, partition=0), Job(0, 90, 90, 1, 3, 1), Job(0, 12, 12, 1, 2, 1)]
    assert starts(machine, jobs, "easy") == [0, 10, 100]
    assert starts(machine, jobs, "cost-benefit:kappa=0") == [0, 10, 100]
    assert starts(machine, jobs, "cost-benefit:kappa=9") == [0, 12, 0]


def by_request(random: Random) -> str:
    """Draw a cap that does not depend on what other components' jobs have taught."""
    cap, long = random.choice((0.3, 0.5, 0.8)), random.choice((5, 9, 20))
    return f"easy:cap={cap},long={long},by=request,pressed={random.choice((0, 0.5))}"


@given(draws)
def test_a_component_under_a_cap_starts_as_a_machine_alone(random):
    case, mode = draw_capped(random).case, by_request(random)
    settings = settings_of(**case.settings | {"mode": mode}) | {
        "policy": "SPF",
        "backfill_order": None,
    }
    workload = workload_of(case.machine, case.jobs)
    whole = hpcgym.simulate(workload, **settings).start_time
    assert workload.machine is not None
    component = workload.machine.component[workload.partition]
    for each in np.unique(component):
        alone = hpcgym.simulate(workload.select(component == each), **settings)
        offset = alone.workload.time_offset - workload.time_offset
        assert (alone.start_time + offset).tolist() == whole[component == each].tolist()


# --- Outages, and what is refused -----------------------------------------------------------------


@pytest.mark.long
def test_outages_that_take_nothing_change_no_start_under_a_cap():
    for seed in range(20):
        drawn = draw_capped(Random(seed))
        mode = by_request(Random(seed))
        workload = workload_of(*drawn.case[:2])
        last = 10**6 + workload.time_offset
        settings = settings_of(**drawn.given | {"mode": mode})
        late = [Outage(last, last + 5, nodes="0")]
        one, other = (hpcgym.simulate(workload, **settings, events=e) for e in ([], late))
        assert one.start_time.tolist() == other.start_time.tolist()


def test_costs_are_not_weighed_while_an_outage_is_known():
    machine = one_partition([Node(4, gpus=1), Node(4), Node(1)])
    jobs = [Job(0, 10, 10, 1, 2), Job(0, 90, 90, 1, 3, 1), Job(0, 12, 12, 1, 2, 1)]
    workload = workload_of(machine, jobs)
    schedule = hpcgym.simulate(
        workload, backfill="cost-benefit:kappa=9", events=[Outage(500, 600, nodes="2")]
    )
    assert schedule.start_time.tolist() == [0, 10, 100]


@pytest.mark.parametrize("action", ["index", "controls", "trials"])
def test_actions_that_count_processors_are_refused(action):
    with pytest.raises(ScenarioError, match=f"action '{action}' counts processors; a machine of"):
        SchedulingEnv("hetero-64-weeks", action=action)


def test_an_environment_under_a_cap_ends_as_the_simulation_of_its_policy():
    env = SchedulingEnv(
        "hetero-64-weeks", action="policy", policies=["FCFS", "SMITH-URGENT"], backfill=H
    )
    env.reset(options={"episode": 2})
    over = False
    while not over:
        _, _, over, _, _ = env.step(1)
    made = env.schedule()
    expected = hpcgym.simulate(made.workload, "SMITH-URGENT", backfill=H, threshold=200_000)
    assert made.start_time.tolist() == expected.start_time.tolist()


def test_cpus_of_a_component_are_those_of_its_nodes_once():
    parts = [Partition("a", frozenset({0, 1})), Partition("b", frozenset({1, 2}))]
    workload = workload_of(
        Machine((Node(4), Node(2), Node(1), Node(7)), (*parts, Partition("c", frozenset({3})))),
        [Job(0, 1, 1)],
    )
    table = simulator_of(workload).episode.table
    assert table.limit[:, 3].tolist() == [7, 7, 7]
