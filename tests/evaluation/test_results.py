"""What an evaluation shows and writes."""

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from hpcgym.base.errors import OutputError
from hpcgym.evaluation import Evaluation, evaluate


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Two agents on the bundled weeks, with one copy of each."""
    return evaluate(["FCFS", "SMITH"], jitter=600, replicas=1, progress=False)


def printed(evaluation: Evaluation, width: int) -> str:
    """Return the table as a terminal of some width shows it."""
    console = Console(file=io.StringIO(), width=width)
    console.print(evaluation.table())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.long
def test_table_shows_every_figure_whole_in_80_columns(evaluation: Evaluation) -> None:
    text = printed(evaluation, 80)
    assert "…" not in text
    for one in evaluation.summaries:
        assert f"{one.sum_bsld:.2f}" in text
        assert f"{one.ratio.low:.3f}-{one.ratio.high:.3f}" in text
    assert "synthetic-256-weeks" in text
    assert "each with 1 copy jittered by ±600 s" in text


@pytest.mark.parametrize("width", [30, 40, 80, 120])
def test_long_name_stays_on_one_line_and_leaves_the_figures_whole(width: int) -> None:
    found = evaluate(["q=1,e=-0.123456,wait=0.5"], weeks="1-3", progress=False)
    text = printed(found, width)
    rows = [line for line in text.splitlines() if line.startswith(("q=", "SAF "))]
    assert len(rows) == 2
    assert all(len(row) <= width for row in rows)
    assert f"{found.summaries[0].ratio.value:.3f}" in text
    assert ("…" in text) is (width < 120)
    assert ("left out" in text) is (width < 120)
    assert (f"{found.summaries[0].sum_bsld:.2f}" in text) is (width >= 80)


def test_table_stands_best_first(evaluation: Evaluation) -> None:
    ratios = [one.ratio.value for one in evaluation.ranked()]
    assert ratios == sorted(ratios)
    lines = [line.split()[0] for line in printed(evaluation, 80).splitlines() if line.strip()]
    names = [one.agent for one in evaluation.ranked()]
    assert [name for name in lines if name in names] == names


def test_summary_counts_the_copies_of_a_week(evaluation: Evaluation) -> None:
    runs, shown = evaluation.frame, evaluation.summary().set_index("agent").sort_index()
    means = runs.groupby("agent").mean(numeric_only=True)
    originals = runs[runs["replica"] == 0].groupby("agent").mean(numeric_only=True)
    for name in ("mean_bsld", "mean_pp_bsld", "p99_bsld", "utilisation"):
        assert shown[name].to_list() == pytest.approx(means[name].to_list(), rel=1e-12)
        assert (means[name] != originals[name]).all()
    weeks = runs.groupby(["agent", "week"])["mean_bsld"].mean().groupby("agent").sum()
    assert shown["sum_bsld"].to_list() == pytest.approx(weeks.to_list(), rel=1e-12)
    longest = runs.groupby("agent")["max_wait_time"].max()
    assert shown["max_wait_time"].to_list() == longest.to_list()


def test_csv_holds_every_run(evaluation: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    evaluation.to_csv(path)
    pd.testing.assert_frame_equal(pd.read_csv(path), evaluation.frame, check_dtype=False)


def test_file_that_exists_is_kept_unless_forced(evaluation: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        evaluation.to_csv(path)
    assert path.read_text() == "precious"
    evaluation.to_csv(path, force=True)
    assert path.read_text().startswith("agent,week")


def test_episodes_that_are_no_weeks_are_called_episodes() -> None:
    found = evaluate(["FCFS"], "tiny", progress=False)
    assert found.conditions == "tiny: 1 episode"
    assert "one episode: no interval" in str(found.table())
