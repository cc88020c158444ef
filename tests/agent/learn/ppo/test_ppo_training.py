"""PPO: networks of torch and numpy agree, each action trains, and a training can be cut off."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card_writer import write_agent
from hpcgym.agent.network import NetworkAgent
from hpcgym.agent.shelf import load_card
from hpcgym.agent.trainers import load_trainer
from hpcgym.agent.training_weeks import Training
from hpcgym.agent.weights import ConstantAction
from hpcgym.base import progress
from hpcgym.base.errors import HpcgymError
from hpcgym.base.estimate import Estimate
from hpcgym.core.compiler.struct import Array, layout_of
from hpcgym.core.kernels.types import Sim
from hpcgym.core.state import State
from hpcgym.env.scenario.augment import Augmentation, AugmentedEpisodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.spec import MachineSpec, Scenario, SchedulerSpec, TraceSpec, WindowEpisodes
from hpcgym.evaluation import evaluate

torch = pytest.importorskip("torch")
ppo = pytest.importorskip("hpcgym.agent.learn.ppo")
buffer = pytest.importorskip("hpcgym.agent.learn.ppo.buffer")
validations = pytest.importorskip("hpcgym.agent.validation")
callbacks = pytest.importorskip("hpcgym.agent.learn.ppo.callbacks")
checkpoint = pytest.importorskip("hpcgym.agent.learn.ppo.checkpoint")
build = pytest.importorskip("hpcgym.agent.learn.ppo.build")
networks = pytest.importorskip("hpcgym.agent.learn.ppo.torch_networks")
validation_split = pytest.importorskip("hpcgym.agent.learn.ppo.validation_split")
event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
sb3_evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
HPCBatchVecEnv = pytest.importorskip("hpcgym.agent.sb3").HPCBatchVecEnv

SCENARIO = "synthetic-256-weeks"
ACTIONS = ("order", "job", "policy", "weights", "index")
ZEROS = NamedAgent("ZEROS", ConstantAction((0.0,) * 5), {"action": "index"})
STARTS = [
    *((action, "saf") for action in ACTIONS),
    *((action, "smith-history") for action in ("order", "job", "policy")),
    ("order", "smith-reg"),
    ("order", "smith-urgent"),
    ("index", "smith-reg"),
    ("controls", "smith-reg"),
    ("trials", "smith-reg"),
]
SMALL = {
    "start": "saf",
    "averaging": 0.5,
    "patience": 20,
    "n_slots": 16,
    "hidden": 8,
    "n_envs": 4,
    "group_size": 2,
    "n_steps": 32,
    "batch_size": 64,
    "n_epochs": 2,
    "steps": 512,
    "validate_every": 1,
    "validation_copies": 0,
    "constants": 0,
    "device": "cpu",
}


WINDOWS = Scenario(
    name="windows",
    description="Short stretches of a busy log.",
    trace=TraceSpec(name="synthetic-256", missing_request="drop"),
    machine=MachineSpec(processors=256, largest_request_s=172_800),
    episode=WindowEpisodes(n_jobs=160),
    scheduler=SchedulerSpec(policy="SAF"),
)
GROWING = Augmentation(window=(3_600, 43_200), growing=True)


CONTROLS = {"action": "controls", "backfill": "cost-benefit:cap=0.97,overdue=open"}


@pytest.fixture(scope="module")
def training() -> list[Episodes]:
    """Episodes to play."""
    return [Episodes(WINDOWS).select("31-33")]


@pytest.fixture(scope="module")
def validation() -> list[Episodes]:
    """An episode to keep."""
    return [Episodes(WINDOWS).select("35")]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch work on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same_weights(one: NetworkAgent, other: NetworkAgent) -> bool:
    """Tell whether two networks are equal to the bit."""
    return all(np.array_equal(one.weights[name], other.weights[name]) for name in one.weights)


@pytest.mark.long
def test_networks_of_a_price_agree_too_and_see_no_jobs() -> None:
    spec = ppo.preset("price").spec
    torch.manual_seed(0)
    scorer = networks.Scorer(spec)
    with torch.no_grad():
        for array in scorer.arrays.values():
            array.normal_(0.0, 0.15)
    cluster = np.random.default_rng(0).uniform(-1, 1, (5, 38)).astype(np.float32)
    packed = networks.pack({"cluster": torch.as_tensor(cluster)}, spec)
    theirs, agent = scorer(packed).detach().numpy(), scorer.agent()
    assert np.allclose(theirs, agent.output({"cluster": cluster}), atol=1e-5)
    one, _ = agent.predict({"cluster": cluster[3]})
    assert np.allclose(one, np.clip(theirs[3], -1, 1), atol=1e-5)
    assert networks.Critic(spec)(packed).shape == (5, 1)


@pytest.mark.long
def test_a_training_at_a_price_is_validated_by_j() -> None:
    weeks = Episodes("price-weeks")
    small = SMALL | {"n_slots": 2, "steps": 256}
    del small["start"]
    config = ppo.preset("price", **small)
    kept = weeks.select("10001-10002")
    trained = ppo.train(config, [weeks.select("1-2")], validation=[kept])
    zeros = NamedAgent("zeros", ConstantAction((0.0, 0.0)), {"action": "price"})
    found = evaluate([zeros], kept, progress=False)
    j = found.values("zeros", "priced").mean()
    assert trained.history[0][1] == pytest.approx(j / 21, rel=1e-12)
    assert trained.steps == 256


@pytest.mark.parametrize(("action", "start"), STARTS)
def test_networks_of_torch_and_of_numpy_agree(action: str, start: str) -> None:
    changes = {"n_slots": 16, "residual": action != "job", "start": start}
    spec = ppo.preset(action, **changes).spec
    torch.manual_seed(0)
    scorer = networks.Scorer(spec)
    with torch.no_grad():
        for array in scorer.arrays.values():
            array.normal_(0.0, 0.15)
    acts = action if action in ("controls", "trials") else "weights"
    keywords = {"action": acts, "expectations": spec.expectations}
    envs = HPCBatchVecEnv(SCENARIO, num_envs=8, n_slots=16, **keywords)
    shown = envs.reset()
    saf = np.zeros(envs.action_space.shape[0], dtype=np.float32)
    saf[-1] = acts == "weights"
    for _ in range(20):
        shown, *_ = envs.step(np.tile(saf, (8, 1)))
    shown = {key: np.concatenate([array, 0 * array[:1]]) for key, array in shown.items()}
    packed = networks.pack({key: torch.as_tensor(array) for key, array in shown.items()}, spec)
    theirs, ours = scorer(packed).detach().numpy(), scorer.agent().output(shown)
    assert np.ptp(ours[shown["action_mask"].any(axis=1)][0]) > 1e-3
    assert np.allclose(theirs, ours, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_trains_from_its_start_and_writes_a_card(
    action: str, training: list[Episodes], validation: list[Episodes], tmp_path: Path
) -> None:
    config = ppo.preset(action, **SMALL)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    trained = ppo.train(config, training, validation=validation, seed=1)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert [steps for steps, *_ in trained.history] == [0, 128, 256, 384, 512]
    assert trained.steps == 512
    assert trained.ratio == min(ratio for _, ratio, _ in trained.history)
    starts = evaluate([ZEROS, "SAF"], validation[0], progress=False).frame
    bsld, start = (
        starts.groupby("agent")["mean_bsld"].sum(),
        "ZEROS" if action == "index" else "SAF",
    )
    assert trained.history[0][1] == pytest.approx(bsld[start] / bsld["SAF"])
    assert np.abs(trained.last.weights["output.weight"]).max() > 0
    made = Training({"tiny": (1,)}, 1, 2.5, "abc", "a test")  # evaluated elsewhere
    card = load_card(str(write_agent(trained, "NET", tmp_path, made)))
    assert card.training == replace(made, ended_at_start=trained.ended_at_start)
    agent = card.agent
    assert same_weights(agent.agent, trained.agent)
    frame = evaluate([agent], validation[0], progress=False).frame.set_index("agent")
    ratio = frame.loc["NET", "mean_bsld"] / frame.loc["SAF", "mean_bsld"]
    assert ratio == pytest.approx(trained.ratio)
    keywords = dict(agent.env_keywords) | {"num_envs": 2, "reward": "bsld"}
    rewards, lengths = sb3_evaluation.evaluate_policy(
        agent,
        HPCBatchVecEnv(validation[0], **keywords),
        n_eval_episodes=2,
        return_episode_rewards=True,
        warn=False,
    )
    assert rewards == pytest.approx([-frame.loc["NET", "mean_bsld"]] * 2, rel=1e-5)
    assert lengths[0] > (5 if action == "index" else 10)


@pytest.mark.parametrize("action", ["order", "job"])
@pytest.mark.parametrize("temperature", [0.2, 4.0, 1e9])
def test_two_jobs_alike_are_drawn_evenly_at_any_temperature(
    temperature: float, action: str
) -> None:
    """Two orders of two jobs, whatever becomes of the two slots without a job."""
    config = ppo.preset(action, **SMALL | {"n_slots": 4, "temperature": temperature})
    env = build.env_of(config, [Episodes("tiny")])
    shown = {key: torch.as_tensor(array) for key, array in env.reset().items()}
    shown["jobs"] = torch.zeros_like(shown["jobs"])
    shown["action_mask"] = torch.tensor([[1.0, 1.0, 0.0, 0.0]]).expand(4, -1)
    found = build.model_of(config, env, 0, None).policy.get_distribution(shown)
    assert found.entropy().tolist() == pytest.approx([np.log(2)] * 4, rel=1e-6)
    likelihood = found.log_prob(found.sample()).tolist()
    assert likelihood == pytest.approx([-np.log(2)] * 4, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_a_preset_begins_at_the_schedules_of_its_start_and_learns(
    action: str, training: list[Episodes], validation: list[Episodes]
) -> None:
    few = {"n_envs": 8, "n_steps": 16, "batch_size": 64, "constants": 0, "device": "cpu"}
    config = ppo.preset(action, **few, steps=256, minutes=0.0)
    assert config.residual
    untrained = networks.Scorer(config.spec).agent()
    begun = NamedAgent("UNTRAINED", untrained, config.env_keywords)
    start = ZEROS if action == "index" else config.starts[0].upper()
    frame = evaluate([begun, start, "FCFS"], training[0], progress=False).frame
    found = frame.groupby("agent")["mean_bsld"].apply(list)
    met = 0.0 if action == "index" else 1e-3  # float32 cannot tell the nearest scores apart
    assert found["UNTRAINED"] == pytest.approx(
        found["ZEROS" if start is ZEROS else start], rel=met, abs=0.0
    )
    assert found["UNTRAINED"] != pytest.approx(found["FCFS"], rel=0.1)
    trained = ppo.train(config, training, validation=validation, seed=2)
    assert [steps for steps, *_ in trained.history] == [0, 256]
    for name, array in trained.last.weights.items():
        assert np.isfinite(array).all(), name
    assert np.abs(trained.last.weights["output.weight"]).max() > 0


@pytest.mark.long
def test_controls_begin_at_the_shelfs_agent_learn_and_are_written(
    training: list[Episodes], validation: list[Episodes], tmp_path: Path
) -> None:
    mode = "cost-benefit:cap=0.97,overdue=open"
    config = ppo.preset("controls", **SMALL | {"start": "smith-reg", "steps": 256}, backfill=mode)
    untrained = networks.Scorer(config.spec).agent()
    begun = NamedAgent("UNTRAINED", untrained, config.env_keywords)
    frame = evaluate([begun, "URGENT-OPEN"], training[0], progress=False).frame
    found = frame.groupby("agent")["mean_bsld"].apply(list)
    assert found["UNTRAINED"] == found["URGENT-OPEN"]
    trained = ppo.train(config, training, validation=validation, seed=1)
    assert np.abs(trained.last.weights["output.weight"]).max() > 0
    made = Training({"tiny": (1,)}, 1, 2.5, "abc", "a test")  # evaluated elsewhere
    agent = load_card(str(write_agent(trained, "NET", tmp_path, made))).agent
    assert agent.env_keywords["backfill"] == mode
    assert same_weights(agent.agent, trained.agent)


@pytest.mark.long
def test_tensorboard_is_told_of_schedules_and_of_a_rate_that_falls(tmp_path: Path) -> None:
    tiny = [Episodes("tiny")]
    config = ppo.preset("order", **SMALL | {"steps": 256, "learning_rate": 0.01, "falls_to": 0.5})
    trained = ppo.train(config, tiny, validation=tiny, output=tmp_path)
    events = event_accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    told = {tag: [one.value for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert told["validation/ratio_to_saf"] == [
        pytest.approx(ratio) for _, ratio, _ in trained.history
    ]
    saf = evaluate(["SAF"], tiny[0], progress=False).frame["mean_bsld"].item()
    assert told["validation/mean_bsld"][0] == pytest.approx(saf)
    assert told["schedule/mean_bsld"][0] == pytest.approx(saf, rel=0.05)
    assert told["train/learning_rate"] == pytest.approx([0.0075, 0.005])


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "action"),
    [("steps", "order"), ("minutes", "order"), ("steps", "job"), ("steps", "index")],
)
def test_a_training_ended_between_validations_goes_on_to_the_bit(
    limit: str, action: str, training: list[Episodes], validation: list[Episodes], tmp_path: Path
) -> None:
    config = ppo.preset(action, **SMALL | {"steps": 640, "validate_every": 3})

    def take_a_minute_per_rollout(callback: Any) -> None:
        callback.seconds = 60.0 * callback._n_rollouts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks.ValidationCallback, "_take_time", take_a_minute_per_rollout)
        whole = ppo.train(config, training, validation=validation, seed=3)
        early = replace(config, **{limit: {"steps": 256, "minutes": 2.0}[limit]})
        cut = ppo.train(early, training, validation=validation, seed=3, output=tmp_path)
        np.random.seed(9)  # noqa: NPY002 - whatever the caller does in between
        gone_on = ppo.resume(tmp_path, steps=640, minutes=9.0)
    assert not same_weights(cut.last, whole.last)
    assert [steps for steps, *_ in cut.history] == [0, 256]
    assert [steps for steps, *_ in whole.history] == [0, 384, 640]
    assert gone_on.history == whole.history
    assert same_weights(gone_on.last, whole.last)
    assert same_weights(gone_on.agent, whole.agent)


@pytest.mark.parametrize(
    ("steps", "minutes", "share", "told"),
    [
        (10**9, 1.0, 50, "0:30 of 1:00"),
        (2_560, 10.0, 10, "256 of 2,560 decisions, 0:30"),
        (2_560, 0.0, 10, "256 of 2,560 decisions, 0:30"),
    ],
)
def test_progress_shows_the_nearer_limit_and_validation_at_the_start_and_now(
    steps: int, minutes: float, share: float, told: str
) -> None:
    config = ppo.preset("order", **SMALL | {"steps": steps, "minutes": minutes})
    callback = callbacks.ValidationCallback(config, None, lambda: None)
    callback.set_state(callback.state() | {"seconds": 30.0, "_n_rollouts": 1})
    callback._on_rollout_end()
    assert 100 * callback.done() == pytest.approx(share, rel=0.01)
    assert callback.told() == told
    callback.history.append((0, 0.9404, np.log(0.95)))
    callback._score = validations.Score(0.97, 0.0, 9.0, Estimate(0.9, 0.0, 9))
    assert callback.told() == f"{told}, start 0.950, now 0.900 [0.900, 0.900] of SAF"
    callback._score = callback._score._replace(gap=Estimate(0.2, 0.0, 9, is_ratio=False))
    assert callback.told().endswith("of SAF, gap closed 0.200 [0.200, 0.200]")


@pytest.mark.long
def test_lines_of_a_training_by_the_clock_name_no_number_of_decisions(
    validation: list[Episodes], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("LINE_S", "TICK_S"):
        monkeypatch.setattr(progress, name, 0.001)
    config = ppo.preset("order", **SMALL | {"steps": 10**9, "minutes": 0.02, "patience": 0})
    ppo.train(config, validation, validation=validation, progress=True)
    said = capfd.readouterr().err
    line = r"hpcgym: training: 0:0\d of 0:01, start 1\.000, now \d\.\d{3} \(no interval\) of SAF\n"
    assert re.search(line, said)
    assert "decisions" not in said


@pytest.mark.long
def test_a_seed_decides_everything(training: list[Episodes], validation: list[Episodes]) -> None:
    config = ppo.preset("order", **SMALL | {"steps": 128})
    first, again, other = (
        ppo.train(config, training, validation=validation, seed=seed).last for seed in (4, 4, 5)
    )
    assert same_weights(first, again)
    assert not same_weights(first, other)


@pytest.mark.long
def test_a_training_gives_an_average_of_its_networks(
    training: list[Episodes], validation: list[Episodes]
) -> None:
    changes = [{"minutes": 1e-6}, {"steps": 128, "averaging": 0.0}, {"steps": 128}]
    start, last, average = (
        ppo.train(ppo.preset("order", **SMALL | one), training, validation=validation).last.weights
        for one in changes
    )
    assert not np.array_equal(start["output.weight"], last["output.weight"])
    for name, array in average.items():
        assert np.array_equal(array, np.float32(0.5) * start[name] + np.float32(0.5) * last[name])


@pytest.mark.long
def test_a_training_gives_its_best_average_or_its_last(
    training: list[Episodes], validation: list[Episodes]
) -> None:
    wild = SMALL | {"learning_rate": 0.3, "bound": 4.0}
    best, last = (
        ppo.train(ppo.preset("order", **wild | {"gives": gives}), training, validation=validation)
        for gives in ("best", "last")
    )
    assert same_weights(best.last, last.last)
    assert same_weights(last.agent, last.last)
    assert not same_weights(best.agent, last.agent)
    assert last.ratio == last.history[-1][1] > best.ratio


@pytest.mark.long
@pytest.mark.parametrize("action", ["order", "job"])
def test_a_training_begins_at_the_start_that_is_best_on_the_weeks_of_validation(
    action: str, training: list[Episodes], validation: list[Episodes], tmp_path: Path
) -> None:
    """It is the training from that start alone, to the bit, and goes on as that does."""
    names = ("smith-reg", "saf", "smith-history")
    few = SMALL | {"steps": 256, "start": names}
    config = ppo.preset(action, **few)
    trained = ppo.train(config, training, validation=validation, seed=2)
    alone = {}
    for name in names:
        still = ppo.preset(action, **few | {"start": name, "minutes": 1e-6})
        alone[name] = ppo.train(still, training, validation=validation).history[0][1]
    assert trained.starts == alone
    assert len(set(alone.values())) == len(names)
    best = min(alone, key=alone.__getitem__)
    assert best != names[0]
    single = ppo.preset(action, **few | {"start": best, "baseline": best.upper()})
    same = ppo.train(single, training, validation=validation, seed=2)
    assert (trained.config.start, trained.history) == (best, same.history)
    assert same_weights(trained.last, same.last)
    half = replace(config, steps=128)
    ppo.train(half, training, validation=validation, seed=2, output=tmp_path)
    gone_on = ppo.resume(tmp_path, steps=256)
    assert (gone_on.config.start, gone_on.starts) == (best, alone)
    assert gone_on.history == trained.history
    assert same_weights(gone_on.last, trained.last)
    made = Training({"tiny": (1,)}, 2, 2.5, "abc", "a test")
    card = load_card(str(write_agent(gone_on, "NET", tmp_path, made)))
    listed = sorted(alone.items(), key=lambda one: one[1])
    told = ", ".join(f"{name.upper()} {ratio:.3f}" for name, ratio in listed)
    assert gone_on.choice == told
    assert card.description.endswith(f" Its start had the least ratio there: {told}.")
    assert f"start={best}" in card.parameters["settings"]
    assert (same.starts, same.choice) == ({}, "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("ratios", "given", "found"),
    [
        ((1.1, 1.3, 1.1, 1.2), 0, "1.100 times SAF's sum, the best later network 1.100"),
        ((1.1, 1.3, 0.9, 1.2), 2, "0.900 times SAF's sum, at its start 1.100"),
    ],
)
def test_a_training_tells_whether_it_gives_the_network_it_began_with(
    ratios: tuple[float, ...],
    given: int,
    found: str,
    training: list[Episodes],
    validation: list[Episodes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = iter(ratios)
    score = validations.Score(1.0, 0.0, 1.0)
    monkeypatch.setattr(
        validations.Validation, "score", lambda *_: score._replace(ratio=next(told))
    )
    config = ppo.preset("order", **SMALL | {"steps": 384})
    trained = ppo.train(config, training, validation=validation)
    is_start = given == 0
    assert (trained.given, trained.ended_at_start) == (given, is_start)
    assert trained.agent.weights["output.weight"].any() != is_start
    assert trained.named("NET").ended_at_start == is_start
    assert (trained.start, trained.found) == ("SAF among the 16 jobs it sees", found)
    made = Training({"tiny": (1,)}, 1, 2.5, "abc", "a test")
    card = load_card(str(write_agent(trained, "NET", tmp_path, made)))
    assert card.training == replace(made, ended_at_start=is_start)
    begun = "decides as SAF among the 16 jobs it sees: 384 decisions of PPO gave nothing better"
    assert (begun in card.description) == is_start
    assert ("trained by PPO on 384 decisions" in card.description) != is_start
    assert card.description.endswith(f"On the weeks kept for validation it had {found}.")
    last = ppo.preset("order", **SMALL | {"steps": 128, "gives": "last"})
    told = iter(ratios)
    assert not ppo.train(last, training, validation=validation).ended_at_start


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"action": "index"}, "actions of zeros"),
        ({"start": "smith-urgent"}, "SMITH-URGENT among the 16 jobs it sees"),
        (CONTROLS, "the numbers of the mode"),
        ({"residual": False}, "its first network"),
    ],
)
def test_a_training_of_no_time_ends_where_it_began(
    changes: dict[str, Any], start: str, training: list[Episodes], validation: list[Episodes]
) -> None:
    config = ppo.preset(**{"action": "order"} | SMALL | {"minutes": 1e-6} | changes)
    trained = ppo.train(config, training, validation=validation)
    assert (trained.ended_at_start, trained.start) == (True, start)
    assert trained.found.endswith("times SAF's sum, and no later network was")


@pytest.mark.long
@pytest.mark.parametrize("action", ["order", "job"])
def test_training_stops_when_validation_gets_no_better(
    action: str, training: list[Episodes], validation: list[Episodes]
) -> None:
    still = {"learning_rate": 1e-9, "patience": 2, "steps": 5_120}
    config = ppo.preset(action, **SMALL | still)
    assert ppo.train(config, training, validation=validation).steps == 256
    late = ppo.preset(action, **SMALL | {"minutes": 1e-6})
    assert ppo.train(late, training, validation=validation).steps == 0


@pytest.mark.long
def test_scenarios_are_dealt_out_to_groups_that_play_the_same_weeks(
    training: list[Episodes], validation: list[Episodes]
) -> None:
    config = ppo.preset("order", **SMALL | {"n_envs": 6, "steps": 192})
    mixed = [*training, Episodes("tiny")]
    trained = ppo.train(config, mixed, validation=[*validation, Episodes("tiny")])
    assert trained.steps == 192
    with pytest.raises(HpcgymError, match="4 scenarios cannot be dealt out to 3 groups"):
        ppo.train(config, mixed * 2, validation=validation)
    env = HPCBatchVecEnv(SCENARIO, num_envs=6)
    env.seed_each([7, 7, 8, 8, 9, 9])
    env.reset()
    labels = env.get_attr("label")
    assert labels[::2] == labels[1::2]
    assert len(set(labels)) > 1


def test_windows_grow_with_the_training_and_groups_stay_together(training: list[Episodes]) -> None:
    growing = AugmentedEpisodes(training[0], GROWING)
    config = ppo.preset("order", **SMALL)
    env = build.env_of(config, [growing])
    model = build.model_of(config, env, 5, None)
    build.seed_groups(env, config, 5)
    model._last_obs, model._last_episode_starts = env.reset(), np.zeros(4, dtype=bool)
    lengths = []
    for done, begins in ((0.0, False), (0.1, False), (0.5, True), (0.6, False), (1.0, True)):
        assert build.grow_windows(model, config, done) == begins
        labels = env.get_attr("label")
        assert labels[::2] == labels[1::2]
        first, last = re.search(r"from (\d+) to (\d+) s", labels[0]).groups()
        lengths.append(int(last) - int(first))
        if begins:
            assert model._last_episode_starts.all()
            shown = env.envs.buffers.shown["jobs"]
            assert np.array_equal(model._last_obs["jobs"], shown)
            model._last_episode_starts[:] = False
    assert lengths == [3_600, 3_600, round(3_600 * 12 ** (4 / 7)), lengths[2], 43_200]


@pytest.mark.long
def test_a_training_with_windows_that_grow_goes_on_to_the_bit(
    training: list[Episodes], validation: list[Episodes], tmp_path: Path
) -> None:
    config = ppo.preset("order", **SMALL)
    given = {"validation": validation, "augmentation": GROWING, "seed": 3, "output": tmp_path}
    uncut = ppo.train(config, training, **given)
    played = checkpoint.read_checkpoint(tmp_path / "checkpoint.pt").env.envs.configs[0].episodes
    assert played.progress == 6 / 7  # of the last rollout, begun at three quarters
    count, ended = callbacks.ValidationCallback._on_rollout_end, itertools.count(1)

    def cut_off(callback: object) -> None:
        if next(ended) == 3:
            raise KeyboardInterrupt
        count(callback)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks.ValidationCallback, "_on_rollout_end", cut_off)
        with pytest.raises(KeyboardInterrupt):
            ppo.train(config, training, **given)
    gone_on = ppo.resume(tmp_path)
    assert same_weights(gone_on.last, uncut.last)
    assert gone_on.history == uncut.history
    assert gone_on.augmentation == GROWING


def test_a_trainer_keeps_its_last_weeks_for_validation() -> None:
    episodes = Episodes(WINDOWS).select("31-33")
    playing, kept = validation_split.split_validation(episodes, 0.34)
    assert (playing.numbers, kept.numbers) == ((31,), (32, 33))
    assert validation_split.split_validation(Episodes("tiny"), 0.2)[0].labels == ("whole",)
    shaken = Augmentation(jitter=60)
    trainer = ppo.PPOTrainer(ppo.preset("policy", **SMALL | {"steps": 128}), shaken)
    agent = trainer.train([episodes], 2)
    assert agent.name == trainer.name == load_trainer("ppo").name == "PPO"
    assert agent.env_keywords["policies"][0] == "SAF"
    assert agent.steps == 128


def test_weeks_of_validation_may_be_named_and_are_not_played() -> None:
    episodes = Episodes(SCENARIO).select("1-8")
    playing, kept = validation_split.split_validation(episodes, 0.2, "4-6")
    assert (playing.numbers, kept.numbers) == ((1, 2, 3, 7, 8), (4, 5, 6))
    with pytest.raises(HpcgymError, match="weeks 1-8 are all kept for validation"):
        validation_split.split_validation(episodes, 0.2, "1-8")


def test_advantages_are_taken_within_groups_and_episodes() -> None:
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 1.0, 500.0, 500.0])
    group, episode = np.array([0, 0, 1, 1]), np.repeat([[1], [2], [2]], 4, axis=1)
    advantage = scale * rng.normal(size=(3, 4)) + 10.0 * group + 100.0 * episode
    found = buffer.normalised(advantage, group, episode)
    for own in (0, 1):
        for number in (1, 2):
            mine = found[:, group == own][episode[:, group == own] == number]
            assert mine.mean() == pytest.approx(0.0, abs=1e-6)
        assert found[:, group == own].std() == pytest.approx(1.0, rel=1e-6)
    assert np.abs(found).max() < 4


def test_what_befalls_a_whole_group_at_a_decision_is_no_advantage() -> None:
    rng, box = np.random.default_rng(0), gymnasium.spaces.Box(-1, 1, (2,))
    begun = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    shared, found = rng.normal(size=(4, 1)) * [0, 0, 1, 1], []
    own, zeros = rng.normal(size=(4, 4)), torch.zeros(4)
    chosen: dict[str, Any] = {"group_size": 2, "by_decision": True}
    for size in (0, 10):
        rollouts = buffer.FlatGroupBuffer(4, box, box, "cpu", 0.9, 0.9, 4, **chosen)
        for step, rewards in enumerate(own + size * shared):
            rollouts.add(np.zeros((4, 2)), np.zeros((4, 2)), rewards, begun[step], zeros, zeros)
        rollouts.compute_returns_and_advantage(zeros, np.zeros(4))
        found.append(rollouts.advantages)
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert found[0][:2].reshape(2, 2, 2).sum(axis=2) == pytest.approx(0, abs=1e-6)
    assert found[0][2:, :2] == pytest.approx(0, abs=1e-6)  # nobody is beside them there


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match="no such file"):
        ppo.resume(tmp_path)
    (tmp_path / "checkpoint.pt").write_bytes(b"nothing of the kind")
    with pytest.raises(HpcgymError, match="not a checkpoint of this hpcgym"):
        ppo.resume(tmp_path)
    checkpoint.write_checkpoint({"steps": 3}, tmp_path / "checkpoint.pt")
    with pytest.raises(HpcgymError, match="not a checkpoint of this hpcgym"):
        ppo.resume(tmp_path)


def test_a_checkpoint_of_states_with_other_fields_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kept by an hpcgym whose simulations had one array less."""
    arrays = layout_of(Sim).arrays
    found = State(dict.fromkeys(arrays, np.zeros(0)))
    checkpoint.write_checkpoint(found, tmp_path / "checkpoint.pt")
    monkeypatch.setitem(arrays, "one_more", Array("int64", 1))
    with pytest.raises(HpcgymError, match=r"not a checkpoint of this hpcgym: .*'one_more'"):
        ppo.resume(tmp_path)
