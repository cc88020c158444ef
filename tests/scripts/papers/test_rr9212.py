"""RR-9212: its weeks, its search, and the whole rerun on the bundled log."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcgym import Workload, load_workload, simulate_many
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.trace.resample import scale_load
from papers.common.readings import newest_first_of
from papers.rr9212 import page, run, search
from papers.rr9212.published import SUMS, TABLE_1, TABLE_2, TABLE_7
from papers.rr9212.run import PLAIN, SIMULATOR


@pytest.fixture
def stretched(monkeypatch: pytest.MonkeyPatch) -> Workload:
    """The bundled log, stretched over 110 weeks, in place of each of the report's."""
    log = scale_load(load_workload("synthetic-256"), 0.2)
    monkeypatch.setattr(run, "_load", lambda trace, missing_request: log)
    return log


def test_cover_has_the_pure_policies_and_no_direction_twice() -> None:
    directions = search.cover(10)
    assert len(np.unique(directions, axis=0)) == len(directions) == 402
    assert np.allclose(np.abs(directions).sum(axis=1), 1)
    for column in range(3):
        assert {-1.0, 1.0} <= set(directions[:, column])


def test_full_grid_has_every_direction_once() -> None:
    directions = search.full_grid(10)
    rounded = np.round(directions, 9)
    assert len(np.unique(rounded, axis=0)) == len(directions) < 10**3
    assert np.allclose(np.abs(directions).sum(axis=1), 1)


def test_weights_tried_one_by_one_are_those_of_newest_first() -> None:
    week = Episodes("synthetic-256-weeks").workload(2)
    directions = np.random.default_rng(1).permutation(search.cover(6))[:25]
    orders = (newest_first_of(np.array([*vector, 0, 0, 0])) for vector in directions)
    expected = [run.mean_bsld([week], SIMULATOR, *pair)[0] for pair in orders]
    assert np.allclose(search.covered(week, SIMULATOR, directions, 1), expected)


def test_xnes_finds_no_worse_weights_than_it_began_with() -> None:
    week = Episodes("synthetic-256-weeks").workload(2)
    found = search.xnes_best(week, 3, np.random.default_rng(1))
    vector = [*found["weights"], 0, 0, 0]
    again = simulate_many([week], weights=[vector], backfill_order="SPF", threshold=200_000)
    assert again["mean_bsld"][0, 0] == pytest.approx(found["bsld"])
    assert np.abs(vector).sum() == pytest.approx(1)


@pytest.mark.parametrize("threshold", run.THRESHOLDS_S)
def test_weeks_are_measured_as_the_simulator_measures_them(threshold: int | None) -> None:
    episodes = Episodes("synthetic-256-weeks")
    parts = [episodes.workload(week) for week in range(3)]
    for policy in ("FCFS", "LAF"):
        many = simulate_many(parts, [policy], backfill_order="SPF", threshold=threshold)
        ours = run.mean_bsld(parts, PLAIN, policy, threshold=threshold)
        assert np.allclose(ours, many["mean_bsld"][:, 0])


def test_weeks_begin_where_the_reading_says(stretched: Workload) -> None:
    for reading in (PLAIN, SIMULATOR, replace(PLAIN, offset=run.DAY_S)):
        first, second = run.weeks_of("SDSC-SP2", reading)[:2]
        assert second.time_offset - first.time_offset == 604_800
        begins = {0: stretched.time_offset, run.DAY_S: stretched.time_offset + run.DAY_S}
        origin = begins.get(reading.offset, 0)
        assert first.time_offset - origin == 604_800 * reading.first_week


@pytest.mark.long
def test_page_shows_every_table_and_ends_with_the_claims(
    stretched: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With numbers of jobs for slowdowns in the tables: it is the layout that is tested."""
    with monkeypatch.context() as patch:
        patch.setattr(run, "mean_bsld", lambda parts, *_: np.array([1.0 * len(p) for p in parts]))
        logs = ("SDSC-SP2", "KTH-SP2")
        tables = run.tables(tmp_path / "tables.sqlite", logs=logs)
    monkeypatch.setattr(search, "XNES_EVALUATIONS", 10)
    monkeypatch.setattr(search, "GRID_WEEKS", (1,))
    found = search.search(
        tmp_path / "weights.sqlite", logs=logs, subdivisions=2, grid_points=4, threads=1
    )
    best = search.best_of(found)
    assert np.allclose(best[["q", "e", "wait"]].abs().sum(axis=1), 1)
    text = page.page(tables, found, "the command", "readings.png")
    assert text.rstrip().splitlines()[-1].count("**") == 4
    assert "## Findings" in text and "| ties to the latest job |" in text
    pytest.importorskip("matplotlib")
    from papers.rr9212 import figures

    drawn = figures.draw_tables(tables, tmp_path)
    drawn += figures.draw_search(tables, found, tmp_path)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_plain_reading_cuts_the_weeks_of_the_scenario(real_log: Callable[[str], Path]) -> None:
    real_log("KTH-SP2-1996-2.1-cln")
    episodes = Episodes("rr9212-kth-sp2")
    ours = run.weeks_of("KTH-SP2", PLAIN)
    assert len(ours) == len(episodes)
    for number, week in enumerate(ours):
        assert np.array_equal(week.job_id, episodes.workload(number).job_id)


@pytest.mark.slow  # whole logs
def test_simulators_reading_gives_the_published_sums_of_sdsc_sp2(
    real_log: Callable[[str], Path],
) -> None:
    """Tables 2 and 3: every sum within 2.5 %, weeks 28-64 and 65-100 within 6 %."""
    real_log("SDSC-SP2-1998-4.2-cln")
    weeks = run.weeks_of("SDSC-SP2", SIMULATOR)
    for policy in run.POLICIES:
        found = run.mean_bsld(weeks, SIMULATOR, *run.orders_of(policy, SIMULATOR))
        assert found.sum() == pytest.approx(SUMS["SDSC-SP2"][policy][1], rel=0.025), policy
        if policy in TABLE_2:
            halves = found[27:64].sum(), found[64:100].sum()
            assert halves == pytest.approx(TABLE_2[policy], rel=0.06), policy


@pytest.mark.slow  # whole logs
def test_facts_of_the_logs_are_those_of_tables_1_and_7(real_log: Callable[[str], Path]) -> None:
    for trace, _ in run.LOGS.values():
        real_log(trace)
    tables = run.facts_of(run.LOGS)
    for log, facts in tables.set_index("log").iterrows():
        assert facts["jobs_simulator"] == pytest.approx(TABLE_1[str(log)][0], rel=0.003)
        assert facts["run_simulator"] == pytest.approx(TABLE_1[str(log)][1], rel=0.001)
    longest = run.longest_jobs()
    assert {tuple(row) for row in longest.itertuples(index=False)} == set(TABLE_7)
