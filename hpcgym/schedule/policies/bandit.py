"""Bandits: policies that learn, period by period, which rule has served best."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.policy import Chooser, ChooserRun, Policy, as_policy, chooser_policy
from hpcgym.core.simulator import Simulator

Algorithm = Literal["epsilon-greedy", "ucb", "exp3"]
Information = Literal["bandit", "full"]

ARMS = ("FCFS", "SPF", "SQF", "SAF", "LEXP")
DAY_S = 86_400


@dataclass(frozen=True)
class Bandit(Chooser):
    """Choose a rule for each period by how rules have served in the periods before.

    A rule's reward for a period is the inverse of a mean bounded slowdown, in (0, 1]. With "bandit"
    information only the rule that was played gets one, by the jobs that ended in the period. With
    "full" information every rule gets one: the jobs submitted in the period are simulated under it
    on an empty machine. A job that has not ended yet then runs for its request. Nothing is learned
    from a period without such jobs.

    Attributes:
        arms: Names of the policies to choose among.
        algorithm: "epsilon-greedy", the best mean reward but for a share of chance; "ucb", the best
            mean reward plus sqrt(2 ln t / n) for an arm played n of t times; "exp3", by chance with
            weights that grow with the rewards (with full information: Hedge).
        period: s; the first one begins at time 0.
        exploration: Share of chance of "epsilon-greedy" and "exp3", and the latter's step.
        seed: Seed of the chance; "ucb" has none.

    Raises:
        PolicyError: An unknown word, an arm that is unknown or not compiled, a period below 1 s, or
            an exploration beyond (0, 1].

    Source: Gaussier, Lelong, Reis, Trystram 2018, Online tuning of EASY-backfilling using queue
        reordering policies (IEEE TPDS); Auer, Cesa-Bianchi, Fischer 2002 (UCB1); Auer,
        Cesa-Bianchi, Freund, Schapire 2002 (Exp3).

    Example:
        >>> Bandit(("FCFS", "SAF"), "ucb").name
        'ucb(FCFS,SAF)'
    """

    arms: tuple[str, ...] = ARMS
    algorithm: Algorithm = "ucb"
    information: Information = "bandit"
    period: int = DAY_S
    exploration: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for key, known in (("algorithm", Algorithm), ("information", Information)):
            if getattr(self, key) not in get_args(known):
                raise PolicyError(unknown_name(key, getattr(self, key), get_args(known)))
        if not self.arms:
            raise PolicyError("a bandit needs at least one arm, got none")
        for arm in self.policies:
            if arm.is_python or arm.keys or arm.needs_history or arm.is_own_order:
                raise PolicyError(f"{arm.name} cannot be an arm: an arm is a compiled rule")
        is_whole = isinstance(self.period, numbers.Integral) and not isinstance(self.period, bool)
        if not is_whole or self.period < 1:
            raise PolicyError(f"period must be whole seconds >= 1, got {self.period!r}")
        if not 0.0 < self.exploration <= 1.0:
            raise PolicyError(f"exploration must lie in (0, 1], got {self.exploration!r}")

    @property
    def name(self) -> str:
        """Return the name that tables show."""
        stated = "" if self.information == "bandit" else ", full information"
        return f"{self.algorithm}({','.join(arm.name for arm in self.policies)}){stated}"

    @property
    def decide(self) -> int:  # type: ignore[override]
        """Return when it is asked: at the start of each period."""
        return self.period

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Return the arms as policies."""
        return tuple(as_policy(arm) for arm in self.arms)

    def begin(self) -> _BanditRun:
        """Return a run that has learned nothing."""
        return _BanditRun(self)


