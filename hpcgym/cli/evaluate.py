"""`hpcgym evaluate`: compare agents on the weeks of a scenario, or of a log of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from hpcgym.cli.comparison import (
    Force,
    Jitter,
    Replicas,
    Resume,
    output_option,
    results_folder,
    run_cache_in,
    show_and_write,
)
from hpcgym.cli.options import (
    MachineFile,
    Placement,
    RequestedMemory,
    parse_threshold,
    read_machine,
)
from hpcgym.cli.show import Format, say
from hpcgym.errors import HpcgymError

FILES = ("runs.csv", "summary.csv", "comparison.png")
"""Files in the output folder: every run, one line per agent, the figure."""


def evaluate_agents(
    agents: Annotated[
        list[str],
        typer.Option(
            "--agents",
            "-a",
            help="Names, cards (.toml) or weights, separated by commas; may be given repeatedly.",
        ),
    ] = ["FCFS,SPF,SAF,SMITH"],  # noqa: B006 - read by typer, never changed
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", "-s", help="A name or a .toml; default synthetic-256-weeks."),
    ] = None,
    weeks: Annotated[
        str | None, typer.Option(help="Weeks to run, such as 65-100 or 1,3,5.")
    ] = None,
    jitter: Jitter = 0,
    replicas: Replicas = 0,
    seed: Annotated[
        int, typer.Option(help="Seed of copies, intervals and synthetic requests.")
    ] = 0,
    processes: Annotated[int, typer.Option(help="Processes to spread the weeks over.")] = 1,
    log: Annotated[
        str | None,
        typer.Option(help="A log of your own, or a table of jobs, in place of a scenario."),
    ] = None,
    processors: Annotated[
        int | None,
        typer.Option(help="With --log: size of the machine; default as its header says."),
    ] = None,
    machine: MachineFile = None,
    placement: Placement = "lowest",
    requested_memory: RequestedMemory = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS|none",
            help="With --log: wait beyond which a job goes first; default 200000.",
        ),
    ] = None,
    missing_request: Annotated[
        str | None,
        typer.Option(
            metavar="max|tsafrir|drop",
            help="With --log: what replaces requested times it lacks; default max.",
        ),
    ] = None,
    on_bad_line: Annotated[
        str | None,
        typer.Option(
            metavar="raise|drop",
            help="With --log: what to do with malformed lines; default raise.",
        ),
    ] = None,
    how: Format = "table",
    output: Annotated[Path | None, output_option(FILES)] = None,
    resume: Resume = False,
    force: Force = False,
) -> None:
    """Run agents on the same weeks and compare each with SAF, in pairs.

    Results are per week: mean and sum of the bounded slowdown, and its ratio to SAF with a paired
    bootstrap interval. With --output an interrupted run keeps its finished weeks; the same command
    with --resume goes on from there.
    """
    from hpcgym.agent.shelf import load_agent
    from hpcgym.evaluation import evaluate
    from hpcgym.evaluation.runner import DEFAULT_SCENARIO
    from hpcgym.scenario.episodes import Episodes
    from hpcgym.scenario.from_log import THRESHOLD_S, episodes_of_log

    needs_log = {
        "--processors": processors,
        "--machine": machine,
        "--placement": None if placement == "lowest" else placement,
        "--requested-memory": requested_memory or None,
        "--threshold": threshold,
        "--missing-request": missing_request,
        "--on-bad-line": on_bad_line,
    }
    for option, value in needs_log.items():
        if value is not None and log is None:
            raise HpcgymError(f"{option} goes with --log only; a scenario states its own")
    if log is not None and scenario is not None:
        raise HpcgymError("--log and --scenario are both given; give one of them")
    chosen = [load_agent(name) for given in agents for name in split_agents(given)]
    with results_folder(output, FILES, resume=resume, force=force) as folder:
        if log is None:
            episodes = Episodes(scenario or DEFAULT_SCENARIO)
            report = episodes.report
        else:
            episodes, report = episodes_of_log(
                log,
                processors=processors,
                missing_request=cast(Any, missing_request or "max"),
                threshold=THRESHOLD_S if threshold is None else parse_threshold(threshold),
                seed=seed,
                on_bad_line=cast(Any, on_bad_line or "raise"),
                machine=read_machine(machine, placement),
                placement=placement,
                requested_memory=requested_memory,
            )
        if report is not None and (log is not None or report.jobs < report.records):
            say(report, how)
        result = evaluate(
            chosen,
            episodes,
            weeks=weeks,
            jitter=jitter,
            replicas=replicas,
            seed=seed,
            processes=processes,
            resume=run_cache_in(folder, resume=resume),
        )
        frames = {"runs.csv": result.frame, "summary.csv": result.summary()}
        show_and_write(result, folder, frames, {"comparison.png": result}, how=how, force=force)


def split_agents(text: str) -> list[str]:
    """Split a list of agents at its commas, but not at those inside weights.

    Raises:
        HpcgymError: There is nothing between two commas.

    Example:
        >>> split_agents("FCFS,q=1,e=0.5,SAF")
        ['FCFS', 'q=1,e=0.5', 'SAF']
    """
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            raise HpcgymError(f"--agents {text!r}: an agent is missing at a comma")
        if "=" in part and names and "=" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names
