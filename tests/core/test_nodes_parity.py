"""Machines of nodes: every start, node, chunk and kind of start equals the reference's."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import hpcgym
import nodes_of_kernels
import reference_nodes
from drawn_machines import Case, draw_case
from engines import simulator_of
from hpcgym.base.errors import HpcgymError, PolicyError
from hpcgym.core import nodes
from hpcgym.core.simulator import Simulator
from hpcgym.core.state import copy_into
from hpcgym.core.workload import Workload
from hpcgym.machine import NodeType
from nodes_lived import draws
from nodes_of_kernels import first_difference, result_of, settings_of, workload_of
from strategies import REQUESTED_TIMES_S

OVERUSED = "jobs use more of a node than it has"


def simulator_for(case: Case, decide: str = "never", **more: Any) -> Simulator:
    """Make a simulator of a case that checks invariants."""
    workload = workload_of(case.machine, case.jobs)
    return simulator_of(workload, decide=decide, **settings_of(**case.settings), **more)


def check(case: Case, estimates: Any = "requested") -> list[int]:
    """Check a case against the reference with the same estimates, and return these."""
    simulator = simulator_for(case, estimates=estimates)
    assert not simulator.run()
    used = simulator.predicted_time.tolist()
    expected = reference_nodes.simulate(case.machine, case.jobs, estimates=used, **case.settings)
    assert first_difference(expected, result_of(simulator)) == ""
    return used


def test_a_short_job_leaves_a_reservation_its_spare_cpus():
    """On 10 cpus the head, 8 wide, waits until 100 s. A short job and a long one go beside it."""
    machine = hpcgym.Machine((NodeType(5, 2),))
    shapes = [(6, 100), (8, 50), (2, 50), (2, 500), (1, 500)]
    workload = Workload.from_arrays(
        [0] * 5,
        [length for _, length in shapes],
        [length for _, length in shapes],
        [width for width, _ in shapes],
        machine=machine,
        chunks=[width for width, _ in shapes],
    )
    assert hpcgym.simulate(workload).start_time.tolist() == [0, 100, 0, 0, 150]


def test_a_group_whose_nodes_are_too_many_gives_way_to_the_next():
    """Both chunks fit into group a, on two nodes; a partition of one node a job leaves group b."""
    nodes = (reference_nodes.Node(1, group="a"),) * 2 + (reference_nodes.Node(3, group="b"),)
    partition = reference_nodes.Partition("p", frozenset(range(3)), 0, 1)
    machine = reference_nodes.Machine(nodes, (partition,))
    settings = {"placement": "fewest-groups", "order": "FCFS", "threshold": None, "kill": True}
    case = Case(machine, [reference_nodes.Job(0, 5, 5, 2)], settings | {"depth": 1})
    simulator = simulator_for(case)
    assert not simulator.run()
    assert simulator.start_time.tolist() == [0]
    check(case)


def draw_some_case(random: Random, *most: int) -> Case:
    """Draw a case with a job, of a few users."""
    case = Case(*draw_case(random, *most))
    while not case.jobs:
        case = draw_case(random, *most)
    jobs = [job._replace(user=random.choice((-1, 0, 1))) for job in case.jobs]
    return case._replace(jobs=jobs)


@given(draws)
def test_crowded_machines_plan_each_job_as_the_reference_does(random):
    """Many jobs wait at once, so reservations are made out of the order of their times."""
    case = draw_some_case(random, 4, 40)
    jobs = [job._replace(submit_time=job.submit_time // 8) for job in case.jobs]
    planned = {"depth": float("inf"), "planned": None}
    settings = {key: value for key, value in case.settings.items() if key != "backfill_order"}
    check(case._replace(jobs=jobs, settings=settings | planned))


@pytest.mark.parametrize("estimates", ["requested", "doubled", "recent", "some that jobs outlive"])
@given(draws)
def test_drawn_machines_are_scheduled_as_by_the_reference(estimates, random):
    case = draw_some_case(random)
    requests = np.array([job.requested_time for job in case.jobs])
    given = [random.choice(REQUESTED_TIMES_S) for _ in case.jobs] if " " in estimates else estimates
    expected = {"requested": requests, "doubled": 2 * requests}.get(estimates, given)
    used = check(case, given)
    assert estimates == "recent" or used == list(expected)


@pytest.mark.parametrize("rooms", [1, 20])
def test_shapes_that_take_each_other_s_row_of_rooms_are_scheduled_alike(rooms, monkeypatch):
    monkeypatch.setattr(nodes, "MOST_ROOMS", rooms)  # one row, or a few
    for seed in range(30):
        check(draw_some_case(Random(seed)))


def test_a_simulation_goes_on_in_a_larger_state_with_fewer_rows_of_rooms(monkeypatch):
    for seed in range(20):
        case = draw_some_case(Random(seed))
        whole, moved = simulator_for(case), simulator_for(case, "event")
        whole.run()
        moved.run()
        with monkeypatch.context() as patch:
            patch.setattr(nodes, "MOST_ROOMS", 1)
            before = moved.state
            moved._open()  # one row of rooms
        copy_into(moved.state, before)
        while moved.run():
            pass
        assert moved.start_time.tolist() == whole.start_time.tolist()


def rows_taken(simulator: Simulator) -> tuple[int, int]:
    """Return how many rows of rooms are in use, and how many shapes there are, after a run."""
    simulator.run()
    return int((simulator.state.room_shape[0] > 0).sum()), len(simulator.episode.table.need)


def test_each_shape_that_waits_keeps_a_row_of_rooms_while_there_are_enough(monkeypatch):
    case = draw_some_case(Random(5), 8, 40)
    simulator = simulator_for(case)
    rows, shapes = rows_taken(simulator)
    asked = simulator.state.room_shape[0, :rows] - 1
    assert 3 < rows <= shapes and len(set(asked.tolist())) == rows
    assert simulator.state.row_of_shape[0, asked].tolist() == list(range(rows))
    monkeypatch.setattr(nodes, "MOST_ROOMS", 2 * len(case.machine.nodes))
    assert rows_taken(simulator_for(case))[0] == 2


def test_a_plan_that_counts_processors_is_refused():
    simulator = simulator_for(draw_some_case(Random(1)), decide="event")
    simulator.run()
    with pytest.raises(PolicyError, match="machine of nodes; plans count processors"):
        simulator.predict(["FCFS"])


@pytest.mark.slow
@settings(max_examples=400)
@given(draws)
def test_larger_drawn_machines_are_scheduled_as_by_the_reference(random):
    check(draw_some_case(random, 40, 60))


@given(draws)
def test_the_same_jobs_are_refused(random):
    case = draw_case(random)
    asked = [job._replace(chunks=job.chunks + random.randint(0, 2)) for job in case.jobs]
    got = nodes_of_kernels.simulate(case.machine, asked, **case.settings)
    expected = reference_nodes.simulate(case.machine, asked, **case.settings)
    assert got[:5] == expected[:5]


def stopped_simulator() -> Simulator:
    """Return a simulator at a decision while jobs run."""
    case = draw_some_case(Random(3))
    simulator = simulator_for(case, decide="event")
    while simulator.run() and not len(simulator.running):
        pass
    assert len(simulator.running)
    return simulator


def test_a_node_that_counts_less_as_free_than_it_has_is_found_broken():
    simulator = stopped_simulator()
    simulator.state.free_on[0, 0, 0] -= 1
    with pytest.raises(HpcgymError, match=OVERUSED):
        simulator.run()


def test_a_job_with_more_chunks_than_its_node_has_room_for_is_found_broken():
    simulator = stopped_simulator()
    first = simulator.episode.table.placed_first[simulator.running[0]]
    simulator.state.placed_chunks[0, first] += 1
    with pytest.raises(HpcgymError, match=OVERUSED):
        simulator.run()


def test_the_component_of_a_picked_job_goes_first_even_that_of_the_first_job():
    """Jobs 0 and 1 wait for one node, 2 and 3 for another, which its number puts first."""
    nodes = (reference_nodes.Node(1), reference_nodes.Node(1))
    parts = tuple(reference_nodes.Partition(str(node), frozenset({node})) for node in (0, 1))
    machine = reference_nodes.Machine(nodes, parts)
    jobs = [reference_nodes.Job(0, 9, 9, partition=part) for part in (1, 1, 0, 0)]
    simulator = simulator_of(workload_of(machine, jobs), decide="event")
    assert simulator.run()
    simulator.pick(0)
    assert simulator.run()
    assert (simulator.now, simulator.waiting.tolist()) == (0, [1, 2, 3])
