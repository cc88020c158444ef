"""The simulator's copies, and what its settings refuse."""

import pickle

import numpy as np
import pytest

from hpcgym.base.errors import PolicyError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload


def simulator(last_run_time: int = 5) -> Simulator:
    run = [10, 10, 5, last_run_time]
    jobs = Workload.from_arrays([0, 0, 0, 3], run, run, [2, 4, 2, 1], machine_processors=4)
    return Simulator(jobs, decide="event")


def test_a_copy_goes_its_own_way_and_can_be_gone_back_to():
    ours = simulator()
    ours.run()
    kept = ours.copy()
    while ours.run():
        pass
    end = ours.start_time
    assert (kept.start_time < 0).any()
    ours.restore(kept)
    np.testing.assert_array_equal(ours.start_time, kept.start_time)
    while ours.run():
        pass
    np.testing.assert_array_equal(ours.start_time, end)


def test_a_pickled_state_can_be_gone_back_to():
    ours = simulator()
    ours.run()
    kept = pickle.loads(pickle.dumps(ours.copy()))
    while ours.run():
        pass
    ours.restore(kept)
    np.testing.assert_array_equal(ours.start_time, kept.start_time)


def test_the_state_of_other_jobs_is_refused():
    with pytest.raises(PolicyError, match="copy of this simulator"):
        simulator().restore(simulator(last_run_time=6))


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), -1, 0.5, "20 h"])
def test_a_threshold_that_is_no_whole_number_of_seconds_is_refused(threshold):
    with pytest.raises(PolicyError, match="whole seconds"):
        SchedulerSettings(threshold=threshold)


def test_events_passes_and_waiting_jobs_are_counted():
    """Two jobs wait at 0, 5 and 10 s, and one at 20 s, where the last one starts."""
    run = [10, 10, 10]
    ours = Simulator(Workload.from_arrays([0, 0, 5], run, run, [4, 4, 4], machine_processors=4))
    ours.run()
    assert ours.counts() == {"events": 5, "passes": 4, "mean_waiting": 7 / 4, "max_waiting": 2}


def test_a_stop_amid_a_run_ends_it_where_an_outage_is_still_to_come():
    def predicted(job):
        if job.submit_time >= 30:
            simulator.stop()
        return job.requested_time

    n = 50
    jobs = Workload.from_arrays(range(n), [20] * n, [20] * n, [1] * n, machine_processors=4)
    events = "outage:from=5000,to=6000,processors=1"
    simulator = Simulator(jobs, SchedulerSettings(estimates=predicted, events=events))
    assert not simulator.run()
    assert simulator.is_stopped and simulator.now == 30
    assert 0 < (simulator.start_time >= 0).sum() < 30
