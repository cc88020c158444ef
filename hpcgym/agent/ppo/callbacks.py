"""What happens between rollouts: validation, early stopping, checkpoints, progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from hpcgym.agent.network import NetworkAgent, Weights
from hpcgym.agent.ppo.build import grow_windows
from hpcgym.agent.ppo.config import PPOConfig
from hpcgym.agent.ppo.validation import Validation
from hpcgym.progress import Steps


class ValidationCallback(BaseCallback):
    """Keeps the best network by validation, and ends the training when it gets no better.

    TensorBoard gets `validation/ratio_to_saf`, `validation/mean_log_ratio`, `validation/mean_bsld`,
    and `schedule/mean_bsld` and `schedule/return` of the episodes that a rollout ends.

    Args:
        config: Hyper-parameters of the training.
        validation: Weeks held back.
        save: Called to write a checkpoint, after each validation that is due and at the end.

    Attributes:
        work: What is told of the training's progress.
        average: Weights of the average of the networks so far.
        best: Weights of the best average by validation.
        best_ratio: Its ratio to SAF.
        history: Of each validation the steps, the ratio and the mean log ratio.
        seconds: Duration of the training, s, earlier parts of it included.

    Source: Specification, section 10; averages of iterates: Polyak and Juditsky 1992.
    """

    def __init__(self, config: PPOConfig, validation: Validation, save: Callable[[], None]) -> None:
        super().__init__()
        self._config, self._validation, self._save = config, validation, save
        self.average: Weights = {}
        self.best: Weights = {}
        self.best_ratio = np.inf
        self.history: list[tuple[int, float, float]] = []
        self.seconds = 0.0
        self.work = Steps(config.steps, "PPO", "decisions")
        self._since = time.perf_counter()
        self._n_rollouts, self._stale, self._validated, self._averaged = 0, 0, -1, -1
        self._returns = np.zeros(config.n_envs)
        self._stops = False

    _STATE: tuple[str, ...] = ("average", "best", "best_ratio", "history", "_returns")
    _STATE += ("_n_rollouts", "_stale", "_validated", "_averaged")

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
        """Average; grow windows; validate and save when due; decide whether to stop."""
        self._add_network()
        if grow_windows(self.model, self._config, self._done):
            self._returns[:] = 0.0
        is_new = self._is_due and self._validate()
        self._take_time()
        is_late = 0 < self._config.minutes * 60 <= self.seconds
        is_stale = 0 < self._config.patience <= self._stale
        self._stops = is_late or is_stale
        if is_new or self._stops:  # the learner steps once more before it is told to stop
            self._save()

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
        """Count the rollout."""
        self._n_rollouts += 1
        self.work.n_done = self._config.steps * self._done

    def _on_training_end(self) -> None:
        """Save what a longer training would go on from; validate the last average, too."""
        if not self._stops:
            self._add_network()
            if self._is_due:
                self._validate()
            self._save()
        self._validate()
        self.logger.dump(self.num_timesteps)

    def _add_network(self) -> None:
        """Add the network to the average, once per rollout."""
        if self._averaged == self._n_rollouts:
            return
        self._averaged, keeps = self._n_rollouts, np.float32(self._config.averaging)
        new = self.model.policy.scorer.weights()  # type: ignore[union-attr, operator]
        old = self.average or new
        self.average = {key: keeps * old[key] + (1 - keeps) * new[key] for key in new}

    def _validate(self) -> bool:
        """Compare the average with SAF; return False where that has been done."""
        if self._validated == self._n_rollouts:
            return False
        agent = NetworkAgent(self._config.spec, self.average)
        score = self._validation.score(agent)
        self._validated = self._n_rollouts
        self.history.append((self._n_steps, score.ratio, score.mean_log_ratio))
        self._stale += 1
        if score.ratio < self.best_ratio:
            self.best, self.best_ratio, self._stale = agent.weights, score.ratio, 0
        for key, value in score._asdict().items():
            self.logger.record(f"validation/{_SHOWN.get(key, key)}", value)
        self.work.name = f"PPO, ratio to SAF {score.ratio:.3f}, best {self.best_ratio:.3f}"
        return True

    @property
    def _is_due(self) -> bool:
        """Return whether a validation is due, however long the training is to be."""
        return self._n_rollouts % self._config.validate_every == 0

    @property
    def _done(self) -> float:
        """Return the share of the training that is done, by steps or by time."""
        self._take_time()
        by_time = self.seconds / (60 * self._config.minutes) if self._config.minutes > 0 else 0.0
        return max(self._n_steps / self._config.steps, by_time)

    @property
    def _n_steps(self) -> int:
        """Return the decisions that the network has learned from."""
        return self._n_rollouts * self._config.n_steps * self._config.n_envs

    def _take_time(self) -> None:
        """Add the time that has passed."""
        now = time.perf_counter()
        self.seconds += now - self._since
        self._since = now


_SHOWN = {"ratio": "ratio_to_saf"}
"""Names of a score's numbers where they are not its own."""
