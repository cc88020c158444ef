"""The sentences of a report say what its numbers say."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgym.site.answer import _of_best


def row(gain: float, interval: list[float] | None, told: str) -> dict[str, Any]:
    wait = {"mean": 6.0 - gain}
    return {"name": "SAF", "gain_h": gain, "interval_h": interval, "told": told, "wait": wait}


UNTOLD = "SAF, the best order on the first half, cannot be told from today's: jobs would wait "


@pytest.mark.parametrize(
    ("best", "verdict", "noise", "sentence"),
    [
        (
            row(2.0, [1.0, 3.0], "better"),
            "near",
            0.1,
            "Under SAF they would wait 4.0 h, 2.0 h less than the simulated 6.0 h (95% interval "
            "1.0 to 3.0 h for weeks like these); it misses 30 min.",
        ),
        (
            row(-2.0, [-3.0, -1.0], "worse"),
            "near",
            1.0,
            "Under SAF they would wait 8.0 h, 2.0 h longer than the simulated 6.0 h (95% interval "
            "1.0 to 3.0 h for weeks like these); its noise is 1.0 h.",
        ),
        (
            row(2.0, [-1.0, 5.0], "not distinguishable"),
            "near",
            0.1,
            UNTOLD + "4.0 h, 2.0 h less than the simulated 6.0 h, but weeks differ too much (95% "
            "interval −1.0 to 5.0 h for weeks like these).",
        ),
        (
            row(0.25, None, "not distinguishable"),
            "near",
            0.1,
            UNTOLD + "5.8 h, 15 min less than the simulated 6.0 h, but it misses 30 min.",
        ),
        (
            row(2.0, None, "not distinguishable"),
            "rough",
            0.1,
            UNTOLD + "4.0 h, 2.0 h less than the simulated 6.0 h, but there are fewer than four "
            "weeks to tell it from chance.",
        ),
        (
            row(2.0, [1.0, 3.0], "not distinguishable"),
            "far",
            0.1,
            UNTOLD + "4.0 h, 2.0 h less than the simulated 6.0 h, but the simulation is far from "
            "what was recorded: it misses 30 min.",
        ),
    ],
)
def test_the_second_sentence_says_what_can_be_told(
    best: dict[str, Any], verdict: str, noise: float, sentence: str
) -> None:
    trusted = {"misfit_h": 0.5, "noise_h": noise, "verdict": verdict}
    assert _of_best(best, 6.0, trusted) == sentence
