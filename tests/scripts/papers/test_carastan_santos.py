"""Carastan-Santos 2019: its protocol, and the whole rerun on the bundled log."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcgym import Workload, load_workload
from papers.carastan_santos import claims as results
from papers.carastan_santos import page
from papers.carastan_santos import run as study

BUNDLED = tuple((log, "synthetic-256") for log in study.LOGS)
READINGS = [
    replace(reading, logs=BUNDLED)
    for reading in (study.MAIN, *study.TRIED)
    if reading in study.SHOWN or reading.name == "no threshold"
]


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> study.Rerun:
    """Three samples under four readings, with the bundled log in place of each real one."""
    store = tmp_path_factory.mktemp("rerun") / "unfinished.sqlite"
    return study.rerun(store, readings=READINGS, samples=3)


def test_samples_are_the_same_for_all_readings_and_differ_from_each_other() -> None:
    log = load_workload("synthetic-256")
    first, again, second = (
        study.sample_of(log, reading, number)
        for reading, number in ((study.MAIN, 0), (study.BATSIM, 0), (study.MAIN, 1))
    )
    assert np.array_equal(first.submit_time, again.submit_time)
    assert not np.array_equal(first.submit_time, second.submit_time)


def test_threshold_is_three_times_the_largest_request_or_none() -> None:
    jobs = Workload.from_arrays([0, 0], [5, 5], [60, 7200], [1, 1], machine_processors=4)
    assert study.threshold_of(jobs, study.MAIN) == 21_600
    assert study.threshold_of(jobs, replace(study.MAIN, limit="none")) is None


def test_best_and_worst_sample_are_left_out(rerun: study.Rerun) -> None:
    runs = results.runs_of(rerun, study.MAIN)
    saf = runs[(runs["log"] == "HPC2N") & (runs["policy"] == "SAF")]["mean_bsld"]
    assert len(saf) == 3
    assert results.means(rerun, study.MAIN, "bsld").loc["HPC2N", "SAF"] == sorted(saf)[1]


def test_cumulative_averages_end_at_the_mean_over_all_jobs(rerun: study.Rerun) -> None:
    last = rerun.weekly.groupby(["reading", "log", "sample", "policy"])["bsld"].last()
    runs = rerun.runs.set_index(["reading", "log", "sample", "policy"])["mean_bsld"]
    assert np.allclose(last, runs.loc[last.index], rtol=1e-12)


def test_page_shows_every_claim_under_every_reading_and_ends_with_them(rerun: study.Rerun) -> None:
    text = page.page(rerun, "the command", 1.0)
    last = text.rstrip().splitlines()[-1]
    assert last.count("**") == 2 * len(study.SHOWN)
    assert len(results.claims(rerun, study.MAIN)) == len(results.claims(rerun, study.BATSIM))
    assert all(f"| {reading.name} |" in text for reading in study.SHOWN)


@pytest.mark.long
def test_pictures_are_drawn_for_a_reading(rerun: study.Rerun, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from papers.carastan_santos.figures import draw_reading

    for path in draw_reading(rerun, READINGS[0], tmp_path):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_facts_of_a_real_log_are_those_of_table_2(real_log: Callable[[str], Path]) -> None:
    log = load_workload(real_log("KTH-SP2-1996-2.1-cln"))
    facts = study.log_facts(log, 12.4)
    assert (facts["lines"], facts["processors"]) == (28_476, 100)
    assert facts["utilisation"] == pytest.approx(70.1, abs=0.3)
