"""J of weeks with a price: the objective that counts in place of the bounded slowdown alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hpcgym.base.text_table import Column, fixed
from hpcgym.core.events import as_events
from hpcgym.core.price import PRICED, Price
from hpcgym.core.settings import SchedulerSettings
from hpcgym.evaluation.statistics import Estimate, ends_text

if TYPE_CHECKING:
    import pandas as pd


def with_priced(runs: pd.DataFrame, settings: SchedulerSettings, saf: str) -> pd.DataFrame:
    """Return runs, as `Evaluation.frame`, with J where the scenario has a price and SAF has run.

    Source: Specification, section 17, "Hourly decisions".
    """
    prices = [event for event in as_events(settings.events) if isinstance(event, Price)]
    of_saf = runs[runs["agent"] == saf]
    if not prices or of_saf.empty:
        return runs
    keys, parts = ["week", "replica"], ["mean_bsld", "energy_cost"]
    beside = runs[keys].merge(of_saf[[*keys, *parts]], on=keys, how="left")
    bsld, cost = (runs[part].to_numpy() / beside[part].to_numpy() for part in parts)
    return runs.assign(**{PRICED: bsld + prices[0].weight * cost})


def priced_columns(
    agents: Sequence[str], less: Mapping[str, Estimate], baseline: str
) -> list[Column]:
    """Return the columns of J less the baseline's and its interval; none without a price."""
    if not less:
        return []
    means = [less[agent] for agent in agents]
    return [
        Column(f"J less\n{baseline}'s", fixed([mean.value for mean in means], 3, sign="+")),
        Column("95\u00a0%\ninterval", [ends_text(mean, "+.3f", ", ") for mean in means], rank=1),
    ]
