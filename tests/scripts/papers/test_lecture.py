"""The lecture on batch scheduling: worked examples, and the whole rerun on the bundled log."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hpcgym import load_workload, simulate
from papers.lecture import claims, page
from papers.lecture import run as study

BUNDLED = tuple((log, "synthetic-256") for log in study.LOGS)
READINGS = [replace(reading, logs=BUNDLED) for reading in study.READINGS]


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[study.Rerun]:
    """Every reading by two draws, with the bundled log in place of each real one."""
    store = tmp_path_factory.mktemp("rerun") / "unfinished.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "SEEDS", (1, 2))
        yield study.rerun(store, readings=READINGS)


def test_figures_are_means_over_the_draws(rerun: study.Rerun) -> None:
    log = load_workload("synthetic-256")
    drawn = [
        simulate(log, backfill=study.KEPT, estimates=f"f-model:f=3,seed={seed}").bsld().mean()
        for seed in study.SEEDS
    ]
    means = rerun.means()["slowdown"]
    assert means["KTH", study.KEPT, 3] == pytest.approx(sum(drawn) / len(drawn))
    assert means["KTH", study.EASY, 0] == simulate(log, estimates="exact").bsld().mean()


def test_doubling_is_compared_with_what_users_ask_for(rerun: study.Rerun) -> None:
    log = load_workload("synthetic-256")
    asked, doubled = (
        simulate(log, backfill="conservative", estimates=kind).per_job()["turnaround_time"].mean()
        for kind in (study.USER, study.DOUBLED)
    )
    change = rerun.change(study.ANEW, "CTC", "response")
    assert change == pytest.approx(100 * (doubled / asked - 1))


def test_worked_examples_are_those_of_the_slides() -> None:
    assert list(study.gang_uses().values()) == [25.0, 75.0, 87.5]
    assert list(study.moldable_choices().values()) == [16, 2]


def test_claims_are_checked_against_the_runs(rerun: study.Rerun) -> None:
    verdicts = claims.claims(rerun)
    kth = rerun.means().loc["KTH", study.EASY]
    is_worst = sum(kth[one][study.USER] > kth[one].loc[list(study.FACTORS)].max() for one in kth)
    assert verdicts[0].finding.startswith(f"{is_worst} of 2")
    assert len(verdicts) == 10


def test_page_ends_with_the_claims_and_shows_every_table(rerun: study.Rerun) -> None:
    text = page.page(rerun, "the command", 1.0)
    assert text.rstrip().splitlines()[-1].count("**") == 2
    assert "Worked examples" in text and "Findings" in text
    for name, table in page.beside(rerun).items():
        assert f"({name}.csv)" in text and not table.isna().to_numpy().any()


def test_pictures_are_drawn(rerun: study.Rerun, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from papers.lecture.figures import draw

    assert all(path.stat().st_size > 10_000 for path in draw(rerun, tmp_path))
