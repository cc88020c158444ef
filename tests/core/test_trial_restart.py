"""Trials that are not promoted, and killed jobs that wait anew at the end of the queue."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from drawn_lives import assert_attempts, assert_lives, attempts_in, modes
from engines import whole
from hpcgym.base.errors import PolicyError
from hpcgym.machine import Machine
from hpcgym.trace import find_trace
from strategies import busy_workloads, one_of

ORDERS = one_of(("FCFS", "FCFS", "SAF", "SPF", "LCFS"))


@st.composite
def settings(draw):
    """Draw settings whose orders do not change with time."""
    return {
        "policy": draw(ORDERS),
        "backfill_order": draw(st.none() | st.none() | ORDERS),
        "threshold": draw(one_of((None, 0, 30, 100, 400))),
        "kill_at_limit": draw(st.booleans()),
        "estimates": draw(one_of(("requested", "requested", "exact"))),
    }


@given(workload=busy_workloads(), mode=modes(restart=True), given=settings())
def test_every_start_and_every_attempt_is_as_the_reference_says(workload, mode, given):
    assert_lives(workload, backfill=str(mode), **given)


def test_a_killed_job_waits_anew_behind_those_submitted_meanwhile():
    """H waits for all 4 processors until 40. P and S go on trial in vain, and wait anew at 17, 27.

    W, submitted at 15, then stands before both. Where they are promoted it stands behind them.

    ::

        AAAAAAAAAAAAAAAAAAAA            A 3p x 40, H 4p x 30, W 4p x 30
        AAAAAAAAAAAAAAAAAAAA            P 1p x 50 of 60, S 1p x 20 of 60
        AAAAAAAAAAAAAAAAAAAA
        .PPPPPSSSSS.........
        0     12    22      40 H  70 W  100 PS
    """
    jobs = [(0, 40, 40, 3), (1, 30, 30, 4), (2, 50, 60, 1), (3, 20, 60, 1), (15, 30, 30, 4)]
    tried = [(2, 2, 2, 12, "trial over"), (3, 12, 12, 22, "trial over")]
    first = [(0, 0, 0, 40, "completed"), (1, 40, 40, 70, "completed")]
    assert_attempts(
        jobs,
        "limit=10,restart=5",
        *(*first, tried[0], (2, 100, 100, 150, "completed")),
        *(tried[1], (3, 100, 100, 120, "completed"), (4, 70, 70, 100, "completed")),
    )
    assert_attempts(
        jobs,
        "limit=10",
        *(*first, tried[0], (2, 70, 70, 120, "completed")),
        *(tried[1], (3, 70, 70, 90, "completed"), (4, 120, 120, 150, "completed")),
    )


def test_no_job_on_trial_is_promoted():
    """P goes on trial at 2, and might have been promoted at 5, when B ends before its estimate.

    ::

        AAAAAAAAAAHHHHHHHHHHHHHHHHHHHH    A 2p x 10, B 1p x 5 of 50
        AAAAAAAAAAHHHHHHHHHHHHHHHHHHHH    H 3p x 20, P 1p x 30 of 60
        BBBBB.....HHHHHHHHHHHHHHHHHHHH
        ..PPPPPPPPPP.....PPPPPPPPPPPPP...
        0 2       10 12  17           30   47
    """
    jobs = [(0, 10, 10, 2), (0, 5, 50, 1), (1, 20, 20, 3), (2, 30, 60, 1)]
    others = [(0, 0, 0, 10, "completed"), (1, 0, 0, 5, "completed"), (2, 10, 10, 30, "completed")]
    assert_attempts(jobs, "limit=10", *others, (3, 2, 2, 32, "completed"))
    restarted = (3, 2, 2, 12, "trial over"), (3, 17, 17, 47, "completed")
    assert_attempts(jobs, "limit=10,restart=5", *others, *restarted)


@pytest.mark.long
def test_the_first_jobs_of_a_log_have_the_attempts_of_the_reference():
    workload = whole(find_trace("synthetic-256"))
    workload = workload.select(np.arange(len(workload)) < 2_000)
    for policy in ("FCFS", "SAF"):
        made = assert_lives(
            workload, policy=policy, backfill="easy+trial:restart=121", threshold=200_000
        )
        assert any(reason == "evicted" for *_, reason in attempts_in(made))


@pytest.mark.slow
@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln"])
@pytest.mark.parametrize("policy", ["FCFS", "SAF"])
def test_a_real_log_has_the_attempts_of_the_reference(real_log, log, policy):
    given = {"policy": policy, "backfill": "easy+trial:restart=121", "threshold": 200_000}
    assert_lives(whole(real_log(log)), **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": "WFP3"}, "'WFP3', which changes with time.*'FCFS' or 'SAF'"),
        ({"policy": "FCFS", "backfill_order": "WFP3"}, "'WFP3', which changes with time"),
        ({"events": "outage:from=0,to=9,processors=1"}, "whose age is then not known; got event"),
    ],
)
def test_what_restart_does_not_know_is_refused(given, said):
    jobs = hpcgym.load_workload("tiny")
    with pytest.raises(PolicyError, match=said):
        hpcgym.simulate(jobs, backfill="easy+trial:restart=121", **given)


def test_restart_is_refused_on_machines_of_nodes():
    machine = Machine.from_dict({"nodes": [{"count": 2, "cpus": 4}]})
    jobs = hpcgym.Workload.from_arrays([0], [1], [1], [1], machine=machine)
    with pytest.raises(PolicyError, match=r"wait anew \(restart\).*; got a machine of nodes"):
        hpcgym.simulate(jobs, backfill="easy+trial:restart=121")
