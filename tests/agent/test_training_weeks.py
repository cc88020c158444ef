"""Cards of trained agents: what they state, and where the agents may be evaluated."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hpcgym.agent import NamedAgent, RuleAgent, load_agent, load_card
from hpcgym.agent.card import read_card
from hpcgym.agent.card_writer import training_table
from hpcgym.agent.training_weeks import (
    Training,
    digests_of_logs,
    is_same_log,
    open_weeks,
    refuse_training_weeks,
)
from hpcgym.base import registry
from hpcgym.base.errors import CardError, EvaluationError
from hpcgym.base.registry import find_entry
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.cross_validation import cross_validate
from hpcgym.trace.catalogue import find_trace
from research.shelf_results import shelf_results

SCENARIO = "synthetic-256-weeks"
TABLE = """
[training]
weeks = { synthetic-256-weeks = "1-3,9", kth-sp2-weeks = "4" }
seed = 2
seconds = 1.5
commit = "863cff6"
command = "make it"
"""


@pytest.fixture
def card_path(tmp_path: Path) -> Path:
    """The card of an agent trained on weeks 1-3 and 9 of the bundled scenario."""
    path = tmp_path / "mine.toml"
    text = load_card("saf").path.read_text(encoding="utf-8")
    path.write_text(text.replace('name = "SAF"', 'name = "Mine"') + TABLE, encoding="utf-8")
    return path


def test_card_says_what_its_agent_was_trained_on(card_path: Path) -> None:
    weeks = {SCENARIO: (1, 2, 3, 9), "kth-sp2-weeks": (4,)}
    training = Training(weeks, 2, 1.5, "863cff6", "make it")
    assert read_card(card_path).training == training
    assert load_agent(str(card_path)).training == training
    assert load_card("saf").training is None
    assert load_agent("saf").training is None


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("seed = 2", "sead = 2", "training: unknown key 'sead'; did you mean 'seed'"),
        ("seconds = 1.5", "", "training: seconds missing"),
        ("seconds = 1.5", "seconds = 2", "training.seconds must be a number, got 2"),
        ('"1-3,9"', '"3-1"', 'training.weeks.synthetic-256-weeks "3-1": the range 3-1 runs back'),
        ('"1-3,9"', "3", "training.weeks.synthetic-256-weeks must be a text, got 3"),
        ('{ synthetic-256-weeks = "1-3,9", kth-sp2-weeks = "4" }', "{}", "names no scenario"),
        (TABLE, "\n[[training]]\n", "training must be a table"),
        ("seed = 2", "seed = 2\nlogs = 3", "training.logs must be a table, got 3"),
        ("seed = 2", "seed = 2\nlogs = { a = 3 }", "training.logs.a must be a text, got 3"),
        ("seed = 2", "seed = 2\nended_at_start = 3", "must be true or false, got 3"),
        ("seed = 2", "seed = 2\nended_at_strat = true", "did you mean 'ended_at_start'"),
    ],
)
def test_training_that_is_not_understood_is_refused(
    card_path: Path, written: str, instead: str, message: str
) -> None:
    text = card_path.read_text(encoding="utf-8")
    assert written in text
    card_path.write_text(text.replace(written, instead), encoding="utf-8")
    with pytest.raises(CardError) as refused:
        read_card(card_path)
    assert message in str(refused.value)


def test_training_weeks_and_their_neighbours_are_closed(card_path: Path) -> None:
    training = read_card(card_path).training
    assert training is not None
    every = Episodes(SCENARIO)
    assert open_weeks(training, every) == (5, 6, 7, *range(11, 22))
    assert open_weeks(training, every.select("4-6")) == (5, 6)


def test_weeks_of_another_log_are_open() -> None:
    training = Training({"tiny": (1,), "no-such-weeks": (1,)}, 0, 1.0, "", "")
    every = Episodes(SCENARIO)
    assert open_weeks(training, every) == every.numbers


def test_no_week_of_a_log_is_open_whose_training_scenario_is_on_no_shelf(tmp_path: Path) -> None:
    """What its card says of the log is all that is known of it."""
    text = find_entry("scenarios", SCENARIO).read_text(encoding="utf-8")
    (tmp_path / "own-weeks.toml").write_text(text)
    digests = digests_of_logs([tmp_path / "own-weeks.toml"])
    training = Training({"own-weeks": (1,)}, 0, 1.0, "", "", digests)
    assert open_weeks(training, Episodes(SCENARIO)) == ()
    assert open_weeks(training, Episodes("tiny")) == Episodes("tiny").numbers
    assert training_table(training)["logs"] == digests
    own = set(Episodes(tmp_path / "own-weeks.toml").numbers)
    assert set(open_weeks(training, Episodes(tmp_path / "own-weeks.toml"))) == own - {1, 2}


def test_what_a_card_says_of_logs_is_read(card_path: Path) -> None:
    text = card_path.read_text(encoding="utf-8") + 'logs = { "kth-sp2-weeks" = "abc" }\n'
    card_path.write_text(text, encoding="utf-8")
    training = read_card(card_path).training
    assert training is not None and training.logs == {"kth-sp2-weeks": "abc"}


def test_other_cuts_of_the_same_log_are_compared_by_time(tmp_path: Path) -> None:
    """Half a week later, week k reaches into weeks k and k + 1 of the shelf's scenario."""
    text = find_entry("scenarios", SCENARIO).read_text(encoding="utf-8")
    shifted = tmp_path / "shifted-weeks.toml"
    shifted.write_text(text.replace('kind = "week"', 'kind = "week"\noffset_s = 302400'))
    training = Training({SCENARIO: (10,)}, 0, 1.0, "", "")
    closed = set(Episodes(shifted).numbers) - set(open_weeks(training, Episodes(shifted)))
    assert closed == {8, 9, 10, 11}
    whole = tmp_path / "whole.toml"
    head, _, _ = text.partition("[episode]")
    whole.write_text(head + '[episode]\nkind = "whole"\n')
    assert open_weeks(training, Episodes(whole)) == ()


