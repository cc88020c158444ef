"""Long queues and real logs, in part or whole: every start and both flags as the reference says."""

from itertools import product

import numpy as np
import pytest

import hpcgym
import reference
import reference_index
from engines import first_difference, first_jobs, part_or_whole, whole
from hpcgym.core.index_policy import index_policy
from reference_prediction import CORRECTIONS
from research.benchmark import saturated
from strategies import longest, network_of

KTH, CTC = "KTH-SP2-1996-2.1-cln", "CTC-SP2-1996-3.1-cln"
SDSC = "SDSC-SP2-1998-4.2-cln"
WEEK_S = 604_800

SHIFT = "conservative:compress=shift"
RESERVING = ("conservative", SHIFT, "depth:k=1", "depth:k=2", "depth:k=5", "depth:k=inf")
CAP, OPEN = "cost-benefit:cap=0.97", "cost-benefit:cap=0.97,overdue=open"
SAF = {"policy": "SAF", "threshold": 200_000}
FILLED = SAF | {"backfill_order": "SPF"}
LEARNT = {"policy": "SMITH", "threshold": 72_000}
URGENT = {"policy": "SMITH-URGENT", "threshold": 200_000}
MIXED = (0.1, 0.2, -0.3, 0.1, 0.2, 0.1)
EASY_PLUS_PLUS = {"backfill_order": "SPF", "estimates": "recent", "correction": "reqtime"}
PYSS, NO_KILLS = {"event_semantics": "pyss"}, {"kill_at_limit": False}


def name_of(value):
    """Name a parameter of a test alike in every process."""
    if isinstance(value, dict):
        return "-".join(map(name_of, value.values()))
    return getattr(value, "__name__", str(value))


def slow(*values):
    """Return a row of a table that is tried under `slow` only."""
    return pytest.param(*values, marks=pytest.mark.slow)


def under(mode, *others):
    """Return settings of a mode and others."""
    made = {"backfill": mode}
    for settings in others:
        made |= settings
    return made


QUEUES = [
    slow((2_000, 500), {"policy": "FCFS"}),
    slow((2_000, 500), {"policy": "SAF"}),
    ((2_000, 500), {"policy": "LPF", "backfill_order": "SQF"}),
    ((2_000, 500), {"policy": "SAF", "threshold": 100_000}),
    ((2_000, 500), {"policy": "FCFS", "backfill_order": "LAF", "threshold": 50_000}),
    ((500, 500), {"policy": MIXED}),
    ((500, 500), {"policy": "WFP3", "threshold": 20_000}),
    ((500, 500), {"policy": "UNICEF", "backfill_order": "SPF"}),
    ((500, 500), {"policy": "SAF", "backfill_order": "WFP3"}),
    ((500, 500), {"policy": "LEXP", "backfill_order": "MULTIFACTOR", "threshold": 50_000}),
]
OF_MODES = [
    ((120, 120), 5_000, ("SAF", "WFP3"), RESERVING),
    ((150, 100), 20_000, ("SAF", "WFP3"), ("look-ahead", "relaxed", "slack:c=1")),
    (
        (150, 100),
        20_000,
        ("SAF", "SMITH-URGENT"),
        ("easy:cap=0.5,long=600", "cost-benefit:kappa=1,cap=0.7,long=600"),
    ),
    (
        (200, 150),
        20_000,
        ("FCFS", "SAF", "WFP3"),
        ("multi-queue", "multi-queue:delay=20000,batch=20"),
    ),
]
QUEUES += [
    (
        size,
        {"policy": policy, "backfill": mode, "threshold": threshold}
        | ({"backfill_order": "SQF"} if mode.startswith("depth") else {}),
    )
    for size, threshold, policies, modes in OF_MODES
    for policy, mode in product(policies, modes)
]


@pytest.mark.long
@pytest.mark.parametrize(("size", "settings"), QUEUES, ids=name_of)
def test_long_queues_start_as_the_reference_says(size, settings):
    assert not first_difference(saturated(*size), **settings)


PAIRS = [(order, threshold) for order in (None, "SPF") for threshold in (None, 72_000, 200_000)]
"""Backfill orders and thresholds: each policy has one of these every day, and all under `slow`."""


@pytest.mark.parametrize(
    ("policy", "backfill_order", "threshold"),
    [
        pytest.param(policy, *pair, marks=() if k == n % len(PAIRS) else pytest.mark.slow)
        for n, policy in enumerate(reference.POLICIES)
        for k, pair in enumerate(PAIRS)
    ],
)
@part_or_whole
def test_kth_starts_as_the_reference_does(real_log, n, policy, backfill_order, threshold):
    settings = {"policy": policy, "backfill_order": backfill_order, "threshold": threshold}
    assert not first_difference(first_jobs(real_log(KTH), n), **settings)


