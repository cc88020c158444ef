"""The page of Lawson, Smirni, Puiu 2002: published numbers beside ours."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES
from papers.common.page import claims_table, document, prose
from papers.lawson.claims import OVERALL, claims, ratios
from papers.lawson.run import (
    DELAYED,
    EXACT,
    MULTIPLE,
    PRINTED,
    SCHEDULERS,
    SHOWN,
    TABLE_1,
    USER,
    Rerun,
)

MULTIPLES = (MULTIPLE, DELAYED, PRINTED)


def page(rerun: Rerun, command: str, seconds: float) -> str:
    """Return the page in Markdown.

    Args:
        rerun: The results.
        command: The command that writes the page.
        seconds: Wall time of the whole command, s.
    """
    readings = {reading.name: claims(rerun, reading) for reading in SHOWN}
    return document(
        (
            "# Lawson, Smirni, Puiu 2002, rerun",
            "## Findings",
            _view(rerun),
            "## Method",
            _what_was_run(rerun, command, seconds),
            "## Claims",
            BY_CASES,
            claims_table(readings),
        )
    )


def beside(rerun: Rerun) -> dict[str, pd.DataFrame]:
    """Return the table that the page links to: R overall, under the readings that are shown."""
    rows = []
    for reading in SHOWN:
        frames = [ratios(rerun, reading, mode)[OVERALL] for mode in MULTIPLES]
        rows += [
            [reading.name, log, *(f"{frame[log]:.2f}" for frame in frames)]
            for log in frames[0].index
        ]
    columns = ["reading", "log", *(SCHEDULERS[mode] for mode in MULTIPLES)]
    return {"lawson_overall": pd.DataFrame(rows, columns=columns)}


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what was run."""
    n_jobs = rerun.runs["n_jobs"].sum() / 1e6
    return prose(
        f"""
        [The paper](../references.md) sorts jobs by estimate into several queues.

        Written by `{command}`, which took {seconds:.0f} s on one core: {len(rerun.runs)}
        simulations of {n_jobs:.1f} million jobs.

        [R](../appendices/reruns.md#lawson-smirni-puiu-2002) compares mean slowdowns under EASY and
        under multiple queues, `"{MULTIPLE}"`, or `"{DELAYED}"` with adaptive delay. Above 0,
        multiple queues are better.

        *{EXACT.name}*, as in the paper: the scheduler knows run times, and jobs run as long as the
        log says. *{USER.name}*: the scheduler knows requests only, jobs end at them, and classes go
        by them. The paper prints no numbers, so claims are checked by sign and size.
        """
    )


def _view(rerun: Rerun) -> str:
    """Explain the differences."""
    days = rerun.delays[rerun.delays["reading"] == EXACT.name]
    mean_delay = days.groupby(["scheduler", "log"])["delay"].mean()
    facts = rerun.facts.drop_duplicates("log").set_index("log")
    more = [100 * (TABLE_1[log][0] / jobs - 1) for log, jobs in facts["jobs"].items()]
    return prose(
        f"""
        **With exact estimates the paper holds.** Multiple queues have the smaller slowdown on every
        log: [lawson_overall.csv](lawson_overall.csv). Short jobs gain; their slowdowns dominate the
        mean.

        **With users' requests it does not.** Of the jobs that ran no longer than 100 s, many ask
        for more than 10,000 s: {_by_log(facts["short_asking_long"], ".0f")} %. They lose with
        the extra-long jobs, among which they wait.

        **The adaptive delay helps some jobs and harms others.** It follows the difference of two
        noisy means, so it wanders from 2500 s to means of {_by_log(mean_delay[DELAYED], ",.0f")} s.
        With users' requests it makes things worse on every log.

        **The first change is probably a slip**, and is left out here. As printed, delta_1 = s_1
        adds s_1 times 2500 s after the first batch, and the delay stays there
        ({_by_log(mean_delay[PRINTED], ",.0f")} s).

        **The logs are other versions.** The paper's have {min(more):.0f} to {max(more):.0f} % more
        jobs than our cleaned ones.
        """
    )


def _by_log(values: pd.Series[float], digits: str) -> str:
    """Write one number per log into a sentence."""
    return ", ".join(f"{log} {value:{digits}}" for log, value in values.items())
