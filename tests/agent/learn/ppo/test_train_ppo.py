"""`hpcgym train`: what it trains on, what it goes on with, and what its card says."""

from __future__ import annotations

import math
import re
import runpy
import shlex
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpcgym.agent import NamedAgent, card_writer
from hpcgym.agent.shelf import load_card
from hpcgym.agent.trainers import TRAINERS
from hpcgym.agent.training_weeks import digests_of_logs
from hpcgym.agent.weights import ConstantAction
from hpcgym.base import registry
from hpcgym.base.errors import CardError, HpcgymError, OutputError
from hpcgym.cli import app
from hpcgym.cli.train import TrainOptions, chosen_weeks, train_agent, train_and_write
from hpcgym.cli.tune import tune_agent
from hpcgym.evaluation import evaluate

ppo = pytest.importorskip("hpcgym.agent.learn.ppo")
Score = pytest.importorskip("hpcgym.agent.validation").Score

SCENARIO = "synthetic-256-weeks"
SETS = {
    "n_envs": 4,
    "group_size": 2,
    "n_steps": 8,
    "batch_size": 16,
    "n_slots": 16,
    "hidden": 8,
    "validation_copies": 0,
    "constants": 0,
    "device": "cpu",
}
WEEKS = {"scenarios": SCENARIO, "weeks": "1-3", "validation_weeks": "5"}
LIMITED = WEEKS | {"steps": 64}
TINY = {"scenarios": "tiny", "weeks": [], "validation_weeks": []}
Run = Callable[..., tuple[Any, Path]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that trains under options, each once or in a list."""

    def run(**options: Any) -> Any:
        given: dict[str, Any] = {"output": tmp_path / "run", "settings": []} | options
        for key in ("weeks", "validation_weeks", "scenarios", "settings", "augment"):
            if not isinstance(given.get(key, []), list):
                given[key] = [given[key]]
        given["settings"] = [f"{key}={value}" for key, value in SETS.items()] + given["settings"]
        return train_and_write(TrainOptions(**given))

    return run


def test_weeks_are_set_apart_from_the_last_block_or_from_all_that_are_not_named() -> None:
    cases: list[tuple[dict[str, str], list[int], list[int]]] = [
        ({}, list(range(1, 13)), [13, 14, 15, 16]),
        ({"weeks": "1-5"}, [1, 2, 3, 4], [5]),
        ({"validation_weeks": "4-6"}, [1, 2, 3, *range(7, 17)], [4, 5, 6]),
        ({"weeks": "1-5", "validation_weeks": "5,9"}, [1, 2, 3, 4], [5, 9]),
    ]
    for options, played, kept in cases:
        own = [[options[key]] if key in options else [] for key in ("weeks", "validation_weeks")]
        parts = chosen_weeks([SCENARIO], *own, 0.2)
        assert [list(one.numbers) for (one,) in parts] == [played, kept]
        for (one,) in parts:
            with pytest.raises(HpcgymError, match="are set apart already"):
                one.set_apart(played)
    with pytest.raises(HpcgymError, match="1 scenarios, yet weeks are given 2 times"):
        chosen_weeks([SCENARIO], ["1-5", "6"], [], 0.2)


@pytest.mark.long
@pytest.mark.parametrize("action", ["job", "index"])
def test_a_training_goes_on_as_it_began_and_its_card_says_how(
    action: str, run: Run, tmp_path: Path
) -> None:
    changes = {"augment": ["jitter=60", "window=86400,86400"], "seed": 3, "action": action}
    begun, card = run(**LIMITED | changes)
    assert begun.steps == 64
    longer = LIMITED | changes | {"steps": 96, "threads": 2, "resume": True, "force": True}
    trained, again = run(**longer)
    assert (trained.steps, again) == (96, card)
    found = load_card(str(card))
    assert found.training.weeks == {SCENARIO: (1, 2, 3, 5)}
    assert found.training.seed == 3
    assert found.training.logs == digests_of_logs([SCENARIO])
    assert trained.config.start == begun.config.start
    assert found.parameters["settings"] == [
        "hidden=8",
        *([f"start={begun.config.start}"] if action == "job" else []),
        "n_slots=16",
        "n_envs=4",
        "group_size=2",
        "n_steps=8",
        "batch_size=16",
        *(["constants=0"] if action == "index" else []),
        "validation_copies=0",
        "augment jitter=60",
        "augment window=86400,86400",
    ]
    assert found.agent.env_keywords.get("decide") == (14_400 if action == "index" else None)
    played = evaluate([found.agent], SCENARIO, weeks="7", progress=False)
    assert played.values("TRAINED") > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TINY, f"scenario: got tiny, .* has {SCENARIO};"),
        ({"weeks": "1-4"}, f"weeks of {SCENARIO}: got 1-5, .* has 1-3,5;"),
        ({"validation_weeks": "3,5"}, f"validation weeks of {SCENARIO}: got 3,5, .* has 5;"),
        ({"seed": 1}, "seed: got 1, yet the checkpoint has 0;"),
        ({"action": "job"}, "action: got job, yet the checkpoint has index;"),
        ({"settings": "gamma=0.5"}, "gamma: got 0.5, yet the checkpoint has 1.0;"),
        ({"augment": "jitter=60"}, "augment jitter: got 60, yet the checkpoint has 0;"),
    ],
)
def test_another_training_than_the_one_begun_is_refused(
    options: dict[str, Any], message: str, run: Run
) -> None:
    run(**LIMITED)
    with pytest.raises(HpcgymError, match=message):
        run(**LIMITED | options | {"resume": True, "force": True})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"minutes": 0}, "--minutes must be above 0, got 0"),
        ({"steps": 64, "minutes": -1}, "--minutes must be above 0, got -1"),
        ({"minutes": math.nan}, "--minutes must be above 0, got nan"),
        ({"steps": 64, "seed": -1}, "whole number from 0 to 4294967295, got -1"),
        ({"steps": 64, "seed": 2**32}, "whole number from 0 to 4294967295, got 4294967296"),
        ({"steps": 64, "seed": -1, "resume": True}, "whole number from 0 to 4294967295, got -1"),
        ({"name": "Ppo", "shelf": True}, "Ppo is a trainer, so .* another name than weights, "),
        (
            {"scenarios": [SCENARIO] * 2, "weeks": ["1-3", "2-5"], "validation_weeks": ["5", "1"]},
            f"{SCENARIO} and {SCENARIO} cut one log, .* each log may stand once",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_any_training_and_leaves_nothing(
    options: dict[str, Any], message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppo, "train", None)
    with pytest.raises(HpcgymError, match=message):
        run(**WEEKS | options)
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_is_not_there_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(HpcgymError, match="torch sees no GPU, so device must be auto or cpu"):
        run(**LIMITED | {"settings": "device=cuda"})
    assert list(tmp_path.iterdir()) == []


def test_weeks_of_one_log_may_not_be_kept_under_one_name_and_played_under_another(
    run: Run, tmp_path: Path
) -> None:
    text = (registry.shelf_folders("scenarios")[0] / f"{SCENARIO}.toml").read_text()
    other = tmp_path / "my-weeks.toml"
    other.write_text(text)
    both = {"scenarios": [SCENARIO, other], "weeks": ["1-3", "4-6"], "validation_weeks": ["5", "1"]}
    with pytest.raises(HpcgymError, match=f"{SCENARIO} and my-weeks cut one log"):
        run(**LIMITED | both)


def test_help_says_what_limits_are_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shown = CliRunner().invoke(app, ["train", "--help-all"]).stdout
    assert f"alone, it lifts the limit of {ppo.preset('order').minutes:g} minutes" in shown


@pytest.mark.parametrize(("script", "command"), [("train_ppo", "train"), ("tune_weights", "tune")])
def test_the_script_is_the_command(
    script: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(__file__).parents[4] / "scripts" / f"{script}.py"
    monkeypatch.setattr("sys.argv", [path.name, "--help"])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(path), run_name="__main__")
    assert left.value.code == 0
    assert f"hpcgym {command} [OPTIONS]" in capsys.readouterr().out


@pytest.mark.long
def test_the_card_states_the_options_that_were_given(tmp_path: Path) -> None:
    sets = [word for key, value in SETS.items() for word in ("--set", f"{key}={value}")]
    words = ["-s", SCENARIO, "--weeks", "1-3", "--validation-weeks", "5", "--steps", "64"]
    done = CliRunner().invoke(app, ["train", *words, *sets, "--output", str(tmp_path / "a b")])
    assert done.exit_code == 0, done.output
    card = load_card(str(tmp_path / "a b" / "trained.toml"))
    assert f"wrote {card.path}" in done.stdout
    assert card.training is not None
    told = shlex.split(card.training.command)
    assert told[:4] == ["hpcgym", "train", "--scenario", SCENARIO]
    assert told[told.index("--output") + 1] == str(tmp_path / "a b")
    again = CliRunner().invoke(app, [*told[1:], "--force"])
    assert again.exit_code == 0, again.output


@pytest.mark.long
@pytest.mark.parametrize(("patience", "advice"), [(2, ", --set patience=0"), (9, "")])
def test_a_training_that_ends_where_it_began_says_so_and_so_does_its_card(
    patience: int, advice: str, tmp_path: Path
) -> None:
    sets = SETS | {"learning_rate": 1e-9, "patience": patience, "validate_every": 1, "n_slots": 64}
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    words += ["-s", SCENARIO, "--weeks", "1-3", "--validation-weeks", "5", "--steps", "96"]
    words += ["--action", "order"]
    wide = {"COLUMNS": "400"}
    done = CliRunner().invoke(app, ["train", *words, "--output", str(tmp_path)], env=wide)
    assert done.exit_code == 0, done.output
    card = load_card(str(tmp_path / "trained.toml"))
    steps, (first, *_, last) = card.parameters["steps"], done.stdout.splitlines()
    told = re.fullmatch(
        r"starts, of which it began at the first: (((\S+) (\S+), ).* (\S+)) times SAF", first
    )
    assert told is not None
    assert float(told[4]) < float(told[5])
    assert card.description.endswith(f"Its start had the least ratio there: {told[1]}.")
    assert re.fullmatch(
        rf"TRAINED ended where it began, as {told[3]} among the 64 jobs it sees: "
        rf"{steps} decisions of PPO gave nothing better\. On the validation weeks it has "
        rf"(\d\.\d{{3}}) times SAF's sum, the best later network \1\. "
        rf"Try more --minutes or --steps{advice}, a higher --set learning_rate, or other weeks",
        last,
    )
    assert card.training is not None
    assert card.training.ended_at_start
    assert "trained" not in card.description
    assert "as its training on synthetic-256-weeks began" in card.title
    agents = [replace(card.agent, training=None), told[3]]
    found = evaluate(agents, SCENARIO, weeks="7-8", progress=False)
    assert found.values("TRAINED") == pytest.approx(found.values(told[3]), rel=1e-3)


@pytest.mark.long
def test_a_network_of_an_index_that_nothing_has_bettered_is_zeros_to_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpcgym.agent.validation.Validation.score", lambda *_: Score(1.0, 0.0, 1.0))
    words = [word for key, value in SETS.items() for word in ("--set", f"{key}={value}")]
    words += ["-s", SCENARIO, "--weeks", "1-3", "--validation-weeks", "5", "--steps", "64"]
    wide = {"COLUMNS": "400"}
    done = CliRunner().invoke(app, ["train", *words, "--output", str(tmp_path)], env=wide)
    assert done.exit_code == 0, done.output
    nothing = "64 decisions of PPO gave nothing better"
    begun = f"TRAINED ended where it began, as actions of zeros: {nothing}."
    assert done.stdout.splitlines()[-1].startswith(begun)
    card = load_card(str(tmp_path / "trained.toml"))
    assert card.environment["action"] == "index"
    assert f"decides as actions of zeros: {nothing}" in card.description
    zeros = NamedAgent("ZEROS", ConstantAction((0.0,) * 5), {"action": "index"})
    agents = [replace(card.agent, training=None), zeros]
    found = evaluate(agents, SCENARIO, weeks="7-8", progress=False).frame.set_index("agent")
    assert found.loc["TRAINED"].to_numpy().tolist() == found.loc["ZEROS"].to_numpy().tolist()


@pytest.mark.long
def test_a_training_that_improved_does_not_say_that_it_ended_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios = iter((1.25, 0.75))
    monkeypatch.setattr(
        "hpcgym.agent.validation.Validation.score", lambda *_: Score(next(ratios), 0.0, 1.0)
    )
    words = [word for key, value in SETS.items() for word in ("--set", f"{key}={value}")]
    words += ["-s", SCENARIO, "--weeks", "1-3", "--validation-weeks", "5", "--steps", "64"]
    done = CliRunner().invoke(app, ["train", *words, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].endswith(f"best 0.750; wrote {tmp_path / 'trained.toml'}")
    card = load_card(str(tmp_path / "trained.toml"))
    assert card.training is not None
    assert not card.training.ended_at_start
    assert "ended_at_start" not in card.path.read_text(encoding="utf-8")
    assert "trained by PPO on 64 decisions" in card.description
    assert card.description.endswith("0.750 times SAF's sum, at its start 1.250.")


def test_an_agent_without_a_name_may_stand_on_the_shelf() -> None:
    for command in (train_agent, tune_agent):
        assert signature(command).parameters["name"].default.casefold() not in TRAINERS


@pytest.mark.parametrize("write", [card_writer.ensure_free, card_writer.put_on_shelf])
def test_the_shelf_of_an_installed_package_is_not_written_to(
    write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card_writer, "clone", lambda: None)
    with pytest.raises(CardError, match=r"in a clone of hpcgym only.* --agents .*saf.toml"):
        if write is card_writer.ensure_free:
            write("SAF", tmp_path, shelf=True)
        else:
            write(load_card("SAF").path)


@pytest.mark.long
def test_an_agent_goes_to_the_shelf_unless_one_of_its_name_is_there(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, folders = tmp_path / "agents", registry.shelf_folders
    shelf.mkdir()
    for module in (registry, card_writer):
        monkeypatch.setattr(
            module, "shelf_folders", lambda kind: [shelf] if kind == "agents" else folders(kind)
        )
    _, card = run(**LIMITED | {"shelf": True, "name": "MINE"})
    assert card == shelf / "mine.toml"
    assert load_card(str(card)).agent.name == "MINE"
    monkeypatch.setattr(ppo, "train", None)  # what follows is refused before any training
    with pytest.raises(OutputError, match=r"agents/mine.toml: exists already"):
        run(**LIMITED | {"shelf": True, "name": "MINE", "output": tmp_path / "other"})
