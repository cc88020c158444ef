"""`hpcgym agents` and `hpcgym scenarios`: every entry is listed, and each can be shown."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpcgym.agent.shelf import load_cards
from hpcgym.base import plugins
from hpcgym.cli import app
from hpcgym.env.scenario.load import scenario_names

Command = Callable[..., str]


@pytest.mark.long
def test_every_agent_is_listed(run: Command) -> None:
    listed = run("agents", "list")
    for name, card in load_cards().items():
        assert name in listed
        assert card.title in listed


@pytest.mark.parametrize("name", load_cards())
def test_every_agent_shows_its_card(run: Command, name: str) -> None:
    shown = run("agents", "info", name.lower())
    card = load_cards()[name]
    assert card.title in shown
    assert all(result.scenario in shown for result in card.results)
    assert f" {card.contest}\n" in shown
    _, _, waits = shown.partition("Long waits")
    assert waits and all(one.wait_ratio_text("share_beyond_ratio") in waits for one in card.results)
    for scenario in card.training.weeks if card.training else ():
        assert f"training.weeks.{scenario}" in shown


def test_every_scenario_is_listed(run: Command) -> None:
    listed = run("scenarios", "list")
    assert all(name in listed for name in scenario_names())


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_shows_what_it_states(run: Command, name: str) -> None:
    shown = run("scenarios", "info", name)
    for key in ("trace.missing_request", "machine.processors", "episode.kind", "scheduler.policy"):
        assert key in shown


def test_scenario_of_a_person_is_shown_by_its_path(
    run: Command, refuse: Command, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'description = "Mine."\n'
        '[trace]\nname = "tiny"\nmissing_request = "drop"\n'
        "[machine]\nprocessors = 4\nlargest_request_s = 120\n"
        '[episode]\nkind = "whole"\n'
        '[scheduler]\npolicy = "SPF"\n'
    )
    assert "SPF" in run("scenarios", "info", path)
    path.write_text(path.read_text().replace("policy =", "polciy ="))
    message = refuse("scenarios", "info", path)
    assert str(path) in message
    assert "did you mean 'policy'" in message


@pytest.mark.long
def test_what_packages_offer_is_listed_and_a_broken_one_is_a_warning(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers = {
        "agents": ("COIN", "nothing_here:Coin"),
        "policies": ("NAIL", "textwrap:dedent"),
        "scenarios": ("demo-weeks", "nothing_here:WEEKS"),
    }
    monkeypatch.setattr(
        plugins, "offered", lambda kind: (EntryPoint(*offers[kind], f"hpcgym.{kind}"),)
    )
    listed = run("agents", "list")  # loads none of them
    assert all(name in listed for name in ("COIN", "NAIL"))
    shown = run("agents", "info", "nail")
    assert "Remove any common leading whitespace" in shown
    assert "textwrap:dedent, package" in shown
    result = CliRunner().invoke(app, ["scenarios", "list"])
    assert result.exit_code == 0
    assert "tiny" in result.stdout
    assert result.stderr.startswith("hpcgym: warning: left out: 'demo-weeks', which the package")


def test_part_of_a_file_shows_what_it_is(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "shown_part.py"
    path.write_text(
        'class Coin:\n    """Tosses\n    a coin."""\n    env_keywords = {"action": "job"}\n'
        "    def predict(self, *_): return 0, None\n"
    )
    shown = run("agents", "info", path)
    assert "Tosses a coin." in shown
    assert "environment.action  job" in shown
