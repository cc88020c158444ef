"""Drawn modes with trials, caps and costs, and drawn outages: in times like those of drawn jobs."""

import math

from hypothesis import strategies as st

from hpcgym.core.backfill import Easy
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.parts.outages import Outage
from hpcgym.core.parts.trials import Trial
from strategies import one_of, policies

POLICIES = ("FCFS", "SAF", "SMITH", "WFP3", "SMITH-HISTORY", "SMITH-REG", "SMITH-URGENT")
orders = st.sampled_from(POLICIES) | policies


@st.composite
def trials(draw, *, overhead=True, restart=False):
    """Draw how jobs are tried, in times like those of the drawn jobs."""
    return Trial(
        limit=draw(one_of((1, 5, 10, 20, 40, 100))),
        kills=draw(one_of((1, 2, 3))),
        young=draw(one_of((0, 1, 10, 60, 200, 1000))),
        request=draw(one_of((0, 10, 60))),
        times=draw(one_of((1, 2))),
        share=draw(one_of((0.25, 0.5, 1))),
        guarantee=draw(one_of((1, 5, 10, 20, 100))),
        victim=draw(one_of((0.25, 0.5, math.inf))),
        overhead=draw(one_of((0, 0, 1, 5, 10))) if overhead else 0,
        restart=draw(one_of((0, 1, 7, 30, 121))) if restart else 0,
    )


@st.composite
def modes(draw, *, overhead=True, restart=False):
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
    trial = draw(trials(overhead=overhead, restart=restart))
    if draw(st.booleans()):
        return CostBenefit(**cap, kappa=draw(one_of((0, 0.25, 1, 4))), trial=trial)
    return Easy(**cap, trial=trial)


@st.composite
def outages(draw, processors):
    """Draw outages that overlap, tie and follow each other, in times like those of the jobs."""
    drawn = []
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(one_of((0, 5, 10, 20, 20, 40, 60, 61, 120, 300, 600)))
        end = begin + draw(one_of((1, 5, 10, 20, 40, 60, 300)))
        most = processors - sum(one.processors for one in drawn if one.to > begin)
        if most > 0:
            number = draw(st.integers(1, most) | st.just(most))
            announced = draw(one_of((0, 0, begin // 2, begin)))
            drawn.append(Outage(begin, end, number, announced))
    return drawn
