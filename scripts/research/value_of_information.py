"""Measure what information is worth: predicted run times, the orders they make, bounded slowdown.

All steps are measured on the same contested passes: the error of the run time expected of each
waiting job; the share of pairs of waiting jobs that an order ranks as the clairvoyant index
q p max(p, 10 s) does; and the bounded slowdown of the schedules under that order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.agent.training_weeks import open_weeks, refuse_training_weeks
from hpcgym.base.errors import EvaluationError
from hpcgym.base.ranges import number_ranges
from hpcgym.core.index_policy import TERMS, index_policy
from hpcgym.core.metrics import BSLD_BOUND_S
from hpcgym.core.policy import as_policy
from hpcgym.core.prepare import executed_run_time
from hpcgym.core.simulator import Simulator
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.baselines import clairvoyant
from hpcgym.evaluation.executors import AnyExecutor

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

SOURCES: dict[str, tuple[str, ...]] = {
    "request": (),
    "last two jobs": ("recent_run_time_ratio",),
    "records": ("run_time_ratio", "speed"),
    "network": ("network_run_time_ratio", "network_speed"),
    "regression": ("regressed_run_time_ratio", "regressed_speed"),
}
"""Sources of information on a waiting job, and their terms: share and speed, or the share alone,
where the speed is its reciprocal."""

ORDERS = ("area", "smith")
"""Orders made of it: least expected area, and least expected work over the rate at which waiting
costs. By the request alone the first is SAF, the second SAF's area times the request."""

_NAMES = {"last two jobs": "RECENT", "records": "HISTORY", "regression": "REG"}
"""Sources whose orders have names."""


def orders_by(source: str, network: FloatArray | None) -> dict[str, RuleAgent]:
    """Return an agent for each of `ORDERS` by what one of `SOURCES` says, by name.

    The network's parameters are needed for "network" only.

    Source: Smith 1956; specification, section 10, "Information".

    Example:
        >>> list(orders_by("records", None))
        ['area by records', 'smith by records']
    """
    if source in _NAMES:
        policies = [as_policy(f"{rule}-{_NAMES[source]}") for rule in ("SAF", "SMITH")]
    elif source == "network":
        policies = [
            index_policy(weights, network) for weights in ([1, 1, 0, 0, 1, 0], [1, 2, 0, 0, 1, -1])
        ]
    else:
        policies = [index_policy([1, power, 0, 0, 0, 0]) for power in (1, 2)]
    names = [f"{order} by {source}" for order in ORDERS]
    return {
        name: RuleAgent(policy, name=name) for name, policy in zip(names, policies, strict=True)
    }


