"""`hpcgym plot`: draw schedules, of a log under some policies or from files, as one picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.cli import options
from hpcgym.cli.evaluate import split_agents
from hpcgym.cli.show import echo

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.machine import Machine
    from hpcgym.schedule.schedule import Schedule


_OF_A_MACHINE = ("processors", "machine", "requested_memory", "timezone")


@options.with_options({name: options.OF_A_LOG[name] for name in _OF_A_MACHINE})
def plot_log(
    context: typer.Context,
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG|SCHEDULE.csv...",
            help="A log, which is scheduled first; or schedules that `hpcgym simulate LOG "
            "--output FILE` wrote as .csv, which are drawn as they are.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .png, .svg or .pdf.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind", "-k", metavar="KIND", help="gantt, usage, distribution, hours or sizes."
        ),
    ] = "gantt",
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            rich_help_panel=options.SCHEDULER,
            help="Policies of a log, separated by commas.",
        ),
    ] = ["FCFS"],  # noqa: B006 - read by typer, never changed
    backfill: Annotated[list[str], options.OF_SETTINGS["backfill"]] = ["easy"],  # noqa: B006
    threshold: Annotated[str, options.OF_SETTINGS["threshold"]] = options.NO_THRESHOLD,
    estimates: Annotated[str, options.OF_SETTINGS["estimates"]] = "requested",
    placement: Annotated[str, options.OF_SETTINGS["placement"]] = "lowest",
    days: Annotated[
        str | None,
        typer.Option(metavar="FIRST-LAST", help="Days to draw, from the start of the log."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Jobs of a Gantt chart at most; default 2000.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    **of_a_machine: Any,
) -> None:
    """Draw schedules: over time, as distributions, or as heat maps.

    Several policies, modes (--backfill, repeatedly) or files come into one picture. For other
    settings of the scheduler, write a schedule with `hpcgym simulate` and draw that.
    """
    from hpcgym.agent.own import load_backfill, load_policy, load_predictor
    from hpcgym.base.output import ensure_writable
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.evaluation.pictures.plots import check_kind, plot_schedules
    from hpcgym.evaluation.pictures.style import blank_figure, format_of

    processors, machine = of_a_machine.pop("processors"), of_a_machine.pop("machine")
    check_kind(kind, jobs)
    format_of(output)
    ensure_writable(output, force=force)
    blank_figure(1, 1)  # refuse before a long run where matplotlib is missing
    shown = None if days is None else parse_days(days)
    is_made = any(map(_is_schedule, logs))
    idle = options.idle_on_machine(machine)
    if is_made:
        of_a_log = ("policy", "backfill", "threshold", "estimates", "machine", "timezone")
        idle |= dict.fromkeys(of_a_log, "on a schedule, which is drawn as it is")
    options.refuse_idle(context, idle)
    nodes = options.read_machine(machine)
    runs = [
        SchedulerSettings(
            policy=load_policy(name),
            backfill=load_backfill(mode),
            threshold=options.parse_threshold(threshold),
            estimates=load_predictor(estimates),
            placement=placement,
        )
        for given in policy
        for name in split_agents(given)
        for mode in backfill
    ]
    if is_made:
        schedules = _read_all(logs, processors)
    elif len(logs) == 1:
        schedules = _simulated(context, logs[0], runs, processors, nodes, **of_a_machine)
    else:
        raise HpcgymError(f"{len(logs)} logs are given; one is scheduled and drawn at a time")
    plot_schedules(schedules, kind, output, days=shown, jobs=jobs, force=force)
    echo(f"wrote {output}")


def parse_days(text: str) -> tuple[float, float]:
    """Return first and last day of `--days`."""
    first, _, last = text.partition("-")
    try:
        days = float(first), float(last)
    except ValueError:
        raise HpcgymError(f"--days {text!r}: write two numbers, as in 14-21") from None
    if not 0 <= days[0] < days[1]:
        raise HpcgymError(f"--days {text!r}: the first day must lie below the last")
    return days


def _simulated(
    context: typer.Context,
    log: str,
    runs: list[SchedulerSettings],
    processors: int | None,
    machine: Machine | None,
    **reading: Any,
) -> dict[str, Schedule]:
    """Schedule a log under each of some settings, after saying which jobs are kept."""
    from hpcgym.schedule.simulate import simulate
    from hpcgym.trace import load_with_report

    workload, report = load_with_report(
        options.log_at(context, log),
        machine_processors=processors,
        machine=machine,
        placement=runs[0].placement,
        **reading,
    )
    options.show_report(context, report, kill=True)
    for mode in {run.backfill: run for run in runs}.values():
        policies = dict.fromkeys(str(options.named(run.policy)) for run in runs)
        options.show_settings(context, mode, f"policy {', '.join(policies)}", missing_request="run")
    return {
        label: simulate(workload, **vars(run))
        for label, run in zip(_labels(runs), runs, strict=True)
    }


def _labels(runs: list[SchedulerSettings]) -> list[str]:
    """Name runs by what they differ in: policy, backfilling mode or both."""
    policies = [str(options.named(run.policy)) for run in runs]
    modes = [str(run.backfill) for run in runs]
    if len(set(modes)) == 1 < len(runs):
        return policies
    if len(set(policies)) == 1 < len(runs):
        return modes
    return [f"{policy}, backfill {mode}" for policy, mode in zip(policies, modes, strict=True)]


def _is_schedule(path: str) -> bool:
    """Tell whether a file begins like a schedule that `Schedule.to_csv` wrote."""
    if not path.endswith(".csv") or not Path(path).is_file():
        return False
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return {"start_time", "backfilled"} <= set(file.readline().strip().split(","))


def _read_all(paths: list[str], processors: int | None) -> dict[str, Schedule]:
    """Read schedules by the stems of their names, or by whole names where stems are equal."""
    logs = [path for path in paths if not _is_schedule(path)]
    if logs:
        raise HpcgymError(f"schedules and other files are not drawn together: {', '.join(logs)}")
    stems = [Path(path).stem for path in paths]
    names = stems if len(set(stems)) == len(paths) else paths
    return {name: _read(path, name, processors) for name, path in zip(names, paths, strict=True)}


def _read(path: str, name: str, processors: int | None) -> Schedule:
    """Read a schedule, and say the size of the machine where nobody does; refuse another file."""
    import numpy as np
    import pandas as pd

    from hpcgym.core.workload import Workload
    from hpcgym.schedule.export import CSV_COLUMNS
    from hpcgym.schedule.schedule import Schedule

    try:
        known = {*CSV_COLUMNS, "eligible_time"}
        table = pd.read_csv(path, usecols=lambda key: key in known).astype(np.int64)
        if lacks := [key for key in CSV_COLUMNS if key not in table]:
            raise ValueError(f"it lacks {', '.join(lacks)}")
    except (ValueError, UnicodeDecodeError) as error:
        raise HpcgymError(f"{path}: is no schedule of `hpcgym simulate`: {error}") from None
    table = _started(path, table.sort_values("submit_time", kind="stable"))
    most = _most_held(table)
    size = most if processors is None else processors
    if processors is None:
        echo(f"{path}: {most} processors, the most held at once; --processors says another")
    if size < most:
        raise HpcgymError(f"{path}: {most} processors are held at once, not {processors} at most")
    offset = int(table["submit_time"].iloc[0])
    jobs = Workload.from_frame(
        table.assign(submit_time=table["submit_time"] - offset), machine_processors=size, name=name
    )
    jobs = replace(jobs, time_offset=offset)
    start = table["start_time"].to_numpy() - offset
    backfilled = table["backfilled"].to_numpy(dtype=bool)
    eligible = None
    if "eligible_time" in table:
        eligible = table["eligible_time"].to_numpy() - offset
    overdue = np.zeros_like(backfilled)
    return Schedule(jobs, start, jobs.run_time, backfilled, overdue, eligible_time=eligible)


def _started(path: str, table: pd.DataFrame) -> pd.DataFrame:
    """Leave out, and count, the jobs without a start: lost, cancelled or still waiting."""
    kept = table[table["start_time"] >= 0]
    if len(kept) == 0:
        raise HpcgymError(f"{path}: no job has started")
    if len(kept) < len(table):
        left_out = len(table) - len(kept)
        echo(f"{path}: {left_out} of {len(table)} jobs have no start, and are left out")
    return kept


def _most_held(table: pd.DataFrame) -> int:
    """Return the most processors that jobs hold at once; at one instant ends come first."""
    import pandas as pd

    starts = pd.DataFrame({"time": table["start_time"], "height": table["processors"]})
    end_time = table["start_time"] + table["run_time"]
    ends = pd.DataFrame({"time": end_time, "height": -table["processors"]})
    changes = pd.concat([ends, starts]).groupby("time", sort=True)["height"].sum()
    return max(int(changes.cumsum().max()), int(table["processors"].max()))
