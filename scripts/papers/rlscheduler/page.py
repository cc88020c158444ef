"""The page of RLScheduler's table: published numbers beside ours, and what other rules give."""

from __future__ import annotations

import pandas as pd

from papers.common.claims import BY_CASES
from papers.common.page import claims_table, document, prose
from papers.rlscheduler import simulator as theirs
from papers.rlscheduler.claims import RULES, claims, is_published
from papers.rlscheduler.run import (
    ANEW,
    CLEANED,
    COLUMNS,
    EASY,
    LOGS,
    MINUTES,
    MORE,
    ONE_PASS,
    PUBLISHED,
    QUEUE,
    SCORED,
    THERE,
    TRAINED,
    WAITS,
    WAITS_FILLED,
    Rerun,
)


def page(rerun: Rerun, command: str, seconds: float) -> str:
    """Return the page in Markdown.

    Args:
        rerun: The results.
        command: The command that writes the page.
        seconds: Wall time of the whole command, s.
    """
    return document(
        (
            "# RLScheduler's table, rerun",
            "## Findings",
            _view(rerun),
            "## Method",
            _what_was_run(rerun, command, seconds),
            "## The table",
            _differences(rerun),
            "## Trained under its rules",
            _of_training(),
            "## Claims",
            BY_CASES,
            claims_table(claims(rerun)),
        )
    )


