"""`--seeds` of `hpcgym train` and `tune`: as many agents as by single commands, wherever made."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.base.registry import has_room
from hpcgym.cli import app

QUICK = ("-s", "synthetic-busy-weeks", "--steps", "512", "--set", "constants=0")
QUICK += ("--set", "group_size=2", "--set", "n_envs=2", "--set", "n_steps=256")
QUICK += ("--set", "batch_size=64")


def train(*options: str) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it printed."""
    if not has_room("agent/learn"):
        pytest.skip("agent/learn is deleted")
    done = CliRunner().invoke(app, ["train", *QUICK, *options], env={"COLUMNS": "300"})
    return done.exit_code, done.stdout, done.stderr


def weights_of(card: Path) -> dict[str, np.ndarray]:
    """Return the weights beside a card."""
    with np.load(card.with_suffix(".npz")) as found:
        return {name: found[name] for name in found if name != "digest"}


@pytest.mark.long
@pytest.mark.parametrize("where", [(), ("--on", "local:2")], ids=["here", "two processes"])
def test_each_seed_is_trained_as_by_a_command_of_its_own(
    where: tuple[str, ...], tmp_path: Path
) -> None:
    code, said, _ = train("--seeds", "1,3", *where, "--output", str(tmp_path / "all"))
    assert code == 0 and [line.split(":")[0] for line in said.splitlines()] == ["seed 1", "seed 3"]
    single = ("--seed", "3", "--name", "TRAINED-3", "--output", str(tmp_path / "one"))
    assert train(*single)[0] == 0
    cards = [tmp_path / "all" / "seed-3" / "trained-3.toml", tmp_path / "one" / "trained-3.toml"]
    mine, theirs = map(weights_of, cards)
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert tomllib.loads(cards[0].read_text("utf-8"))["training"]["seed"] == 3


@pytest.mark.long
def test_seeds_that_are_finished_stay_and_others_are_trained(tmp_path: Path) -> None:
    where = ("--output", str(tmp_path))
    assert train("--seeds", "0", *where)[0] == 0
    before = (tmp_path / "seed-0" / "trained-0.npz").read_bytes()
    code, _, wrong = train("--seeds", "0-1", *where)
    assert code == 2 and "seed 0: " in wrong and "--force" in wrong
    assert (tmp_path / "seed-1" / "trained-1.toml").exists()  # it went on all the same
    code, said, _ = train("--seeds", "0-2", *where, "--resume")
    assert code == 0 and len(re.findall("was finished", said)) == 2
    assert (tmp_path / "seed-0" / "trained-0.npz").read_bytes() == before


@pytest.mark.long
@pytest.mark.parametrize("where", [(), ("--on", "local:2")], ids=["here", "two processes"])
def test_each_seed_is_searched_as_by_a_command_of_its_own(
    where: tuple[str, ...], tmp_path: Path
) -> None:
    def tune(*options: str) -> list[str]:
        words = ["tune", "--trainer", "tuned-history", "-s", "synthetic-busy-weeks"]
        done = CliRunner().invoke(
            app, [*words, "--evaluations", "8", *options], env={"COLUMNS": "300"}
        )
        assert done.exit_code == 0, done.stderr
        return done.stdout.splitlines()

    both = ("--seeds", "1,4", "--output", str(tmp_path / "all"))
    assert [line.split(":")[0] for line in tune(*both, *where)] == ["seed 1", "seed 4"]
    tune("--seed", "4", "--name", "TUNED-4", "--output", str(tmp_path / "one"))
    cards = [tmp_path / "all" / "seed-4" / "tuned-4.toml", tmp_path / "one" / "tuned-4.toml"]
    mine, theirs = (tomllib.loads(card.read_text("utf-8")) for card in cards)
    assert mine["training"].pop("command") != theirs["training"].pop("command")
    assert mine["training"].pop("seconds") > 0 and theirs["training"].pop("seconds") > 0
    assert mine == theirs
    assert ["was finished" in line for line in tune(*both, "--resume")] == [True, True]
