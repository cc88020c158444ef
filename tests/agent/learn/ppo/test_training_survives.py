"""`hpcgym train`, cut off by signals, kills and full disks: what is kept and said, and resumed."""

from __future__ import annotations

import errno
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.agent.npz import write_npz
from hpcgym.agent.shelf import load_card
from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.cli import app
from hpcgym.env.scenario.episodes import Episodes

torch = pytest.importorskip("torch")
ppo = pytest.importorskip("hpcgym.agent.learn.ppo")
callbacks = pytest.importorskip("hpcgym.agent.learn.ppo.callbacks")
checkpoint = pytest.importorskip("hpcgym.agent.learn.ppo.checkpoint")
learning = import_module("hpcgym.agent.learn.ppo.train")  # the package's `train` is the function
sb3 = pytest.importorskip("hpcgym.agent.sb3")
event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

SETS = {
    "n_slots": 16,
    "hidden": 8,
    "n_envs": 4,
    "group_size": 2,
    "n_steps": 16,
    "batch_size": 32,
    "n_epochs": 2,
    "validate_every": 3,
    "patience": 0,
    "validation_copies": 0,
    "constants": 0,
    "device": "cpu",
}
ROLLOUT = 64
STEPS = 10 * ROLLOUT
TINY = [Episodes("tiny")]
WEEKS = ("--scenario", "synthetic-256-weeks", "--weeks", "1-3", "--validation-weeks", "5")
COMMAND = ["train", *WEEKS, "--steps", str(STEPS), "--seed", "3"]
COMMAND += [word for key, value in SETS.items() for word in ("--set", f"{key}={value}")]

Logs = dict[str, list[tuple[int, float]]]


def logs_of(folder: Path) -> Logs:
    """Return step and value of every scalar for TensorBoard, but for the speed, by step."""
    events = event_accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    tags = [tag for tag in events.Tags()["scalars"] if tag != "time/fps"]
    return {tag: sorted((one.step, one.value) for one in events.Scalars(tag)) for tag in tags}


def result_of(folder: Path) -> tuple[Logs, dict[str, bytes]]:
    """Return what a training wrote: the logs and the arrays of the agent."""
    with np.load(folder / "trained.npz") as arrays:
        return logs_of(folder), {name: arrays[name].tobytes() for name in arrays.files}


