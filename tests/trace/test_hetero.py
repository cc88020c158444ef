"""The generated log for nodes: requests of every kind, and memory that costs waits."""

from dataclasses import replace

import numpy as np
import pytest

from hpcgym import simulate
from hpcgym.base.errors import TraceError
from hpcgym.core.requests import unplaceable
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario
from hpcgym.trace.synthetic import LONGEST_REQUEST_S
from research.hetero import BATCH, DEBUG, GPU, HETERO_64, hetero_workload


@pytest.fixture(scope="module")
def drawn():
    return hetero_workload(3000, np.random.default_rng(1), load=0.5)


def test_the_scenario_has_the_machine_that_the_generator_draws_for():
    assert load_scenario("hetero-64-weeks").machine.nodes == HETERO_64
    assert HETERO_64.n_nodes == 64
    assert HETERO_64.partition_names == ("batch", "gpu", "debug")
    assert HETERO_64.component.tolist() == [0, 1, 0]
    assert np.bincount(HETERO_64.node_group).tolist() == [16] * 4


def test_load_is_what_was_asked_for(drawn):
    work = int(drawn.run_time @ drawn.processors)
    assert work / (HETERO_64.cpus * int(drawn.submit_time[-1])) == pytest.approx(0.5, rel=0.01)


def test_every_job_can_run_within_its_request(drawn):
    assert unplaceable(drawn) == []
    assert (drawn.run_time <= drawn.requested_time).all()
    assert drawn.largest_request == LONGEST_REQUEST_S


def test_every_partition_has_jobs_and_only_the_gpu_nodes_give_gpus(drawn):
    shares = np.bincount(drawn.partition, minlength=3) / len(drawn)
    assert shares[GPU] == pytest.approx(0.55, abs=0.03)
    assert shares[BATCH] > 0.3 and shares[DEBUG] > 0.05
    assert ((drawn.gpus > 0) == (drawn.partition == GPU)).all()
    assert (drawn.requested_time[drawn.partition == DEBUG] <= 3600).all()


def test_jobs_ask_for_gpus_in_powers_of_two_most_for_one_of_few(drawn):
    counts = np.bincount((drawn.gpus * drawn.chunks)[drawn.partition == GPU])
    assert set(np.flatnonzero(counts).tolist()) <= {1, 2, 4, 8, 16}
    assert counts.argmax() == 1
    assert drawn.gpus.max() == 4


def test_some_jobs_spread_and_some_want_their_nodes_alone(drawn):
    assert 0 < drawn.spread.mean() < 0.1
    assert 0 < drawn.exclusive.mean() < 0.1
    assert (drawn.chunks[drawn.spread] > 1).all()
    assert (drawn.processors[drawn.exclusive] > 32).all()


def test_some_jobs_ask_for_memory_that_only_big_nodes_have_or_that_leaves_cpus_without_use(drawn):
    of_cpu = drawn.memory_mb / (drawn.processors // drawn.chunks)
    in_batch = drawn.partition == BATCH
    assert 0.1 < (of_cpu > 4000)[in_batch].mean() < 0.5
    assert 0.01 < (drawn.memory_mb > 128_000)[in_batch].mean() < 0.1


def test_jobs_of_the_bundled_weeks_wait_for_memory():
    week = Episodes("hetero-64-weeks").workload(0)
    without = replace(week, memory_mb=np.zeros_like(week.memory_mb))
    waits = [simulate(one, "SAF").wait_time.sum() for one in (week, without)]
    assert waits[0] > 1.2 * waits[1]


def test_orders_differ_clearly_on_the_bundled_weeks():
    weeks = Episodes("hetero-64-weeks")
    assert weeks.numbers == tuple(range(1, 9))
    parts = [weeks.workload(week) for week in range(8)]
    mean = {p: np.mean([simulate(w, p).bsld().mean() for w in parts]) for p in ("FCFS", "SAF")}
    assert 10 < mean["SAF"] < 60
    assert mean["FCFS"] > 1.3 * mean["SAF"]


def test_same_seed_draws_the_same_log():
    frames = [hetero_workload(300, np.random.default_rng(k)).to_frame() for k in (1, 1, 2)]
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])


def test_numbers_out_of_range_are_refused():
    generator = np.random.default_rng(0)
    with pytest.raises(TraceError, match="n_users must be at least 1, got 0"):
        hetero_workload(10, generator, n_users=0)
    for load in (0, -1, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="load must be a positive number"):
            hetero_workload(10, generator, load=load)
    with pytest.raises(TraceError, match="n_jobs must be at least 1, got 0"):
        hetero_workload(0, generator)
