"""What is compared with AccaSim: its input, the checks of both schedules, how it backfills."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcgym.base.errors import EvaluationError
from hpcgym.core.workload import Workload
from hpcgym.machine import Machine, NodeType
from hpcgym.trace.load import load_workload
from research import peers
from research.peers import MACHINE, Made, delays, overfull_nodes, read_output, unprotected

TWO_NODES = Machine((NodeType(2, cpus=2, memory_mb=100),))


def asked(jobs):
    """Return jobs (submit, run, request, chunks, memory of a chunk) on two nodes of two cpus."""
    submit, run, request, chunks, memory = np.array(jobs).T
    return Workload.from_arrays(
        submit, run, request, chunks, machine=TWO_NODES, chunks=chunks, memory_mb=memory
    )


HEAD_BEHIND = asked([(0, 10, 10, 2, 1), (1, 5, 5, 4, 1), (2, 20, 20, 2, 1), (3, 7, 7, 2, 60)])
"""One runs until 10, one needs all cpus, one fits and runs until 22, one needs memory of both."""


@pytest.fixture(scope="module")
def few():
    """Two hundred jobs on the machine of the comparison."""
    return peers.drawn(200, seed=3)


def test_input_of_accasim_reads_back_as_the_same_jobs_and_machine(few, tmp_path):
    peers.write_input(few, tmp_path)
    read = load_workload(tmp_path / "jobs.swf", machine=MACHINE, requested_memory=True)
    for column in ("job_id", "run_time", "requested_time", "chunks", "memory_mb"):
        np.testing.assert_array_equal(getattr(read, column), getattr(few, column), column)
    np.testing.assert_array_equal(read.submit_time + read.time_offset, few.submit_time)
    system = json.loads((tmp_path / "system.json").read_text(encoding="utf-8"))
    assert system["groups"] == {"type0": {"core": 16, "mem": 65_536 * 1_024}}
    assert system["resources"] == {"type0": 32}


def test_drawn_jobs_all_need_memory_and_load_the_scarcer_resource_as_stated(few):
    assert few.memory_mb.min() > 0  # AccaSim divides by it
    assert max(peers.loads(few)) == pytest.approx(peers.LOAD, rel=0.01)


def test_output_of_accasim_gives_starts_and_chunks_by_node():
    text = f"2;{peers.EPOCH_S + 7};['node_1', 'node_2', 'node_2']\n1;{peers.EPOCH_S};['node_1']\n"
    two = asked([(0, 5, 5, 1, 1), (0, 5, 5, 3, 1)])
    start, held = read_output(text, two)
    assert start.tolist() == [0, 7]
    assert held.tolist() == [[1, 0], [1, 2]]
    with pytest.raises(EvaluationError, match="started no job 2"):
        read_output(text.splitlines()[1], two)


@pytest.mark.parametrize(("second_at", "memory_mb", "over"), [(4, 50, 1), (5, 50, 0), (4, 40, 0)])
def test_node_is_overfull_while_two_jobs_hold_more_memory_than_it_has(second_at, memory_mb, over):
    two = asked([(0, 5, 5, 1, 60), (0, 5, 5, 1, memory_mb)])
    made = Made("", np.array([0, second_at]), np.array([[1, 0], [1, 0]]))
    assert overfull_nodes(two, made) == over


def test_hpcgym_keeps_capacity_and_every_reservation_of_a_head(few):
    made = peers.hpcgym_made(few, "easy", repeats=1)
    late = delays(few, made)
    assert overfull_nodes(few, made) == 0
    assert len(late) > 0 and not late.any()


def test_head_that_is_not_protected_is_late_by_what_was_started_behind_it():
    made = unprotected(HEAD_BEHIND, "", holds=False)
    assert made.start_time.tolist() == [0, 22, 2, 27]
    assert delays(HEAD_BEHIND, made).tolist() == [12, 0]  # reserved at 10 and 27
    assert overfull_nodes(HEAD_BEHIND, made) == 0
    protected = peers.hpcgym_made(HEAD_BEHIND, "easy", repeats=1)
    assert protected.start_time.tolist() == [0, 10, 15, 35]
    assert not delays(HEAD_BEHIND, protected).any()


def test_head_that_is_held_back_waits_for_its_reservation_though_it_fits():
    ends_early = asked([(0, 3, 10, 2, 1), (1, 5, 5, 4, 1)])
    assert unprotected(ends_early, "", holds=False).start_time.tolist() == [0, 3]
    assert unprotected(ends_early, "", holds=True).start_time.tolist() == [0, 10]


def test_interpreter_without_accasim_is_refused_with_what_to_install(few, tmp_path):
    with pytest.raises(EvaluationError, match="cannot be run: No such file"):
        peers.accasim_made(few, "EASYBackfilling", tmp_path / "none", tmp_path)
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    with pytest.raises(EvaluationError, match="pip install accasim"):
        peers.accasim_made(few, "EASYBackfilling", bare, Path(tmp_path))
