"""Look-ahead, relaxed and slack-based backfilling: against the reference, and what must hold."""

import math

import pytest
from hypothesis import given
from hypothesis import settings as drawing
from hypothesis import strategies as st

from engines import by_package, by_reference, simulator_of, workload_of
from hpcgym.core import constants as s
from hpcgym.core.backfill import as_backfill
from hpcgym.core.parts.conservative import UNPLANNED
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.state import in_use
from research.benchmark import saturated
from strategies import workloads

ONE_EACH = ("look-ahead:window=5", "relaxed:omega=0.5", "slack:c=0.5")

ENGINES = pytest.mark.parametrize("engine", [by_reference, by_package])


# --- Computed by hand -----------------------------------------------------------------------------


def at_once(*shapes):
    """Return jobs all submitted at 0 that ask for exactly what they need, from (processors, s)."""
    return [(0, run_time, run_time, processors) for processors, run_time in shapes]


def starts(engine, processors, jobs, mode):
    """Return the start times under a mode."""
    return [one.start_time for one in engine(workload_of(jobs, processors), backfill=mode)]


@ENGINES
def test_looking_ahead_fills_what_greed_leaves_free(engine):
    """Seven processors are free until 100: EASY takes A (4) and C (2), the fullest is B and C.

    ::

        R 3p x 100, H 10p x 10, A 4p x 50, B 5p x 50, C 2p x 50
        B and C at 0, A at 50, H at 100
    """
    jobs = at_once((3, 100), (10, 10), (4, 50), (5, 50), (2, 50))
    assert starts(engine, 10, jobs, "easy") == [0, 100, 0, 50, 0]
    assert starts(engine, 10, jobs, "look-ahead") == [0, 100, 50, 0, 0]


@ENGINES
def test_of_equally_full_choices_later_jobs_are_left_out_first(engine):
    """Four are free until 100: A and D, B and C, or E alone. E is left out, then D, so B and C."""
    jobs = at_once((6, 100), (10, 10), (3, 100), (2, 100), (2, 100), (1, 100), (4, 100))
    assert starts(engine, 10, jobs, "look-ahead") == [0, 100, 110, 0, 0, 110, 110]


@ENGINES
def test_jobs_behind_the_window_are_not_looked_at(engine):
    """Two are free; the window of two holds A, which does not fit, and B; C is not looked at."""
    jobs = at_once((8, 100), (10, 10), (3, 50), (1, 100), (1, 100))
    assert starts(engine, 10, jobs, "look-ahead:window=2") == [0, 100, 110, 0, 110]
    assert starts(engine, 10, jobs, "look-ahead:window=3") == [0, 100, 110, 0, 0]


@ENGINES
def test_extra_processors_limit_the_jobs_that_outlast_the_shadow_time(engine):
    """Four are free and two extra: one of the long A and B (2 each), and C (2), back in time."""
    jobs = at_once((6, 100), (8, 10), (2, 200), (2, 200), (2, 100))
    assert starts(engine, 10, jobs, "look-ahead") == [0, 100, 0, 110, 0]


@ENGINES
@pytest.mark.parametrize("mode", ["relaxed:omega", "slack:c"])
def test_head_may_be_delayed_by_a_part_of_its_estimate(mode, engine):
    """H could start at 10; B would have it wait until 15, half of its estimate more.

    So it is where H is promised 10 and a part of its estimate.

    ::

        R 2p x 10, H 3p x 10, B 2p x 15 on 4 processors
    """
    jobs = at_once((2, 10), (3, 10), (2, 15))
    for part, expected in ((0, [0, 10, 20]), (0.4, [0, 10, 20]), (0.5, [0, 15, 0])):
        assert starts(engine, 4, jobs, f"{mode}={part}") == expected


@ENGINES
def test_delays_do_not_add_up_while_a_job_stays_head(engine):
    """H waits for B until 15, within its limit 10 + 10 = 20. At 10 C could start, until 10 + e.

    With 11 s C would end at 21, within 15 + 10 but beyond the limit that H was given at first.

    ::

        R 2p x 10, H 3p x 10, B 2p x 15 at 0; C 2p x 10 or 11 at 1
    """
    jobs = at_once((2, 10), (3, 10), (2, 15))
    assert starts(engine, 4, [*jobs, (1, 11, 11, 2)], "relaxed") == [0, 15, 0, 25]
    assert starts(engine, 4, [*jobs, (1, 10, 10, 2)], "relaxed") == [0, 20, 0, 10]


@ENGINES
def test_limit_moves_earlier_with_the_shadow_time(engine):
    """R asks for 100 and ends at 5: H's reference time becomes 20, the end of S, its limit 30.

    ::

        R 2p runs 5 asks 100, S 1p x 20, H 4p x 10 at 0; B 2p x 25 or 26 at 5
    """
    jobs = [(0, 5, 100, 2), (0, 20, 20, 1), (0, 10, 10, 4)]
    assert starts(engine, 4, [*jobs, (5, 25, 25, 2)], "relaxed") == [0, 0, 30, 5]
    assert starts(engine, 4, [*jobs, (5, 26, 26, 2)], "relaxed") == [0, 0, 20, 30]


