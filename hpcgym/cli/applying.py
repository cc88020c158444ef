"""What `hpcgym advise --apply` and `--restore` are given and print."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.base.errors import HpcgymError, refuse_unless_whole
from hpcgym.base.text_table import Column, TextTable, duration
from hpcgym.cli import options
from hpcgym.cli.show import echo_prose, show

if TYPE_CHECKING:
    from hpcgym.site.live.apply import Outcome, Plan
    from hpcgym.site.live.days import PairOfDays
    from hpcgym.site.live.journal import Journal
    from hpcgym.site.live.readings import Reading, WaitingJob
    from hpcgym.site.live.stage import Stage

_PANEL = "Change the order of the queue"
_JOBS_OF_A_USER, _JOBS_OF_A_CYCLE = 20, 200
"""How many times the points of a job a user, and a cycle, may have by default."""

_SHOWN = 8  # jobs that a line of text names


def _journal() -> Path:
    """Return where the journal is by default."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "hpcgym" / "site_factors.jsonl"


def _option(text: str, *flags: str, metavar: str | None = None) -> typer.models.OptionInfo:
    """Return an option of the panel."""
    made: typer.models.OptionInfo = typer.Option(
        *flags, metavar=metavar, help=text, rich_help_panel=_PANEL
    )
    return made


def _points(whose: str) -> typer.models.OptionInfo:
    """Return an option that bounds points of priority."""
    return _option(f"Most points, up and down, {whose}.", metavar="POINTS")


_APPLY = "Put the jobs of the partitions named in order, by their site factors; one cycle."
_DRY_RUN = "With --apply: print what would be told, and change nothing."
_HOLD = "How long changes hold unless a later cycle renews them."
_DAYS = "Change nothing on every other day, as drawn; --compare-days tells the gain."
_COMPARE = "Compare days with and without changes, by the journal and this accounting."
_JOURNAL = "Where changes are noted before they are made; default a file in ~/.local/state/hpcgym."


@dataclass(frozen=True, kw_only=True)
class Applying:
    """Options that change the queue, and that take changes back."""

    apply: Annotated[bool, _option(_APPLY, "--apply")] = False
    dry_run: Annotated[bool, _option(_DRY_RUN, "--dry-run")] = False
    job_points: Annotated[int | None, _points("of a job's site factor; --apply needs it")] = None
    user_points: Annotated[int | None, _points("of a user's jobs together; default 20 jobs'")] = (
        None
    )
    cycle_points: Annotated[int | None, _points("that a cycle adds; default 200 jobs'")] = None
    hold: Annotated[int, _option(_HOLD, metavar="MINUTES")] = 30
    alternate: Annotated[str | None, _option(_DAYS, metavar="days")] = None
    restore: Annotated[bool, _option("Take all changes back.", "--restore")] = False
    expired: Annotated[bool, _option("With --restore: only if they have expired.", "--expired")] = (
        False
    )
    compare_days: Annotated[Path | None, _option(_COMPARE, metavar="FILE")] = None
    journal: Annotated[Path | None, _option(_JOURNAL, metavar="FILE")] = None


OPTIONS = options.group_of(Applying)


def applying(context: typer.Context) -> Applying:
    """Return the options; refuse those in vain."""
    given = Applying(**{field.name: context.params[field.name] for field in fields(Applying)})
    asked = [
        flag
        for flag, is_given in (
            ("--apply", given.apply),
            ("--restore", given.restore),
            ("--compare-days", given.compare_days is not None),
        )
        if is_given
    ]
    if len(asked) > 1:
        raise HpcgymError(f"{asked[0]} and {asked[1]} are both given; give one of them")
    why = None if given.apply else "without --apply"
    bounds = ("dry_run", "job_points", "user_points", "cycle_points", "hold", "alternate")
    idle: dict[str, str | None] = dict.fromkeys(bounds, why)
    idle["expired"] = None if given.restore else "without --restore"
    idle["journal"] = None if asked else "without --apply, --restore or --compare-days"
    if given.restore or given.compare_days:
        mine = {field.name for field in fields(Applying)}
        idle |= {name: f"with {asked[0]}" for name in context.params if name not in mine}
    options.refuse_idle(context, idle)
    for name in ("job_points", "user_points", "cycle_points", "hold"):
        if (number := getattr(given, name)) is not None:
            refuse_unless_whole(f"--{name.replace('_', '-')}", number, 1)
    if given.apply:
        _refuse_incomplete(context, given)
    return given


def _refuse_incomplete(context: typer.Context, given: Applying) -> None:
    """Refuse to change a queue that is read of files, in no named partition, or without bounds."""
    if any(context.params[name] is not None for name in ("squeue", "sprio", "sinfo")):
        raise HpcgymError("--apply reads Slurm itself; give no --squeue, --sprio or --sinfo")
    if not context.params["partition"]:
        raise HpcgymError("--apply changes named partitions only: --partition NAME")
    if given.job_points is None:
        raise HpcgymError(
            "--apply needs --job-points POINTS, by how many points a job's priority may be changed "
            "up and down; sprio shows what priorities are made of"
        )
    if given.alternate not in (None, "days"):
        raise HpcgymError(f"--alternate {given.alternate}: allowed: days")


