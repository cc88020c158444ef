"""Drawn jobs under drawn settings, in every mode: each starts as the reference says."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

import nodes_of_kernels
import reference_nodes
from drawn_machines import draw_case
from engines import first_difference, workload_of
from fuzzing import many
from hpcgym.core.backfill import as_backfill
from hpcgym.schedule.gang import Gang
from reference import Job
from reference_gang import is_as_by_seconds
from reference_prediction import CORRECTIONS
from strategies import THRESHOLDS_S, crowds, jobs, policies

TIMES_S = (1, 2, 3, 5, 10, 11, 20, 60)
ORDERS = ("SMITH-HISTORY", "SMITH-REG", "SAF-RECENT", "SMITH-URGENT")


class Case(NamedTuple):
    """What both schedulers get, as it is written into an `@example`."""

    processors: int
    jobs: list[Job]
    settings: dict[str, Any]


@st.composite
def modes(draw: st.DrawFn) -> str:
    """Draw a backfilling mode with its parameters."""
    share = st.sampled_from((0, 0.05, 0.3, 0.5, 1, 2.5))
    bounds = sorted(draw(st.sets(st.sampled_from(TIMES_S), min_size=1, max_size=7)))
    queues = f"multi-queue:bounds={'/'.join(map(str, bounds))}"
    delay = f",delay={draw(st.sampled_from((1, 2, 7, 30)))},batch={draw(st.integers(1, 6))}"
    tolerance = f",tolerance={draw(share)},delta1={draw(st.sampled_from(('none', 'printed')))}"
    cap = (
        f"cap={draw(st.sampled_from((0.2, 0.5, 0.7, 0.97)))},long={draw(st.sampled_from(TIMES_S))}"
    )
    cycles = (
        f"slurm:max_job_test={draw(st.integers(1, 9))},max_job_user={draw(st.integers(1, 9))},"
        f"window={draw(st.integers(1, 2))},resolution={draw(st.sampled_from(TIMES_S))},"
        f"interval={draw(st.sampled_from(TIMES_S))}"
    )
    return draw(
        st.sampled_from(
            (
                "none",
                "easy",
                f"easy:{cap}",
                f"easy:{cap},overdue=open",
                "conservative",
                "conservative:compress=shift",
                f"depth:k={draw(st.sampled_from((1, 2, 3, 5, 'inf')))}",
                f"look-ahead:window={draw(st.sampled_from((1, 2, 5, 'inf')))}",
                f"relaxed:omega={draw(share)}",
                f"slack:c={draw(share)}",
                queues,
                queues + delay + tolerance,
                cycles,
                f"cost-benefit:kappa={draw(share)}",
                f"cost-benefit:kappa={draw(share)},{cap}",
            )
        )
    )


@st.composite
def drawn(draw: st.DrawFn) -> Case:
    """Draw a case."""
    mode, processors = draw(modes()), draw(st.sampled_from((3, 4, 5, 8, 20)))
    table = draw(crowds(processors, 40) | jobs(processors, 40))
    settings: dict[str, Any] = {
        "policy": draw(policies | st.sampled_from(ORDERS)),
        "backfill": mode,
        "backfill_order": None,
        "threshold": draw(st.sampled_from(THRESHOLDS_S)),
        "estimates": draw(st.sampled_from(("requested", "exact"))),
        "kill_at_limit": draw(st.booleans()),
    }
    if as_backfill(mode).TAKES_ORDER:
        settings["backfill_order"] = draw(st.none() | policies)
    if draw(st.booleans()):
        settings["estimates"] = draw(st.sampled_from(("recent", "doubled", "f-model:f=3,seed=1")))
        settings["correction"] = draw(st.sampled_from(CORRECTIONS))
    elif mode in ("none", "easy", "conservative") and draw(st.booleans()):
        settings |= {"event_semantics": "pyss", "kill_at_limit": True}
    return Case(processors, table, settings)


@many(8)
@given(drawn())
def test_every_mode_starts_each_drawn_job_as_the_reference_says(case: Case) -> None:
    workload = workload_of(case.jobs, case.processors)
    assert not first_difference(workload, **case.settings)


@many(1)
@given(drawn(), st.integers(1, 7), st.integers(0, 6), st.sampled_from((1, 2, 3, float("inf"))))
def test_gangs_start_and_end_as_second_by_second(
    case: Case, quantum: int, switch: int, rows: float
) -> None:
    workload = workload_of(case.jobs[:10], case.processors)
    gang = Gang(quantum, switch % quantum, rows)
    assert is_as_by_seconds(workload, gang, case.settings["kill_at_limit"])


@many(3)
@given(st.integers(0, 2**40))
def test_a_drawn_machine_of_nodes_is_scheduled_as_by_the_reference(seed: int) -> None:
    case = draw_case(Random(seed))
    got = nodes_of_kernels.simulate(case.machine, case.jobs, **case.settings)
    expected = reference_nodes.simulate(case.machine, case.jobs, **case.settings)
    assert got[:5] == expected[:5]