ON_KTH = [
    PYSS,
    PYSS | {"estimates": "exact", "policy": "SAF"},
    PYSS | {"backfill_order": "SPF"},
    NO_KILLS | SAF,
    NO_KILLS | {"policy": "WFP3", "backfill_order": "SMITH"},
    {"estimates": "exact", "policy": "LEXP"},
    {"backfill": "none", "policy": "SMITH"},
    {"policy": MIXED, "threshold": 200_000},
    {"policy": "FCFS", "backfill_order": "LEXP", "threshold": 72_000},
    under("conservative", SAF),
    under("conservative", PYSS),
    under("depth:k=2", NO_KILLS, {"backfill_order": "SMITH"}),
    slow(under("conservative")),
    slow(under(SHIFT)),
    slow(under(SHIFT, NO_KILLS, {"policy": "WFP3"})),
    slow(under(SHIFT, SAF)),
    slow(under(SHIFT, PYSS, {"estimates": "exact"})),
    slow(under("conservative", NO_KILLS, {"policy": "LEXP"})),
    under("look-ahead:window=20", PYSS),
    under("look-ahead:window=20", NO_KILLS, {"policy": "WFP3"}),
    under("relaxed", {"backfill_order": "SPF"}),
    under("relaxed:omega=0.5", NO_KILLS, {"policy": "LEXP"}),
] + [
    pytest.param(
        EASY_PLUS_PLUS | {"correction": kind, "event_semantics": semantics},
        marks=() if n % 2 == k else pytest.mark.slow,
    )
    for n, kind in enumerate(CORRECTIONS)  # in turns every day, all under `slow`
    for k, semantics in enumerate(("batch", "pyss"))
    if (semantics, kind) != ("pyss", CORRECTIONS[0])
]


@pytest.mark.parametrize("settings", ON_KTH, ids=name_of)
@part_or_whole
def test_kth_under_other_rules_starts_as_the_reference_does(real_log, n, settings):
    assert not first_difference(first_jobs(real_log(KTH), n), **settings)


OF_DEPTH = (
    {"backfill": "depth:k=1"},
    {"backfill": "depth:k=3", "policy": "SAF", "threshold": 72_000},
    {"backfill": "depth:k=3", "policy": "FCFS", "backfill_order": "SPF"},
)


@pytest.mark.parametrize(
    ("log", "settings"),
    [
        (CTC, FILLED),
        (SDSC, LEARNT),
        slow(CTC, LEARNT),
        slow(SDSC, FILLED),
        slow(CTC, {"policy": "FCFS"}),
        slow(SDSC, {"policy": "FCFS"}),
        *((KTH, settings) for settings in OF_DEPTH),
        *(slow(SDSC, settings) for settings in OF_DEPTH),
    ],
    ids=name_of,
)
@part_or_whole
def test_other_logs_start_as_the_reference_does(real_log, n, log, settings):
    assert not first_difference(first_jobs(real_log(log), n), **settings)


OF_FIRST_JOBS = [
    (KTH, 3_000, under(SHIFT, NO_KILLS, {"policy": "WFP3"})),
    # Many users' jobs outlive predictions, in both modes that keep plans.
    (KTH, 3_000, under(SHIFT, {"estimates": "recent", "correction": "reqtime"})),
    (KTH, 3_000, under("slack:c=0.5", {"estimates": "recent", "correction": "reqtime"})),
    *((KTH, 2_000, under(mode, URGENT)) for mode in ("easy:cap=0.97", CAP, OPEN)),
    *((KTH, 2_000, {"policy": policy}) for policy in ("SMITH-HISTORY", "SMITH-RECENT")),
]
for _mode in ("look-ahead", "relaxed", "slack:c=0", "slack:c=1"):
    OF_FIRST_JOBS += [
        (KTH, 3_000, under(_mode, {"policy": "FCFS", "threshold": 200_000})),
        (SDSC, 3_000, under(_mode, SAF)),
        slow(KTH, 3_000, under(_mode, SAF)),
        slow(SDSC, 3_000, under(_mode, {"policy": "FCFS", "threshold": 200_000})),
    ]


@pytest.mark.long
@pytest.mark.parametrize(("log", "n", "settings"), OF_FIRST_JOBS, ids=name_of)
def test_first_jobs_of_logs_start_as_the_reference_says(real_log, log, n, settings):
    assert not first_difference(first_jobs(real_log(log), n), **settings)


