"""Backfilling modes as text: what is read, what is written, and what is refused."""

import math
import pickle

import numpy as np
import pytest

import hpcgym
from hpcgym.agent import RuleAgent
from hpcgym.base.errors import HpcgymError, PolicyError, ScenarioError
from hpcgym.core import constants as s
from hpcgym.core.backfill import Backfill, Easy, NoBackfill, as_backfill
from hpcgym.core.parts.conservative import Conservative
from hpcgym.core.parts.depth import Depth
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.env.scenario.spec import SchedulerSpec
from hpcgym.env.scheduling import SchedulingEnv

MODES = {
    "none": NoBackfill(),
    "easy": Easy(),
    "conservative": Conservative(),
    "conservative:compress=shift": Conservative("shift"),
    "depth:k=1": Depth(1),
    "depth:k=12": Depth(12),
    "depth:k=inf": Depth(math.inf),
}


@pytest.mark.parametrize(("text", "mode"), MODES.items())
def test_text_and_object_say_the_same_everywhere(text: str, mode: Backfill) -> None:
    assert as_backfill(text) == mode and as_backfill(mode) is mode
    assert str(mode) == text and pickle.loads(pickle.dumps(mode)) == mode
    assert SchedulerSettings(backfill=mode) == SchedulerSettings(backfill=text)
    assert SchedulerSpec(backfill=text).backfill == text
    assert RuleAgent("SAF", backfill=mode).env_keywords["backfill"] == text
    assert SchedulingEnv("tiny", backfill=text).settings.backfill == mode
    tiny = hpcgym.load_workload("tiny")
    made = hpcgym.simulate(tiny, backfill=mode)
    assert np.array_equal(made.start_time, hpcgym.simulate(tiny, backfill=text).start_time)
    assert Simulator(tiny, SchedulerSettings(backfill=text)).settings.backfill == mode


@pytest.mark.parametrize(
    ("text", "short"),
    [("conservative:compress=rebuild", "conservative"), ("depth:k=2.0", "depth:k=2")],
)
def test_settings_keep_the_shortest_text(text: str, short: str) -> None:
    assert str(SchedulerSettings(backfill=text).backfill) == short


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("esay", "unknown backfill 'esay'; did you mean 'easy'? Allowed: none, easy, depth, cons"),
        ("Easy", "did you mean 'easy'"),
        ("", "unknown backfill ''"),
        (7, "unknown backfill 7"),
        (None, "unknown backfill None"),
        ("depth", "backfill 'depth' needs k: 'depth:k=...'"),
        ("depth:", "unknown parameter of backfill 'depth' ''. Allowed: k"),
        ("depth:3", "unknown parameter of backfill 'depth' '3'. Allowed: k"),
        ("depth:j=3", "unknown parameter of backfill 'depth' 'j'"),
        ("depth:k", "write key=value, each key once; got 'k'"),
        ("depth:k=", "write key=value, each key once; got 'k='"),
        ("depth:k=1,k=2", "write key=value, each key once; got 'k=1,k=2'"),
        ("depth:k=0", "k must be a whole number >= 1 or inf, got 0; no reservation at all is"),
        ("depth:k=-inf", "got -inf"),
        ("depth:k=nan", "got nan"),
        ("depth:k=1.5", "got 1.5"),
        ("depth:k=two", "got 'two'"),
        ("easy:k=1", "unknown parameter of backfill 'easy' 'k'"),
        ("conservative:compress=shfit", "unknown compress 'shfit'; did you mean 'shift'"),
        ("conservative:compres=shift", "did you mean 'compress'"),
    ],
)
def test_what_is_misspelt_is_refused_with_what_is_allowed(mode: object, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        as_backfill(mode)
    assert message in str(refused.value)
    with pytest.raises(PolicyError):
        SchedulerSettings(backfill=mode)


def test_objects_refuse_the_same_values() -> None:
    for k in (0, True, 2.5, "3", math.nan):
        with pytest.raises(PolicyError, match="whole number >= 1 or inf"):
            Depth(k)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="did you mean 'shift'"):
        Conservative("shft")


@pytest.mark.parametrize("mode", ["none", "conservative", "conservative:compress=shift"])
def test_backfill_order_is_refused_where_candidates_have_none(mode: str) -> None:
    message = f"got backfill '{mode}', which takes none; these do: easy, depth"
    with pytest.raises(PolicyError, match=message):
        SchedulerSettings(backfill=mode, backfill_order="SPF")
    with pytest.raises(ScenarioError, match=message):
        SchedulerSpec(backfill=mode, backfill_order="SPF")
    with pytest.raises(PolicyError, match=message):
        SchedulingEnv("tiny", backfill=mode, backfill_order="SPF")
    with pytest.raises(PolicyError, match=message):
        RuleAgent("SAF", backfill=mode, backfill_order="SPF")


def test_mode_that_is_stated_goes_without_the_order_of_the_scenario() -> None:
    ordered = SchedulerSettings(backfill_order="SPF")
    settings = RuleAgent("SAF", backfill="conservative").settings(ordered)
    assert (str(settings.backfill), settings.backfill_order) == ("conservative", None)


def test_pick_is_refused_where_reservations_are_kept() -> None:
    keywords = {"action": "job", "backfill": "conservative:compress=shift"}
    with pytest.raises(ScenarioError, match="keeps every reservation; choose action 'order'"):
        SchedulingEnv("tiny", **keywords)
    settings = SchedulerSettings(backfill=Conservative("shift"))
    simulator = Simulator(hpcgym.load_workload("tiny"), settings, decide="event")
    assert simulator.run()
    with pytest.raises(HpcgymError, match="no job can go first"):
        simulator.pick(int(simulator.waiting[0]))


def test_kernels_have_room_for_the_parameters_of_every_mode() -> None:
    for mode in MODES.values():
        assert len(mode.parameters) <= s.N_BACKFILL_PARAMETERS
        assert mode.row().shape == (s.N_BACKFILL_PARAMETERS,)