def done_without_reading(given: Applying) -> bool:
    """Restore, or compare days, where that was asked for, and print it; tell whether it was."""
    path = given.journal or _journal()
    if given.restore:
        from hpcgym.site.live.apply import restore
        from hpcgym.site.live.journal import opened

        if not given.expired and not path.exists():
            raise HpcgymError(
                f"{path}: no such journal, so nothing is restored; --journal FILE names it"
            )
        with opened(path) as journal:
            outcome = restore(journal, only_expired=given.expired)
        echo_prose(f"Site factors set back to 0: {_jobs(outcome.told)}.")
    elif given.compare_days is not None:
        from hpcgym.site.live.days import pairs_of_days
        from hpcgym.site.live.journal import entries_of
        from hpcgym.trace.accounting import read_accounting

        runs = read_accounting(given.compare_days).runs
        _show_days(pairs_of_days(runs, entries_of(path)))
    return given.restore or given.compare_days is not None


def refuse_before_reading(given: Applying) -> None:
    """Refuse `--apply` where this Slurm, or this user, is not fit for it."""
    if given.apply:
        from hpcgym.site.live.apply import refuse_unfit

        refuse_unfit()


@contextmanager
def journal_of(given: Applying) -> Iterator[Journal | None]:
    """Keep the journal of a cycle open from the plan to the telling; None without `--apply`.

    A dry run makes none where none is.
    """
    from hpcgym.site.live.journal import opened

    if not given.apply:
        yield None
        return
    path = given.journal or _journal()
    with TemporaryDirectory(prefix="hpcgym-") as folder:
        if given.dry_run and not path.exists():
            path = Path(folder, "none.jsonl")
        with opened(path) as journal:
            yield journal


def plan(
    given: Applying,
    partitions: Sequence[str],
    reading: Reading,
    wanted: Sequence[tuple[Stage, Sequence[int]]],
    journal: Journal | None,
) -> Plan | None:
    """Return what a cycle tells Slurm, None where none is asked for, or on a day without.

    Args:
        wanted: Each machine's stage, with the positions of its waiting jobs, best first.
    """
    from hpcgym.site.live.apply import lines_of, plan_of, read_factors
    from hpcgym.site.live.changes import Bounds
    from hpcgym.site.live.days import is_on

    if journal is None or (given.alternate and not is_on(datetime.now().date())):
        return None
    assert given.job_points is not None
    bounds = Bounds(
        given.job_points,
        given.user_points or _JOBS_OF_A_USER * given.job_points,
        given.cycle_points or _JOBS_OF_A_CYCLE * given.job_points,
    )
    lines = [line for stage, order in wanted for line in lines_of(stage, order)]
    return plan_of(lines, reading.waiting, partitions, bounds, journal, read_factors())


def carry_out(
    given: Applying,
    plan: Plan | None,
    journal: Journal,
    waiting: Sequence[WaitingJob],
    *,
    beside: bool,
) -> None:
    """Print a plan and tell it to Slurm, or take changes back on a day without; a dry run prints.

    It is printed beside tables for programs, not among them.
    """
    from hpcgym.site.live.apply import cycle, restore

    said: list[str] = []
    if plan is None:
        said.append("Today is a day without changes.")
        if not given.dry_run:
            said.append(f"Back to 0: {_jobs(restore(journal).told)}.")
            journal.note_off(time.time())
    else:
        if not beside:
            _show_moves(plan, waiting)
        said += [f"Left alone, {why}: {_jobs(left)}." for why, left in plan.left.items()]
        if given.dry_run:
            said.append(f"A cycle would tell {_told(plan.told)} Nothing is told now.")
        else:
            said += _sentences(cycle(plan, journal, 60 * given.hold), journal.path)
    for sentence in said:
        echo_prose(sentence, err=beside)


def with_told(
    plan: Plan | None, rows: Sequence[tuple[WaitingJob, dict[str, object]]]
) -> list[dict[str, object]]:
    """Return rows of jobs with site factors and `sprio`'s terms, then those of other jobs told one.

    Where nothing is told, or known, the cell is empty.
    """
    from hpcgym.site.live.readings import FACTORS

    told, factors = ({}, {}) if plan is None else (plan.told, plan.factors)
    said = [column.name for column in FACTORS[4:]]
    names = {f"sprio_{name.removesuffix(chr(39) + 's').replace(' ', '_')}": name for name in said}
    made: list[dict[str, object]] = []
    others = told.keys() - {job.job_id for job, _ in rows}
    every: list[tuple[WaitingJob | None, dict[str, object]]] = [*rows]
    every += [(None, {"job": str(job)}) for job in sorted(others)]
    for job, row in every:
        job_id = job.job_id if job else int(str(row["job"]))
        known = factors[job_id][0] if job_id in factors else None
        then = max(round(plan.priority(job)), 1) if plan and job and job_id in told else None
        cells = {"site_factor_now": known and known.site, "site_factor_told": told.get(job_id)}
        cells |= {"priority_then": then}
        terms = {column: known and known.terms.get(name) for column, name in names.items()}
        made.append({**row, **cells, **terms})
    return made