@pytest.fixture
def weeks_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Episodes]:
    """Put weeks of a log of one's own on a shelf, cut as the bundled ones are."""
    shelf = tmp_path / "scenarios"
    shelf.mkdir()
    monkeypatch.setattr(registry, "_user_folders", [tmp_path])
    text = find_entry("scenarios", SCENARIO).read_text(encoding="utf-8")

    def put(name: str, file: str, log: str, *, more: str = "") -> Episodes:
        (tmp_path / file).write_bytes(log.encode())
        path = shelf / f"{name}.toml"
        path.write_text(text.replace('name = "synthetic-256"', f'file = "../{file}"\n{more}'))
        return Episodes(path)

    return put


@pytest.fixture
def bundled_log() -> str:
    """The text of the bundled log."""
    return gzip.decompress(find_trace("synthetic-256").read_bytes()).decode()


def test_weeks_of_a_copied_file_are_weeks_of_its_log(
    weeks_of: Callable[..., Episodes], bundled_log: str
) -> None:
    own = weeks_of("own-weeks", "copied.swf", bundled_log)
    training = Training({SCENARIO: (1, 2, 3, 9)}, 0, 1.0, "", "")
    assert open_weeks(training, own) == (5, 6, 7, *range(11, 22))
    with pytest.raises(EvaluationError, match=f"{SCENARIO} and own-weeks cut one log"):
        cross_validate("SPF", [SCENARIO, own], progress=False)


def test_weeks_are_compared_by_the_log_where_cleaning_moves_time_0(
    weeks_of: Callable[..., Episodes], bundled_log: str
) -> None:
    """A job of 1 s comes a week before the others: without it, week k is what was week k + 1."""
    lines = [line.split(" ") for line in bundled_log.splitlines()]
    first = next(line for line in lines if line[0] == "1")
    begin, week = int(first[1]), 604_800
    lone = ["0", str(begin), "0", "1", *first[4:]]
    later = [
        line if line[0] == ";" else [line[0], str(int(line[1]) + week), *line[2:]] for line in lines
    ]
    log = "".join(" ".join(line) + "\n" for line in [*later[:12], lone, *later[12:]])
    whole = weeks_of("whole-weeks", "log.swf", log)
    cleaned = weeks_of("cleaned-weeks", "log.swf", log, more="minimum_run_time_s = 2")
    training = Training({"whole-weeks": (10,)}, 0, 1.0, "", "")
    for episodes, expected in ((whole, {9, 10, 11}), (cleaned, {8, 9, 10})):
        closed = set(episodes.numbers) - set(open_weeks(training, episodes))
        assert closed == expected


