"""The scale of a problem: what infos say of the gap closed, in the weeks that its file is of."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from hpcgym.base.errors import ScenarioError
from hpcgym.base.registry import shelf_entries, shelf_folders
from hpcgym.env import scale as scales
from hpcgym.env.scale import scale_of, scales_of, week_digest
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.gap import gap_between, gap_closed

SCENARIO = "synthetic-busy-weeks"
STATIC, CLAIRVOYANT = (0.9, 0.8, 1.0), (0.4, 0.3, 0.45)
SAF = (20.0, 30.0, 10.0)
SHIPPED = [(name, scale.name) for name in shelf_entries("scenarios") for scale in scales_of(name)]


def written(folder: Path, *, digest: str | None = None, gap: tuple[float, ...] = ()) -> None:
    """Write a scale of the test weeks with ends made up."""
    test = Episodes(SCENARIO).select("test")
    found = gap_between(STATIC, CLAIRVOYANT, SAF)
    rows = [
        f'[{number}, "{digest or week_digest(test.workload(place))}", {SAF[place]},'
        f" {STATIC[place]}, {CLAIRVOYANT[place]}]"
        for place, number in enumerate(test.numbers)
    ]
    (folder / "scales").mkdir()
    (folder / "scales" / f"{SCENARIO}-index.toml").write_text(
        f"""scenario = "{SCENARIO}"
action = "index"
backfill = ""
settings = "threshold 200000"
contest = "guarded"
metric = "ratio"
rule = "SAF"
constant = [0.0, 0.0, 0.0, 0.0, 0.0]
static = "rule"
clairvoyant = "made up"
training = 1.0
gap = {[*(gap or (found.value, *(found.ends() or ())))]}
command = "none"
weeks = [{", ".join(rows)}]
means = {{ SAF = 1.0 }}
"""
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands in for the shelf of scenarios."""
    monkeypatch.setattr(scales, "shelf_folders", lambda shelf: [tmp_path])
    return tmp_path


def of_weeks(weeks: str, **keywords: Any) -> Any:
    """Make the environment of a part of the weeks."""
    return gymnasium.make("HPCBatch-v0", scenario=SCENARIO, weeks=weeks, **keywords)


def last_info(env: Any, number: int) -> dict[str, Any]:
    """Return the info that ends a week under zeros."""
    info, is_over = env.reset(options={"episode": number})[1], False
    while not is_over:
        _, _, terminated, truncated, info = env.step(np.zeros(5, np.float32))
        is_over = terminated or truncated
    return dict(info)


def test_the_mean_over_the_test_weeks_is_the_gap_closed(folder: Path) -> None:
    written(folder)
    env = of_weeks("test")
    infos = [last_info(env, number) for number in (15, 16, 17)]
    share = gap_closed(STATIC, [info["ratio"] for info in infos], CLAIRVOYANT, SAF)
    assert np.mean([info["gap_closed"] for info in infos]) == pytest.approx(share.value)
    mean_gap = np.mean([20 * 0.5, 30 * 0.5, 10 * 0.55])
    assert infos[0]["gap_closed"] == pytest.approx(20 * (0.9 - infos[0]["ratio"]) / mean_gap)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_vectors_say_it_as_single_environments_do(folder: Path, mode: str) -> None:
    written(folder)
    alone = gymnasium.make("HPCBatch-v0", scenario=SCENARIO)
    envs: Any = gymnasium.make_vec(
        "HPCBatch-v0", num_envs=3, scenario=SCENARIO, autoreset_mode=mode
    )
    numbers = [1, 15, 16]  # the first is a training week, of which the file knows nothing
    episodes = Episodes(SCENARIO)
    jobs = [episodes.workload(episodes.position(number)) for number in numbers]
    envs.reset(seed=0, options={"workload": jobs})
    assert "gap_closed" not in envs.step(np.zeros((3, 5), np.float32))[-1]
    envs.reset(seed=0, options={"episode": numbers})
    expected = [last_info(alone, number).get("gap_closed") for number in numbers]
    assert expected[0] is None
    seen: dict[int, float] = {}
    over = np.zeros(3, dtype=np.bool_)
    while not over.all():
        _, _, terminated, _, info = envs.step(np.zeros((3, 5), np.float32))
        info = info.get("final_info", info) if mode == "SAME_STEP" else info
        for env in np.flatnonzero(terminated & ~over).tolist():
            if info.get("_gap_closed", np.zeros(3, bool))[env]:
                seen[env] = info["gap_closed"][env]
        over |= terminated
    assert seen == {1: expected[1], 2: expected[2]}


@pytest.mark.parametrize("gap", [(0.5, -0.1, 1.1), (0.5, 0.0, 1.0)])
def test_where_there_is_no_gap_infos_say_nothing(folder: Path, gap: tuple[float, ...]) -> None:
    written(folder, gap=gap)
    assert "gap_closed" not in last_info(of_weeks("test"), 15)


def test_of_other_jobs_or_part_of_a_week_infos_say_nothing(folder: Path) -> None:
    written(folder)
    cut = last_info(of_weeks("test", max_episode_steps=3), 15)
    assert cut["complete"] == 0 and "gap_closed" not in cut
    assert "gap_closed" not in last_info(of_weeks("train"), 1)
    other = gymnasium.make("HPCBatch-v0", scenario=SCENARIO, backfill="cost-benefit:cap=0.97")
    assert "gap_closed" not in last_info(other, 15)  # another problem: the file states no mode
    text = (shelf_folders("scenarios")[0] / f"{SCENARIO}.toml").read_text()
    own = folder / f"{SCENARIO}.toml"
    own.write_text(text.replace("threshold_s = 200000", "threshold_s = 100000"))
    assert own.read_text() != text
    other = gymnasium.make("HPCBatch-v0", scenario=str(own), weeks="test")
    assert "gap_closed" not in last_info(other, 15)  # a scenario of that name, another scheduler


def test_a_week_whose_jobs_have_changed_is_not_known(folder: Path) -> None:
    written(folder, digest="0" * 12)
    assert "gap_closed" not in last_info(of_weeks("test"), 15)


def test_a_file_that_is_no_scale_is_named(folder: Path) -> None:
    (folder / "scales").mkdir()
    (folder / "scales" / f"{SCENARIO}-index.toml").write_text('weeks = [[1, "a", 0.5, 0.4]]\n')
    with pytest.raises(ScenarioError, match=rf"{SCENARIO}-index.toml: not the scale .*find_scales"):
        scale_of(SCENARIO, "index")


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "name"), SHIPPED)
def test_what_is_shipped_is_of_the_weeks_there_are(scenario: str, name: str) -> None:
    (scale,) = (one for one in scales_of(scenario) if one.name == name)
    test = Episodes(scenario).select("test")
    assert set(scale.weeks) <= set(test.numbers)
    for number in scale.weeks:
        assert scale.ends(number, test.workload(test.position(number))) is not None
    _, saf, static, clairvoyant = zip(*scale.weeks.values(), strict=True)
    gap = gap_between(static, clairvoyant, saf)
    assert scale.gap == pytest.approx((gap.value, *(gap.ends() or (math.nan, math.nan))))
    for values, key in ((static, scale.static), (clairvoyant, "clairvoyant")):
        assert scale.means[key] == pytest.approx(np.dot(values, saf) / sum(saf))