def _show_moves(plan: Plan, waiting: Sequence[WaitingJob]) -> None:
    jobs = [job for job in waiting if job.job_id in plan.told and job.job_id in plan.factors]
    jobs.sort(key=lambda job: -plan.priority(job))
    factors = [plan.factors[job.job_id][0] for job in jobs]
    if factors:
        weighed = [n for n in factors[0].terms if any(each.terms[n] for each in factors)]
        columns = [
            Column("job", [job.array_id for job in jobs], "name"),
            Column("user", [job.user for job in jobs], "name", 5),
            Column("site factor\nnow", [str(each.site) for each in factors]),
            Column("site factor\ntold", [str(plan.told[job.job_id]) for job in jobs]),
            Column("priority\nnow", [str(each.priority) for each in factors], rank=1),
            Column("priority\nthen", [f"{max(plan.priority(job), 1):.0f}" for job in jobs]),
            *(
                Column(f"of it\n{name}", [f"{each.terms[name]:.0f}" for each in factors], rank=2)
                for name in weighed
            ),
        ]
        show("")
        show(TextTable(columns))
        show("")


def _sentences(outcome: Outcome, path: Path) -> Iterator[str]:
    """Yield what a cycle did, in sentences."""
    until = datetime.fromtimestamp(outcome.expires).strftime("%Y-%m-%d %H:%M")
    yield f"Site factors: {_told(outcome.told)}"
    yield (
        f"Changes hold until {until} unless a later cycle renews them; hpcgym advise --restore "
        f"--journal {shlex.quote(str(path))} takes them back."
    )


def _told(told: Mapping[int, int]) -> str:
    """Count the jobs whose site factors go up, down and back."""
    up = [job for job, site in told.items() if site > 0]
    down = [job for job, site in told.items() if site < 0]
    back = [job for job, site in told.items() if site == 0]
    return f"{_jobs(up)} up, {_jobs(down)} down, {_jobs(back)} back to 0."


def _jobs(jobs: Collection[object]) -> str:
    """Count jobs, and name the first."""
    count = "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"
    first = ", ".join([str(job) for job in jobs][:_SHOWN])
    return f"{count} ({first}{', ...' if len(jobs) > _SHOWN else ''})" if jobs else count


def _show_days(pairs: Sequence[PairOfDays]) -> None:
    """Print pairs of days, and the mean differences."""
    from hpcgym.evaluation.statistics import mean_of
    from hpcgym.site.live.days import SETTLING_H, WATCHED_H

    if not pairs:
        raise HpcgymError(
            f"no pair of days: the journal has no day with and day without, a week apart, on which "
            f"cycles ran in {WATCHED_H} hours and jobs of the accounting were submitted"
        )
    show(
        TextTable(
            [
                Column("with", [str(pair.day_on) for pair in pairs], "name"),
                Column("without", [str(pair.day_off) for pair in pairs], "name"),
                Column("jobs\nwith", [str(pair.jobs[0]) for pair in pairs]),
                Column("jobs\nwithout", [str(pair.jobs[1]) for pair in pairs]),
                Column("wait\nwith", [duration(pair.wait[0]) for pair in pairs]),
                Column("wait\nwithout", [duration(pair.wait[1]) for pair in pairs]),
                Column("bsld\nwith", [f"{pair.bsld[0]:.2f}" for pair in pairs]),
                Column("bsld\nwithout", [f"{pair.bsld[1]:.2f}" for pair in pairs]),
            ]
        )
    )
    show("")
    for what, values in (
        ("wait, s", [pair.wait[0] - pair.wait[1] for pair in pairs]),
        ("bounded slowdown", [pair.bsld[0] - pair.bsld[1] for pair in pairs]),
    ):
        mean = mean_of(values)
        low, high = mean.ends() or (0.0, 0.0)
        interval = "one pair: no interval" if len(pairs) == 1 else f"{low:.2f} to {high:.2f}"
        echo_prose(f"Mean {what}, with - without: {mean.value:.2f} ({interval}).")
    echo_prose(
        f"Jobs count on the day of their submission; the first {SETTLING_H} hours of each day are "
        "left out, as the queue is that of the day before. Intervals: 95 %, by t over pairs."
    )
