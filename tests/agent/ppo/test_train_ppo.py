"""`scripts/train_ppo.py`: what it trains on, what it goes on with, and what its card says."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcgym import registry
from hpcgym.agent import card_writer
from hpcgym.agent.shelf import load_card
from hpcgym.agent.trainers import TRAINERS
from hpcgym.agent.training_weeks import digests_of_logs
from hpcgym.errors import HpcgymError, OutputError

ppo = pytest.importorskip("hpcgym.agent.ppo")

SCENARIO = "synthetic-256-weeks"
SETS = {
    "n_envs": 4,
    "group_size": 2,
    "n_steps": 8,
    "batch_size": 16,
    "n_slots": 16,
    "hidden": 8,
    "validation_copies": 0,
    "device": "cpu",
}
WEEKS = {"scenario": SCENARIO, "weeks": "1-3", "validation_weeks": "5"}
LIMITED = WEEKS | {"steps": 64}
TINY = {"scenario": "tiny", "weeks": [], "validation_weeks": []}
Run = Callable[..., tuple[Any, Path]]


@pytest.fixture
def script() -> Any:
    """The script as a module."""
    path = Path(__file__).parents[3] / "scripts" / "train_ppo.py"
    spec = importlib.util.spec_from_file_location("train_ppo", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def read(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Give the script options; those that are True have no value, lists are given once each."""

    def read(**options: Any) -> Any:
        words = ["train_ppo.py", "--output", str(tmp_path / "run")]
        words += [f"--set={key}={value}" for key, value in SETS.items()]
        for key, value in options.items():
            option = f"--{key.replace('_', '-')}"
            for one in value if isinstance(value, list) else [value]:
                words += [option] if one is True else [option, str(one)]
        monkeypatch.setattr("sys.argv", words)
        return script.read_arguments()

    return read


@pytest.fixture
def run(script: Any, read: Callable[..., Any]) -> Run:
    """Let the script run with options."""
    return lambda **options: script.run(read(**options))


def test_weeks_are_set_apart_from_the_last_block_or_from_all_that_are_not_named(
    script: Any, read: Callable[..., Any]
) -> None:
    cases: list[tuple[dict[str, str], list[int], list[int]]] = [
        ({}, list(range(1, 13)), [13, 14, 15, 16]),
        ({"weeks": "1-5"}, [1, 2, 3, 4], [5]),
        ({"validation_weeks": "4-6"}, [1, 2, 3, *range(7, 17)], [4, 5, 6]),
        ({"weeks": "1-5", "validation_weeks": "5,9"}, [1, 2, 3, 4], [5, 9]),
    ]
    for options, played, kept in cases:
        parts = script.chosen_weeks(read(scenario=SCENARIO, **options), 0.2)
        assert [list(one.numbers) for (one,) in parts] == [played, kept]
        for (one,) in parts:
            with pytest.raises(HpcgymError, match="are set apart already"):
                one.set_apart(played)
    with pytest.raises(HpcgymError, match="1 scenarios, yet weeks are given 2 times"):
        script.chosen_weeks(read(scenario=SCENARIO, weeks=["1-5", "6"]), 0.2)


def test_a_training_goes_on_as_it_began_and_its_card_says_how(run: Run, tmp_path: Path) -> None:
    changes = {"augment": ["jitter=60", "window=86400,86400"], "seed": 3, "action": "job"}
    begun, card = run(**LIMITED | changes)
    assert begun.steps == 64
    longer = LIMITED | changes | {"steps": 96, "threads": 2, "resume": True, "force": True}
    trained, again = run(**longer)
    assert (trained.steps, again) == (96, card)
    found = load_card(str(card))
    assert found.training.weeks == {SCENARIO: (1, 2, 3, 5)}
    assert found.training.seed == 3
    assert found.training.logs == digests_of_logs([SCENARIO])
    assert found.parameters["settings"] == [
        "hidden=8",
        "n_slots=16",
        "n_envs=4",
        "group_size=2",
        "n_steps=8",
        "batch_size=16",
        "validation_copies=0",
        "augment jitter=60",
        "augment window=86400,86400",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TINY, f"scenario: got tiny, .* has {SCENARIO};"),
        ({"weeks": "1-4"}, f"weeks of {SCENARIO}: got 1-5, .* has 1-3,5;"),
        ({"validation_weeks": "3,5"}, f"validation weeks of {SCENARIO}: got 3,5, .* has 5;"),
        ({"seed": 1}, "seed: got 1, yet the checkpoint has 0;"),
        ({"action": "job"}, "action: got job, yet the checkpoint has order;"),
        ({"network": "attention"}, "network: got attention, yet the checkpoint has kernel;"),
        ({"set": "gamma=0.5"}, "gamma: got 0.5, yet the checkpoint has 1.0;"),
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
        ({"minutes": "nan"}, "--minutes must be above 0, got nan"),
        ({"name": "Ppo", "shelf": True}, "Ppo is a trainer, so .* another name than weights, "),
        (
            {"scenario": [SCENARIO] * 2, "weeks": ["1-3", "2-5"], "validation_weeks": ["5", "1"]},
            f"{SCENARIO} and {SCENARIO} cut one log, .* each log may stand once",
        ),
        ({"steps": 64, "resume": True}, "checkpoint.pt: cannot be read"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_any_training_and_leaves_nothing(
    options: dict[str, Any],
    message: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ppo, "train", None)
    with pytest.raises(HpcgymError, match=message):
        run(**WEEKS | options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [-1, 2**32])
@pytest.mark.parametrize("more", [{}, {"resume": True}])
def test_a_seed_that_generators_do_not_take_is_refused(
    seed: int, more: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    with pytest.raises(HpcgymError, match=f"whole number from 0 to 4294967295, got {seed}"):
        run(**LIMITED | more | {"seed": seed})
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_is_not_there_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(HpcgymError, match="torch sees no GPU, so device must be auto or cpu"):
        run(**LIMITED | {"set": "device=cuda"})
    assert list(tmp_path.iterdir()) == []


def test_weeks_of_one_log_may_not_be_kept_under_one_name_and_played_under_another(
    run: Run, tmp_path: Path
) -> None:
    text = (registry.shelf_folders("scenarios")[0] / f"{SCENARIO}.toml").read_text()
    other = tmp_path / "my-weeks.toml"
    other.write_text(text)
    both = {"scenario": [SCENARIO, other], "weeks": ["1-3", "4-6"], "validation_weeks": ["5", "1"]}
    with pytest.raises(HpcgymError, match=f"{SCENARIO} and my-weeks cut one log"):
        run(**LIMITED | both)


def test_help_says_what_limits_are_lifted(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["train_ppo.py", "--help"])
    with pytest.raises(SystemExit):
        script.read_arguments()
    shown = " ".join(capsys.readouterr().out.split())
    assert f"alone, it lifts the limit of {ppo.preset('order').minutes:g} minutes" in shown


def test_an_agent_without_a_name_may_stand_on_the_shelf(read: Callable[..., Any]) -> None:
    assert read(scenario=SCENARIO).name.casefold() not in TRAINERS


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
