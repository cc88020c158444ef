"""A trainer that fits a network to counterfactuals: what each option of a decision would change.

The start's own schedules are branched, exactly and without noise. The network learns to put first
what lowers the sum of bounded slowdowns. It sees what a scheduler knows; the labels do not have to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.learn.ppo.torch_networks import Scorer, pack
from hpcgym.agent.learn.ppo.validation_split import split_validation
from hpcgym.agent.network import EMPTY, NetworkAgent, NetworkSpec
from hpcgym.agent.validation import Validation
from hpcgym.base.errors import HpcgymError, refuse_seed
from hpcgym.base.progress import steps
from hpcgym.core.policy import as_policy
from hpcgym.core.simulator import Simulator
from hpcgym.env.config import Keywords
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.schedule.counterfactual import Branches, first

DURATION_S = 3_600  # for how long an option holds, s: at one pass alone it changes little
PAUSE_S = 1_800  # time between two decisions that are branched, s; contested passes come in bursts
N_OPTIONS = 8  # jobs that may go first; those that fit now are tried before others

CLIPPED = 0.9
"""Quantile of the changes' size beyond which they count no more: a few have most of the sum."""

KEPT, EVERY = 0.98, 10
"""Weight that the average network keeps, and updates after which the network is added to it."""


class Labels(NamedTuple):
    """Decisions: what was seen, and what it changes if the job of a slot goes first."""

    jobs: NDArray[np.float32]  # shape (n, n_slots, n_fields)
    cluster: NDArray[np.float32]  # shape (n, n_cluster)
    action_mask: NDArray[np.float32]  # shape (n, n_slots)
    # Of the week's sum, as a share, shape (n, n_slots); NaN = not tried.
    change: NDArray[np.float32]


