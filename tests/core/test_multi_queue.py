"""Multiple-queue backfilling: against the plain-Python reference, and what must hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference
import reference_multi_queue
from engines import by_package, first_difference, history_of_users, jobs_of, workload_of
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.env.scheduling import SchedulingEnv
from strategies import multi_queues, policies, workloads

# --- Hand-worked cases ----------------------------------------------------------------------------


def starts(table, processors, **settings):
    """Return the starts of jobs (submit, run = request, processors), checked by the reference."""
    jobs = [(submit, run, run, q) for submit, run, q in table]
    workload = workload_of(jobs, processors)
    assert not first_difference(workload, **settings)
    return [start.start_time for start in by_package(workload, **settings)]


def test_short_job_has_a_reservation_that_a_long_one_may_not_delay():
    """M=4: A 2p x 100 s runs; H 3p x 200, S 4p x 50, L 1p x 900 wait; short means up to 100 s.

    EASY reserves for H alone, at 100, with one processor extra, and starts L on it, so that S waits
    until 900. With two queues S is a pivot beside H, promised 300, and L comes after it.
    """
    table = [(0, 100, 2), (0, 200, 3), (0, 50, 4), (0, 900, 1)]
    assert starts(table, 4, backfill="easy") == [0, 100, 900, 0]
    assert starts(table, 4, backfill="multi-queue:bounds=100") == [0, 100, 300, 350]


def test_pivot_promoted_later_goes_before_one_that_came_after_it():
    """M=4: A 4p x 100 runs; L1 4p x 300, L2 3p x 300 (long), S 2p x 50 (short) wait.

    While L1 is the long pivot S is promised 400. At 100 L1 starts and L2 is promoted: it came
    before S, takes 400, and leaves S the processor it does not need only from 700 on.
    """
    table = [(0, 100, 4), (0, 300, 4), (0, 300, 3), (0, 50, 2)]
    assert starts(table, 4, backfill="multi-queue:bounds=90") == [0, 100, 400, 700]


def test_job_that_takes_the_whole_machine_runs():
    table = [(0, 50, 1), (1, 5000, 4), *((t, 50, 1) for t in range(2, 400, 7))]
    assert starts(table, 4, backfill="multi-queue")[1] == 50
    assert 301 <= starts(table, 4, backfill="multi-queue:bounds=100,delay=300")[1] <= 350


def test_end_of_a_delay_is_an_event_of_its_own():
    """Nothing else happens at 30, when the delay of the long job submitted at 5 is over."""
    table = [(0, 10, 1), (5, 500, 1)]
    assert starts(table, 4, backfill="multi-queue:bounds=100,delay=25") == [0, 30]
    assert starts(table, 4, backfill="multi-queue:bounds=100,delay=0") == [0, 5]


def test_held_job_is_out_of_sight():
    """L, 4p x 500, has a reservation at 20 that S, 2p x 60, must not delay; held it has none."""
    table = [(0, 20, 2), (1, 500, 4), (2, 60, 2)]
    assert starts(table, 4, backfill="multi-queue:bounds=100") == [0, 20, 520]
    assert starts(table, 4, backfill="multi-queue:bounds=100,delay=10") == [0, 62, 2]


@pytest.mark.parametrize(
    ("more", "delays"), [("", [2500, 3750, 2500]), (",delta1=printed", [2500, 7500, 8750, 7500])]
)
def test_delay_follows_the_slowdown_of_short_jobs(more, delays):
    """The slowdowns 2, 4, 4, 2 of four batches of one give D_2 to D_5 = 2500, 3750, 3750, 2500.

    One processor; a job that is not short runs until 100, the others one after the other behind it,
    waiting 10, 18, 21 and 8 s for run times of 10, 6, 7 and 8. As printed, D_2 is D_1 + 2 D_1.
    """
    table = [(0, 100, 1), (90, 10, 1), (92, 6, 1), (95, 7, 1), (115, 8, 1), (200, 300, 1)]
    mode = f"multi-queue:bounds=50/100,delay=2500,batch=1{more}"
    assert starts(table, 1, backfill=mode) == [0, 100, 110, 116, 123, 200 + delays[-1]]
    jobs = workload_of([(submit, run, run, q) for submit, run, q in table], 1)
    simulator = Simulator(jobs, SchedulerSettings(backfill=mode), decide=1)
    seen = [delays[0]]
    while simulator.run():
        delay = simulator.state.delay[0]
        seen += [] if delay == seen[-1] else [delay]
    assert seen == delays


def test_change_of_the_slowdown_by_just_the_tolerance_leaves_the_delay():
    """Short jobs wait 10 and 15 s and run for 5 s: slowdowns 3 and 4, so the change is 1/4."""
    table = [(0, 100, 1), (90, 5, 1), (90, 5, 1), (200, 300, 1)]
    mode = "multi-queue:bounds=50/100,delay=2500,batch=1,tolerance="
    assert starts(table, 1, backfill=f"{mode}0.25") == [0, 100, 105, 2700]
    assert starts(table, 1, backfill=f"{mode}0.24") == [0, 100, 105, 2700 + 625]


def test_batch_without_short_jobs_leaves_the_delay_as_it_is():
    delay = reference_multi_queue.Delay(reference_multi_queue.Settings(delay=2500))
    for slowdown in (None, 2, None, 4, 4, 2):
        delay.close(slowdown)
    assert delay.now == [2500, 2500, 2500, 2500, 3750, 3750, 2500]


@given(data=st.data(), estimates=st.permutations((1, 2, 3, 5, 8, 13, 21, 34)))
def test_a_class_for_every_job_is_conservative(data, estimates):
    runs = [data.draw(st.integers(0, estimate)) for estimate in estimates]
    submits = sorted(data.draw(st.integers(0, 20)) for _ in estimates)
    sizes = [data.draw(st.integers(1, 4)) for _ in estimates]
    workload = workload_of(list(zip(submits, runs, estimates, sizes, strict=True)), 4)
    policy = data.draw(policies)
    conservative = by_package(workload, policy=policy, backfill="conservative")
    classes = by_package(workload, policy=policy, backfill="multi-queue:bounds=1/2/3/5/8/13/21")
    assert classes == conservative


# --- What must hold -------------------------------------------------------------------------------


class WatchesOldest(reference_multi_queue.MultiQueue):
    """A reference that remembers the pivots of its passes, and when each was promised to start."""

    promised = ([], [])

    def admit(self):
        """Make a held job eligible; being older, it may go before pivots with promises."""
        super().admit()
        self.promised = ([], [])

    def check(self, queue, t):
        """Compare the promises with those of the last pass."""
        super().check(queue, t)
        _, pivots, times = self.plan(queue, t)
        self.compare(pivots, times, *self.promised)
        assert pivots[:1] == sorted(queue)[:1]
        self.promised = (pivots, times)

    def compare(self, pivots, times, before, promised):
        """Refuse a delay of the oldest job."""
        if pivots[:1] == before[:1]:
            assert times[:1] <= promised[:1]


class WatchesAll(WatchesOldest):
    """A reference that does so for all pivots."""

    def compare(self, pivots, times, before, promised):
        """Refuse a delay of any pivot while they stay the same."""
        if pivots == before:
            assert all(new <= old for new, old in zip(times, promised, strict=True))


def watch(kind, workload, mode, estimates):
    """Schedule with a watching reference, and compare."""
    settings = {"backfill": mode, "estimates": estimates}
    known, processors = history_of_users(workload), workload.machine_processors
    expected = reference.simulate(
        jobs_of(workload), processors, history=known, kind=kind, **settings
    )
    assert by_package(workload, **settings) == expected


@given(workload=workloads(max_jobs=40), mode=multi_queues())
def test_oldest_eligible_job_is_a_pivot_first_of_all_and_is_never_delayed(workload, mode):
    watch(WatchesOldest, workload, mode, "requested")


@given(workload=workloads(max_jobs=40), mode=multi_queues())
def test_reservations_of_unchanged_pivots_never_move_later_where_jobs_end_on_time(workload, mode):
    whole_seconds = np.maximum(workload.run_time, 1)  # an estimate is a second at least
    watch(WatchesAll, replace(workload, run_time=whole_seconds), mode, "exact")


def test_early_end_may_move_a_pivot_behind_one_that_came_before_it():
    """M=3: A 1p asks 3 s but ends at 0, C 1p x 1 runs; P 3p x 1 (short), L 1p x 2 (long) wait.

    At first P is promised 3, when A should end, and L 1, behind C. A ends at once: P moves ahead to
    1, and leaves L nothing before 2. Each pass makes reservations anew, in order of submission.
    """
    table = [(0, 0, 3, 1), (0, 1, 1, 1), (0, 1, 1, 1), (0, 1, 1, 3), (0, 2, 2, 1)]
    workload = workload_of(table, 3)
    assert not first_difference(workload, backfill="multi-queue:bounds=1")
    schedule = hpcgym.simulate(workload, backfill="multi-queue:bounds=1")
    assert schedule.start_time.tolist() == [0, 0, 0, 1, 2]


# --- Picked jobs, and what is shown ---------------------------------------------------------------


def test_picked_job_goes_first_and_a_wide_one_holds_a_reservation():
    """M=4: R 1p x 10 runs; A 2p x 50, B 2p x 60, W 4p x 70 wait, all short.

    With B picked it starts, and A is decided on at the same instant. With W picked it is the pivot,
    promised 10, and neither of the others ends before.
    """
    table = [(0, 10, 10, 1), (1, 50, 50, 2), (1, 60, 60, 2), (1, 70, 70, 4)]
    settings = SchedulerSettings(backfill="multi-queue")
    first = Simulator(workload_of(table, 4), settings, decide="event")
    assert first.run() and first.now == 0
    assert first.run() and first.now == 1
    second = first.copy()
    first.pick(2)
    assert first.run() and (first.now, first.waiting.tolist()) == (1, [1, 3])
    second.pick(3)
    assert second.run() and (second.now, second.waiting.tolist()) == (10, [1, 2, 3])


def test_held_job_does_not_fit_now_in_an_observation():
    """At 5 one of 4 processors is taken: T (2p) fits, S (4p) is too wide, L (2p) is held."""
    table = [(0, 90, 90, 1), (5, 500, 500, 2), (5, 20, 20, 4), (5, 30, 30, 2)]
    mode = "multi-queue:bounds=100,delay=50"
    env = SchedulingEnv("tiny", backfill=mode, decide="event", n_slots=4)
    env.reset(options={"workload": workload_of(table, 4)})
    shown = env.step(np.zeros(6, dtype=np.float32))[0]["jobs"].reshape(4, -1)
    assert shown[:, 6].tolist() == [1.0, 0.0, 0.0, 0.0]  # in SAF order: T, S, L, an empty slot