@ENGINES
def test_promises_protect_others_than_the_head(engine):
    """B would have H wait only a little, but break the promise of J, which is short.

    Slack is half an estimate: H is promised 10 + 50 and J 110 + 2; B until 15 would move J to 115.

    ::

        R 2p x 10, H 3p x 100, J 4p x 4, B 2p x 15 on 4 processors
    """
    jobs = at_once((2, 10), (3, 100), (4, 4), (2, 15))
    assert starts(engine, 4, jobs, "relaxed:omega=0.5") == [0, 15, 115, 0]
    assert starts(engine, 4, jobs, "slack:c=0.5") == [0, 10, 110, 114]


# --- What must hold -------------------------------------------------------------------------------


def started_under(simulator, mode):
    """Return the jobs that the pass of this instant starts under a mode."""
    twin = simulator.copy()
    twin.state.backfill[0] = as_backfill(mode).number
    twin.state.backfill_parameter[0] = as_backfill(mode).row()
    twin.run()
    return [job for job in simulator.waiting.tolist() if twin.start_time[job] >= 0]


def shadow_after(simulator, head, started):
    """Return the shadow time of the head once these jobs have started now, by estimates."""
    table, start_time = simulator.episode.table, simulator.state.start_time[0]
    ends = [(start_time[job] + table.estimate[job], job) for job in simulator.running]
    ends += [(simulator.now + table.estimate[job], job) for job in started]
    free = simulator.free_processors - table.processors[started].sum()
    for end, job in sorted(ends):
        free += table.processors[job]
        if free >= table.processors[head]:
            return end
    raise AssertionError("the head is wider than the machine")


@drawing(max_examples=max(drawing.default.max_examples // 2, 1))
@given(
    workload=workloads(max_jobs=30),
    policy=st.sampled_from(("FCFS", "SAF", "LPF")),
    estimates=st.sampled_from(("requested", "exact")),
)
def test_looking_ahead_uses_as_much_as_easy_and_delays_no_head(workload, policy, estimates):
    """From each state that a schedule goes through, over all that wait."""
    mode = "look-ahead:window=inf"
    simulator = simulator_of(workload, policy, "event", backfill=mode, estimates=estimates)
    while simulator.run():
        in_order, greedy, chosen = (
            started_under(simulator, each) for each in ("none", "easy", mode)
        )
        assert set(in_order) <= set(chosen)
        assert workload.processors[chosen].sum() >= workload.processors[greedy].sum()
        behind = [job for job in simulator.waiting.tolist() if job not in in_order]
        if behind:
            shadow = shadow_after(simulator, behind[0], in_order)
            assert shadow_after(simulator, behind[0], chosen) == shadow


@given(workload=workloads(max_jobs=40), omega=st.sampled_from((0, 0.3, 1, 3)))
def test_first_come_head_starts_by_the_limit_it_was_given_first(workload, omega):
    simulator = simulator_of(workload, decide="event", backfill=f"relaxed:omega={omega}")
    estimate, limit = simulator.episode.table.estimate, {}
    while simulator.run():
        head, reference = simulator.state.limited[0] - 1, simulator.state.reference[0]
        if head >= 0:
            limit.setdefault(int(head), int(reference) + math.floor(omega * estimate[head]))
    assert all(simulator.start_time[head] <= latest for head, latest in limit.items())


@given(
    workload=workloads(max_jobs=40),
    policy=st.sampled_from(("FCFS", "SAF", "LPF")),
    estimates=st.sampled_from(("requested", "exact")),
    c=st.sampled_from((0, 0.5, 2)),
)
def test_no_job_starts_later_than_promised(workload, policy, estimates, c):
    """Whatever the order, and where jobs end early, as long as none outlives its estimate.

    A promise is the first reservation and the slack, so that with c = 0 it is the reservation.
    """
    simulator = simulator_of(
        workload, policy, "event", backfill=f"slack:c={c}", estimates=estimates
    )
    promised = {}
    while simulator.run():
        for job in simulator.waiting:
            entry = s.FIRST_ENTRY - simulator.state.start_time[0, job]
            if simulator.state.planned_start[0, entry] == UNPLANNED:
                continue
            promised.setdefault(int(job), int(simulator.state.promise[0, entry]))
            assert simulator.state.promise[0, entry] == promised[int(job)]
            assert simulator.state.planned_start[0, entry] <= promised[int(job)]
    assert all(simulator.start_time[job] <= latest for job, latest in promised.items())


@pytest.mark.parametrize("mode", ["easy", "conservative:compress=shift", *ONE_EACH])
def test_only_modes_that_need_them_hold_tables_and_promises(mode):
    workload = saturated(20, 20)
    simulator = Simulator(workload, SchedulerSettings(backfill=mode))
    simulator.run()
    sizes = {key: array.size for key, array in simulator.state.arrays.items()}
    is_promised = mode.startswith("slack")
    assert sizes["reach"] == (2 * 257 if mode.startswith("look-ahead") else 0)
    for key in ("promise", "trial_job", "trial_start"):
        assert sizes[key] == (len(workload) if is_promised else 0)
    kept = in_use(simulator.state)
    assert kept.reach.size == kept.trial_job.size == kept.trial_start.size == 0
    assert 0 < kept.promise.size < len(workload) if is_promised else kept.promise.size == 0
