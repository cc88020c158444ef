"""What each rung from FCFS to clairvoyance is worth, at which price, to whom and in which weeks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from hpcgym.agent import RuleAgent, load_card
from hpcgym.agent.contest import UNKNOWN
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import CrossValidationResult, Evaluation, cross_validate, evaluate
from hpcgym.evaluation.aggregate import ALL_LOGS, Aggregate, aggregate_frame
from hpcgym.evaluation.runner import Copies, Runner
from hpcgym.evaluation.statistics import Estimate, FloatArray, mean_over_logs, ratio_of_sums
from hpcgym.evaluation.waits import RATIOS, ratio_text
from hpcgym.evaluation.waste import means_of_waste
from hpcgym.trace.resample import JITTER_S
from research.front import FrontPoint

FIVE = ("kth-sp2-weeks", "ctc-sp2-weeks", "sdsc-sp2-weeks", "sdsc-blue-weeks", "hpc2n-weeks")
BESIDE = ("sdsc-par-weeks", "cea-curie-weeks")
"""Logs that means are taken over, and logs that stand beside them."""

GUARDED = "URGENT-BENEFIT"
OPEN = "URGENT-OPEN"
AGENTS = (
    *("FCFS", "SPF", "SAF", "SMITH", "SMITH-REG", "SMITH-URGENT", "SMITH-CAP"),
    *("SMITH-BENEFIT", "URGENT-CAP", GUARDED, OPEN, "CAP-OPEN"),
)
HEADLINE = "URGENT-YOUNG"
TRIALS = ("SAF-TRIAL", "SAF-CAP-TRIAL", "SMITH-TRIAL", "URGENT-TRIAL", "SAF-CAP-YOUNG", HEADLINE)
"""Agents that kill jobs; the best of them is the headline."""
OF_WASTE = ("SAF", GUARDED, *TRIALS)
"""Agents of the picture of waste."""

CLAIRVOYANT = ("KNOWS-SAF", "KNOWS-SMITH")
EXACT = {
    f"{GUARDED} that knows run times": ("SMITH-URGENT", GUARDED),
    "CAP-OPEN that knows run times": ("SMITH-REG", "CAP-OPEN"),
}
"""Order and card of agents that plan with run times in place of requests, and so expect them."""

STEPS = (
    *(("FCFS", "SPF"), ("SPF", "SAF"), ("SMITH", "SMITH-REG")),
    *(("SMITH-REG", "URGENT-CAP"), ("URGENT-CAP", GUARDED), (GUARDED, OPEN)),
    (GUARDED, f"{GUARDED} that knows run times"),
)
"""Rungs that are compared with each other."""

THRESHOLDS_S = (50_000, 100_000, 150_000, 300_000, 500_000, None)
"""Thresholds of SAF beside the scenarios' own."""

SIZE = "processors, of the machine"
SIZES = {"up to 10 %": 0.1, "10 to 50 %": 0.5, "over 50 %": 1.0}
"""Classes of jobs by the largest share of the machine."""

RUN_TIMES_S = {"up to 5 min": 300, "5 min to 2 h": 7_200, "over 2 h": np.inf}
"""Classes of jobs by the longest run time, s."""


def rungs(scenarios: Sequence[str], replicas: int, resume: Path | None) -> CrossValidationResult:
    """Run every rung on every week of some logs."""
    know = [
        RuleAgent(
            order, backfill=load_card(card).environment["backfill"], estimates="exact", name=name
        )
        for name, (order, card) in EXACT.items()
    ]
    return cross_validate(
        [*AGENTS, *TRIALS, *know],
        scenarios,
        jitter=JITTER_S if replicas else 0,
        replicas=replicas,
        baselines=CLAIRVOYANT,
        resume=resume,
    )


def trials(scenarios: Sequence[str], replicas: int, resume: Path | None) -> CrossValidationResult:
    """Run SAF, the best agent without kills, and all with trials on every week of some logs."""
    jitter = JITTER_S if replicas else 0
    agents = [GUARDED, *TRIALS]
    return cross_validate(
        agents, scenarios, jitter=jitter, replicas=replicas, baselines=(), resume=resume
    )


def with_thresholds(evaluation: Evaluation, resume: Path | None) -> Evaluation:
    """Add SAF under other thresholds to an evaluation, on the same weeks and copies."""
    frames, waits = [evaluation.frame], dict(evaluation.waits)
    spec = Episodes(evaluation.scenario).scenario
    for threshold in THRESHOLDS_S:
        changed = replace(spec, scheduler=replace(spec.scheduler, threshold_s=threshold))
        found = evaluate(
            ["SAF"],
            Episodes(changed),
            jitter=evaluation.jitter,
            replicas=evaluation.replicas,
            seed=evaluation.seed,
            resume=resume,
        )
        name = saf_under(threshold)
        frames.append(found.frame.assign(agent=name))
        waits |= {(name, week, copy): one for (_, week, copy), one in found.waits.items()}
    return replace(
        evaluation,
        frame=pd.concat(frames, ignore_index=True),
        waits=waits,
        contests={**evaluation.contests, **{saf_under(one): UNKNOWN for one in THRESHOLDS_S}},
    )


