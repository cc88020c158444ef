"""The sentences of a report say what its numbers say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcgym.site.answer import _of_best, sentences
from hpcgym.site.comparison import TODAY, Comparison
from hpcgym.site.fidelity import COPIES, Fidelity
from hpcgym.site.log import read_site_log
from hpcgym.site.outcome import Outcome


def row(gain: float, interval: list[float] | None, told: str) -> dict[str, Any]:
    wait = {"mean": 6.0 - gain}
    named = {"name": "SAF", "group": "order", "wait": wait}
    return named | {"gain_h": gain, "interval_h": interval, "told": told}


UNTOLD = "SAF, the best order on the first half, cannot be told from today's: jobs would wait "


@pytest.mark.parametrize(
    ("best", "verdict", "noise", "sentence"),
    [
        (
            row(2.0, [1.0, 3.0], "better"),
            "near",
            0.1,
            "Under SAF jobs would wait 4.0 h, 2.0 h less than the simulated 6.0 h (60% interval "
            "1.0 to 3.0 h for weeks like these); the simulation misses 30 min.",
        ),
        (
            row(-2.0, [-3.0, -1.0], "worse"),
            "near",
            1.0,
            "Under SAF jobs would wait 8.0 h, 2.0 h longer than the simulated 6.0 h (60% interval "
            "1.0 to 3.0 h for weeks like these); the simulation has a noise of 1.0 h.",
        ),
        (
            row(2.0, [-1.0, 5.0], "not distinguishable"),
            "near",
            0.1,
            UNTOLD + "4.0 h, 2.0 h less than the simulated 6.0 h, but weeks differ too much (60% "
            "interval −1.0 to 5.0 h for weeks like these).",
        ),
        (
            row(0.25, None, "not distinguishable"),
            "near",
            0.1,
            UNTOLD
            + "5.8 h, 15 min less than the simulated 6.0 h, but the simulation misses 30 min.",
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
            UNTOLD + "4.0 h, 2.0 h less than the simulated 6.0 h, but the simulation misses 30 "
            "min, and is far from what was recorded.",
        ),
    ],
)
def test_the_first_sentence_says_what_can_be_told(
    best: dict[str, Any], verdict: str, noise: float, sentence: str
) -> None:
    trusted = {"misfit_h": 0.5, "noise_h": noise, "verdict": verdict}
    assert _of_best(best, 6.0, trusted) == sentence


def test_what_helps_most_is_said_first_whatever_its_kind(fcfs_log: Path) -> None:
    log, wait = read_site_log(fcfs_log), {"mean": 6.0}
    told = {"losers": 0.1, "worst_group": None, "interval_h": [1.0, 3.0]}
    options = [
        ("SAF", "order", 2.0),
        ("limits, SAF", "limits", 3.0),
        ("TRIAL", "simulated only", 5),
    ]
    rows: list[dict[str, Any]] = [
        {"id": name, "told": None, "group": "today", "wait": wait} for name in ("recorded", "today")
    ]
    for name, group, gain in options:
        row = {"id": name, "name": name, "group": group, "what": "closer", "gain_h": gain}
        rows.append(row | told | {"told": "better", "wait": {"mean": 6.0 - gain}})
    trusted = {"misfit_h": 0.5, "noise_h": 0.1, "verdict": "near", "setting": "FCFS"}
    said = sentences(log, rows, trusted, "limits, SAF")
    assert said[0].startswith("Under limits, SAF (closer) jobs would wait 3.0 h, 3.0 h less")
    assert said[1].startswith("No group of 30 jobs") and "jobs waited 6.0 h in the mean" in said[2]
    rows[2]["told"] = "not distinguishable"
    said = sentences(log, rows, trusted, "limits, SAF")[0]
    assert said.startswith("Under lim") and said.endswith(". No order alone is told to help.")
    rows[3]["told"] = "worse"
    said = sentences(log, rows, trusted, "SAF")
    assert said[0].startswith("No order is told to help. SAF, the best order on the first half, ")


def test_no_change_within_the_misfit_without_holds_is_told(fcfs_log: Path) -> None:
    log = read_site_log(fcfs_log)
    jobs, hour = log.workload, 3600
    jobs = replace(jobs, wait_time=jobs.wait_time + 20 * hour)
    recorded = Outcome.recorded(jobs)
    without = replace(recorded, start_time=recorded.start_time + hour)
    fit: Any = SimpleNamespace(
        nearest=SimpleNamespace(outcome=recorded), without_holds=SimpleNamespace(outcome=without)
    )
    fidelity = Fidelity(recorded, fit, np.zeros((COPIES, len(jobs))))
    outcomes = {TODAY: recorded} | {
        f"{less}": replace(recorded, start_time=recorded.start_time - less * hour // 2)
        for less in (1, 4)
    }
    comparison = Comparison(replace(log, workload=jobs), fidelity, outcomes, {}, ())
    assert comparison.told("1", log.is_judged) == "not distinguishable"
    assert comparison.told("4", log.is_judged) == "better"