def command(folder: Path, *more: str) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(app, [*COMMAND, "--output", str(folder), *more])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Logs, dict[str, bytes]]:
    """What the training writes that nothing cuts off."""
    folder = tmp_path_factory.mktemp("whole")
    assert command(folder).exit_code == 0
    return result_of(folder)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sends signals when something is called for the n-th time."""

    def interrupt(owner: Any, name: str, n: int, *signals: signal.Signals) -> None:
        calls, before = [0], getattr(owner, name)

        def counted(*arguments: Any, **keywords: Any) -> Any:
            calls[0] += 1
            for one in signals if calls[0] == n else ():
                signal.raise_signal(one)
            return before(*arguments, **keywords)

        monkeypatch.setattr(owner, name, counted)

    return interrupt


@pytest.mark.long
def test_nothing_is_logged_twice_and_all_at_the_steps_it_was_learned_from(
    whole: tuple[Logs, dict[str, bytes]],
) -> None:
    logs, _ = whole
    rollouts = list(range(ROLLOUT, STEPS + 1, ROLLOUT))
    assert [step for step, _ in logs["train/loss"]] == rollouts
    assert [step // ROLLOUT for step, _ in logs["validation/mean_bsld"]] == [0, 3, 6, 9, 10]
    assert {step for told in logs.values() for step, _ in told} <= {0, *rollouts}
    assert all(len(dict(told)) == len(told) for told in logs.values())


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "n", "signals", "kept"),
    [
        (("sb3.HPCBatchVecEnv", "step_wait"), 70, (signal.SIGINT,), 5),
        (("torch.optim.Adam", "step"), 11, (signal.SIGTERM,), 3),
        (("callbacks.ValidationCallback", "_validate"), 2, (signal.SIGINT,), 3),
        (("learning", "write_checkpoint"), 1, (signal.SIGINT,), 0),
        (("callbacks.ValidationCallback", "_on_training_end"), 1, (signal.SIGINT,), 10),
    ],
)
def test_ctrl_c_waits_for_the_rollout_loses_nothing_and_the_training_goes_on_to_the_bit(
    where: tuple[str, str],
    n: int,
    signals: tuple[signal.Signals, ...],
    kept: int,
    interrupt: Callable[..., None],
    whole: tuple[Logs, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    owner, *inner = where[0].split(".")
    found = globals()[owner]
    for name in inner:
        found = getattr(found, name)
    interrupt(found, where[1], n, *signals)
    said = command(tmp_path)
    assert said.exit_code == 130, said.output
    told, _, again = said.stderr.partition("; go on with: ")
    file = tmp_path / "checkpoint.pt"
    assert told == (
        f"hpcgym: interrupted; {file} keeps the first {kept * ROLLOUT:,} decisions, nothing is lost"
    )
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert {step for told in logs_of(tmp_path).values() for step, _ in told} <= {
        ROLLOUT * one for one in range(kept + 1)
    }
    resumed = CliRunner().invoke(app, shlex.split(again)[1:])
    assert resumed.exit_code == 0, resumed.output
    assert result_of(tmp_path) == whole


@pytest.mark.long
def test_the_second_ctrl_c_does_not_wait_and_says_what_is_lost(
    interrupt: Callable[..., None],
    whole: tuple[Logs, dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callbacks, "SAVING", 1e-9)  # the first checkpoint stays the only one
    interrupt(sb3.HPCBatchVecEnv, "step_wait", 70, signal.SIGINT, signal.SIGTERM)
    said = command(tmp_path)
    assert said.exit_code == 130
    lost = 69 * SETS["n_envs"]
    assert f"keeps the first 0 decisions, the {lost} decisions since then are lost;" in said.stderr
    assert command(tmp_path, "--resume").exit_code == 0
    assert result_of(tmp_path) == whole


def test_an_interruption_before_the_first_checkpoint_says_so(
    interrupt: Callable[..., None], tmp_path: Path
) -> None:
    interrupt(learning.Validation, "score", 1, signal.SIGINT, signal.SIGINT)
    said = command(tmp_path)
    assert "all 0 decisions are lost, since no checkpoint was written; go on with:" in said.stderr
    assert "--resume" not in said.stderr


def test_without_a_folder_ctrl_c_does_not_wait(interrupt: Callable[..., None]) -> None:
    interrupt(sb3.HPCBatchVecEnv, "step_wait", 20, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="all 76 decisions are lost, since no checkpoint"):
        ppo.train(ppo.preset("order", **SETS, steps=STEPS), TINY, validation=TINY)


@pytest.mark.long
def test_a_training_that_is_kept_is_neither_lost_nor_used_unasked(
    interrupt: Callable[..., None], whole: tuple[Logs, dict[str, bytes]], tmp_path: Path
) -> None:
    interrupt(sb3.HPCBatchVecEnv, "step_wait", 40, signal.SIGINT)
    command(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for more, words in (
        ([], ["checkpoint.pt: a training is kept here", "--resume", "--force", "--output"]),
        (["--force", "--seed", "-1"], ["a seed must be"]),
        (["--force", "--set", "device=cuda"], ["torch sees no GPU"]),
        (["--force", "--set", "group_size=4", *WEEKS[:2], *WEEKS[2:]], ["one log"]),
    ):
        said = command(tmp_path, *more)
        assert said.exit_code == 2
        assert all(word in said.stderr for word in words), said.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert command(tmp_path, "--force").exit_code == 0
    assert result_of(tmp_path) == whole
    assert len(list(tmp_path.glob("events*"))) == 1


def run_and_kill(folder: Path, *more: str, when: Callable[[float], bool]) -> bool:
    """Run the command in another process and kill it once `when` holds; return whether it was.

    `when` gets the seconds since the process began to log.
    """
    words = [sys.executable, "-m", "hpcgym", *COMMAND, "--output", str(folder), *more]
    before, begun = {*folder.glob("events*")}, 0.0
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while running.poll() is None and not (begun and when(time.monotonic() - begun)):
        begun = begun or time.monotonic() * bool({*folder.glob("events*")} - before)
        time.sleep(0.002)
    running.kill()
    return running.wait() == -signal.SIGKILL


@pytest.mark.long
def test_a_killed_training_goes_on_to_the_bit(
    whole: tuple[Logs, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill leaves is what lies in the folder at an instant."""
    running, killed, calls = tmp_path / "running", tmp_path / "killed", [0]
    step_wait = sb3.HPCBatchVecEnv.step_wait

    def copied_before(envs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 70:
            shutil.copytree(running, killed)
        return step_wait(envs)

    with monkeypatch.context() as patch:
        patch.setattr(sb3.HPCBatchVecEnv, "step_wait", copied_before)
        assert command(running).exit_code == 0
    half = killed / ".0123abcd-checkpoint.pt"
    half.write_bytes(b"as far as it came")
    assert command(killed).exit_code == 2
    assert command(killed, "--resume").exit_code == 0
    assert result_of(killed) == whole
    assert not half.exists()


@pytest.mark.slow
def test_a_training_killed_at_any_instants_goes_on_to_the_bit(
    whole: tuple[Logs, dict[str, bytes]], tmp_path: Path
) -> None:
    rng, n_killed = random.Random(os.environ.get("HPCGYM_SEED", "0")), 0
    for turn in range(2):
        folder, is_killed = tmp_path / str(turn), True
        while is_killed:
            longest = rng.uniform(0.0, 4.0)
            more = ["--resume"] if (folder / "checkpoint.pt").exists() else []
            is_killed = run_and_kill(folder, *more, when=lambda age, most=longest: age > most)
            n_killed += is_killed
        assert result_of(folder) == whole
    assert n_killed > 1


@pytest.mark.long
def test_a_full_disk_ends_a_training_in_one_line_and_loses_no_checkpoint(
    whole: tuple[Logs, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "SAVING", 1e9)  # a checkpoint after each rollout
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    write, written = learning.write_checkpoint, []

    def full(found: object, path: Path) -> None:
        if len(written) == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))
        try:
            write(found, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        written.append(path.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(learning, "write_checkpoint", full)
        said = command(tmp_path)
    assert said.exit_code == 2
    assert said.stderr.count("\n") == 1
    assert "checkpoint.pt: writing failed: File too large; the file that was there is unt" in (
        said.stderr
    )
    assert said.stderr.rstrip().endswith("--resume")
    assert (tmp_path / "checkpoint.pt").read_bytes() == written[-1]
    assert not list(tmp_path.glob(".*"))
    assert command(tmp_path, "--resume").exit_code == 0
    assert result_of(tmp_path) == whole


def test_a_log_that_cannot_be_written_ends_a_training_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    writer = import_module("tensorboard.summary.writer.record_writer").RecordWriter

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    save = checkpoint.write_checkpoint

    def saved(*arguments: Any) -> None:
        save(*arguments)
        monkeypatch.setattr(writer, "write", full)

    monkeypatch.setattr(learning, "write_checkpoint", saved)
    with pytest.raises(OutputError, match="No space left on device; the last checkpoint is unt"):
        ppo.train(ppo.preset("order", **SETS, steps=STEPS), TINY, validation=TINY, output=tmp_path)
    assert capfd.readouterr().err == ""
    assert checkpoint.read_checkpoint(tmp_path / "checkpoint.pt").progress["history"]


def test_a_disk_without_any_room_ends_a_training_in_one_line_that_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = import_module("tensorboard.summary.writer.record_writer").RecordWriter
    monkeypatch.setattr(writer, "write", full)
    said = command(tmp_path)
    assert said.exit_code == 2
    assert said.stderr.count("\n") == 1
    told = (
        f"hpcgym: {tmp_path}: writing failed: No space left on device; once that is mended, go on"
    )
    assert said.stderr.startswith(told)
    assert "--resume" not in said.stderr


@pytest.mark.long
def test_a_training_that_cannot_remove_an_earlier_one_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = tmp_path / "events.out.tfevents.1"
    stuck.mkdir()
    for more in ([], ["--resume"]):
        said = command(tmp_path, *more)
        assert said.exit_code == 2
        assert f"hpcgym: {stuck}: writing failed: " in said.stderr


@pytest.mark.long
def test_resume_begins_a_training_that_has_no_checkpoint_yet(
    whole: tuple[Logs, dict[str, bytes]], tmp_path: Path
) -> None:
    for name in ("events.out.tfevents.1", ".0123abcd-checkpoint.pt"):
        (tmp_path / name).write_bytes(b"as far as it came")
    said = command(tmp_path, "--resume")
    assert said.exit_code == 0, said.output
    assert said.stderr == f"hpcgym: {tmp_path}: has no checkpoint, so the training begins\n"
    assert result_of(tmp_path) == whole


@pytest.mark.long
def test_resume_begins_nothing_over_the_files_of_others(tmp_path: Path) -> None:
    for name, words in (("trained.npz", "exists already"), ("checkpoint.pt", "not a checkpoint")):
        file = tmp_path / name
        file.write_bytes(b"nothing of the kind")
        said = command(tmp_path, "--resume")
        assert said.exit_code == 2
        assert f"hpcgym: {file}: {words}" in said.stderr
        assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"nothing of the kind"]
        file.unlink()


@pytest.mark.long
def test_a_training_killed_while_it_wrote_its_results_writes_them_again_and_is_then_finished(
    whole: tuple[Logs, dict[str, bytes]], tmp_path: Path
) -> None:
    assert command(tmp_path).exit_code == 0
    card, weights = tmp_path / "trained.toml", tmp_path / "trained.npz"
    said = command(tmp_path, "--resume")
    assert said.exit_code == 2
    assert f"hpcgym: {tmp_path}: is finished, so there is nothing to resume;" in said.stderr
    card.unlink()
    written = weights.read_bytes()
    said = command(tmp_path, "--resume", "--seed", "4")
    assert "seed: got 4, yet the checkpoint has 3" in said.stderr
    with np.load(weights) as arrays:
        other = {name: one + 1 if one.dtype == np.float32 else one for name, one in arrays.items()}
    write_npz(tmp_path / "other.npz", other)
    said = command(tmp_path, "--resume", "--name", "OTHER")
    assert "other.npz: exists already" in said.stderr
    assert weights.read_bytes() == written
    assert command(tmp_path, "--resume").exit_code == 0
    assert weights.read_bytes() == written
    assert load_card(str(card)).training is not None
    assert result_of(tmp_path) == whole


def test_one_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoint.write_checkpoint({"steps": list(range(1_000))}, path)
    content = path.read_bytes()
    for bit in random.Random(1).sample(range(8 * len(content)), 200):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        what = "not a checkpoint" if bit // 8 < len(checkpoint.FORMAT) else "damaged: .* --force"
        with pytest.raises(HpcgymError, match=rf"checkpoint\.pt: {what}"):
            ppo.resume(tmp_path)
    path.write_bytes(content[:-1])
    with pytest.raises(HpcgymError, match=r"checkpoint\.pt: damaged"):
        ppo.resume(tmp_path)


def test_checkpoints_take_a_twentieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: clock[0])

    def save() -> None:
        clock[0] += 2.0

    callback = callbacks.ValidationCallback(ppo.preset("order", **SETS), None, save)
    assert callback._is_save_due
    callback._save_in_time()
    for later, is_due in ((0.0, False), (39.9, False), (40.0, True)):
        clock[0] = 102.0 + later
        assert callback._is_save_due == is_due
