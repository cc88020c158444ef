"""What happens between rollouts: validation, early stopping, checkpoints, progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from hpcgym.agent.learn.ppo.build import grow_windows
from hpcgym.agent.learn.ppo.config import PPOConfig
from hpcgym.agent.learn.ppo.constant_start import COPIES, SHARE, bias_of, search_constant
from hpcgym.agent.network import NetworkAgent, Weights
from hpcgym.agent.validation import Score, Validation
from hpcgym.agent.weights import ConstantAction
from hpcgym.base.progress import Steps, clock


class ValidationCallback(BaseCallback):
    """Keeps the best network by validation, and ends the training when it gets no better.

    TensorBoard gets `validation/ratio_to_saf`, `validation/mean_log_ratio`, `validation/mean_bsld`,
    `validation/gap_closed` where a scale is known, and `schedule/mean_bsld` and `schedule/return`
    of the episodes that a rollout ends; all at the decisions that the network has learned from.

    Before the first rollout it searches a constant action for the network to begin at, where the
    configuration says so. Its time counts, its decisions are no steps.

    Args:
        save: Called to write a checkpoint, at the start, every few rollouts, as `SAVING` allows,
            and at the end.

    Source: Specification, section 10; averages of iterates: Polyak and Juditsky 1992.
    """

    def __init__(self, config: PPOConfig, validation: Validation, save: Callable[[], None]) -> None:
        super().__init__()
        self._config, self._validation, self._save = config, validation, save
        self.average: Weights = {}  # weights of the average of the networks so far
        self.best: Weights = {}  # weights of the best average by validation
        # best_of: Its validation in `history`.
        # best_ratio: Its ratio to SAF.
        self.best_ratio, self.best_of = np.inf, 0
        # Of each validation the steps, the ratio and the mean log ratio.
        self.history: list[tuple[int, float, float]] = []
        self.seconds = 0.0  # duration of the training, s, earlier parts of it included
        self.work = Steps(1, "training")  # what is told of the training's progress
        self._since = time.perf_counter()
        self._n_rollouts, self._stale = 0, 0
        self._validated, self._averaged, self._logged = -1, -1, -1
        self._returns = np.zeros(config.n_envs)
        # is_interrupted: Whether to save before the next rollout.
        self._stops, self.is_interrupted = False, False
        self._saved, self._saving = -np.inf, 0.0
        self._has_searched = False
        self._score: Score | None = None

    _STATE: tuple[str, ...] = ("average", "best", "best_ratio", "best_of", "history", "_returns")
    _STATE += ("_n_rollouts", "_stale", "_validated", "_averaged", "_logged")
    _STATE += ("_has_searched",)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        self._take_time()
        return {key: getattr(self, key) for key in (*self._STATE, "seconds")}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what a checkpoint has kept."""
        for key, value in state.items():
            setattr(self, key, value)
        self._since = time.perf_counter()

    def _on_rollout_start(self) -> None:
        """Average; grow windows; validate and save when due; log; decide whether to stop."""
        self._add_network()
        if grow_windows(self.model, self._config, self.done()):
            self._returns[:] = 0.0
        if self._is_due:
            self._validate()
        self._log()
        self._take_time()
        is_late = 0 < self._config.minutes * 60 <= self.seconds
        is_stale = 0 < self._config.patience <= self._stale
        self._stops = is_late or is_stale
        if self._is_save_due or self.is_interrupted or self._stops:
            self._save_in_time()  # now: the learner steps once more before it is told to stop
        if self._config.searches and not (self._has_searched or self._stops):
            self._search()

    def _on_step(self) -> bool:
        """Log the metrics of episodes that end; return False to end the training."""
        if self._stops:
            return False
        self._returns += self.locals["rewards"]
        for env in np.flatnonzero(self.locals["dones"]).tolist():
            self.logger.record_mean("schedule/mean_bsld", self.locals["infos"][env]["mean_bsld"])
            self.logger.record_mean("schedule/return", self._returns[env])
            self._returns[env] = 0.0
        return True

    def _on_rollout_end(self) -> None:
        """Count the rollout, and set the learning rate of its updates."""
        self._n_rollouts += 1
        if self._config.falls_to < 1.0:
            left = 1.0 - (1.0 - self._config.falls_to) * min(self.done(), 1.0)
            self.model.lr_schedule = lambda _: self._config.learning_rate * left

    def _on_training_end(self) -> None:
        """Save what a longer training would go on from; validate the last average, too."""
        if not self._stops:
            self._add_network()
            if self._is_due:
                self._validate()
            self._log()
            self._save_in_time()
        self._validate()
        self.logger.dump(self._n_steps)

    def _search(self) -> None:
        """Begin at the constant that a search on the training weeks comes to, if it is better.

        Better than the start on the weeks of training and of validation together: few weeks of
        validation alone may mislead. From there on the best network is the best by validation.
        """
        config, spec, model = self._config, self._config.spec, self.model
        self._has_searched = True
        episodes = {id(env.episodes): env.episodes for env in model.env.envs.configs}  # type: ignore[union-attr]
        weeks = Validation(
            [*episodes.values()],
            config.env_keywords,
            copies=COPIES,
            threads=config.threads,
            metric=config.metric,
        )

        def value_of(action: ConstantAction) -> float:
            if self.is_interrupted:  # the checkpoint is of the time before the search
                raise KeyboardInterrupt
            return weeks.score(action).ratio

        best = search_constant(
            spec,
            value_of,
            config.constants,
            np.random.default_rng(model.seed),
            lambda: self._elapsed < SHARE * self._allotted,
        )
        at_start = [value_of(ConstantAction(tuple(spec.head_start.tolist()))), self.history[-1][1]]
        bias = model.policy.scorer.arrays["output_bias"]  # type: ignore[union-attr, index]
        with torch.no_grad():
            bias.copy_(torch.as_tensor(bias_of(best, spec)))
        self._begin_anew()
        constant = ConstantAction(tuple((spec.head_start + best).tolist()))
        now = [value_of(constant), self.history[-1][1]]
        if np.log(np.divide(now, at_start)) @ [weeks.n_weeks, self._validation.n_weeks] < 0:
            self.best, self.best_ratio = self.average, self.history[-1][1]
            self.best_of = len(self.history) - 1
        else:
            with torch.no_grad():
                bias.zero_()
            self._begin_anew()
        self._stale = 0

    def _begin_anew(self) -> None:
        """Average and validate a network that was changed between rollouts."""
        self._averaged, self._validated, self.average = -1, -1, {}
        self._add_network()
        self._validate()

    def _save_in_time(self) -> None:
        """Save, and note how long that takes."""
        since = time.perf_counter()
        self._save()
        self._saved = time.perf_counter()
        self._saving = self._saved - since

    def _log(self) -> None:
        """Let the learner write what it has noted since the last rollout, once per rollout."""
        if self._logged < self._n_rollouts:
            self._logged = self._n_rollouts
            self.model.dump_logs()

    def _add_network(self) -> None:
        """Add the network to the average, once per rollout."""
        if self._averaged == self._n_rollouts:
            return
        self._averaged, keeps = self._n_rollouts, np.float32(self._config.averaging)
        new = self.model.policy.scorer.weights()  # type: ignore[union-attr, operator]
        old = self.average or new
        self.average = {key: keeps * old[key] + (1 - keeps) * new[key] for key in new}

    def _validate(self) -> None:
        """Compare the average with SAF, unless that has been done."""
        if self._validated == self._n_rollouts:
            return
        agent = NetworkAgent(self._config.spec, self.average)
        score = self._score = self._validation.score(agent)
        self._validated = self._n_rollouts
        self.history.append((self._n_steps, score.ratio, score.mean_log_ratio))
        self._stale += 1
        if score.ratio < self.best_ratio:
            self.best, self.best_ratio, self._stale = agent.weights, score.ratio, 0
            self.best_of = len(self.history) - 1
        score.log(self.logger)

    @property
    def _is_due(self) -> bool:
        """Return whether a validation is due, however long the training is to be."""
        return self._n_rollouts % self._config.validate_every == 0

    @property
    def _is_save_due(self) -> bool:
        """Return whether the last checkpoint took little enough of the time since then."""
        return time.perf_counter() - self._saved >= self._saving / SAVING

    def done(self) -> float:
        """Return the share of the training that is done, by decisions or by time."""
        return max(self._n_steps / self._config.steps, self._elapsed / self._allotted)

    def told(self) -> str:
        """Return how far it is towards the limit that is nearer, and what validation has found."""
        told = clock(self._elapsed)
        if self._n_steps / self._config.steps >= self._elapsed / self._allotted:
            told = f"{self._n_steps:,} of {self._config.steps:,} decisions, {told}"
        else:
            told += f" of {clock(self._allotted)}"
        if self.history:
            told += f", start {np.exp(self.history[0][2]):.3f}"
        return f"{told}, now {self._score}" if self._score else told

    @property
    def _allotted(self) -> float:
        """Return the time after which the training ends, s."""
        return 60 * self._config.minutes or np.inf

    @property
    def _elapsed(self) -> float:
        """Return the time that has passed, s; unlike `_take_time` for any thread."""
        return self.seconds + time.perf_counter() - self._since

    @property
    def _n_steps(self) -> int:
        """Return the decisions that the network has learned from."""
        return self._n_rollouts * self._config.n_steps * self._config.n_envs

    def _take_time(self) -> None:
        now = time.perf_counter()
        self.seconds += now - self._since
        self._since = now


SAVING = 0.05  # largest share of the time that checkpoints take: large ones are further apart
