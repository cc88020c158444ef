"""dynP against its reference, and what must hold: copies, pickles, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_dynp
from engines import check_copies_go_on_alike, jobs_of
from hpcgym.base.errors import PolicyError
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.schedule.policies.dynp import DynP
from strategies import THRESHOLDS_S, workloads

BY_REQUEST = ("FCFS", "SPF", "LPF", "SAF", "LQF")


def first_difference(workload, candidates=None, **settings):
    """Return the first job that the package starts at another second than the reference."""
    policy = "DYNP" if candidates is None else policy_of(candidates)
    ours = hpcgym.simulate(workload, policy, **settings)
    named = {} if candidates is None else {"candidates": candidates}
    theirs, switches = reference_dynp.simulate(
        jobs_of(workload), workload.machine_processors, **named, **settings
    )
    for job, start in enumerate(theirs):
        if (ours.start_time[job], ours.backfilled[job]) != start[:2]:
            return [(job, ours.start_time[job], ours.backfilled[job], start)], switches
    return [], switches


def policy_of(candidates):
    """Return dynP over other candidates."""
    return hpcgym.as_policy(DynP(tuple(candidates)))


@given(data=st.data())
def test_dynp_starts_every_drawn_job_as_its_reference_does(data):
    workload = data.draw(workloads(max_jobs=24))
    settings = {
        "threshold": data.draw(st.sampled_from(THRESHOLDS_S)),
        "kill_at_limit": data.draw(st.booleans()),
        "backfill": data.draw(st.sampled_from(("easy", "easy", "none"))),
    }
    if settings["backfill"] == "easy":
        settings["backfill_order"] = data.draw(st.sampled_from((None, None, "SPF", "LQF")))
    chosen = st.lists(st.sampled_from(BY_REQUEST), min_size=1, max_size=4, unique=True)
    candidates = data.draw(st.none() | chosen)
    assert not first_difference(workload, candidates, **settings)[0]


@pytest.mark.long
@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln"])
def test_the_first_jobs_of_real_logs_start_as_the_reference_says(real_log, log):
    part = hpcgym.load_workload(real_log(log)).select(np.arange(3_000))
    difference, switches = first_difference(part, threshold=200_000)
    assert not difference and switches > 10


@pytest.mark.slow
@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln"])
def test_whole_logs_start_as_the_reference_says(real_log, log):
    whole = hpcgym.load_workload(real_log(log))
    difference, switches = first_difference(whole, threshold=200_000)
    assert not difference and switches > 500


@pytest.mark.long
def test_a_single_candidate_gives_the_schedule_of_that_policy():
    log = hpcgym.load_workload("synthetic-256")
    ours = hpcgym.simulate(log, policy_of(["SAF"]), threshold=100_000)
    alone = hpcgym.simulate(log, "SAF", threshold=100_000)
    np.testing.assert_array_equal(ours.start_time, alone.start_time)


@pytest.mark.long
def test_copies_and_pickles_choose_as_their_original():
    settings = SchedulerSettings(policy="DYNP")
    check_copies_go_on_alike(Simulator(hpcgym.load_workload("synthetic-256"), settings))


def test_predictions_come_true_where_estimates_do_and_no_job_follows():
    log = hpcgym.load_workload("synthetic-256").select(np.arange(300))
    at_once = log.resubmitted(np.zeros(300, dtype=np.int64))
    settings = SchedulerSettings("FCFS", estimates="exact", threshold=100_000)
    simulator = Simulator(at_once, settings, decide="event")
    assert simulator.run() and len(simulator.waiting) == 300
    before = simulator.state.counter.copy()
    predicted = simulator.predict(["FCFS", "SAF"])
    np.testing.assert_array_equal(simulator.state.counter, before)
    for policy, mean in zip(["FCFS", "SAF"], predicted, strict=True):
        made = hpcgym.simulate(at_once, policy, estimates="exact", threshold=100_000)
        assert mean == pytest.approx(made.bsld().mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DynP(()), "at least one candidate"),
        (lambda: DynP(("WFP3",)), "cannot be planned with"),
        (lambda: DynP(("SAFE",)), "SAF"),
        (lambda: SchedulerSettings("DYNP", event_semantics="pyss"), "event_semantics 'batch'"),
        (lambda: SchedulerSettings("DYNP", backfill="conservative:compress=shift"), "plans with"),
        (lambda: SchedulerSettings("SAF", backfill_order="DYNP"), "chooses the primary order"),
    ],
)
def test_what_cannot_be_planned_with_is_refused(make, message):
    with pytest.raises(PolicyError, match=message):
        make()