@dataclass(frozen=True)
class CreditTrainer:
    """Fits a network that corrects SAF to branches of SAF's decisions, chosen by validation.

    Source: Specification, section 10, "Counterfactuals".
    """

    name: str = "CREDIT"
    n_slots: int = 32  # visible jobs
    epochs: int = 30  # how often the network sees each label; its average is validated after each
    batch_size: int = 256
    learning_rate: float = 1e-3
    copies: int = 5  # jittered copies of each validation week, besides the original
    validation_share: float = 0.2

    @property
    def spec(self) -> NetworkSpec:
        """Return the network, which scores jobs: the highest goes first, the others by SAF."""
        return NetworkSpec("job", self.n_slots, bound=1.0, temperature=0.2)

    @property
    def env_keywords(self) -> Keywords:
        """Return the keywords of the environment that it sees."""
        return Keywords(action="job", n_slots=self.n_slots, expectations="regression")

    def train(self, episodes: Sequence[Episodes], seed: int) -> NamedAgent:
        """Train an agent; arguments and result as of `hpcgym.agent.own.Trainer`.

        Raises:
            HpcgymError: A scenario that does not order by SAF, or whose decisions have no branches.
        """
        refuse_seed(seed)
        parts = [split_validation(log, self.validation_share) for log in episodes]
        weeks = sum(len(playing) for playing, _ in parts)
        with steps(weeks, "branches", "weeks") as work:
            labelled = []
            for playing, _ in parts:
                for week in self._labelled(playing):
                    labelled.append(week)
                    work.advance()
        labels = Labels(*(np.concatenate(column) for column in zip(*labelled, strict=True)))
        is_row = np.isfinite(labels.change).any(axis=1)  # a week without decisions has one of NaN
        labels = Labels(*(column[is_row] for column in labels))
        held = [of_log for _, of_log in parts]
        validation = Validation(held, self.env_keywords, copies=self.copies, threads=1)
        best, is_start = self._fitted(labels, validation, seed)
        keywords: dict[str, Any] = {**self.env_keywords}
        return NamedAgent(
            self.name, best, keywords, steps=len(labels.change), ended_at_start=is_start
        )

    def _labelled(self, episodes: Episodes) -> Iterator[Labels]:
        if (policy := as_policy(episodes.settings.policy).name) != "SAF":
            raise HpcgymError(
                f"{episodes.scenario.name}: [scheduler] policy is {policy}, and {self.name} "
                "corrects SAF"
            )
        env = SchedulingEnv(episodes, **self.env_keywords)
        for number in episodes.numbers:
            yield self._labels_of(env, number)

    def _labels_of(self, env: SchedulingEnv, number: int) -> Labels:
        """Play a week as SAF, and branch it beside."""
        shown, _ = env.reset(options={"episode": number})
        simulator = Simulator(env.workload, env.settings, decide="contested")
        branches, rows, due = Branches(simulator), [], 0
        while simulator.run():
            while env.now < simulator.now:  # a pass may be several decisions, the first by SAF
                shown, *_ = env.step(0)
            if simulator.now >= due:
                due = simulator.now + PAUSE_S
                rows.append((*_seen(shown), self._changes(env, simulator, branches)))
        is_over = False
        while not is_over:
            *_, is_over, _, info = env.step(0)
        base = info["mean_bsld"] * len(env.workload)
        if not rows:
            rows = [(*_seen(shown), np.full(self.n_slots, np.nan))]
        columns = [np.array(column, np.float32) for column in zip(*rows, strict=True)]
        columns[-1] /= base
        return Labels(*columns)

    def _changes(
        self, env: SchedulingEnv, simulator: Simulator, branches: Branches
    ) -> NDArray[np.float64]:
        """Return the change of the sum if the job of a slot goes first, shape (n_slots,).

        It is 0 for the first slot, whose job is first as it is.
        """
        change, slot = np.full(self.n_slots, np.nan), env._slot
        assert slot[0] == branches.decisions().jobs[0]
        change[0] = 0.0
        others = np.flatnonzero(slot >= 0)[1:]
        fits = simulator.workload.processors[slot[others]] <= simulator.free_processors
        tried = others[np.argsort(~fits, kind="stable")[:N_OPTIONS]]
        if len(tried):
            options = [first(job) for job in slot[tried]]
            change[tried] = branches.branch(options, DURATION_S).total
        return change

    def _fitted(
        self, labels: Labels, validation: Validation, seed: int
    ) -> tuple[NetworkAgent, bool]:
        """Return the best network by validation, and whether that is the start."""
        size = abs(labels.change[np.isfinite(labels.change) & (labels.change != 0)])
        if not len(size):
            raise HpcgymError(f"{self.name}: no option changes any week, so nothing can be learned")
        bound = float(np.quantile(size, CLIPPED))
        change = np.clip(labels.change / bound, -1, 1)
        n_batches = -(-len(change) // self.batch_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            scorer, chance = Scorer(self.spec), np.random.default_rng(seed)
            optimizer = torch.optim.Adam(scorer.parameters(), lr=self.learning_rate)
            average = scorer.weights()
            best, is_start = scorer.agent(), True
            least, n_updates = validation.score(best).ratio, 0
            with steps(self.epochs, "network", "epochs") as work:
                for _ in range(self.epochs):
                    for rows in np.array_split(chance.permutation(len(change)), n_batches):
                        optimizer.zero_grad()
                        loss: Any = _loss(scorer, labels, change, rows)
                        loss.backward()
                        optimizer.step()
                        n_updates += 1
                        if n_updates % EVERY == 0:
                            new = scorer.weights()
                            average = {
                                key: np.float32(KEPT) * average[key]
                                + np.float32(1 - KEPT) * new[key]
                                for key in new
                            }
                    agent = NetworkAgent(self.spec, average)
                    ratio = validation.score(agent).ratio
                    if ratio < least:
                        best, least, is_start = agent, ratio, False
                    work.advance()
        return best, is_start


def _seen(shown: Mapping[str, NDArray[np.float32]]) -> tuple[NDArray[np.float32], ...]:
    """Return the parts of an observation in the order of `Labels`."""
    return shown["jobs"], shown["cluster"], shown["action_mask"]


def _loss(
    scorer: Scorer, labels: Labels, change: NDArray[np.float32], rows: NDArray[np.int64]
) -> torch.Tensor:
    """Return the change that is expected where the first job is drawn by the network's scores."""
    spec, of_rows = scorer.spec, torch.as_tensor(change[rows])
    shown = {
        key: torch.as_tensor(getattr(labels, key)[rows])
        for key in ("jobs", "cluster", "action_mask")
    }
    scores = scorer(pack(shown, spec)) / spec.temperature
    tried = torch.isfinite(of_rows)
    chance = torch.softmax(scores.masked_fill(~tried, float(EMPTY)), dim=1)
    return (chance * of_rows.nan_to_num(0.0)).sum(dim=1).mean()
