"""The sentences of a report say what its numbers say."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgym.site.answer import _of_best


def row(gain: float, interval: list[float] | None, told: str) -> dict[str, Any]:
    return {"name": "SAF", "gain_h": gain, "interval_h": interval, "told": told}


@pytest.mark.parametrize(
    ("best", "sentence"),
    [
        (
            row(2.0, [1.0, 3.0], "better"),
            "Under SAF they would wait 2.0 h less (95% interval 1.0 to 3.0 h); the simulation "
            "misses 30 min.",
        ),
        (
            row(-2.0, [-3.0, -1.0], "worse"),
            "Under SAF they would wait 2.0 h longer (95% interval 1.0 to 3.0 h); the simulation "
            "misses 30 min.",
        ),
        (
            row(2.0, [-1.0, 5.0], "not distinguishable"),
            "No order can be told from today's: under SAF, the best on the first half, jobs would "
            "wait 2.0 h less, but weeks differ too much (95% interval −1.0 to 5.0 h).",
        ),
        (
            row(0.25, None, "not distinguishable"),
            "No order can be told from today's: under SAF, the best on the first half, jobs would "
            "wait 15 min less, and the simulation misses 30 min.",
        ),
    ],
)
def test_the_second_sentence_says_what_can_be_told(best: dict[str, Any], sentence: str) -> None:
    assert _of_best(best, 0.5) == sentence
