"""The picture of the gain: what its panels hold and say."""

from __future__ import annotations

import pytest

from research import gain

pytest.importorskip("matplotlib")


def test_each_panel_has_the_queue_of_its_agent_and_the_mean_wait_it_states() -> None:
    figure = gain.gain_figure("tiny")
    assert [axes.get_title("left").split("\n")[1] for axes in figure.axes] == [*gain.AGENTS]
    (first,) = figure.axes[0].patches
    values, edges, _ = first.get_data()
    stated = figure.axes[0].texts[0].get_text()
    n_weeks = len(gain.Episodes("tiny"))
    waits_h = [
        gain.hpcgym.simulate(gain.Episodes("tiny").workload(week)).metrics()["mean_wait_time"]
        for week in range(n_weeks)
    ]
    assert stated.startswith(f"wait {sum(waits_h) / n_weeks / 3600:.1f} h")
    assert (values >= 0).all() and values.max() > 0 and edges[-1] == gain.N_DAYS
