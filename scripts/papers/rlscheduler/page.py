"""The page of RLScheduler's table: published numbers beside ours, and what other rules give."""

from __future__ import annotations

from papers.common.claims import BY_CASES
from papers.common.page import claims_table, document, prose, table
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
            _what_was_run(rerun, command, seconds),
            "## Findings",
            _view(rerun),
            "## The table",
            _of_the_table(),
            _table(rerun, False),
            _table(rerun, True),
            _differences(rerun),
            "## The same windows under other rules",
            _of_other_rules(rerun),
            _other_rules(rerun),
            "## Trained under its rules",
            _of_training(),
            _trained(rerun),
            _of_trained(),
            "## Claims",
            BY_CASES,
            claims_table({"here": claims(rerun)}),
        )
    )


def _what_was_run(rerun: Rerun, command: str, seconds: float) -> str:
    """Say what was run."""
    return prose(
        f"""
        D. Zhang, D. Dai, Y. He, F. S. Bao, B. Xie: "RLScheduler: an automated HPC batch job
        scheduler using reinforcement learning", SC 2020. The figures are those of the README of
        its code, DIR-LAB/deep-batch-scheduler.

        Written by `{command}`, which took {seconds:.0f} s: {len(rerun.runs):,} simulations of
        {theirs.LENGTH:,} jobs each. It also writes every window as CSV, and a picture.

        Each figure is the mean bounded slowdown of {theirs.WINDOWS} windows of {theirs.LENGTH:,}
        jobs, which seed {theirs.SEED} draws among the first {theirs.SLICE:,} jobs of a log. The
        machine is empty when a window begins. One job is chosen, and waited for until it starts.
        [Rules of reruns](../appendices/reruns.md#rlscheduler) has all its rules. Lublin-2 is not
        run, since its log is not at hand.
        """
    )


def _of_the_table() -> str:
    """Say what the numbers of a cell are."""
    return prose(
        f"""
        *Published*, and behind it what `hpcgym.simulate` gives where that differs: with
        `backfill="{THERE[False].backfill}"`, or `"{THERE[True].backfill}"`,
        `event_semantics="one-by-one"`, `kill_at_limit=False`, on logs of `hpcgym.trace.as_found`.
        SJF is `SPF` here. WFP3 and UNICEP are `{dict(THERE[False].orders)["WFP3"]}` and
        `{dict(THERE[False].orders)["UNICEP"]}`. RL is the network that the authors trained.
        """
    )


def _table(rerun: Rerun, backfill: bool) -> str:
    """Lay out half of the table."""
    rows = []
    for log in LOGS:
        cells = []
        for policy in RULES:
            printed = PUBLISHED[backfill, log][COLUMNS.index(policy)]
            ours = f"{rerun.mean(log, THERE[backfill], policy):.2f}"
            differs = ours != f"{printed:.2f}"
            cells.append(f"*{printed:.2f}*" + (f" / {ours}" if differs else ""))
        rows.append([log, *cells, f"*{PUBLISHED[backfill, log][-1]:.2f}*"])
    name = "with backfilling" if backfill else "without backfilling"
    return table((name, *COLUMNS), rows)


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
    said = prose(
        f"""
        A plain-Python queue of 40 lines (`scripts/papers/rlscheduler/simulator.py`) gives all 30
        figures to the last digit. So does `simulate` where it is told the scores ({n_equal} of 60
        in all; {differ} jobs start at another second). With our orders {30 - len(wrong)} do.
        """
    )
    if wrong:
        said += "\n\n" + prose(
            f"""
            {" and ".join(wrong)} differ because of {lacking} job that states neither a run time nor
            a request. There its request stays -1 s, so it goes first.
            """
        )
    return (
        said
        + "\n\n"
        + prose(
            f"""
            With one pass an instant, as everywhere else in hpcgym, {sum(p > 5e-5 for p in passes)}
            of the 30 figures move, by at most {100 * max(passes):.1f} %.
            """
        )
    )


def _of_other_rules(rerun: Rerun) -> str:
    """Explain the rows of the tables to come."""
    sdsc = rerun.facts.set_index("log").loc["SDSC-SP2"]
    return prose(
        f"""
        Mean bounded slowdown of the jobs of RLScheduler's windows; none is killed.
        "{CLEANED.name}" leaves out what cleaning drops, on SDSC-SP2 the {sdsc["never_ran"]:,} jobs
        that never ran, and kills jobs at their requests. SAF, SAF-REG and SMITH-REG are no columns
        of the paper; the last two learn from users' completed jobs.
        """
    )


