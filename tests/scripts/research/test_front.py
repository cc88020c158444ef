"""The picture of slowdown against long waits."""

import numpy as np
import pytest

from hpcgym.evaluation import Estimate
from research.front import MARKS, FrontPoint, front_figure


def point(label: str, contest: str, bsld: float, wait: float) -> FrontPoint:
    """Return a point with an interval."""
    return FrontPoint(label, contest, Estimate(bsld, 0.05, 8), wait)


def test_every_agent_stands_at_its_ratios_with_the_mark_of_its_contest() -> None:
    pytest.importorskip("matplotlib")
    agents = [point("H", "guarded", 0.8, 0.9), point("G", "open", 0.7, 1.2)]
    curve = [point("0 s", "-", 1.5, 0.6), point("SAF", "guarded", 1.0, 1.0)]
    axes = front_figure(agents, curve, title="two logs", curve_name="SAF").get_axes()[0]
    drawn = {
        tuple(np.asarray(line.get_xydata())[0].tolist()): line.get_marker()
        for line in axes.get_lines()
        if len(np.asarray(line.get_xydata())) == 1
    }
    assert drawn == {(0.9, 0.8): MARKS["guarded"], (1.2, 0.7): MARKS["open"]}
    joined = next(line for line in axes.get_lines() if line.get_label() == "SAF")
    assert np.asarray(joined.get_xydata()).tolist() == [[0.6, 1.5], [1.0, 1.0]]
    assert {text.get_text() for text in axes.texts} == {"0 s", "SAF", "1", "2"}
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "SAF",
        "1 H (guarded)",
        "2 G (open)",
    ]


def test_a_point_without_an_interval_is_drawn_alone() -> None:
    pytest.importorskip("matplotlib")
    one = FrontPoint("H", "guarded", Estimate(0.8, None, 0), 0.9)
    axes = front_figure([one], [one], title="one week", curve_name="SAF").get_axes()[0]
    assert not axes.collections
