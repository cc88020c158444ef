"""Lawson, Smirni, Puiu 2002: what is measured, and the whole rerun on the bundled log."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcgym import load_workload, simulate
from hpcgym.core import metrics
from papers.lawson import claims as results
from papers.lawson import page
from papers.lawson import run as study

BUNDLED = tuple((log, "synthetic-256") for log in study.LOGS)
READINGS = [replace(reading, logs=BUNDLED) for reading in (*study.SHOWN, study.TRIED[0])]


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> study.Rerun:
    """Three readings, with the bundled log in place of each real one."""
    store = tmp_path_factory.mktemp("rerun") / "unfinished.sqlite"
    return study.rerun(store, readings=READINGS)


def test_ratio_is_the_same_for_gain_and_loss() -> None:
    assert study.slowdown_ratio(30.0, 10.0) == -study.slowdown_ratio(10.0, 30.0) == 2.0
    assert study.slowdown_ratio(7.0, 7.0) == 0.0


def test_classes_and_batches_are_means_over_jobs_that_ran() -> None:
    log = load_workload("synthetic-256")
    schedule = simulate(log, backfill=study.MULTIPLE, estimates="exact", kill_at_limit=False)
    row = study.measured(schedule, study.EXACT)
    slowdown = metrics.slowdown(schedule.wait_time, schedule.run_time)
    sums = [row[f"slowdown_{one}"] * row[f"n_jobs_{one}"] for one in study.CLASSES]
    assert sum(sums) == pytest.approx(np.nansum(slowdown))
    assert row["n_without_run_time"] == int((log.run_time == 0).sum())
    short = (log.run_time > 0) & (log.run_time <= 100)
    assert row["slowdown_1"] == pytest.approx(slowdown[short].mean())
    assert len(row["batches"]) == len(log) // study.BATCH_JOBS
    second = slice(study.BATCH_JOBS, 2 * study.BATCH_JOBS)
    assert row["batches"][1] == pytest.approx(np.nanmean(slowdown[second]))


def test_classes_go_by_what_the_scheduler_plans_with(rerun: study.Rerun) -> None:
    jobs = rerun.runs.groupby("reading")[[f"n_jobs_{one}" for one in study.CLASSES]].first()
    requests = metrics.requested_time_class(load_workload("synthetic-256").requested_time)
    assert jobs.loc[study.USER.name, "n_jobs_1"] <= int((requests == 1).sum())
    assert jobs.loc[study.EXACT.name].tolist() != jobs.loc[study.USER.name].tolist()


def test_looking_at_the_delay_day_by_day_changes_nothing() -> None:
    """The delay begins as stated, adapts, and is never below 0."""
    log = load_workload("synthetic-256")
    settings = study.SchedulerSettings(backfill=study.DELAYED, estimates="exact")
    delays = study.daily_delays(log, settings)
    assert delays[0] == 2500.0 and min(delays) >= 0 and len(set(delays)) > 2


def test_printed_machines_have_the_processors_of_the_paper(rerun: study.Rerun) -> None:
    runs = rerun.runs.set_index(["reading", "log", "scheduler"])["slowdown"]
    wider = runs[READINGS[2].name, "CTC", study.SINGLE]  # 512 instead of 256
    assert wider < runs[study.EXACT.name, "CTC", study.SINGLE]


def test_page_shows_every_claim_under_both_readings_and_ends_with_them(rerun: study.Rerun) -> None:
    text = page.page(rerun, "the command", 1.0)
    last = text.rstrip().splitlines()[-1]
    assert last.count("**") == 2 * len(study.SHOWN)
    assert len(results.claims(rerun, study.EXACT)) == len(results.claims(rerun, study.USER))
    assert all(f"| {reading.name} |" in text for reading in study.SHOWN)
    for name, table in page.beside(rerun).items():
        assert f"({name}.csv)" in text and len(table) == len(study.SHOWN) * len(BUNDLED)


@pytest.mark.long
def test_pictures_are_drawn_for_a_reading(rerun: study.Rerun, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from papers.lawson.figures import draw_reading

    for path in draw_reading(rerun, READINGS[0], tmp_path):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_multiple_queues_are_better_on_kth_with_exact_estimates(
    real_log: Callable[[str], Path],
) -> None:
    """Figures 5 and 7: R above 0 overall and for classes 1 to 3, and below for class 4."""
    log = load_workload(real_log("KTH-SP2-1996-2.1-cln"))
    single, multiple, delayed = (
        study.measured(
            simulate(log, backfill=mode, estimates="exact", kill_at_limit=False), study.EXACT
        )
        for mode in (study.SINGLE, study.MULTIPLE, study.DELAYED)
    )
    ratio = {key: study.slowdown_ratio(single[key], multiple[key]) for key in results.COLUMNS}
    assert [value > 0 for value in ratio.values()] == [True, True, True, True, False]
    assert study.slowdown_ratio(single["slowdown"], delayed["slowdown"]) > 0
