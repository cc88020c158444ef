"""Figures of an evaluation."""

import sys
from pathlib import Path

import pytest

from hpcgym.errors import HpcgymError, OutputError
from hpcgym.evaluation import Evaluation, evaluate
from hpcgym.report import draw_evaluation, evaluation_figure

AGENTS = ["FCFS", "SPF", "SMITH", "LQF"]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Five agents on the bundled weeks."""
    return evaluate(AGENTS, progress=False)


def test_figure_has_a_row_per_agent_and_a_line_per_agent_over_the_weeks(
    evaluation: Evaluation,
) -> None:
    pytest.importorskip("matplotlib")
    ratios, _, weeks = evaluation_figure(evaluation).get_axes()
    ranked = [one.agent for one in evaluation.ranked()]
    assert [label.get_text() for label in ratios.get_yticklabels()] == ranked
    assert {line.get_label() for line in weeks.get_lines()} == {*AGENTS, "SAF"}


def test_single_episode_is_drawn_without_weeks() -> None:
    pytest.importorskip("matplotlib")
    assert len(evaluation_figure(evaluate(AGENTS, "tiny", progress=False)).get_axes()) == 1


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_figure_is_written_in_the_format_of_its_name(
    evaluation: Evaluation, tmp_path: Path, suffix: str
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"figure{suffix}"
    draw_evaluation(evaluation, path)
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert path.read_bytes().startswith(magic[suffix])


def test_figure_that_exists_is_kept_unless_forced(evaluation: Evaluation, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "figure.png"
    path.write_bytes(b"precious")
    with pytest.raises(OutputError, match="exists already"):
        draw_evaluation(evaluation, path)
    assert path.read_bytes() == b"precious"


def test_unknown_kind_of_figure_is_refused(evaluation: Evaluation, tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=r"must end in \.png, \.pdf, \.svg"):
        draw_evaluation(evaluation, tmp_path / "figure.gif")


def test_missing_matplotlib_names_the_extra(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(HpcgymError, match=r"pip install 'hpcgym\[report\]'"):
        draw_evaluation(evaluation, tmp_path / "figure.png")
