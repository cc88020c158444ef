"""Gang scheduling: the lecture's case, and a second-by-second reference on drawn workloads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import workload_of
from hpcgym.base.errors import HpcgymError, PolicyError
from hpcgym.core.simulator import Simulator
from hpcgym.schedule.gang import Gang, Matrix, simulate_gang
from reference import Job
from reference_gang import is_as_by_seconds
from strategies import workloads


@given(data=st.data())
def test_gangs_start_and_end_as_second_by_second(data):
    workload = data.draw(workloads(max_jobs=10))
    quantum = data.draw(st.integers(1, 7))
    rows = data.draw(st.sampled_from((1, 2, 3, float("inf"))))
    gang = Gang(quantum, data.draw(st.integers(0, quantum - 1)), rows)
    kill = data.draw(st.booleans())
    assert is_as_by_seconds(workload, gang, kill)


def test_utilisation_is_that_of_the_lecture():
    """128 nodes: A takes 64 and runs; B takes 32 and C 128, both queued.

    B alone after A: 25 %. B beside A: 75 %. Rows {A, B} and {C}: 87.5 %.
    """
    for placed, expected in (
        ({"B": 32}, 32 / 128),
        ({"A": 64, "B": 32}, 96 / 128),
        ({"A": 64, "B": 32, "C": 128}, (96 + 128) / (2 * 128)),
    ):
        matrix = Matrix(128, Gang())
        for job, (name, nodes) in enumerate(placed.items()):
            assert matrix.place(job, nodes, 3_600), name
        matrix.advance(600)
        assert matrix.utilisation == expected
    assert [sorted(row) for row in matrix.rows] == [[0, 1], [2]]


def test_a_job_that_leaves_its_row_alone_gives_the_others_more_turns():
    """Two full-machine jobs of 100 s and 200 s share: 200 s at half speed, then 100 s alone."""
    both = workload_of([Job(0, 100, 100, 4), Job(0, 200, 200, 4)], 4)
    made = hpcgym.simulate(both, backfill="gang")
    assert made.end_time.tolist() == [200, 300] and made.suspended_time.tolist() == [100, 100]
    assert made.bsld().tolist() == [2.0, 1.5] and made.wait_time.tolist() == [0, 0]
    lossy = hpcgym.simulate(both, backfill="gang:quantum=10,switch=2")
    assert lossy.end_time.tolist() == [250, 375]
    one_row = hpcgym.simulate(both, backfill="gang:rows=1")
    assert one_row.start_time.tolist() == [0, 100] and one_row.end_time.tolist() == [100, 300]


def test_short_jobs_need_not_wait_behind_a_long_one():
    """The lecture's reason for gangs: what preemption gives where run times are not known."""
    jobs = workload_of([Job(0, 10_000, 10_000, 4), Job(1, 10, 10_000, 4)], 4)
    easy, gang = hpcgym.simulate(jobs), hpcgym.simulate(jobs, backfill="gang")
    assert easy.bsld()[1] == pytest.approx(1_000.9) and gang.bsld()[1] == 2.0


def test_a_whole_log_is_shared_and_written(tmp_path):
    log = hpcgym.load_workload("synthetic-256")
    made = hpcgym.simulate(log, backfill="gang:rows=3")
    assert made.complete and (made.end_time - made.start_time >= made.run_time).all()
    assert (made.suspended_time > 0).any() and made.metrics()["n_backfilled"] == 0
    assert made.metrics()["mean_bsld"] == pytest.approx(made.bsld().mean())
    made.to_csv(tmp_path / "made.csv")
    assert (tmp_path / "made.csv").read_text().count("\n") == len(log) + 1
    frame = made.to_frame()
    np.testing.assert_array_equal(frame["end_time"], made.end_time + log.time_offset)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"backfill": "gang:quantum=0"}, "quantum"),
        ({"backfill": "gang:switch=600"}, "leaves nothing"),
        ({"backfill": "gang:rows=0"}, "rows"),
        ({"backfill": "gang:rows=1.5"}, "rows"),
        ({"backfill": "gang", "policy": "SAF"}, "must be FCFS"),
        ({"backfill": "gang", "backfill_order": "SPF"}, "backfill_order"),
    ],
)
def test_what_gangs_cannot_do_is_refused(keywords, message):
    with pytest.raises(PolicyError, match=message):
        hpcgym.simulate(hpcgym.load_workload("tiny"), **keywords)


def test_simulate_gang_makes_the_schedule_of_the_mode_named_gang():
    jobs = workload_of([Job(0, 100, 90, 4), Job(0, 200, 200, 4), Job(5, 7, 9, 2)], 4)
    for gang, kill in ((None, True), (Gang(10, 2, 1), False)):
        own = simulate_gang(jobs, gang, kill_at_limit=kill)
        mode = hpcgym.simulate(jobs, backfill=gang or "gang", kill_at_limit=kill)
        for name in ("start_time", "end_time", "run_time", "suspended_time", "backfilled"):
            np.testing.assert_array_equal(getattr(own, name), getattr(mode, name))
        assert own.settings == mode.settings


@pytest.mark.parametrize(
    "make",
    [
        lambda jobs: Simulator(jobs, hpcgym.SchedulerSettings(backfill="gang")),
        lambda jobs: hpcgym.simulate_many([jobs], ["FCFS"], backfill="gang"),
    ],
)
def test_faces_that_cannot_share_in_time_say_so(make):
    with pytest.raises(HpcgymError, match="take turns"):
        make(hpcgym.load_workload("tiny"))
