"""Which parts go together: refusals and the table agree, and what does starts jobs rightly."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import hpcgym
from engines import first_difference
from hpcgym.base.text_table import machine_text
from hpcgym.core.backfill import Backfill, as_mode
from hpcgym.core.pairs import DEMANDS, Part, ground, parts_of, why_not
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from research.pairs import MACHINE, PARTS, beside, refusal, table

TABLE = Path(__file__).parents[2] / "docs" / "datasets" / "pairs.csv"
TOGETHER = {pair: made for pair in combinations(PARTS, 2) if (made := beside(*pair)) is not None}
COMPARED = {"backfill", "backfill_order", "policy", "event_semantics", "correction", "estimates"}
"""Settings that the reference of every mode takes."""


def test_table_is_what_the_refusals_make():
    assert machine_text(table(), "csv") == TABLE.read_text("utf-8").rstrip("\n")


def test_words_that_parts_say_are_those_that_are_listed():
    demanded, lacked = set(), set()
    for settings in PARTS.values():
        known = {key: value for key, value in settings.items() if key != "machine"}
        machine = ground(settings.get("machine"))
        for part in (*parts_of(SchedulerSettings(**known)), machine):
            demanded |= {*part.demands}
            lacked |= {*part.lacks}
    assert demanded == lacked == {*DEMANDS}


def test_a_demand_that_is_lacked_is_named_with_both_parts():
    one, two = Part("this", {"limits": ""}, {}), Part("that", {}, {"limits": "which has none"})
    assert why_not(one, two) == "this needs passes that know limits; got that, which has none"
    assert why_not(two, one) == why_not(one, one) == ""


def drawn(settings, seed):
    """Return jobs that keep a machine of 8 processors busy, as the settings need them."""
    random = np.random.default_rng(seed)
    n = 30
    request = random.choice((10, 20, 60, 120, 300), n)
    after = np.where(random.random(n) < 0.4, np.arange(n) // 2 - 1, -1)
    on_counts = settings | {"machine": None}
    machine = MACHINE if refusal(on_counts) else settings.get("machine")
    return hpcgym.Workload.from_arrays(
        np.cumsum(random.choice((0, 0, 0, 5, 20), n)),
        random.choice((0, 5, 10, 60, 300, 400), n),
        request,
        random.choice((1, 1, 2, 3, 4) if machine else (1, 2, 3, 4, 8), n),
        user=random.integers(-1, 3, n),
        wait_time=np.zeros(n, dtype=np.int64),
        after=after if "dependencies" in settings else None,
        **({"machine": machine} if machine else {"machine_processors": 8}),
    )


def has_reference(settings):
    """Tell whether the reference of the modes knows all of these settings."""
    named = [settings.get(key) for key in ("backfill", "policy", "backfill_order", "estimates")]
    others = "gang", "recorded", "fair-share", "BANDIT-UCB", "DYNP", "PLANNER"
    compiled = all(one is None or isinstance(one, str) for one in named)
    return compiled and set(settings) <= COMPARED and not set(named) & set(others)


@pytest.mark.parametrize("pair", TOGETHER, ids=" and ".join)
def test_two_parts_are_refused_or_start_jobs_as_they_should(pair):
    """Invariants hold at every event, passes that are cut short miss nobody; else see above."""
    if refusal(TOGETHER[pair]):
        return
    workload = drawn(TOGETHER[pair], seed=0)
    settings = {key: made for key, made in TOGETHER[pair].items() if key != "machine"}
    schedule = hpcgym.simulate(workload, **settings)
    assert (schedule.start_time >= workload.submit_time).all()
    if has_reference(settings) and workload.machine is None:
        for seed in range(9):
            assert not first_difference(drawn(TOGETHER[pair], seed), **settings)
    if isinstance(as_mode(settings.get("backfill", "easy")), Backfill):
        made = SchedulerSettings(**settings)
        full = Simulator(workload, made, check_invariants=True, full_passes=True)
        full.run()
        assert full.start_time.tolist() == schedule.start_time.tolist()