@pytest.mark.long
@pytest.mark.parametrize("mode", [CAP, OPEN, "easy:cap=0.8,by=request,overdue=open"])
def test_jobs_that_wait_for_half_the_threshold_start_as_the_reference_says(mode):
    first = hpcgym.load_workload("synthetic-busy-weeks").select(np.arange(1_000))
    assert not first_difference(first, policy="SMITH-URGENT", backfill=mode, threshold=20_000)


@pytest.mark.long
@pytest.mark.parametrize("correction", [name for name in CORRECTIONS if name != "none"])
@pytest.mark.parametrize(
    "policy", [name for name in reference_index.RULES if name.startswith("SMITH-")]
)
def test_an_index_starts_jobs_as_the_reference_does_under_corrections(policy, correction):
    """Learning uses the estimate at the submission, whatever corrections follow."""
    part = hpcgym.load_workload("synthetic-256").select(np.arange(1_500))
    settings = {"estimates": "recent", "correction": correction}
    assert not first_difference(part, policy=policy, **settings)


FEW_TESTS = {"policy": "SAF", "backfill": "slurm:max_job_test=50,max_job_user=5,interval=300"}
COARSE = {
    "policy": "WFP3",
    "threshold": 200_000,
    "kill_at_limit": False,
    "backfill": "slurm:max_job_test=20,window=120,resolution=600,interval=1",
}
WHOLE = [
    *((SDSC, under(mode, *more)) for mode in ("conservative", SHIFT) for more in ([], [SAF])),
    (SDSC, under("conservative", NO_KILLS, {"policy": "LEXP"})),
    (SDSC, under(SHIFT, NO_KILLS, {"policy": "WFP3"})),
    (SDSC, under("depth:k=8", {"policy": "UNICEF", "backfill_order": "LEXP"})),
    *(
        (log, under(mode, {"estimates": estimates}))
        for log, estimates in product((KTH, SDSC), ("exact", "requested"))
        for mode in ("multi-queue", "multi-queue:delay=2500")
    ),
    *(
        (log, under(mode, {"policy": policy, "threshold": 200_000}))
        for log in (KTH, CTC)
        for policy, mode in (
            ("SMITH-URGENT", CAP),
            ("SMITH-URGENT", OPEN),
            ("SMITH-REG", OPEN),
            ("SAF", "easy:cap=0.9,long=3600"),
            ("FCFS", "cost-benefit:kappa=1"),
        )
    ),
    *(
        (log, {"policy": policy})
        for log in (KTH, SDSC)
        for policy in ("SMITH-HISTORY", "SMITH-REG", "SMITH-RECENT")
    ),
    (KTH, {"policy": index_policy([1, 2, 0, 0, 1, -1], network_of(3))}),
    (SDSC, EASY_PLUS_PLUS),
    (SDSC, EASY_PLUS_PLUS | PYSS | {"correction": "tsafrir"}),
    (SDSC, SAF | {"estimates": "recent", "correction": "doubling"}),
    (SDSC, {"estimates": longest, "correction": "tsafrir", "policy": "WFP3"}),
    (SDSC, {"estimates": "doubled", "correction": "none"}),
    (KTH, COARSE),
    *((SDSC, settings) for settings in (under("slurm"), FEW_TESTS, COARSE)),
]
WHOLE_EVERY_DAY = [
    (SDSC, {"estimates": "f-model:f=3,seed=1", "correction": "none"}),
    (KTH, under("slurm")),
    (KTH, FEW_TESTS),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("log", "settings"), [*WHOLE_EVERY_DAY, *(slow(*row) for row in WHOLE)], ids=name_of
)
def test_whole_logs_start_as_the_reference_says(real_log, log, settings):
    assert not first_difference(whole(real_log(log)), **settings)


@pytest.mark.parametrize("policy", ["SMITH", "SAF", "LEXP"])
def test_a_week_with_warm_history_starts_as_the_reference_does(real_log, policy):
    log = whole(real_log(SDSC))
    end_time = log.submit_time + log.wait_time + log.run_time
    for week in (3, 40, 77):
        start = week * WEEK_S
        ended = end_time <= start
        part = log.select(
            (log.submit_time >= start) & (log.submit_time < start + WEEK_S),
            start=start,
            past={
                "user": log.user[ended],
                "run_time": log.run_time[ended],
                "requested_time": log.requested_time[ended],
                "processors": log.processors[ended],
                "end_time": end_time[ended],
            },
        )
        assert part.history.completed.sum() > 0
        assert not first_difference(part, policy=policy, threshold=200_000)
