"""The shelf of agents: every card loads, and what is misspelt is an error with a hint."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from hpcgym.agent import RuleAgent, agent_names, load_agent, load_card, load_cards
from hpcgym.agent.card import read_card
from hpcgym.agent.result_table import (
    COLUMNS,
    FILE,
    Result,
    forget_results,
    read_results,
    write_results,
)
from hpcgym.agent.trainers import TRAINERS, load_trainer
from hpcgym.agent.training_weeks import open_weeks
from hpcgym.base import registry
from hpcgym.base.errors import CardError, TraceError
from hpcgym.core import loaders
from hpcgym.core.features import Features
from hpcgym.core.policy import as_policy, policy_names, register_policy, unregister_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.baselines import BASELINES
from hpcgym.evaluation.folds import time_blocks
from hpcgym.schedule.simulate import simulate
from update_agents import index_markdown

RESULT = Result(
    command='hpcgym evaluate --agents "SAF"',
    scenario="tiny",
    n_weeks=2,
    replicas=0,
    mean_bsld=2.5,
    sum_bsld=5.0,
    ratio_to_saf=1.25,
    ratio_low=1.0,
    ratio_high=1.5,
    mean_log_ratio=0.2,
    mean_pp_bsld=1.5,
    p99_bsld=8.0,
    max_wait_time=40,
    utilisation=0.75,
    contest="guarded",
    p999_wait_time=40,
    p999_wait_ratio=1.5,
    max_wait_ratio=0.5,
    share_beyond_threshold=0.0,
    share_beyond_ratio=None,
)


@pytest.fixture
def card_text() -> str:
    """The card of SAF."""
    return load_card("saf").path.read_text(encoding="utf-8")


@pytest.fixture
def mine(tmp_path: Path, card_text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder with one card, added to the shelf."""
    path = tmp_path / "agents" / "mine.toml"
    path.parent.mkdir()
    path.write_text(card_text.replace('name = "SAF"', 'name = "Mine"'), encoding="utf-8")
    monkeypatch.setattr(registry, "_user_folders", [])
    registry.add_folder(tmp_path)
    return path


def test_every_policy_has_a_card_and_so_have_other_ways_to_backfill() -> None:
    others = ("CAP-OPEN", "CONSERVATIVE", "DEPTH-2", "EASY-PLUS-PLUS", "EASY-SJBF", "GANG")
    others += ("LOOK-AHEAD", "MULTI-QUEUE", "MULTI-DELAY", "RELAXED", "SLACK")
    others += ("SMITH-CAP", "SMITH-BENEFIT", "URGENT-CAP", "URGENT-BENEFIT")
    others += ("URGENT-OPEN",)
    others += (
        *("URGENT-TRIAL", "URGENT-YOUNG", "SMITH-TRIAL", "SAF-CAP-TRIAL", "SAF-CAP-YOUNG"),
        "SAF-TRIAL",
    )
    rules = [name for name, card in load_cards().items() if card.kind == "rule"]
    n_policies = len(policy_names())
    assert tuple(rules[:n_policies]) == policy_names()
    assert rules[n_policies:] == sorted(others)


def test_every_other_card_is_of_what_was_trained() -> None:
    for name, card in load_cards().items():
        if card.kind not in ("rule", "replay"):
            assert card.training is not None
            assert card.agent.training == card.training
            assert card.agent.name == name


@pytest.mark.long
def test_what_was_trained_has_the_last_block_of_each_log_to_be_judged_on() -> None:
    checked = 0
    logs = cache(Episodes)  # the same few logs on many cards
    for card in load_cards().values():
        for scenario in card.training.weeks if card.training is not None else ():
            try:
                episodes = logs(scenario)
            except TraceError:
                continue
            last = time_blocks(episodes.numbers)[-1].test
            assert set(last) <= set(open_weeks(card.training, episodes)), (card.name, scenario)
            checked += 1
    if not checked:
        pytest.skip("no log of a training is at hand")


def test_every_card_makes_the_agent_it_names() -> None:
    for name, card in load_cards().items():
        if card.kind != "rule":
            continue
        agent = card.agent
        assert isinstance(agent, RuleAgent)
        assert agent.name == name
        assert agent.policy.name == card.parameters["policy"]
        if agent.estimates is None:
            assert agent.env_keywords.keys() == card.environment.keys()
        assert card.source and card.description and card.parameters["score"]


def test_easy_sjbf_is_fcfs_with_spf_as_backfill_order() -> None:
    agent = load_agent("Easy-sjbf")
    assert isinstance(agent, RuleAgent)
    assert agent.policy.name == "FCFS"
    assert agent.backfill_order is not None
    assert (str(agent.backfill), agent.backfill_order.name) == ("easy", "SPF")


