"""The episodes of a person's own log, without a scenario file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from hpcgym.base.keywords import refuse_unknown
from hpcgym.env.scenario import spec
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.slicing import cleaned_log
from hpcgym.machine import Machine
from hpcgym.trace.catalogue import find_log
from hpcgym.trace.cleaning_report import CleaningReport
from hpcgym.trace.split import WEEK_S

THRESHOLD_S = 200_000  # wait beyond which a job goes first in the weekly scenarios, s


def episodes_of_log(
    name_or_path: str | Path,
    *,
    processors: int | None = None,
    machine: Machine | None = None,
    seed: int = 0,
    **stated: Any,
) -> tuple[Episodes, CleaningReport]:
    """Read and clean a log and cut it into weeks, as the `<log>-weeks` scenarios are.

    A log without a whole week after its first is one episode. Jobs wider than the machine are
    dropped and counted in the report.

    Args:
        name_or_path: A log in SWF, a table of jobs, or the name of a log.
        processors: Processors of the machine; None = what the log's header states.
        machine: A machine of nodes, in place of `processors`.
        seed: Seed of the synthetic requests of `missing_request="tsafrir"`.
        **stated: Fields of `TraceSpec` and `SchedulerSpec`, without the unit in their names. By
            default `missing_request` is "max", and `threshold` THRESHOLD_S.

    Returns:
        The episodes, of a scenario named after the log, and the report of the cleaning.

    Raises:
        TraceError: The log cannot be found, read or cleaned.
        ScenarioError: `missing_request` is "run" and estimates are not "exact", which would show
            true run times to the agent; or an option is not allowed.
    """
    defaults = {"missing_request": "max", "threshold": THRESHOLD_S, "on_wide_job": "drop"}
    stated = {**defaults, **stated}
    tables = (spec.TraceSpec, spec.SchedulerSpec)
    keys = [
        {field.name.removesuffix("_s"): field.name for field in fields(table)} for table in tables
    ]
    refuse_unknown("setting", stated, [*keys[0], *keys[1]])
    in_trace, in_scheduler = (
        {key: stated[name] for name, key in each.items() if name in stated} for each in keys
    )
    synthetic = stated["missing_request"] == "tsafrir"
    trace = spec.TraceSpec(
        file=str(find_log(name_or_path).absolute()),
        tsafrir_seed=seed if synthetic else None,
        **in_trace,
    )
    scheduler = spec.SchedulerSpec(**in_scheduler)
    waits = scheduler.dependencies != "ignore"
    workload, report = cleaned_log(trace, processors, machine, scheduler.placement, waits)
    has_weeks = int(workload.submit_time[-1]) >= 2 * WEEK_S
    episode: spec.EpisodeSpec = spec.WeekEpisodes() if has_weeks else spec.WholeEpisode()
    description = f"{'Weeks' if has_weeks else 'The whole'} of {workload.name}."
    if synthetic:
        description += f" SYNTHETIC requests (Tsafrir 2005, seed {seed}) stand in for missing ones."
    scenario = spec.Scenario(
        name=workload.name,
        description=description,
        trace=trace,
        machine=spec.MachineSpec(workload.machine_processors, workload.largest_request, machine),
        episode=episode,
        scheduler=scheduler,
    )
    return Episodes(scenario), report
