"""The episodes of a person's own log, without a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcgym.machine import Machine
from hpcgym.scenario import spec
from hpcgym.scenario.episodes import Episodes
from hpcgym.scenario.slicing import cleaned_log
from hpcgym.trace.catalogue import find_log
from hpcgym.trace.clean import CleaningReport
from hpcgym.trace.split import WEEK_S

THRESHOLD_S = 200_000
"""Wait beyond which a job goes first in the weekly scenarios, s."""


def episodes_of_log(
    name_or_path: str | Path,
    *,
    processors: int | None = None,
    missing_request: spec.MissingRequest = "max",
    threshold: int | None = THRESHOLD_S,
    seed: int = 0,
    on_bad_line: spec.OnBadLine = "raise",
    machine: Machine | None = None,
    placement: str = "lowest",
    requested_memory: bool = False,
    max_request: int | None = None,
    minimum_run_time: int = 0,
    **scheduler: Any,
) -> tuple[Episodes, CleaningReport]:
    """Read and clean a log and cut it into weeks, as the `<log>-weeks` scenarios are.

    A log without a whole week after its first is one episode. Jobs wider than the machine are
    dropped and counted in the report.

    Args:
        name_or_path: A log in SWF, a table of jobs, or the name of a log.
        processors: Processors of the machine; None = what the log's header states.
        missing_request: Replacement of a request that the log lacks: "max", "tsafrir" or "drop".
        threshold: Wait beyond which a job goes first, s; None = never.
        seed: Seed of the synthetic requests of "tsafrir".
        on_bad_line: "raise", or "drop" to leave malformed lines out.
        machine: A machine of nodes, in place of `processors`.
        placement: Which nodes a job gets there.
        requested_memory: Whether a record of an SWF log asks for memory there.
        max_request: Longer requests are cut to this, s; None = no cut.
        minimum_run_time: Jobs that ran shorter are dropped, s.
        scheduler: Further fields of `hpcgym.scenario.spec.SchedulerSpec`, such as `backfill`.

    Returns:
        The episodes, of a scenario named after the log, and the report of the cleaning.

    Raises:
        TraceError: The log cannot be found, read or cleaned.
        ScenarioError: `missing_request` is "run" and estimates are not "exact", which would show
            true run times to the agent; or an option is not allowed.

    Example:
        >>> episodes, report = episodes_of_log("tiny")
        >>> episodes.scenario.machine, report.jobs
        (MachineSpec(processors=4, largest_request_s=120, nodes=None), 8)
    """
    synthetic = missing_request == "tsafrir"
    trace = spec.TraceSpec(
        missing_request=missing_request,
        file=str(find_log(name_or_path).absolute()),
        tsafrir_seed=seed if synthetic else None,
        max_request_s=max_request,
        minimum_run_time_s=minimum_run_time,
        on_bad_line=on_bad_line,
        on_wide_job="drop",
        requested_memory=requested_memory,
    )
    workload, report = cleaned_log(trace, processors, machine, placement)
    has_weeks = int(workload.submit_time[-1]) >= 2 * WEEK_S
    episode: spec.EpisodeSpec = spec.WeekEpisodes() if has_weeks else spec.WholeEpisode()
    scenario = spec.Scenario(
        name=workload.name,
        description=f"{'Weeks' if has_weeks else 'The whole'} of {workload.name}."
        + (
            f" SYNTHETIC requests (Tsafrir 2005, seed {seed}) stand in for missing ones."
            if synthetic
            else ""
        ),
        trace=trace,
        machine=spec.MachineSpec(workload.machine_processors, workload.largest_request, machine),
        episode=episode,
        scheduler=spec.SchedulerSpec(threshold_s=threshold, placement=placement, **scheduler),
    )
    return Episodes(scenario), report