class _BanditRun(ChooserRun):
    """A bandit in one simulation, with its rewards and its random numbers."""

    def __init__(self, bandit: Bandit) -> None:
        n_arms = len(bandit.arms)
        self.bandit = bandit
        self.generator = np.random.default_rng(bandit.seed)
        self.played = -1
        self.chance = np.full(n_arms, 1.0 / n_arms)
        self.n_rewards = np.zeros(n_arms, dtype=np.int64)
        self.mean_reward = np.zeros(n_arms)
        self.log_weight = np.zeros(n_arms)

    def choose(self, simulator: Simulator) -> Policy:
        """Learn from the period that has passed, and choose the rule of the next."""
        if self.played >= 0:
            self._learn(self._rewards(simulator))
        self.played = self._pick()
        return self.bandit.policies[self.played]

    def _rewards(self, simulator: Simulator) -> NDArray[np.float64]:
        """Return each arm's reward for the period, shape (n_arms,), NaN where there is none."""
        if self.bandit.information == "full":
            return _rewards_of_all(simulator, self.bandit)
        rewards = np.full(len(self.bandit.arms), np.nan)
        rewards[self.played] = _reward_of_played(simulator, self.bandit.period)
        return rewards

    def _learn(self, rewards: NDArray[np.float64]) -> None:
        """Update means and weights by the rewards of a period; NaN where there is none."""
        known = np.isfinite(rewards)
        self.n_rewards[known] += 1
        self.mean_reward[known] += (rewards - self.mean_reward)[known] / self.n_rewards[known]
        share = np.ones(len(rewards)) if self.bandit.information == "full" else self.chance
        step = self.bandit.exploration / len(rewards)
        self.log_weight[known] += step * rewards[known] / share[known]

    def _pick(self) -> int:
        """Choose an arm; one that was never rewarded goes first, but for "exp3"."""
        n_arms = len(self.n_rewards)
        explores = self.bandit.exploration
        if self.bandit.algorithm == "exp3":
            weight = np.exp(self.log_weight - self.log_weight.max())
            self.chance = (1.0 - explores) * weight / weight.sum() + explores / n_arms
            return int(self.generator.choice(n_arms, p=self.chance))
        if self.n_rewards.min() == 0:
            return int(np.argmin(self.n_rewards))
        if self.bandit.algorithm == "ucb":
            bonus = np.sqrt(2.0 * np.log(self.n_rewards.sum()) / self.n_rewards)
            return int(np.argmax(self.mean_reward + bonus))
        if self.generator.random() < explores:
            return int(self.generator.integers(n_arms))
        return int(np.argmax(self.mean_reward))


def _reward_of_played(simulator: Simulator, period: int) -> float:
    """Return the reward of the rule that was played, NaN if no job ended."""
    jobs, start_time, now = simulator.episode.table, simulator.start_time, simulator.now
    end_time = start_time + jobs.run_time
    ended = (start_time >= 0) & (end_time > now - period) & (end_time <= now)
    if not ended.any():
        return float("nan")
    return _inverse_mean_bsld(end_time[ended] - jobs.submit_time[ended], jobs.run_time[ended])


def _rewards_of_all(simulator: Simulator, bandit: Bandit) -> NDArray[np.float64]:
    """Return the reward of every arm on the jobs of the period, NaN if none was submitted."""
    workload, table, now = simulator.workload, simulator.episode.table, simulator.now
    submit_time = workload.submit_time
    jobs = np.flatnonzero((submit_time >= now - bandit.period) & (submit_time < now))
    if not len(jobs):
        return np.full(len(bandit.arms), np.nan)
    start_time = simulator.start_time[jobs]
    has_ended = (start_time >= 0) & (start_time + table.run_time[jobs] <= now)
    known = np.where(has_ended, table.run_time[jobs], workload.requested_time[jobs])
    part = workload.select(jobs, start=int(now - bandit.period))
    part = replace(part, run_time=np.ascontiguousarray(known))
    estimates: Any = table.estimate[jobs]
    if simulator.settings.event_semantics == "pyss":
        estimates = "requested"
    rewards = []
    for arm in bandit.policies:
        settings = replace(simulator.settings, policy=arm, estimates=estimates)
        tried = Simulator(part, settings)
        tried.run()
        run_time = tried.episode.table.run_time
        ran = tried.start_time >= 0  # the others are lost
        turnaround = tried.start_time + run_time - part.submit_time
        rewards.append(_inverse_mean_bsld(turnaround[ran], run_time[ran]) if ran.any() else 0.0)
    return np.array(rewards)


def _inverse_mean_bsld(turnaround: NDArray[np.int64], run_time: NDArray[np.int64]) -> float:
    """Return one over the mean bounded slowdown."""
    bsld = np.maximum(turnaround / np.maximum(run_time, BSLD_BOUND_S), 1.0)
    return float(1.0 / bsld.mean())


EPSILON_GREEDY, UCB, EXP3 = (
    chooser_policy(
        Bandit(algorithm=algorithm),
        f"BANDIT-{algorithm.removesuffix('-greedy').upper()}",
        "Gaussier, Lelong, Reis, Trystram 2018 (IEEE TPDS)",
    )
    for algorithm in get_args(Algorithm)
)
