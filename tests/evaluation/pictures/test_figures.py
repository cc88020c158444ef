"""Figures of an evaluation."""

import sys
from pathlib import Path

import pytest

from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.evaluation import Evaluation, evaluate
from hpcgym.evaluation.pictures import draw_evaluation, evaluation_figure
from hpcgym.evaluation.pictures.figures import BETTER, COMPARED, EVEN, MEANINGS, WORSE

AGENTS = ["FCFS", "SPF", "SMITH", "LQF"]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Five agents on the bundled weeks."""
    return evaluate(AGENTS, progress=False)


@pytest.mark.long
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


@pytest.mark.long
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


def test_missing_matplotlib_says_how_to_install_it(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(HpcgymError, match=r"pip install 'hpcgym\[report\]'"):
        draw_evaluation(evaluation, tmp_path / "figure.png")


def test_an_agent_has_one_colour_in_all_panels_and_its_mark_says_better_or_worse(
    evaluation: Evaluation,
) -> None:
    pytest.importorskip("matplotlib")
    ratios, weekly, weeks = evaluation_figure(evaluation).get_axes()
    marks = [line for line in ratios.get_lines() if line.get_marker() in MEANINGS]
    ranked = evaluation.ranked()
    dots = [line.get_color() for line in weekly.get_lines()[: len(ranked)]]
    assert [mark.get_color() for mark in marks] == dots
    over_weeks = {line.get_label(): line.get_color() for line in weeks.get_lines()}
    named = {one.agent: colour for one, colour in zip(ranked, dots, strict=True)}
    assert over_weeks.items() <= named.items()
    for one, mark in zip(ranked, marks, strict=True):
        expected = COMPARED if one.agent == evaluation.baseline else EVEN
        low, high = one.ratio.ends(among=len(ranked) - 1)
        if expected == EVEN and (high < 1 or low > 1):
            expected = BETTER if high < 1 else WORSE
        assert mark.get_marker() == expected


def test_weeks_are_marked_at_whole_numbers_and_lines_left_out_are_counted(
    evaluation: Evaluation,
) -> None:
    pytest.importorskip("matplotlib")
    more = evaluate([*AGENTS, "LPF"], weeks="1-2", progress=False)
    *_, weeks = evaluation_figure(more).get_axes()
    assert all(mark == round(mark) for mark in weeks.get_xticks())
    said = [text.get_text() for text in weeks.texts]
    assert said == ["the best 4 and the baseline; 1 more above only"]