@pytest.mark.parametrize(
    ("name", "mode", "order"),
    [
        ("conservative", "conservative", None),
        ("depth-2", "depth:k=2", "SPF"),
        ("look-ahead", "look-ahead:window=50", None),
        ("relaxed", "relaxed:omega=1", "SPF"),
        ("slack", "slack:c=1", None),
        ("multi-queue", "multi-queue", None),
        ("multi-delay", "multi-queue:delay=2500", None),
    ],
)
def test_card_may_name_a_way_to_backfill(name: str, mode: str, order: str | None) -> None:
    """The backfill order of the scenario stays where the card's mode takes one."""
    workload = Episodes("synthetic-256-weeks").workload(0)
    agent = load_agent(name)
    assert isinstance(agent, RuleAgent)
    made = simulate(workload, **vars(agent.settings(SchedulerSettings(backfill_order="SPF"))))
    expected = simulate(workload, "FCFS", backfill=mode, backfill_order=order)
    assert np.array_equal(made.start_time, expected.start_time)


def test_easy_plus_plus_is_easy_sjbf_by_predictions() -> None:
    agent, plain = load_agent("easy-plus-plus"), load_agent("easy-sjbf")
    assert isinstance(agent, RuleAgent) and isinstance(plain, RuleAgent)
    assert (agent.estimates, agent.correction) == ("recent", "reqtime")
    workload = Episodes("synthetic-256-weeks").workload(0)
    scenario = Episodes("synthetic-256-weeks").settings
    own, theirs = agent.settings(scenario), plain.settings(scenario)
    by_hand = simulate(
        workload, **(vars(theirs) | {"estimates": "recent", "correction": "reqtime"})
    )
    assert np.array_equal(simulate(workload, **vars(own)).start_time, by_hand.start_time)
    assert own.threshold == theirs.threshold is not None


def test_names_go_in_any_case_and_weights_and_own_policies_are_agents_too() -> None:
    assert load_agent("sAf").name == "SAF"
    assert load_agent("area=1").name == "area=1"
    register_policy("WIDEST", keys=lambda workload: -workload.processors)
    try:
        assert load_agent("widest").name == "WIDEST"
    finally:
        unregister_policy("WIDEST")


def test_unknown_agent_names_the_nearest() -> None:
    with pytest.raises(CardError, match="unknown agent 'SMIHT'; did you mean 'SMITH'"):
        load_agent("SMIHT")
    with pytest.raises(CardError, match="did you mean 'EASY-SJBF'"):
        load_card("easy_sjbf")


def test_card_of_a_users_own_folder_is_on_the_shelf(mine: Path) -> None:
    assert "Mine" in agent_names()
    assert load_agent("MINE").name == "Mine"
    assert load_card(str(mine)).path == mine


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "titel =", "unknown key 'titel'; did you mean 'title'"),
        ('title = "Smallest estimated area first"', "", "title missing"),
        ('kind = "rule"', 'kind = "rules"', "unknown kind 'rules'; did you mean 'rule'"),
        ('title = "Smallest estimated area first"', "title = 3", "title must be a text, got 3"),
        ('name = "Mine"', 'name = "Yours"', "named after it in lower case, yours.toml"),
        ('policy = "SAF"', 'policy = "SMIHT"', "unknown policy 'SMIHT'; did you mean 'SMITH'"),
        ('policy = "SAF"', "", "parameters: policy missing"),
        ('policy = "SAF"', 'policy = "SAF"\nestimate = "recent"', "did you mean 'estimates'"),
        ('policy = "SAF"', 'policy = "SAF"\nestimates = "recnt"', "did you mean 'recent'"),
        ('policies = ["SAF"]', 'policies = ["LAF"]', "unknown choice of policy 'SAF'"),
        ('policies = ["SAF"]', 'policies = "SAF"', "environment.policies must be a list"),
        ('action = "policy"', 'action = "job"', 'must be "policy"'),
        ('action = "policy"', 'actoin = "policy"', "did you mean 'action'"),
        ("[environment]", "[environment", "not valid TOML"),
        ("[environment]", '[environment]\nbackfill = "esay"', "did you mean 'easy'"),
        ("[environment]", '[environment]\nbackfill = "depth"', "backfill 'depth' needs k"),
    ],
)
def test_card_that_is_not_understood_names_file_and_key(
    mine: Path, old: str, new: str, message: str
) -> None:
    text = mine.read_text(encoding="utf-8")
    assert old in text
    mine.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CardError) as caught:
        load_agent("mine")
    assert str(caught.value).startswith(f"{mine}: ")
    assert message in str(caught.value)


def test_card_that_is_not_text_or_not_there_is_a_clear_error(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CardError, match="not a text file"):
        read_card(binary)
    with pytest.raises(CardError, match="no such file"):
        load_agent(str(tmp_path / "absent.toml"))