def test_no_week_of_another_version_of_the_log_is_open(
    weeks_of: Callable[..., Episodes], bundled_log: str
) -> None:
    """Its name says that it is of one log, and nothing when its clock begins."""
    old = weeks_of("old-weeks", "MINE-2026-1.swf", bundled_log)
    new = weeks_of("new-weeks", "Mine-2026-1.1-cln.swf", "; another version\n" + bundled_log)
    other = weeks_of("other-weeks", "MINE-2027-1.swf", "; another log\n" + bundled_log)
    training = Training({"old-weeks": (10,)}, 0, 1.0, "", "")
    assert set(open_weeks(training, old)) == set(old.numbers) - {9, 10, 11}
    assert open_weeks(training, new) == ()
    assert open_weeks(training, other) == other.numbers
    with pytest.raises(EvaluationError, match="old-weeks and new-weeks cut one log"):
        cross_validate("SPF", [old, new], progress=False)


def test_versions_of_a_log_of_the_archive_are_one_log(real_log: Callable[[str], Path]) -> None:
    """Whether the other version is at hand or not."""
    real_log("KTH-SP2-1996-2.1-cln")
    scenario = load_scenario("kth-sp2-weeks")
    raw = replace(scenario, name="raw", trace=replace(scenario.trace, name="KTH-SP2-1996-2"))
    assert is_same_log(scenario, raw)
    training = Training({"kth-sp2-weeks": (1,)}, 0, 1.0, "", "")
    real_log("KTH-SP2-1996-2")
    assert open_weeks(training, Episodes(raw)) == ()


def test_evaluation_refuses_training_weeks_and_names_those_it_would_take(card_path: Path) -> None:
    agent = load_agent(str(card_path))
    allowed = "it may be evaluated on 5-7,11-21"
    for weeks, wrong in ((None, "1-4,8-10"), ("3", "3"), ("4-6", "4"), ("8,12", "8")):
        with pytest.raises(CardError, match=f"which {wrong} of {SCENARIO} touch") as refused:
            evaluate([agent], SCENARIO, weeks=weeks, progress=False)
        assert str(refused.value).endswith(allowed)
        assert str(refused.value).startswith("Mine was trained on weeks 1-3,9 of synthetic")
    found = evaluate([agent], SCENARIO, weeks="5,11", progress=False)
    assert found.values("Mine").tolist() == found.values("SAF").tolist()


def test_any_agent_that_states_its_training_is_refused() -> None:
    training = Training({SCENARIO: (1,)}, 0, 1.0, "", "")
    rule = RuleAgent("SAF", name="mine", training=training)
    for agent in (rule, NamedAgent("other", rule, rule.env_keywords, training)):
        with pytest.raises(CardError, match="2 of synthetic-256-weeks touch or are adjacent"):
            refuse_training_weeks(agent, Episodes(SCENARIO), (2, 3))
        refuse_training_weeks(agent, Episodes(SCENARIO), (3,))


def test_agent_trained_before_is_judged_on_its_open_weeks_only(card_path: Path) -> None:
    some = Episodes(SCENARIO).select("1-7")
    found = cross_validate(
        str(card_path), some, jitter=0, replicas=0, baselines=["FCFS"], progress=False
    )
    assert found.evaluation.weeks == (5, 6, 7)
    assert found.evaluation.agents == ("Mine", "FCFS", "SAF")
    with pytest.raises(CardError, match=r"may be evaluated on \(none\)"):
        cross_validate(str(card_path), some.select("1-4"), progress=False)


@pytest.mark.long
def test_results_of_a_trained_agent_are_of_its_open_weeks(card_path: Path) -> None:
    cards = {"Mine": read_card(card_path), "SAF": load_card("SAF")}
    found = shelf_results(cards, SCENARIO, replicas=1, progress=False)
    assert (found["Mine"].n_weeks, found["SAF"].n_weeks) == (14, 21)
    assert "--weeks 5-7,11-21 --jitter 600" in found["Mine"].command
    assert "--weeks" not in found["SAF"].command
