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
from hpcgym.core.parts.cost_benefit import CostBenefit
from hpcgym.core.parts.depth import Depth
from hpcgym.core.parts.look_ahead import LookAhead
from hpcgym.core.parts.multi_queue import MultiQueue
from hpcgym.core.parts.relaxed import Relaxed
from hpcgym.core.parts.slack import Slack
from hpcgym.core.parts.trials import Trial
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
    "look-ahead": LookAhead(),
    "look-ahead:window=7": LookAhead(7),
    "look-ahead:window=inf": LookAhead(math.inf),
    "relaxed": Relaxed(1.0),
    "relaxed:omega=0": Relaxed(0),
    "relaxed:omega=0.25": Relaxed(0.25),
    "relaxed:omega=inf": Relaxed(math.inf),
    "slack:c=0": Slack(0),
    "slack:c=1.5": Slack(1.5),
    "multi-queue": MultiQueue(),
    "multi-queue:bounds=60": MultiQueue((60,)),
    "multi-queue:bounds=60/3600": MultiQueue((60, 3600)),
    "multi-queue:delay=2500": MultiQueue(delay=2500),
    "multi-queue:bounds=60/3600,delay=1,batch=10,tolerance=0.5,delta1=printed": MultiQueue(
        (60, 3600), 1, 10, 0.5, "printed"
    ),
    "easy:cap=0.97": Easy(cap=0.97, long=7200),
    "easy:cap=0.5,long=60,overdue=open": Easy(0.5, 60, "open"),
    "cost-benefit": CostBenefit(),
    "cost-benefit:kappa=0": CostBenefit(kappa=0),
    "cost-benefit:cap=0.97,long=3600,kappa=0.5": CostBenefit(0.97, 3600, kappa=0.5),
    "easy+trial": Easy(trial=Trial()),
    "cost-benefit:cap=0.97,widest=0.2+trial:young=1800,victim=0.25": CostBenefit(
        0.97, widest=0.2, trial=Trial(young=1800, victim=0.25)
    ),
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
    [
        ("conservative:compress=rebuild", "conservative"),
        ("depth:k=2.0", "depth:k=2"),
        ("multi-queue:bounds=100/1000/10000,delay=0", "multi-queue"),
        ("easy:cap=0.97,long=7200", "easy:cap=0.97"),
        ("cost-benefit:kappa=0.25,cap=0.97,long=7200", "cost-benefit:cap=0.97"),
    ],
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
        ("lookahead", "did you mean 'look-ahead'"),
        ("look-ahead:window=0", "window must be a whole number >= 1 or inf, got 0"),
        ("look-ahead:window=2.5", "got 2.5"),
        ("look-ahead:windows=2", "did you mean 'window'"),
        ("relaxed:omega=-1", "omega must be a number from 0 to 1000 or inf, got -1"),
        ("relaxed:omega=1001", "got 1001"),
        ("relaxed:omega=nan", "got nan"),
        ("slack", "backfill 'slack' needs c: 'slack:c=...'"),
        ("slack:c=inf", "c must be a number from 0 to 1000, got inf"),
        ("slack:c=x", "got 'x'"),
        ("multi-queue:bounds=100/10", "bounds must be 1 to 7 whole numbers of seconds >= 1, asc"),
        ("multi-queue:bounds=0/10", "got (0, 10)"),
        ("multi-queue:bounds=1/2/3/4/5/6/7/8", "got (1, 2, 3, 4, 5, 6, 7, 8)"),
        ("multi-queue:bounds=ten", "got 'ten'"),
        ("multi-queue:delay=-1", "delay must be a whole number >= 0, got -1"),
        ("multi-queue:delay=2500,batch=0", "batch must be a whole number >= 1, got 0"),
        ("multi-queue:delay=2500,tolerance=nan", "tolerance must be a number >= 0, got nan"),
        ("multi-queue:delay=2500,delta1=print", "unknown delta1 'print'; did you mean 'printed'"),
        ("multi-queue:batch=50", "batch says how a delay adapts; it needs delay too"),
        ("multi-queue:bound=100", "did you mean 'bounds'"),
        ("easy:cap=-1", "cap must be a share of the machine >= 0 or inf, got -1"),
        ("easy:cap=most", "got 'most'"),
        ("easy:cap=nan", "got nan"),
        ("easy:long=60", "long is about a cap; it needs cap too, as in cap=0.97"),
        ("easy:overdue=open", "overdue is about a cap"),
        ("easy:cap=1,long=-1", "long must be seconds >= 0, got -1"),
        ("easy:cap=1,overdue=opne", "unknown overdue 'opne'; did you mean 'open'"),
        ("easy:by=request", "by is about a cap"),
        ("easy:cap=0.9,by=requests", "request"),
        ("cost-benefit:kapa=1", "did you mean 'kappa'"),
        ("cost-benefit:kappa=-1", "kappa must be >= 0, got -1"),
        ("cost-benefit:kappa=inf", "got inf"),
        ("cost-benefit:long=60", "it needs cap too"),
        ("cost-benefits", "did you mean 'cost-benefit'"),
        ("slurm:max_job_test=0", "max_job_test must be a whole number >= 1 or inf, got 0"),
        ("slurm:max_job_user=1.5", "max_job_user must be a whole number >= 1 or inf"),
        ("slurm:window=0", "window must be whole minutes >= 1 or inf"),
        ("slurm:resolution=inf", "resolution must be whole seconds >= 1"),
        ("slurm:interval=-1", "interval must be whole seconds >= 1, got -1"),
        ("slurm:bf_interval=1", "did you mean 'interval'"),
        ("easy+trail", "trial"),
        ("easy+trial:limits=3", "limit"),
        ("easy+trial:kills=0", "kills"),
        ("easy+trial:share=2", "share"),
        ("easy+trial:limit=0.5", "limit"),
        ("depth:k=2+trial", "easy and cost-benefit"),
        ("slurm+trial", "easy and cost-benefit"),
        ("easy:trial=3", "trial"),
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
    with pytest.raises(PolicyError, match=r"Trial or None, got 'limit=5'"):
        Easy(trial="limit=5")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "mode", ["none", "conservative", "conservative:compress=shift", "look-ahead", "slack:c=1"]
)
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
