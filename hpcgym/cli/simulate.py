"""`hpcgym simulate`: schedule one log, print the metrics, write the schedule to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import duration
from hpcgym.cli import options
from hpcgym.cli.show import (
    Format,
    groups_of,
    say,
    show_frame,
    show_groups,
    show_metrics,
    show_resources,
)
from hpcgym.core.setting_list import SETTINGS

if TYPE_CHECKING:
    from hpcgym.core.events import Event
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.core.workload import Workload
    from hpcgym.schedule.schedule import Schedule


DEFAULTS: dict[str, Any] = {
    **{name: SETTINGS[name].default for name in options.OF_SETTINGS},
    "threshold": options.NO_THRESHOLD,
    "missing_request": "run",
    "minimum_run_time": 0,
    "on_bad_line": "raise",
}
"""What the options of a log are where they are not given."""


ATTEMPTS = Annotated[
    bool, typer.Option("--attempts", help="Write a row per attempt, not per job (.csv).")
]


OUTAGES = Annotated[
    list[str] | None,
    typer.Option(
        "--outage",
        metavar="OUTAGE",
        rich_help_panel=options.SCHEDULER,
        help="FROM,TO,COUNT: so many processors are down, times in s on the log's clock; on a "
        "machine of nodes FROM,TO,nodes=0-3/7. Always known, unless a fourth number says since "
        "when. May be given several times.",
    ),
]


@options.with_options(
    options.OF_A_LOG | {"attempts": (ATTEMPTS, False), "outage": (OUTAGES, None)}, **DEFAULTS
)
def simulate_log(
    context: typer.Context,
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A file in SWF (.swf, or packed: .gz, .bz2, .xz), a table of jobs (.csv, "
            ".parquet), a log's name, or - for standard input.",
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="Order of the waiting jobs: a policy, q=..,e=..,wait=.., or one of your own, "
            "file.py:Name or module:Name, which runs that file.",
        ),
    ] = "FCFS",
    seed: Annotated[
        int, typer.Option(help="Seed of --missing-request tsafrir.", rich_help_panel=options.LOG)
    ] = 0,
    shapes: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Shapes that jobs choose from when they are submitted: columns job_id, "
            "processors, requested_time, run_time. Jobs it does not name keep theirs.",
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Weight of processor-seconds in that choice; 0 = none.")
    ] = 0.0,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP", help="Show the metrics by class, user, partition or resource, too."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --by: the first N groups only; users by their work."),
    ] = None,
    how: Format = "table",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the schedule: .csv, .parquet, .batsim.csv (for evalys), .swf or .swf.gz.",
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="default|all", help="Columns of a .csv or .parquet file.")
    ] = "default",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    **given: Any,
) -> None:
    """Schedule a whole log and show the metrics of the schedule.

    The output has one row per simulated job, by submit time. Times are on the log's own clock; run
    times are as executed.
    """
    from hpcgym.agent.own import load_backfill, load_policy, load_predictor
    from hpcgym.base.output import ensure_writable
    from hpcgym.base.progress import steps
    from hpcgym.core.events import as_events
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.schedule.export import check_suffix, write_csv
    from hpcgym.schedule.simulate import simulate
    from hpcgym.trace import load_with_report

    readers: dict[str, Callable[[str], Any]] = {
        "backfill": load_backfill,
        "backfill_order": lambda order: order and load_policy(order),
        "threshold": options.parse_threshold,
        "estimates": load_predictor,
    }
    settings = {"policy": load_policy(policy)} | {
        name: readers[name](given[name]) if name in readers else given[name]
        for name in options.OF_SETTINGS
    }
    settings["events"] = [*as_events(given["events"]), *map(_outage_of, given["outage"] or ())]
    chosen = SchedulerSettings(**settings)  # refuse before the log is read
    nodes = options.read_machine(given["machine"])
    if given["attempts"] and not chosen.on(nodes).requeues:
        raise HpcgymError(
            f"--attempts: under backfill '{chosen.backfill}' each job has one attempt; with "
            "trials, such as easy+trial, and with --outage it may have more"
        )
    if top is not None and (top < 1 or by in (None, "resource")):
        raise HpcgymError(f"--top {top}: give at least 1, with --by class, user or partition")
    draws = given["missing_request"] == "tsafrir"
    idle = {
        **options.idle_options(chosen),
        **options.idle_on_machine(given["machine"]),
        "seed": None if draws else "without --missing-request tsafrir",
        "alpha": None if shapes is not None else "without --shapes",
        "force": None if output is not None else "without --output",
        "columns": None if output is not None else "without --output",
        "attempts": None if output is not None else "without --output",
    }
    options.refuse_idle(context, idle)
    if output is not None:
        suffix = check_suffix(output, cast(Any, columns))
        if given["attempts"] and suffix != ".csv":
            raise HpcgymError(f"--attempts writes a .csv file; got {output}")
        ensure_writable(output, force=force)
    workload, report = load_with_report(
        options.log_at(context, log),
        on_bad_line=given["on_bad_line"],
        timezone=given["timezone"],
        machine_processors=given["processors"],
        missing_request=given["missing_request"],
        max_request=given["max_request"],
        minimum_run_time=given["minimum_run_time"],
        seed=seed,
        machine=nodes,
        placement=given["placement"],
        requested_memory=given["requested_memory"],
        dependencies=given["dependencies"] != "ignore",
    )
    options.show_report(context, report, kill=given["kill_at_limit"])
    options.show_settings(
        context,
        chosen,
        f"policy {policy}",
        missing_request=given["missing_request"],
        seed=seed if draws else None,
        max_request=given["max_request"],
        minimum_run_time=given["minimum_run_time"] or None,
    )
    if shapes is None:
        schedule = simulate(workload, **settings)
    else:
        schedule = _molded(workload, shapes, alpha, chosen, how)
    _show(schedule, how, (workload.name, policy, str(chosen.backfill)), by, top)
    _say_overfull(schedule, how)
    if output is not None:
        with steps(1, f"writing {output}"):
            if given["attempts"]:
                write_csv(output, schedule.attempts_frame(), force=force)
            else:
                schedule.write(output, columns=cast(Any, columns), force=force)
        say(f"wrote {output}", how)


def _say_overfull(schedule: Schedule, how: str) -> None:
    """Say where recorded starts hold more processors than the machine has."""
    from hpcgym.schedule.recorded import Recorded, overfull

    settings = schedule.settings
    if settings is None or not isinstance(settings.backfill, Recorded):
        return
    excess, there = overfull(schedule), schedule.workload.machine_processors
    if excess.n_jobs:
        say(
            f"the log does not fit its machine: up to {excess.most:,} of {there:,} processors are "
            f"held, for {duration(excess.seconds)}; {excess.n_jobs:,} jobs start meanwhile",
            how,
        )


def _outage_of(text: str) -> Event:
    """Read "FROM,TO,COUNT[,ANNOUNCED]"; on nodes "nodes=" and names stand for the count."""
    from hpcgym.core.events import as_event

    keys = ["from", "to", "processors", "announced"]
    values = [part.strip() for part in text.split(",")]
    if values[2:] and values[2].startswith("nodes="):
        keys[2], values[2] = "nodes", values[2].removeprefix("nodes=")
    whole = [value for key, value in zip(keys, values, strict=False) if key != "nodes"]
    if len(values) not in (3, 4) or not all(value.isdecimal() for value in whole):
        raise HpcgymError(
            f"--outage {text!r}: write FROM,TO,COUNT or FROM,TO,COUNT,ANNOUNCED: whole numbers, "
            "times in s on the log's clock; on a machine of nodes nodes=0-3/7 in place of COUNT"
        )
    named = zip(keys, values, strict=False)
    return as_event("outage:" + ",".join(f"{key}={value}" for key, value in named))


def _show(
    schedule: Schedule, how: str, names: tuple[str, str, str], by: str | None, top: int | None
) -> None:
    """Print metrics, and by group; for a program the last alone. `names`: log, policy, mode."""
    import pandas as pd

    from hpcgym.base.progress import steps

    with steps(1, "measuring"):
        whole = schedule.metrics()
        frame = None if by is None else schedule.metrics(cast(Any, by))
    groups, left_out = (None, "") if frame is None or by == "resource" else groups_of(frame, top)
    if how == "table":
        log, policy, backfill = names
        show_metrics(whole, f"{log}: {policy}, backfill {backfill}")
        if groups is not None:
            show_groups(groups, left_out, f"By {by}")
        elif frame is not None:
            show_resources(frame, f"By {by}")
    elif groups is not None:
        show_frame(groups, how)
    elif frame is not None:
        show_frame(frame.reset_index(), how)
    else:
        named = dict(zip(("log", "policy", "backfill"), names, strict=True))
        show_frame(pd.DataFrame([named | whole]), how)


def _molded(
    workload: Workload, path: Path, alpha: float, settings: SchedulerSettings, how: str
) -> Schedule:
    """Schedule jobs that choose among the shapes of a file, and print how many chose another."""
    from hpcgym.schedule.moldable import read_shapes, simulate_moldable

    shapes = read_shapes(path, workload)
    molded = simulate_moldable(workload, shapes, alpha=alpha, settings=settings)
    jobs = molded.schedule.workload
    n_other = int((jobs.processors != workload.processors).sum())
    say(f"{n_other} of {len(workload)} jobs chose other processors than the log's", how)
    return molded.schedule