def _other_rules(rerun: Rerun) -> str:
    """Lay out the figures of each log by rules."""
    policies = ("FCFS", "SJF", "F1", *MORE)
    rows = [
        [log, rules.name, *(f"{rerun.mean(log, rules, policy):.2f}" for policy in policies)]
        for log in LOGS
        for rules in (WAITS, ANEW, EASY, CLEANED)
    ]
    return table(("log", "rules", *policies), rows)


def _view(rerun: Rerun) -> str:
    """Say what follows."""
    mean = rerun.mean
    sdsc = rerun.facts.set_index("log").loc["SDSC-SP2"]
    n_jobs = theirs.WINDOWS * theirs.LENGTH
    return prose(
        f"""
        **The choice.** To wait for a chosen job, whoever comes, costs much. On Lublin-1 SJF falls
        from {mean("Lublin-1", WAITS, "SJF"):.2f} to {mean("Lublin-1", ANEW, "SJF"):.2f} where jobs
        are chosen anew. RL waits for what it chose, too, so the table compares who loses least by
        that.

        **WFP3 and UNICEP.** The columns of these names are of other orders. On Lublin-1 WFP3
        itself gives {mean("Lublin-1", WAITS, "WFP3"):.2f} under the rules of the table, and
        UNICEP {mean("Lublin-1", WAITS, "UNICEP"):.2f}, in place of
        {PUBLISHED[False, "Lublin-1"][1]:,.2f} and {PUBLISHED[False, "Lublin-1"][2]:,.2f}.

        **SDSC-SP2.** {sdsc["never_ran"]:,} of the {n_jobs:,} jobs were cancelled before they ran,
        and run for {theirs.NEVER_RAN_S} s here. FCFS under EASY gives
        {mean("SDSC-SP2", EASY, "FCFS"):.2f} with them, and
        {mean("SDSC-SP2", CLEANED, "FCFS"):.2f} without. So that row mostly says how long such jobs
        waited.

        **No held-out set.** The authors trained on the same {theirs.SLICE:,} jobs. And ten windows
        are few: the same rule differs by a factor of {_spread(rerun):.0f} between windows of
        Lublin-1.
        """
    )


def _spread(rerun: Rerun) -> float:
    """Return how much the largest window exceeds the smallest, for SJF on Lublin-1."""
    runs = rerun.runs
    of_sjf = (runs["rules"] == THERE[False].name) & (runs["policy"] == "SJF")
    windows = runs.loc[of_sjf & (runs["log"] == "Lublin-1"), "bsld"]
    return float(windows.max() / windows.min())


def _trained(rerun: Rerun) -> str:
    """Set networks that were trained here beside the one published, and rules."""
    header = ["log", "RL, published", "trained on the ten windows", "trained on windows apart"]
    header += ["best rule, the same rules"]
    rows = []
    for (backfill, log), means in TRAINED.items():
        rules = WAITS_FILLED if backfill else WAITS
        least, name = min((rerun.mean(log, rules, key), key) for key in (*RULES, *MORE))
        row = [f"{log}, backfilling" if backfill else log, f"*{PUBLISHED[backfill, log][-1]:.2f}*"]
        row += [f"{mean:.2f}" for mean in means]
        row += [f"{least:.2f}: {name}"]
        row += [f"{rerun.mean(log, EASY, key):.2f}" for key in ("FCFS", "SAF", "SAF-REG")]
        rows.append(row)
    return table((*header, "FCFS under EASY", "SAF under EASY", "SAF-REG under EASY"), rows)


def _of_training() -> str:
    """Say how networks were trained, and by which rules the columns are."""
    return prose(
        f"""
        The authors' weights are not at hand, so the RL column is quoted. Beside it are networks of
        [`SharedRows`](../training.md#a-network-shared-over-rows-for-other-learners), trained by
        Stable-Baselines3's PPO under the paper's rules, by
        `python scripts/train_rlscheduler.py --minutes {MINUTES}`: {MINUTES} minutes of processor
        time each. "Windows apart" trains and chooses on the longest run of jobs that is in none of
        the ten windows. The best rule has right waits.
        """
    )


def _of_trained() -> str:
    """Say what the table of trained networks says."""
    return prose(
        """
        On HPC2N both networks are below the published one, with backfilling and without. On
        Lublin-1 only that of the ten windows is, without. On SDSC-SP2 none is: jobs that never ran
        make most of its slowdown. SAF-REG under EASY is far below all of them on Lublin-1 and
        HPC2N.
        """
    )