def beside(rerun: Rerun) -> dict[str, pd.DataFrame]:
    """Return the tables that the page links to, by name: figures, rules, trained networks."""
    return {
        "rlscheduler_figures": _figures(rerun),
        "rlscheduler_rules": _other_rules(rerun),
        "rlscheduler_trained": _trained(rerun),
    }


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what was run."""
    return prose(
        f"""
        [Zhang et al. 2020](../references.md); the figures are of their code's README.

        Written by `{command}`, which took {seconds:.0f} s: {len(rerun.runs):,} simulations of
        {theirs.LENGTH:,} jobs each.

        Each figure is the mean bounded slowdown of {theirs.WINDOWS} windows of {theirs.LENGTH:,}
        jobs of a log. One job is chosen, and waited for until it starts.
        [Rules of reruns](../appendices/reruns.md#rlscheduler) has all rules. The log Lublin-2 is
        not at hand.
        """
    )


def _figures(rerun: Rerun) -> pd.DataFrame:
    """Set what `hpcgym.simulate` gives beside the figures of the table."""
    rows = [
        [
            *(log, "with" if backfill else "without", policy),
            f"{PUBLISHED[backfill, log][COLUMNS.index(policy)]:.2f}",
            f"{rerun.mean(log, THERE[backfill], policy):.2f}" if policy in RULES else "",
        ]
        for backfill, log in PUBLISHED
        for policy in COLUMNS
    ]
    return pd.DataFrame(rows, columns=["log", "backfilling", "policy", "published", "here"])


def _differences(rerun: Rerun) -> str:
    """Say which figures differ, and why; and what one pass an instant changes."""
    wrong = [
        f"{policy} on {log}"
        for backfill in (False, True)
        for log in LOGS
        for policy in RULES
        if not is_published(rerun, log, policy, backfill, THERE[backfill])
    ]
    n_equal = sum(
        is_published(rerun, log, policy, backfill, rules[backfill])
        for rules in (QUEUE, SCORED)
        for backfill in (False, True)
        for log in LOGS
        for policy in RULES
    )
    differ = sum(rerun.differing(log, rules) for log in LOGS for rules in SCORED.values())
    passes = [
        abs(rerun.mean(log, ONE_PASS[backfill], policy) / printed - 1.0)
        for (backfill, log), figures in PUBLISHED.items()
        for policy, printed in zip(RULES, figures, strict=False)
    ]
    lacking = int(rerun.facts["no_request"].sum())
    why = f"""
        {" and ".join(wrong)} differ because of {lacking} job that states neither a run time nor a
        request.
        """
    return prose(
        f"""
        [rlscheduler_figures.csv](rlscheduler_figures.csv) has all figures, beside what
        `hpcgym.simulate` gives with `backfill="{THERE[False].backfill}"`, or
        `"{THERE[True].backfill}"`, `event_semantics="one-by-one"`, `kill_at_limit=False`, on logs
        of `hpcgym.trace.as_found`.

        A plain-Python queue (`scripts/papers/rlscheduler/simulator.py`) gives all 30 figures of
        rules to the last digit. So does `simulate` where it is told the scores ({n_equal} of 60 in
        all; {differ} jobs start at another second). With our orders {30 - len(wrong)} do.
        {why if wrong else ""}
        With one pass an instant, as everywhere else in hpcgym, {sum(p > 5e-5 for p in passes)}
        of the 30 move, by at most {100 * max(passes):.1f} %.
        """
    )


def _other_rules(rerun: Rerun) -> pd.DataFrame:
    """Lay out the figures of each log by rules."""
    policies = ("FCFS", "SJF", "F1", *MORE)
    rows = [
        [log, rules.name, *(f"{rerun.mean(log, rules, policy):.2f}" for policy in policies)]
        for log in LOGS
        for rules in (WAITS, ANEW, EASY, CLEANED)
    ]
    return pd.DataFrame(rows, columns=["log", "rules", *policies])


def _view(rerun: Rerun) -> str:
    """Say what follows."""
    mean = rerun.mean
    sdsc = rerun.facts.set_index("log").loc["SDSC-SP2"]
    n_jobs = theirs.WINDOWS * theirs.LENGTH
    return prose(
        f"""
        **The choice.** To wait for a chosen job costs much: on Lublin-1 SJF falls from
        {mean("Lublin-1", WAITS, "SJF"):.2f} to {mean("Lublin-1", ANEW, "SJF"):.2f} where jobs are
        chosen anew. RL waits, too, so the table compares who loses least by that.

        **WFP3 and UNICEP.** The columns of these names are of other orders,
        `{dict(THERE[False].orders)["WFP3"]}` and `{dict(THERE[False].orders)["UNICEP"]}`. On
        Lublin-1 WFP3 itself gives {mean("Lublin-1", WAITS, "WFP3"):.2f} under the table's rules,
        and UNICEP {mean("Lublin-1", WAITS, "UNICEP"):.2f}, in place of
        {PUBLISHED[False, "Lublin-1"][1]:,.2f} and {PUBLISHED[False, "Lublin-1"][2]:,.2f}.

        **SDSC-SP2.** {sdsc["never_ran"]:,} of the {n_jobs:,} jobs were cancelled before they ran,
        and run for {theirs.NEVER_RAN_S} s here. FCFS under EASY gives
        {mean("SDSC-SP2", EASY, "FCFS"):.2f} with them, and
        {mean("SDSC-SP2", CLEANED, "FCFS"):.2f} without.
        [rlscheduler_rules.csv](rlscheduler_rules.csv) has more rules.

        **No held-out set.** The authors trained on the same {theirs.SLICE:,} jobs. And ten windows
        are few: SJF differs by a factor of {_spread(rerun):.0f} between those of Lublin-1.
        """
    )


def _spread(rerun: Rerun) -> float:
    """Return how much the largest window exceeds the smallest, for SJF on Lublin-1."""
    runs = rerun.runs
    of_sjf = (runs["rules"] == THERE[False].name) & (runs["policy"] == "SJF")
    windows = runs.loc[of_sjf & (runs["log"] == "Lublin-1"), "bsld"]
    return float(windows.max() / windows.min())


def _trained(rerun: Rerun) -> pd.DataFrame:
    """Set networks that were trained here beside the one published, and rules."""
    columns = ["log", "RL, published", "trained on the ten windows", "trained on windows apart"]
    columns += ["best rule, the same rules"]
    rows = []
    for (backfill, log), means in TRAINED.items():
        rules = WAITS_FILLED if backfill else WAITS
        least, name = min((rerun.mean(log, rules, key), key) for key in (*RULES, *MORE))
        row = [f"{log}, backfilling" if backfill else log, f"{PUBLISHED[backfill, log][-1]:.2f}"]
        row += [f"{mean:.2f}" for mean in means]
        row += [f"{least:.2f}: {name}"]
        row += [f"{rerun.mean(log, EASY, key):.2f}" for key in ("FCFS", "SAF", "SAF-REG")]
        rows.append(row)
    columns += ["FCFS under EASY", "SAF under EASY", "SAF-REG under EASY"]
    return pd.DataFrame(rows, columns=columns)


def _of_training() -> str:
    """Say how networks were trained, and what they reach."""
    return prose(
        f"""
        Networks of [`SharedRows`](../training.md#a-network-shared-over-rows-for-other-learners)
        stand beside the published one in [rlscheduler_trained.csv](rlscheduler_trained.csv). They
        learn under the paper's rules, in {MINUTES} minutes of processor time each:
        `python scripts/train_rlscheduler.py --minutes {MINUTES}`. "Windows apart" trains on the
        longest run of jobs in none of the ten windows.

        On HPC2N both networks are below the published one. On Lublin-1 only that of the ten windows
        is, without backfilling; on SDSC-SP2 none. SAF-REG under EASY is far below all of them on
        Lublin-1 and HPC2N.
        """
    )
