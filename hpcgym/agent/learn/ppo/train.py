"""Training by PPO: environments, model and callback together, begun or resumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcgym.base.errors import HpcgymError, OutputError
from hpcgym.base.packages import TRAINING, needing

with needing("training by PPO", *TRAINING):
    import torch

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.card import KIND_OF_ACTION, Stated
from hpcgym.agent.learn.ppo.build import env_of, model_of, seed_groups
from hpcgym.agent.learn.ppo.callbacks import ValidationCallback
from hpcgym.agent.learn.ppo.checkpoint import (
    CHECKPOINT,
    TrainingSettings,
    checkpoint_of,
    clear_after,
    forget,
    randomness,
    read_checkpoint,
    set_randomness,
    write_checkpoint,
)
from hpcgym.agent.learn.ppo.config import PPOConfig, preset, texts_of
from hpcgym.agent.learn.ppo.interruption import failures_raised_once, interruptions_wait
from hpcgym.agent.learn.ppo.start import beginning, ratios_of_starts
from hpcgym.agent.learn.ppo.validation_split import split_validation
from hpcgym.agent.network import FROM_ZERO, NetworkAgent
from hpcgym.agent.validation import Validation
from hpcgym.base.progress import shown, steps
from hpcgym.env.scenario.augment import Augmentation, AugmentedEpisodes
from hpcgym.env.scenario.episodes import Episodes

NOT_SET = ("action", "steps", "minutes", "threads", "device")
"""Hyper-parameters that a card states elsewhere, or that do not change the result."""


@dataclass
class Trained:
    """The result of a training."""

    # The best average of networks by validation, or the last, as the configuration says.
    agent: NetworkAgent
    last: NetworkAgent  # the average at the end
    config: PPOConfig
    seed: int
    steps: int  # decisions it has learned from
    seconds: float
    # Which validation in `history` the agent is of; 0 = no later one was better, so that it decides
    # as the training began.
    given: int
    ratio: float  # the agent's ratio to SAF on the weeks of validation
    # Numbers of the weeks it was trained and validated on, by scenario.
    weeks: dict[str, tuple[int, ...]]
    # How the weeks it played were changed at every draw; None = not at all.
    augmentation: Augmentation | None
    # Ratio to SAF, on the weeks of validation, of each policy that it might have begun at; empty
    # where it had no choice.
    starts: dict[str, float]
    # Of each validation the steps, the ratio and the mean log ratio. After a search for a constant
    # the second is the constant's, at 0 steps; where it was no better than the start, that follows
    # once more.
    history: list[tuple[int, float, float]]

    @property
    def ended_at_start(self) -> bool:
        """Whether the agent is the network that the training began with."""
        return self.given == 0

    @property
    def ended_at_constant(self) -> bool:
        """Whether the agent takes the action that a search found, whatever it sees."""
        return self.given == 1 and self.config.searches

    @property
    def start(self) -> str:
        """What the training began as, in words; a network that corrects a rule begins as it."""
        config = self.config
        if not config.residual:
            return "its first network"
        if config.action in FROM_ZERO:
            what = {"index": "actions of zeros", "price": "the numbers of the event"}
            return what.get(config.action, "the numbers of the mode")
        seen = f" among the {config.n_slots} jobs it sees" if config.spec.scores_jobs else ""
        return config.starts[0].upper() + seen

    @property
    def choice(self) -> str:
        """What it might have begun at, the best first, each with its ratio; "" = no choice."""
        ranked = sorted(self.starts, key=self.starts.__getitem__)
        return ", ".join(f"{start.upper()} {self.starts[start]:.3f}" for start in ranked)

    @property
    def found(self) -> str:
        """The ratio of the agent on the weeks of validation, beside what it is compared with."""
        begun, *later = (ratio for _, ratio, _ in self.history)
        if not self.ended_at_start:
            return f"{self.ratio:.3f} times SAF's sum, at its start {begun:.3f}"
        least = f"the best later network {min(later):.3f}" if later else "and no later network was"
        return f"{begun:.3f} times SAF's sum, {least}"

    def named(self, name: str) -> NamedAgent:
        """Return the agent under a name, with the keywords it needs."""
        keywords, at_start = self.config.env_keywords, self.ended_at_start
        return NamedAgent(name, self.agent, keywords, steps=self.steps, ended_at_start=at_start)

    def described(self, stem: str, logs: str) -> Stated:
        """Describe the network as its card does."""
        config, title = self.config, f"trained on {logs}"
        rule = self.start if config.action in FROM_ZERO else config.starts[0].upper()
        tie = f"does not start as {rule}"
        if config.residual:
            tie = f"corrects {rule} by a bounded amount"
        made = (
            f"{tie}, trained by PPO on {self.steps} decisions. It was the {config.gives} of its "
            f"training, after {self.history[self.given][0]} decisions"
        )
        if config.searches:
            made += f", and began at a constant action, found by a search among {config.constants}"
        if self.ended_at_constant:
            title = f"found on {logs}"
            made = (
                f"takes one constant action, found by a search among {config.constants}: "
                f"{self.steps} decisions of PPO gave nothing better"
            )
        if self.ended_at_start:
            title = f"as its training on {logs} began"
            made = (
                f"decides as {self.start}: {self.steps} decisions of PPO gave nothing better, so "
                "its training ended where it began"
            )
        chosen = f" Its start had the least ratio there: {self.choice}." if self.choice else ""
        return Stated(
            {
                "title": f"Network that {KIND_OF_ACTION[config.action]}, {title}",
                "kind": "network",
                "source": "Schulman et al. 2017, Proximal policy optimization algorithms; hpcgym",
                "description": f"A network that {made}. On the weeks kept for "
                f"validation it had {self.found}.{chosen}",
            },
            {"weights": f"{stem}.npz", "steps": self.steps, "settings": _settings_of(self)},
            dict(config.env_keywords),
        )


def train(
    config: PPOConfig,
    episodes: Sequence[Episodes],
    *,
    validation: Sequence[Episodes],
    augmentation: Augmentation | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    progress: bool = False,
) -> Trained:
    """Train a network.

    With an output folder a checkpoint is written every few rollouts. Ctrl-C, or SIGTERM, then lets
    the rollout end and writes another; the second one interrupts at once.

    Of several starts the best on the weeks of validation is chosen first; that takes no minutes.

    Args:
        episodes: What to train on; of several scenarios, groups of environments play them in turn.
        validation: Weeks that decide which network is best and when to stop.
        augmentation: How the episodes that are played are changed at every draw; None = not at all.
        seed: Seed of everything, except where `config.minutes` end it.
        output: Folder for TensorBoard's files and the checkpoint, which replace those of an earlier
            training; None = none.
        progress: Whether to show a progress bar, on a terminal.

    Raises:
        HpcgymError: No episodes, more scenarios than groups, a bad seed, or a missing device.
        OutputError: A file cannot be written; the last checkpoint is still there.
        KeyboardInterrupt: Interrupted; the message says what is kept and what is lost.

    Source: Schulman et al. 2017; specification, section 10, "Learnability kit".

    Example:
        >>> from hpcgym.agent.learn.ppo.config import preset
        >>> small = preset("order", n_envs=4, group_size=2, n_steps=8, batch_size=16, steps=32)
        >>> tiny = [Episodes("tiny")]
        >>> train(small, tiny, validation=tiny).steps
        32
    """
    settings = TrainingSettings.of(config, seed, episodes, validation, augmentation)
    _refuse_missing(config.device)
    if augmentation is not None:
        episodes = [AugmentedEpisodes(of_scenario, augmentation) for of_scenario in episodes]
    with _on_threads(config.threads):
        starts = ratios_of_starts(config, validation)
        config = beginning(config, starts)
        env = env_of(config, episodes)
        with _written(output):
            if output is not None:
                forget(Path(output))
            model = model_of(config, env, seed, output)
            seed_groups(env, config, seed)
            return _Run(model, settings, tuple(validation), starts, output).learn(progress)


def resume(
    folder: str | Path,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    asked: TrainingSettings | None = None,
    progress: bool = False,
) -> Trained:
    """Resume a training from its checkpoint; on a CPU the result is the same to the bit.

    Windows grow by the share of the steps or minutes that is done, so with more of these they go on
    from shorter ones.

    Args:
        folder: The output folder of the training; its checkpoint is a pickle, so use your own.
        steps: Steps after which to end, in place of those of the training.
        minutes: Minutes, all parts together, likewise.
        asked: The settings that the training must have, except steps, minutes and threads, which
            are taken from here. None = whatever it has.
        progress: Whether to show a progress bar, on a terminal.

    Raises:
        HpcgymError: There is no checkpoint, it is not understood, it is of another training than
            `asked`, or its device is not there.
        OutputError, KeyboardInterrupt: As `train`.
    """
    checkpoint = read_checkpoint(Path(folder) / CHECKPOINT)
    if asked is not None:
        checkpoint.settings.refuse_other(asked)
    settings = asked or checkpoint.settings
    changes: dict[str, Any] = {"steps": steps, "minutes": minutes}
    config = replace(settings.config, **{k: v for k, v in changes.items() if v is not None})
    _refuse_missing(config.device)
    checkpoint.env.envs.buffers.threads = min(config.threads, config.n_envs)
    with _on_threads(config.threads), _written(folder):
        clear_after(checkpoint.logs, Path(folder))
        begun = beginning(config, checkpoint.starts)
        model = model_of(begun, checkpoint.env, settings.seed, folder)
        checkpoint.restore(model)
        settings, starts = replace(settings, config=config), checkpoint.starts
        run = _Run(model, settings, checkpoint.validation, starts, folder)
        run.progress = checkpoint.progress
        return run.learn(progress)


@dataclass(frozen=True)
class PPOTrainer:
    """Trains by PPO on the weeks it is given, of which it keeps the last for validation.

    Source: Specification, section 10, "Evaluation protocol".
    """

    config: PPOConfig
    augmentation: Augmentation | None = None
    name: str = "PPO"

    def train(self, episodes: Sequence[Episodes], seed: int) -> NamedAgent:
        """Train an agent; arguments and result as of `hpcgym.agent.own.Trainer`."""
        parts = [
            split_validation(of_scenario, self.config.validation_share) for of_scenario in episodes
        ]
        trained = train(
            self.config,
            [playing for playing, _ in parts],
            validation=[held for _, held in parts],
            augmentation=self.augmentation,
            seed=seed,
        )
        return trained.named(self.name)


@dataclass
class _Run:
    """A model that learns, begun or resumed; its settings name all starts that were asked for."""

    model: Any
    settings: TrainingSettings
    validation: tuple[Episodes, ...]
    starts: dict[str, float]
    output: str | Path | None
    progress: dict[str, Any] | None = None
    n_saved: int | None = None

    def learn(self, asked: bool) -> Trained:
        """Learn to the end, and show progress where that is asked for."""
        config, model = beginning(self.settings.config, self.starts), self.model
        validation = Validation(
            self.validation,
            config.env_keywords,
            copies=config.validation_copies,
            threads=config.threads,
            metric=config.metric,
        )
        self.callback = ValidationCallback(config, validation, self._save)
        if self.progress is not None:
            self.callback.set_state(self.progress)
            self.n_saved = model.num_timesteps
        callback = self.callback
        try:
            with (
                shown(asked),
                steps(1, "training", count=callback.done, told=callback.told) as callback.work,
            ):
                self._learn()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._what_is_kept()) from None
        callback.state()
        is_last = config.gives == "last"
        ratios = [ratio for _, ratio, _ in callback.history]
        given = len(ratios) - 1 if is_last else callback.best_of
        return Trained(
            agent=NetworkAgent(config.spec, callback.average if is_last else callback.best),
            last=NetworkAgent(config.spec, callback.average),
            config=config,
            seed=self.settings.seed,
            steps=callback.history[-1][0],
            seconds=callback.seconds,
            given=given,
            ratio=ratios[given],
            weeks=self.settings.weeks,
            augmentation=self.settings.augmentation,
            starts=self.starts,
            history=callback.history,
        )

    def _learn(self) -> None:
        """Learn; where there is a folder, interruptions wait for the next checkpoint."""
        left = max(self.settings.config.steps - self.model.num_timesteps, 0)
        waits = nullcontext() if self.output is None else interruptions_wait(self.callback)
        with waits:
            self.model.learn(
                left,
                callback=self.callback,
                log_interval=None,  # the callback does
                reset_num_timesteps=self.progress is None,
            )

    def _save(self) -> None:
        """Write a checkpoint, if there is a folder; raise an interruption that has waited."""
        if self.output is None:
            return
        folder, state = Path(self.output), self.callback.state()
        parts = (self.model, self.settings, self.validation, state, self.starts)
        checkpoint = checkpoint_of(*parts, folder)
        write_checkpoint(checkpoint, folder / CHECKPOINT)
        self.n_saved = self.model.num_timesteps
        if self.callback.is_interrupted:
            raise KeyboardInterrupt

    def _what_is_kept(self) -> str:
        """Say what an interruption loses."""
        done = self.model.num_timesteps
        if self.output is None or self.n_saved is None:
            return f"all {done:,} decisions are lost, since no checkpoint was written"
        lost, path = done - self.n_saved, Path(self.output) / CHECKPOINT
        what = f"the {lost:,} decisions since then are lost" if lost else "nothing is lost"
        return f"{path} keeps the first {self.n_saved:,} decisions, {what}"


def _refuse_missing(device: str) -> None:
    """Refuse a device that torch does not see; the learner would silently take the CPU."""
    if device == "cuda" and not torch.cuda.is_available():
        raise HpcgymError("torch sees no GPU, so device must be auto or cpu, got cuda")


@contextmanager
def _written(output: str | Path | None) -> Iterator[None]:
    """Raise what the system, or TensorBoard's writer, cannot write as an OutputError."""
    try:
        with failures_raised_once():
            yield
    except HpcgymError:
        raise
    except OSError as error:
        if output is None:
            raise
        kept = "; the last checkpoint is untouched" if (Path(output) / CHECKPOINT).exists() else ""
        where, reason = error.filename or output, error.strerror or error
        raise OutputError(f"{where}: writing failed: {reason}{kept}") from error


@contextmanager
def _on_threads(threads: int) -> Iterator[None]:
    """Let torch use so many threads; restore its settings and all generators afterwards."""
    before, states = torch.get_num_threads(), randomness()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        set_randomness(states)


def _settings_of(trained: Trained) -> list[str]:
    """Return what differs from the preset, as `--set` takes it, and what changes episodes."""
    usual = texts_of(preset(trained.config.action))
    values = texts_of(trained.config).items()
    changed = [f"{k}={v}" for k, v in values if k not in NOT_SET and v != usual[k]]
    unchanged = texts_of(Augmentation())
    changes = texts_of(trained.augmentation or Augmentation()).items()
    return changed + [f"augment {k}={v}" for k, v in changes if v != unchanged[k]]
