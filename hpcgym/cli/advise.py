"""`hpcgym advise`: what another order would do to the queue of a live Slurm."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.base.text_table import Column, TextTable, duration
from hpcgym.cli import applying, options
from hpcgym.cli.show import Format, echo_prose, show, show_rows

if TYPE_CHECKING:
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.site.live.advice import Advice, AdvisedJob
    from hpcgym.site.live.apply import Plan
    from hpcgym.site.live.ranges import Range
    from hpcgym.site.live.readings import Reading
    from hpcgym.site.live.run_times import Past

BACKFILL = "conservative"  # as of `hpcgym.site.live.stage`, which takes long to import
MOST_DAYS = 3650  # of accounting that tells run times

_FILES = "Files in place of commands"


def _printed_by(name: str) -> str:
    """Return the help of an option that takes what a command printed."""
    return f"What {name} printed in the pinned format; docs/advise.md has the line to type."


@options.with_options(applying.OPTIONS)
def advise_queue(
    context: typer.Context,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="The order to compare with Slurm's: a policy, or an agent that is no more than an "
            "order; also q=..,e=.. or one of your own.",
        ),
    ] = "SAF",
    backfill: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="How Slurm backfills: conservative, easy, depth:k=3 or none."
        ),
    ] = BACKFILL,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only machines with this partition; may be given several times."
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(help="Days of accounting that tell run times and ranges; 0 = none.")
    ] = 14,
    job: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHAPE",
            help="Say when a job would start if it were submitted now, such as cpus=64,"
            "time=4:00:00; further keys nodes, gres and partition. Several are compared.",
        ),
    ] = None,
    squeue: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=_printed_by("squeue"), rich_help_panel=_FILES),
    ] = None,
    sprio: Annotated[
        Path | None, typer.Option(metavar="FILE", help=_printed_by("sprio"), rich_help_panel=_FILES)
    ] = None,
    sinfo: Annotated[
        Path | None, typer.Option(metavar="FILE", help=_printed_by("sinfo"), rich_help_panel=_FILES)
    ] = None,
    sacct: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Accounting, as hpcgym traces import reads it.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Jobs that the table shows; 0 = all.")] = 30,
    how: Format = "table",
    **_: object,
) -> None:
    """Say what another order would do to the queue of a live Slurm; only --apply changes anything.

    Shows each waiting job's rank and expected start, in Slurm's order and in the other, and why.
    Reads squeue, sprio, sinfo and sacct, or files that these printed.
    """
    from hpcgym.site.live.advice import advise
    from hpcgym.site.live.last_reading import check_against_last
    from hpcgym.site.live.replay import replay_of
    from hpcgym.site.live.snapshot import snapshots_of
    from hpcgym.site.live.stage import Stage

    if top < 0 or days < 0:
        raise HpcgymError(f"--top and --days must be 0 or more, got {min(top, days)}")
    if days > MOST_DAYS:
        raise HpcgymError(f"--days must be at most {MOST_DAYS}, got {days}")
    files = {"squeue": squeue, "sprio": sprio, "sinfo": sinfo}
    from_files = any(path is not None for path in files.values())
    idle = {"days": "beside files; give --sacct FILE" if from_files else None}
    idle["sacct"] = None if from_files else "without --squeue, --sprio and --sinfo; give --days"
    idle["top"] = None if how == "table" else "with this --format, which has all"
    if job:
        others = ("policy", "backfill", "partition", "top", "apply", "restore", "compare_days")
        idle |= dict.fromkeys(others, "beside --job")
        idle["partition"] = "beside --job; write partition=NAME in it"
    options.refuse_idle(context, idle)
    given = applying.applying(context)
    if applying.done_without_reading(given):
        return
    if job:
        reading = _read(files if from_files else {})
        check_against_last(reading)
        _show_shapes(job, reading, _past(sacct, 0 if from_files else days, reading.now), how)
        return
    name, settings = _order_of(policy)
    applying.refuse_before_reading(given)
    reading = _read(files if from_files else {})
    check_against_last(reading)
    machines = snapshots_of(reading, partition or ())
    past = _past(sacct, 0 if from_files else days, reading.now)  # now is 0 of an empty queue
    stages = [Stage(machine, past) for machine in machines]
    orders = [stage.wanted_order(settings) for stage in stages]
    wanted = list(zip(stages, orders, strict=True))
    with applying.journal_of(given) as journal:
        plan = applying.plan(given, partition or (), reading, wanted, journal)
        if plan is not None:  # what bounds leave of the order is what will be
            orders = [stage.slurm_order(plan.priority) for stage in stages]
        known = [None if given.apply else replay_of(stage) for stage in stages]
        each = zip(stages, orders, known, strict=True)
        advices = [
            advise(stage, order, name, backfill, forecasts) for stage, order, forecasts in each
        ]
        if how == "table":
            for advice in advices:
                _show(advice, name, top)
        else:
            _show_rows(advices, how, given.apply, plan)
        if journal is not None:
            applying.carry_out(given, plan, journal, reading.waiting, beside=how != "table")


def _show_rows(advices: Sequence[Advice], how: Format, is_applied: bool, plan: Plan | None) -> None:
    """Print advice for a program, with what a cycle tells."""
    rows = [(job.job, job.row(advice.now)) for advice in advices for job in advice.jobs]
    told = applying.with_told(plan, rows) if is_applied else [row for _, row in rows]
    show_rows(told, how, kinds={})
    for advice in advices:
        for sentence in (*advice.notes, *advice.totals):
            echo_prose(sentence, err=True)


def _order_of(policy: str) -> tuple[str, SchedulerSettings]:
    """Return the name and the settings of an order, by a policy or by an agent that is one."""
    from hpcgym.agent import RuleAgent
    from hpcgym.agent.shelf import load_agent
    from hpcgym.core.setting_list import settings_of_rules
    from hpcgym.core.settings import SchedulerSettings

    agent = load_agent(policy)
    more = ["it answers at each pass"]
    if isinstance(agent, RuleAgent):
        more = [key for key in settings_of_rules("environment") if key in agent.stated]
    if more:
        raise HpcgymError(
            f"--policy {policy}: {agent.name} is more than an order ({', '.join(more)}), and Slurm "
            "can be told orders only; choose one such as SAF, SPF, SMITH or SAF-RECENT"
        )
    assert isinstance(agent, RuleAgent)
    return agent.name, agent.settings(SchedulerSettings())


def _read(files: dict[str, Path | None]) -> Reading:
    """Read a queue by commands, or of files."""
    from hpcgym.site.live.readings import asked, read_queue, shell_line, text_of

    missing = [name for name, path in files.items() if path is None]
    if missing:
        raise HpcgymError(
            f"--{missing[0]} is missing: squeue, sprio and sinfo are read together; print it by: "
            f"{shell_line(missing[0])}"
        )
    texts = [
        text_of(name, path) if (path := files.get(name)) else asked(name)
        for name in ("squeue", "sprio", "sinfo")
    ]
    return read_queue(*texts)


def _past(sacct: Path | None, days: int, now: int) -> Past:
    """Return what is known of past jobs: of a file, of the last days, or nothing."""
    from hpcgym.site.live.run_times import ask_accounting, no_past, read_past

    if not now or (sacct is None and not days):
        return no_past()
    if sacct is not None:
        return read_past(sacct, now)
    with TemporaryDirectory(prefix="hpcgym-") as folder:
        path = Path(folder, "sacct.txt")
        path.write_text(ask_accounting(days, now), encoding="utf-8")
        return read_past(path, now)


def _show_shapes(texts: Sequence[str], reading: Reading, past: Past, how: Format) -> None:
    """Print when jobs that are not submitted yet would start, side by side."""
    from hpcgym.site.live.shapes import outlooks, shape_of, sooner

    reading = replace(reading, now=reading.now or int(time.time()))  # an empty queue has no clock
    made, notes = outlooks(reading, past, [shape_of(text, reading) for text in texts])
    if how != "table":
        show_rows([each.row(reading.now) for each in made], how, kinds={})
    else:
        show(
            TextTable(
                [
                    Column("job", [each.shape.text for each in made], "name"),
                    Column("starts in", [_wait(each.wait) for each in made]),
                    Column("80 % range", [_range(each.range) for each in made], "word"),
                    Column("why none", [each.why for each in made], "prose"),
                ]
            )
        )
    notes.append(sooner(made))
    if any("gres=" in text for text in texts):
        notes.append("What gres asks for is not simulated: such a job may start later.")
    for sentence in filter(None, notes):
        echo_prose(sentence, err=how != "table")


def _wait(wait: float | None) -> str:
    """Return a wait for a person."""
    if wait is None or wait == math.inf:
        return "-"
    return duration(wait) if wait else "now"


def _range(known: Range | None) -> str:
    """Return a range for a person."""
    if known is None:
        return "-"
    if not known.tells:
        return "cannot tell"
    ends = [_wait(known.low), _wait(known.high)]
    return " to ".join(dict.fromkeys(ends))


def _show(advice: Advice, name: str, top: int) -> None:
    """Print advice for a person: times from now on."""
    for note in advice.notes:
        echo_prose(note)
    shown = advice.jobs[: top or None]
    if shown:
        more = len(advice.jobs) - len(shown)
        notes = [f"{more} more jobs; --top 0 shows all"] if more else []
        show("")
        show(TextTable(_columns(advice, shown, name), notes=notes))
        show("")
    for sentence in advice.totals:
        echo_prose(sentence)


def _columns(advice: Advice, jobs: Sequence[AdvisedJob], name: str) -> list[Column]:

    def cell(value: int | None) -> str:
        return "-" if value is None else str(value)

    def after(start: int | None) -> str:
        if start is None:
            return "-"
        return "now" if start == advice.now else duration(start - advice.now)

    ranges = Column("80 % range\nSlurm", [_range(each.range_now) for each in jobs], "word", 1)
    return [
        Column("job", [each.job.array_id for each in jobs], "name"),
        Column("user", [each.job.user for each in jobs], "name", 5),
        Column("cpus", [str(each.job.cpus) for each in jobs], rank=2),
        Column("limit", [duration(each.job.limit_s) for each in jobs], rank=3),
        Column("rank\nSlurm", [cell(each.rank_now) for each in jobs]),
        Column(f"rank\n{name}", [cell(each.rank) for each in jobs]),
        Column("starts in\nSlurm", [after(each.start_now) for each in jobs], rank=1),
        *([ranges] if any(each.range_now for each in advice.jobs) else []),
        Column(f"starts in\n{name}", [after(each.start) for each in jobs]),
        Column("why", [each.why for each in jobs], "prose"),
    ]
