"""Ablations: one option at a time, on the last block, in one table."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from hpcgym.base.errors import EvaluationError
from hpcgym.env.scenario.augment import Augmentation
from hpcgym.env.scenario.episodes import Episodes
from research import ablation

ppo = pytest.importorskip("hpcgym.agent.learn.ppo")

TINY = {
    "gives": "last",
    "n_slots": 16,
    "hidden": 8,
    "n_envs": 24,
    "n_steps": 8,
    "batch_size": 96,
    "n_epochs": 1,
    "steps": 192,
    "validation_copies": 0,
    "device": "cpu",
}


def test_every_option_changes_one_thing_of_the_preset() -> None:
    config = ppo.preset("order", **TINY)
    names = (*ablation.SETTINGS, *ablation.AUGMENTATIONS)
    trainers = ablation.kit_trainers(config, names)
    assert tuple(one.name for one in trainers) == names
    assert trainers[0] == ppo.PPOTrainer(config, None, ablation.PRESET)
    for one in trainers[1:]:
        assert (one.config == config) != (one.augmentation is None)
    with pytest.raises(EvaluationError, match="did you mean 'jitter'"):
        ablation.kit_trainers(config, ["jiter"])


@pytest.mark.long
def test_the_table_of_the_script_has_options_logs_and_nothing_is_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[3] / "scripts" / "ablate_kit.py"
    spec = importlib.util.spec_from_file_location("ablate_kit", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setitem(ablation.AUGMENTATIONS, "jitter", Augmentation(jitter=60))
    sets = [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]
    words = ["--scenario", "synthetic-256-weeks", "--option", "preset", "--option", "jitter"]
    words += ["--replicas", "1", "--seeds", "1", "--output", str(tmp_path), *sets]
    monkeypatch.setattr("sys.argv", ["ablate_kit", *words])
    table = script.run(script.read_arguments())
    rows = table["option"]
    starts = ["SAF", "SMITH-HISTORY", "SMITH-REG", "SMITH-URGENT"]
    assert sorted(rows) == [*starts, "jitter", "preset"]
    kept = pd.read_csv(tmp_path / "kit.csv")
    assert set(kept["option"]) == {"preset", "SMITH-HISTORY"}
    assert kept["ratio to the preset"].isin(table["ratio to the preset"]).all()
    monkeypatch.setattr(ppo.PPOTrainer, "train", None)
    assert script.run(script.read_arguments()).equals(table)


@pytest.mark.long
def test_a_mixture_is_the_preset_trained_on_several_logs(marked_weeks: Episodes) -> None:
    config = ppo.preset("order", **TINY | {"minutes": 1e-6})
    found = ablation.ablate(
        config,
        "synthetic-256-weeks",
        [ablation.PRESET],
        mixed_with=[marked_weeks],
        seeds=1,
        replicas=0,
    )
    assert found.trainings["agent"].tolist() == [ablation.MIXTURE] * 2
    assert found.trainings["fold"].tolist() == [5, 5]
    assert found.runs["replica"].unique().tolist() == [0]
    assert len(ablation.table_of([found])) == 5  # the first log alone
