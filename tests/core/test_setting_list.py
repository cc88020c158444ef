"""A setting of the scheduler is said once, and all that takes settings knows it from there."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import hpcgym
from hpcgym.cli.options import OF_A_LOG
from hpcgym.core.backfill import MODES
from hpcgym.core.loaders import SIMULATORS
from hpcgym.core.predictor import CORRECTIONS, PREDICTORS
from hpcgym.core.requests import PLACEMENTS
from hpcgym.core.setting_list import SETTINGS, EventSemantics, SettingKeywords
from hpcgym.core.settings import SchedulerSettings
from hpcgym.env.scenario.spec import SchedulerSpec

COMMANDS = Path(__file__).parents[2] / "docs" / "commands.md"


def texts_of(setting: str) -> list[str]:
    """Return the texts that the explanation of a setting lists."""
    return re.findall(r'^ +\| "(\S+)" \|', SETTINGS[setting].text, re.MULTILINE)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_face_takes_each_setting_with_its_default(name: str) -> None:
    setting = SETTINGS[name]
    faces = [hpcgym.simulate, SchedulerSettings]
    if name != "policy":  # of which `simulate_many` takes several, and the commands theirs
        faces.append(hpcgym.simulate_many)
        assert name in SettingKeywords.__annotations__ and name in OF_A_LOG
    assert {inspect.signature(face).parameters[name].default for face in faces} == {setting.default}
    (key,) = (one for one in fields(SchedulerSpec) if one.name == setting.key)
    assert key.default == (setting.in_scenarios or setting.default)


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_explained_wherever_python_documents_it(name: str) -> None:
    text = SETTINGS[name].text
    assert text.startswith(f"        {name}: ")
    for face in (hpcgym.simulate, SchedulerSettings):
        assert text in (face.__doc__ or "")


def test_explanations_list_the_texts_that_are_allowed() -> None:
    assert texts_of("correction") == list(CORRECTIONS)
    assert texts_of("placement") == list(PLACEMENTS)
    assert texts_of("event_semantics") == list(get_args(EventSemantics))
    modes = {re.split("[:+]", text)[0] for text in texts_of("backfill")}
    assert modes == {*MODES, *SIMULATORS}
    kinds = {text.partition(":")[0] for text in texts_of("estimates")}
    assert kinds == {*PREDICTORS, "f-model"}
    for name in ("backfill", "estimates"):
        for text in texts_of(name):
            SchedulerSettings(**{name: text})


def test_page_on_commands_has_a_row_for_each_setting_with_its_default() -> None:
    page = COMMANDS.read_text("utf-8").partition("## Options without effect")[0]
    rows = dict(re.findall(r"^\| `--([a-z-]+)`.*? \| (.+?) \|", page, re.M))
    for name, setting in SETTINGS.items():
        shown = rows["kill" if name == "kill_at_limit" else name.replace("_", "-")]
        words = {True: "kill", "": "none"}
        words |= {None: "as the policy" if name == "backfill_order" else "none"}
        assert shown == words.get(setting.default, setting.default), name


def test_a_setting_that_does_not_exist_is_answered_with_the_nearest() -> None:
    jobs = hpcgym.load_workload("tiny")
    with pytest.raises(TypeError, match="unknown setting 'tresold'; did you mean 'threshold'"):
        hpcgym.simulate(jobs, tresold=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown setting 'policy'"):
        hpcgym.simulate_many([jobs], ["SAF"], policy="SAF")  # type: ignore[call-arg]