def saf_under(threshold: int | None) -> str:
    """Name SAF under another threshold."""
    return "SAF under no threshold" if threshold is None else f"SAF under {threshold // 1000},000 s"


def summary_of(logs: Sequence[Evaluation], means: Sequence[Aggregate]) -> pd.DataFrame:
    """Return one row per log and agent, as `Evaluation.summary`, and a row for each mean."""
    frames = []
    for one in logs:
        frame = one.summary()
        frame.insert(0, "scenario", one.scenario)
        frames.append(frame)
    return pd.concat([*frames, aggregate_frame(means)], ignore_index=True)


def of_all_logs(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the means over logs of each agent, the highest ratio first."""
    rows = summary[summary["scenario"] == ALL_LOGS].sort_values("ratio", ascending=False)
    ratios = zip(rows["ratio"], rows["ratio_low"], rows["ratio_high"], strict=True)
    columns = {"rung": [*rows["agent"]], "contest": [*rows["contest"]]}
    columns["ratio to SAF"] = ["{:.3f} [{:.3f}, {:.3f}]".format(*one) for one in ratios]
    heads = ("p99.9 of waits", "longest wait", "jobs beyond the threshold")
    for head, name in zip(heads, RATIOS, strict=True):
        columns[head] = [*map(ratio_text, rows[name])]
    return pd.DataFrame(columns)


def steps(logs: Sequence[Evaluation]) -> pd.DataFrame:
    """Return what each of `STEPS` is worth: the geometric mean over logs of its ratio to a rung."""
    rows = []
    for lower, upper in STEPS:
        pairs = [(one.values(upper), one.values(lower)) for one in logs]
        ratio = mean_over_logs([ratio_of_sums(*pair) for pair in pairs])
        rows.append({"from": lower, "to": upper, "ratio": str(ratio)})
    return pd.DataFrame(rows)


def front_points(means: Sequence[Aggregate], names: Mapping[str, str]) -> list[FrontPoint]:
    """Return agents by the labels that a picture gives them, in its order."""
    found = {one.agent: one for one in means}
    return [
        FrontPoint(label, found[name].contest, found[name].ratio, found[name].waits[0])
        for name, label in names.items()
    ]


def waste_points(
    logs: Sequence[Evaluation], means: Iterable[Aggregate], names: Sequence[str]
) -> list[FrontPoint]:
    """Return agents by the mean over logs of the share of the machine that they waste, in %."""
    found = {one.agent: one for one in means}
    wasted = [means_of_waste(one.frame)["waste"] for one in logs]
    return [
        FrontPoint(
            name,
            found[name].contest,
            found[name].ratio,
            100 * float(np.mean([one[name] for one in wasted])),
        )
        for name in names
    ]


def class_sums(runner: Runner, agent: int) -> FloatArray:
    """Run an agent on all weeks and copies, and sum over the jobs of each class.

    Returns:
        Jobs, bounded slowdowns and waits, shape (3, n_sizes, n_run_times, n_weeks).
    """
    found = np.zeros((3, len(SIZES), len(RUN_TIMES_S), len(runner.episodes)))
    for week in range(len(runner.episodes)):
        for replica in range(runner.copies.replicas + 1):
            jobs = runner.replica(week, replica)
            schedule = runner.schedule(agent, week, jobs)
            share = jobs.processors / jobs.machine_processors
            size = np.searchsorted(list(SIZES.values()), share)
            run_time = np.searchsorted(list(RUN_TIMES_S.values()), schedule.run_time)
            values = (np.ones(len(share)), schedule.bsld(), schedule.wait_time)
            for place, column in enumerate(values):
                np.add.at(found[place, :, :, week], (size, run_time), column)
    return found


def by_class(scenarios: Sequence[str], agents: Sequence[str], replicas: int) -> pd.DataFrame:
    """Compare agents with SAF by class of jobs.

    A row per class: its share of the jobs and of SAF's sum of bounded slowdowns, in the mean over
    the logs; the geometric means over the logs of the ratios to SAF of bounded slowdown and wait.
    """
    sums: dict[str, list[FloatArray]] = {name: [] for name in ("SAF", *agents)}
    for scenario in scenarios:
        rules = [load_card(name).agent for name in sums]
        jitter = JITTER_S if replicas else 0
        runner = Runner(rules, Episodes(scenario), Copies(jitter, replicas))
        for agent, name in enumerate(sums):
            sums[name].append(class_sums(runner, agent))
    parts = [one.sum(axis=3) for one in sums["SAF"]]
    shares = np.mean([one / one.sum(axis=(1, 2), keepdims=True) for one in parts], axis=0)
    rows = []
    for place in np.ndindex(len(SIZES), len(RUN_TIMES_S)):
        row = {SIZE: list(SIZES)[place[0]], "run time": list(RUN_TIMES_S)[place[1]]}
        for kind, column in enumerate(("jobs", "of SAF's sum")):
            row[column] = f"{100 * shares[kind][place]:.1f} %"
        for name, (kind, column) in product(agents, ((1, "bounded slowdown"), (2, "wait"))):
            logs = zip(sums[name], sums["SAF"], strict=True)
            ratios = [ratio_by_week(own[kind][place], saf[kind][place]) for own, saf in logs]
            row[f"{name}: {column}"] = str(mean_over_logs(ratios))
        rows.append(row)
    return pd.DataFrame(rows)


def ratio_by_week(own: FloatArray, saf: FloatArray) -> Estimate:
    """Return the ratio of sums over weeks."""
    return ratio_of_sums(own[:, None], saf[:, None])


def weeks_of(evaluation: Evaluation, agent: str) -> pd.DataFrame:
    """Return what an agent gains over SAF in each week, the most lost first.

    A copy is lost, or the original, where it is worse than SAF's; `share` is the week's part of
    SAF's sum.
    """
    own, saf = evaluation.values(agent), evaluation.baseline_values(agent)
    change = (own - saf).mean(axis=1)
    found = pd.DataFrame(
        {
            "log": evaluation.scenario.removesuffix("-weeks"),
            "week": evaluation.weeks,
            "SAF": saf.mean(axis=1),
            agent: own.mean(axis=1),
            "change": change / saf.mean(axis=1).sum(),
            f"copies lost, of {own.shape[1]}": (own > saf).sum(axis=1),
            "share": saf.mean(axis=1) / saf.mean(axis=1).sum(),
        }
    )
    return found.sort_values("change", ascending=False, ignore_index=True)


def lost_jobs(runner: Runner, number: int) -> dict[str, object]:
    """Return what the ten jobs of a week that lose most to SAF's schedule have in common.

    The runner's agents are SAF and the one compared. Means are over the week and its copies.
    """
    found = []
    week = runner.episodes.position(number)
    for replica in range(runner.copies.replicas + 1):
        jobs = runner.replica(week, replica)
        saf, own = (runner.schedule(agent, week, jobs) for agent in (0, 1))
        lost = own.bsld() - saf.bsld()
        ten = np.argsort(lost)[-10:]
        ran, asked = saf.run_time[ten], jobs.requested_time[ten]
        found.append((lost.sum(), lost[ten].sum(), (ran <= 120).sum(), (asked > 7_200).sum()))
    total, of_ten, short, asked_long = np.mean(found, axis=0)
    return {
        "ten jobs lose": f"{of_ten / total:.1f}",
        "of them, run up to 2 min": f"{short:.1f}",
        "ask for over 2 h": f"{asked_long:.1f}",
    }


def lost_weeks(evaluation: Evaluation, agent: str, most: int) -> pd.DataFrame:
    """Return the weeks that cost an agent most, with what their ten jobs have in common.

    Fewer than `most` where an agent loses fewer weeks.
    """
    rules = [load_card(name).agent for name in ("SAF", agent)]
    copies = Copies(evaluation.jitter, evaluation.replicas, evaluation.seed)
    runner = Runner(rules, Episodes(evaluation.scenario), copies)
    found = weeks_of(evaluation, agent).head(most)
    found = found[found["change"] > 0].copy()
    found["change"] = [f"{100 * change:+.2f} %" for change in found["change"]]
    jobs = pd.DataFrame([lost_jobs(runner, week) for week in found["week"]])
    found["log"] = [f"{log}, {week}" for log, week in zip(found["log"], found["week"], strict=True)]
    found = found.drop(columns=["share", "week"]).rename(columns={"log": "log, week"})
    return pd.concat([found.round(1), jobs], axis=1)


def by_weight(logs: Iterable[Evaluation], agent: str) -> pd.DataFrame:
    """Return the ratio to SAF in each third of a log's weeks, from light to heavy ones."""
    rows = []
    for one in logs:
        own, saf = (v.mean(axis=1) for v in (one.values(agent), one.baseline_values(agent)))
        row: dict[str, object] = {"log": one.scenario.removesuffix("-weeks")}
        thirds = np.array_split(np.argsort(saf), 3)
        for name, weeks in zip(("light", "middle", "heavy"), thirds, strict=True):
            row[f"{name} weeks"] = str(ratio_by_week(own[weeks], saf[weeks]))
        row["weeks better, worse"] = f"{(own < saf).sum()}, {(own > saf).sum()}"
        rows.append(row)
    return pd.DataFrame(rows)


def by_log(logs: Iterable[Evaluation]) -> pd.DataFrame:
    """Return the ratios to SAF of the rules that a page compares, a row for each log."""
    rows = []
    for one in logs:
        found = {summary.agent: summary for summary in one.summaries}
        row = {"log": one.scenario.removesuffix("-weeks")}
        for name in ("SMITH-REG", "URGENT-CAP", GUARDED, OPEN, f"{GUARDED} that knows run times"):
            row[name] = str(found[name].ratio)
            if name in (GUARDED, OPEN):
                waits = found[name].waits.columns()
                shown = (waits["p999_wait_ratio"], waits["max_wait_ratio"])
                row[f"{name}: p99.9, longest wait"] = ", ".join(map(ratio_text, shown))
        rows.append(row)
    return pd.DataFrame(rows)
