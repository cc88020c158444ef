"""The checks of a debug run find what is broken: here states are changed by hand."""

import pytest

from engines import simulator_of, workload_of
from hpcgym.base.errors import HpcgymError
from hpcgym.core.compiler.jit import kernel
from hpcgym.core.engine.invariants import HEAD_DELAYED, NOT_MAXIMAL, find_pass_violation
from hpcgym.core.kernels.types import open_jobs, open_sim
from hpcgym.core.simulator import Simulator

TWO_WAIT = [(0, 10, 10, 4), (0, 10, 10, 1), (5, 10, 10, 4)]
"""At 5 s job 1 runs to 10 s, and jobs 0 and 2 wait for its processor."""


@kernel
def check_pass(jobs: int, sim: int) -> int:
    return find_pass_violation(open_jobs(jobs), open_sim(sim))


def paused() -> Simulator:
    """Return a simulation of `TWO_WAIT` at its decision at 5 s; job 0 is the head."""
    simulator = simulator_of(workload_of(TWO_WAIT, 4), "SQF", decide="event")
    while simulator.now < 5:
        assert simulator.run()
    assert simulator.waiting.tolist() == [0, 2]
    return simulator


@pytest.mark.parametrize(
    "counter, change, message",
    [
        ("free", 1, "used and free processors do not add up"),
        ("n_waiting", 1, "a job is lost or is in the queue twice"),
        ("n_started", 1, "a job is lost or is in the queue twice"),
    ],
)
def test_a_wrong_count_is_found(counter, change, message):
    simulator = paused()
    getattr(simulator.state, counter)[0] += change
    with pytest.raises(HpcgymError, match=message):
        simulator.run()


def test_a_start_before_the_submission_is_found():
    simulator = paused()
    simulator.table.submit_time[1] = 3
    with pytest.raises(HpcgymError, match="a job started before its submission"):
        simulator.run()


@pytest.mark.long
@pytest.mark.parametrize("promised, found", [(10, 0), (9, HEAD_DELAYED)])
def test_a_first_job_that_starts_later_than_promised_is_found(promised, found):
    simulator = paused()
    simulator.state.checked_head[0], simulator.state.checked_shadow[0] = 0, promised
    assert check_pass(simulator._jobs.address, simulator._sim.address) == found


def test_a_first_job_that_fits_is_found():
    simulator = paused()
    simulator.state.free[0] = 4
    assert check_pass(simulator._jobs.address, simulator._sim.address) == NOT_MAXIMAL