def _expected(source: str, term: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of share and speed by one source, each shape (n_waiting,)."""
    said = [term[:, TERMS.index(name)] for name in SOURCES[source]] or [np.zeros(len(term))]
    return said[0], said[1] if len(said) > 1 else -said[0]


def prediction_quality(episodes: Episodes, network: FloatArray) -> pd.DataFrame:
    """Measure the errors of expected run times, and the orders made of them, at contested passes.

    The passes are those of schedules under Smith's rule by records, the same for every source.

    Args:
        episodes: The weeks.
        network: Parameters of a network that was fitted on other weeks, shape (N_NETWORK,).

    Returns:
        A row per source and order: `source`, `order`; `log_error`, the mean over waiting jobs and
        passes of |log(expected D / D)|, D = max(run time, 10 s); `bias`, the same without the bars;
        `agreement`, the share of pairs of waiting jobs in the clairvoyant order, pairs that tie
        in either left out; `passes`.

    Raises:
        EvaluationError: No pass was contested.

    Source: Specification, section 10, "Information".
    """
    import pandas as pd

    by_records = as_policy("SMITH-HISTORY").parameters
    settings = replace(episodes.settings, policy=index_policy(by_records, network))
    learns = as_policy("SMITH-REG")
    errors = {source: np.zeros(3) for source in SOURCES}
    pairs = {(source, order): np.zeros(2) for source in SOURCES for order in ORDERS}
    passes = 0
    for week in range(len(episodes)):
        workload = episodes.workload(week)
        executed = executed_run_time(workload, settings.kill_at_limit).astype(np.float64)
        bounded = np.maximum(executed, BSLD_BOUND_S)
        known = np.log(workload.processors * np.maximum(executed, 1.0) * bounded)
        simulator = Simulator(workload, settings, decide="contested", extra_policies=[learns])
        while simulator.run():
            waiting, term = simulator.terms()
            passes += 1
            behind = pairs_behind(known[waiting])
            for source in SOURCES:
                share, speed = _expected(source, term)
                error = term[:, 1] + share - np.log(bounded[waiting])
                errors[source] += (abs(error).sum(), error.sum(), len(waiting))
                area = term[:, 0] + term[:, 1] + share
                scores = {"area": area, "smith": area + term[:, 1] - speed}
                for order, score in scores.items():
                    pairs[source, order] += agreement(pairs_behind(score), behind)
    if passes == 0:
        raise EvaluationError("no pass of these weeks was contested: nothing to measure")
    rows = []
    for (source, order), (agreed, counted) in pairs.items():
        absolute, signed, n = errors[source]
        rows.append(
            {
                "source": source,
                "order": order,
                "log_error": absolute / n,
                "bias": signed / n,
                "agreement": agreed / max(counted, 1.0),
                "passes": passes,
            }
        )
    return pd.DataFrame(rows)


def pairs_behind(score: FloatArray) -> FloatArray:
    """Compare the scores of every pair of jobs, shape (n,), lowest first.

    Returns:
        1 where the row's job is behind the column's, -1 where it is ahead, 0 where they tie, shape
        (n, n).

    Source: Kendall 1938.
    """
    return np.sign(score[:, np.newaxis] - score)


def agreement(one: FloatArray, other: FloatArray) -> tuple[float, float]:
    """Count the pairs that two orders, as `pairs_behind` gives them, rank the same way.

    Returns:
        Pairs that agree, and pairs in all; those that tie in either are left out.

    Source: Kendall 1938: concordant pairs.

    Example:
        >>> one, other = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
        >>> agreement(pairs_behind(one), pairs_behind(other))
        (2.0, 3.0)
    """
    same = one * other
    return float((same > 0).sum() / 2), float((same != 0).sum() / 2)


def chain(
    agent: RuleAgent | NamedAgent,
    scenario: str | Episodes,
    *,
    jitter: int = 0,
    replicas: int = 0,
    executor: AnyExecutor = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Measure every step from information to bounded slowdown, on weeks an agent never saw.

    Args:
        agent: An index with a network; its training decides which weeks are open.
        scenario: A name, or its episodes; weeks of a log.
        jitter: As in `hpcgym.evaluate`, like the following.
        replicas: Likewise.
        executor: Likewise.
        progress: Likewise.

    Returns:
        `prediction_quality`, and two rows of clairvoyant orders, with `ratio`, the sum of bounded
        slowdowns
        over SAF's, its interval `ratio_low` and `ratio_high`, and `log_ratio`.

    Raises:
        EvaluationError: The agent is no index with a network, or no pass was contested.
        CardError: No week is open.

    Source: Specification, section 10, "Information" and "Evaluation protocol".
    """
    import pandas as pd

    network = agent.policy.network if isinstance(agent, RuleAgent) else None
    if network is None:
        raise EvaluationError(f"{agent.name} is no index with a network; name one that is")
    episodes = Episodes(scenario) if isinstance(scenario, str) else scenario
    if agent.training is not None:
        numbers = open_weeks(agent.training, episodes)
        if not numbers:
            refuse_training_weeks(agent, episodes, episodes.numbers)
        episodes = episodes.select(number_ranges(numbers))
    seen = prediction_quality(episodes, network)
    names = (seen["order"] + " by " + seen["source"]).tolist()
    known = [{"source": "run time", "order": order, "agreement": np.nan} for order in ORDERS]
    lines = [clairvoyant(f"KNOWS-{name}", episodes.settings) for name in ("SAF", "SMITH")]
    orders = [one for source in SOURCES for one in orders_by(source, network).values()]
    found = evaluate(
        [*orders, *lines],
        episodes,
        jitter=jitter,
        replicas=replicas,
        executor=executor,
        progress=progress,
    ).summary()
    table = pd.concat([seen, pd.DataFrame(known)], ignore_index=True)
    table.index = pd.Index([*names, *(line.name for line in lines)])
    columns = found.set_index("agent")[["ratio", "ratio_low", "ratio_high", "log_ratio"]]
    return table.join(columns).reset_index(names="agent")
