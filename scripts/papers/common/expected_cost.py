"""A reward for training: what waiting is expected to cost, not what it turns out to cost."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym import simulate
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.workload import Workload
from hpcgym.env.reward import Cost, Reward
from papers.common.playing import Floats


def expected_cost(windows: Sequence[Workload], rule: str, **settings: Any) -> Reward:
    """Return a reward that pays what waiting is expected to cost, in units of a rule's.

    A job's slowdown grows by 1 / run time, D, a second. In its stead a job costs the mean of 1/D
    over the windows' jobs of its user and request, held to that of its request by 20 jobs, and that
    to the mean of all by 5. Nobody knows D when he chooses, so the sum is expected to be the same.
    But a few jobs of seconds make most of the real one, by chance.

    Args:
        windows: Those to train on.
        rule: The policy whose schedule of an episode makes its unit.
        **settings: Of that schedule.
    """
    user, request, run_time = (
        np.concatenate([getattr(window, key) for window in windows])
        for key in ("user", "requested_time", "run_time")
    )
    rate = 1.0 / np.maximum(run_time, BSLD_BOUND_S)
    usual = float(rate.mean())
    of_request = held_means(request[:, None], rate, usual, 5.0)
    of_both = held_means(np.column_stack([user, request]), rate, of_request, 20.0)
    known = dict(zip(zip(user.tolist(), request.tolist(), strict=True), of_both, strict=True))

    def cost_of(workload: Workload, _: NDArray[np.int64]) -> Cost:
        pairs = zip(workload.user.tolist(), workload.requested_time.tolist(), strict=True)
        rate = np.array([known.get(pair, usual) for pair in pairs])
        waits = simulate(workload, rule, **settings).wait_time
        return Cost(0.0, rate / (1.0 + float((rate * waits).mean())), workload.submit_time)

    return Reward("expected", "what waiting is expected to cost", cost_of)


def held_means(keys: NDArray[Any], values: Floats, prior: Floats | float, weight: float) -> Floats:
    """Return for each value the mean of those of its key and of `weight` times its prior."""
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.ravel()
    total, n = np.bincount(group, values), np.bincount(group)
    return np.asarray((total[group] + weight * prior) / (n[group] + weight))
