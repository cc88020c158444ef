"""Trial runs, young jobs that give way, and the cap by request: against the reference."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import by_reference, first_difference, whole
from hpcgym.core.backfill import Easy
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.parts.trials import Trial
from strategies import busy_workloads, one_of, policies

KTH = "KTH-SP2-1996-2.1-cln"
POLICIES = ("FCFS", "SAF", "SMITH", "WFP3", "SMITH-HISTORY", "SMITH-REGRESSION", "SMITH-URGENT")
orders = st.sampled_from(POLICIES) | policies


@st.composite
def trials(draw):
    """Draw what is lent, in times like those of the drawn jobs."""
    return Trial(
        limit=draw(one_of((1, 5, 10, 20, 40, 100))),
        kills=draw(one_of((1, 2, 3))),
        young=draw(one_of((0, 10, 60, 200, 1000))),
        request=draw(one_of((0, 10, 60))),
        times=draw(one_of((1, 2))),
        share=draw(one_of((0.25, 0.5, 1))),
        guarantee=draw(one_of((1, 5, 10, 20, 100))),
        victim=draw(one_of((0.25, 0.5, math.inf))),
        overhead=draw(one_of((0, 0, 1, 5, 10))),
    )


@st.composite
def modes(draw):
    """Draw a mode with trials or with a cap by request."""
    cap = {}
    if draw(st.booleans()):
        cap = {
            "cap": draw(one_of((0, 0.2, 0.5, 0.7, 0.97))),
            "long": draw(one_of((0, 8, 30, 60, 120))),
            "overdue": draw(one_of(("guarded", "open"))),
            "by": draw(one_of(("expectation", "request"))),
            "widest": draw(one_of((0.2, 0.5, math.inf))),
            "pressed": draw(one_of((0, 0.25, 0.9))),
        }
    trial = draw(trials())
    if draw(st.booleans()):
        return CostBenefit(**cap, kappa=draw(one_of((0, 0.25, 1, 4))), trial=trial)
    return Easy(**cap, trial=trial)


@st.composite
def settings(draw):
    """Draw settings without a mode."""
    return {
        "policy": draw(orders),
        "backfill_order": draw(st.none() | st.none() | orders),
        "threshold": draw(one_of((None, 0, 30, 100, 400))),
        "kill_at_limit": draw(st.booleans()),
        "estimates": draw(one_of(("requested", "requested", "exact"))),
    }


@given(workload=busy_workloads(), mode=modes(), given=settings())
def test_every_job_starts_as_the_reference_says(workload, mode, given):
    assert not first_difference(workload, backfill=str(mode), **given)