def test_results_are_written_beside_the_card_and_read_again(mine: Path) -> None:
    before = mine.read_text(encoding="utf-8")
    alone = replace(RESULT, scenario="alone", n_weeks=1, ratio_low=None, ratio_high=None)
    assert read_card(mine).results == ()
    write_results(mine.parent, {"Mine": RESULT, "Other": RESULT})
    assert read_card(mine).results == (RESULT,)
    write_results(mine.parent, {"Mine": alone})
    assert read_card(mine).results == (alone, RESULT)
    assert read_results(mine.parent) == {"Mine": (alone, RESULT), "Other": (RESULT,)}
    assert mine.read_text(encoding="utf-8") == before


def test_new_result_takes_the_place_of_the_old_one_on_its_scenario(mine: Path) -> None:
    for result in (RESULT, replace(RESULT, mean_bsld=0.1 + 0.2)):
        write_results(mine.parent, {"Mine": result})
        assert read_card(mine).results == (result,)


def test_results_of_an_agent_that_is_replaced_are_forgotten(mine: Path) -> None:
    write_results(mine.parent, {"Mine": RESULT, "Other": RESULT})
    for _ in range(2):
        forget_results(mine.parent, "Mine")
        assert read_results(mine.parent) == {"Other": (RESULT,)}


def test_every_row_of_the_table_is_of_a_card_on_the_shelf() -> None:
    cards = load_cards()
    assert set(read_results(cards["SAF"].path.parent)) == set(cards)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",2,0,2.5", ",2.0,0,2.5", "line 2: n_weeks must be a whole number, got '2.0'"),
        (",1.0,1.5,", ",1.0,high,", "line 2: ratio_high must be a number, got 'high'"),
        (",5.0,", ",,", "line 2: sum_bsld must be a number, got ''"),
        ("sum_bsld", "sum_bslt", "unknown column 'sum_bslt'; did you mean 'sum_bsld'"),
        ("replicas,", "", "replicas missing"),
        (",2,0,2.5", ",0,2.5", f"line 2: a row has {len(COLUMNS)} cells"),
        (",2,0,2.5", ",2,0,0,2.5", f"line 2: a row has {len(COLUMNS)} cells"),
    ],
)
def test_results_that_are_not_understood_are_refused(
    mine: Path, old: str, new: str, message: str
) -> None:
    write_results(mine.parent, {"Mine": RESULT})
    table = mine.parent / FILE
    text = table.read_text(encoding="utf-8")
    assert old in text
    table.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CardError) as caught:
        _ = read_card(mine).results
    assert str(caught.value).startswith(f"{table}: ")
    assert message in str(caught.value)


@pytest.mark.long
def test_index_is_current() -> None:
    cards = load_cards()
    readme = next(iter(cards.values())).path.parent / "README.md"
    if not readme.exists():
        pytest.skip("an installed package carries the cards; the index stays in the source")
    assert readme.read_text(encoding="utf-8") == index_markdown(cards)


SCORED = [
    name
    for name in policy_names()
    if not (as_policy(name).is_python or as_policy(name).needs_history)
]


@pytest.mark.parametrize("name", SCORED)
def test_score_on_a_card_orders_jobs_as_the_agents_policy_does(name: str) -> None:
    """The formula is read as Python: q processors, e request, w wait, r submit time, M machine."""
    card = load_card(name)
    workload = Episodes("synthetic-256-weeks").workload(0)
    functions = {"max": np.maximum, "min": np.minimum, "log2": np.log2, "log10": np.log10}
    functions |= {"sqrt": np.sqrt}

    def score(jobs: Features) -> ArrayLike:
        values = {"q": jobs.q, "e": jobs.e, "w": jobs.wait, "r": jobs.submit_time}
        values |= {"submit_time": jobs.submit_time, "M": workload.machine_processors}
        return eval(card.parameters["score"], {"__builtins__": {}}, functions | values)

    register_policy("FROM-CARD", formula=score)
    try:
        by_formula = simulate(workload, "FROM-CARD")
    finally:
        unregister_policy("FROM-CARD")
    by_policy = simulate(workload, card.parameters["policy"])
    assert np.array_equal(by_formula.start_time, by_policy.start_time)


def test_a_ratio_of_waits_that_does_not_exist_is_a_dash() -> None:
    assert RESULT.wait_ratio_text("p999_wait_ratio") == "1.500"
    assert RESULT.wait_ratio_text("max_wait_ratio") == "0.500"
    assert RESULT.wait_ratio_text("share_beyond_ratio") == "-"


def test_names_fit_a_column_of_fourteen_letters() -> None:
    trained = [load_trainer(name).name for name in TRAINERS]
    names = [*load_cards(), *BASELINES, *policy_names(), *loaders.BACKFILLS, *TRAINERS, *trained]
    assert [name for name in names if len(name) > 14] == []
