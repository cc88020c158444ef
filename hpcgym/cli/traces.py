"""`hpcgym traces`: list, download and verify logs, check one of your own, import accounting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.base.errors import TraceError
from hpcgym.base.text_table import Kind
from hpcgym.cli.command import HouseTyper
from hpcgym.cli.options import CountedFrom, Timezone, log_at, read_machine, say_reading, show_report
from hpcgym.cli.show import Format, echo, echo_prose, say, show_frame, show_pairs, show_rows

if TYPE_CHECKING:
    from hpcgym.trace.check import LogCheck

_SHORT = {"memory": "mem", "queue": "queue", "partition": "part"}
"""What a log's jobs state, short enough for 80 columns."""

app = HouseTyper(
    help="Logs: list, download, verify, check, statistics, import.",
    epilog="Example: hpcgym traces check mine.swf.gz",
    no_args_is_help=True,
)


@app.command("list", epilog="Example: hpcgym traces list")
def list_traces(how: Format = "table") -> None:
    """List the logs known by name, and whether each is here."""
    from hpcgym.trace.catalogue import catalogue

    rows = []
    for log in catalogue().values():
        here = "bundled" if log.folder else "yes" if _place(log.name) else ""
        states = " ".join(_SHORT[key] for key in log.states)
        sizes = {"jobs": log.jobs, "processors": log.processors}
        rows.append({"log": log.name, "here": here, "states": states, **sizes})
    kinds: dict[str, Kind] = {"log": "name", "here": "word", "states": "word"}
    show_rows(rows, how, kinds=kinds, ranks={"states": 3, "processors": 2, "jobs": 1})


@app.command("info", epilog="Example: hpcgym traces info KTH-SP2-1996-2.1-cln")
def show_trace(
    name: Annotated[str, typer.Argument(help="A log's name; see `hpcgym traces list`.")],
    how: Format = "table",
) -> None:
    """Show what is recorded about a log, and whom to acknowledge for it."""
    from hpcgym.trace.catalogue import ARCHIVE_REQUEST, entry

    known = entry(name)
    show_pairs(
        {
            "name": known.name,
            "description": known.description,
            "version": known.version,
            "jobs": known.jobs,
            "processors": known.processors,
            "span": None if known.span_days is None else f"{known.span_days} days",
            "utilisation": known.utilisation,
            "states": " ".join(known.states) or None,
            "published": known.url,
            "sha256": known.sha256 or "(none on record: a download is unverified)",
            "acknowledge": known.acknowledge,
            "also": ARCHIVE_REQUEST if known.url else None,
            "notes": " ".join(known.notes.split()),
            "here": _place(known.name),
        },
        how,
    )


@app.command("download", epilog="Example: hpcgym traces download KTH-SP2-1996-2.1-cln")
def download_traces(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of logs.")],
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Accept logs without a digest on record.")
    ] = False,
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A folder that holds NAME.swf.gz, in place of the archive."
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where to put them; default the user's cache.")
    ] = None,
) -> None:
    """Fetch logs from where the archive publishes them; those already here are kept."""
    from hpcgym.trace.catalogue import ARCHIVE_REQUEST, download, entry

    for known in [entry(name) for name in names]:
        path = download(known.name, unverified=unverified, mirror=mirror, folder=folder)
        echo(f"{known.name}: {path}")
        if known.acknowledge:
            echo_prose(f"  please acknowledge: {known.acknowledge}")
    echo_prose(f"Please {ARCHIVE_REQUEST}")


@app.command("verify", epilog="Example: hpcgym traces verify")
def verify_traces(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Default all that are here.")
    ] = None,
    how: Format = "table",
) -> None:
    """Compare the logs that are here with the digests on record; a difference exits with 2."""
    from hpcgym.trace.catalogue import verify

    logs = verify(names or None)
    rows = [{"log": log.name, "status": log.status, "file": str(log.path)} for log in logs]
    show_rows(rows, how, kinds={"log": "name", "status": "word", "file": "prose"})
    differing = [log.name for log in logs if log.status == "differs"]
    if differing:
        raise TraceError(f"not the logs on record: {', '.join(differing)}")


@app.command("check", epilog="Example: hpcgym traces check mine.swf.gz")
def check_trace(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="A log in SWF, a log's name, or -; or several logs."),
    ],
    processors: Annotated[
        int | None, typer.Option(help="Size of the machine; default as the log's header says.")
    ] = None,
    timezone: Timezone = None,
    how: Format = "table",
) -> None:
    """Show what a log has and lacks, and which jobs a simulation would drop or change.

    Of several logs it shows how many rows each step drops.
    """
    from hpcgym.trace import check_log, read_log
    from hpcgym.trace.catalogue import find_log

    checks = []
    for file in files:
        log = read_log(find_log(log_at(context, file)), on_bad_line="drop", timezone=timezone)
        say_reading(log.name, log.reading)
        checks.append(check_log(log, machine_processors=processors))
    if len(checks) > 1:
        _compare(checks, how)
        return
    say(checks[0], how)
    if how != "table":
        import pandas as pd

        show_frame(pd.DataFrame(map(vars, checks[0].fields)), how)


def _compare(checks: list[LogCheck], how: str) -> None:
    """Print a row for each log: its rows, how many of them each step drops, and what remains."""
    dropped = [check.dropped() for check in checks]
    known = dict.fromkeys(step for counts in dropped for step in counts)
    steps = [step for step in known if any(counts.get(step) for counts in dropped)]
    rows: list[dict[str, object]] = [
        {"log": check.log.name, "rows": len(check.log) + len(check.log.bad_lines)}
        | {step: counts.get(step) for step in steps}
        | {"jobs": None if check.cleaning is None else check.cleaning.jobs}
        for check, counts in zip(checks, dropped, strict=True)
    ]
    show_rows(rows, how, kinds={"log": "name"})
    for check in checks:
        if check.refusal is not None:
            say(f"{check.log.name}: cannot be simulated as it is: {check.refusal}", how)


@app.command("import", epilog="Example: hpcgym traces import accounting.txt --output jobs.swf")
def import_traces(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What sacct printed, records of PBS, LSF or Grid Engine, or long SWF.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to: .csv or .swf, also with .gz, or .parquet."),
    ],
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A machine of nodes, for its partitions' limits; see simulate."
        ),
    ] = None,
    timezone: Timezone = None,
    counted_from: CountedFrom = "eligible",
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise", help="Replace users, accounts and job names, by a key that is not kept."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Make a log of what a batch scheduler recorded; say of every row what became of it."""
    import secrets
    from functools import partial

    from hpcgym.base.output import ensure_writable
    from hpcgym.trace.accounting import check_suffix, hashed, read_accounting, write_accounting

    check_suffix(output)
    ensure_writable(output, force=force)
    accounting = read_accounting(
        [log_at(context, str(file)) for file in files],
        machine=read_machine(machine),
        timezone=timezone,
        counted_from=counted_from,
        rename=partial(hashed, secrets.token_bytes()) if anonymise else None,
    )
    write_accounting(output, accounting, force=force)
    echo_prose(accounting)
    echo(f"written    {output}")


@app.command("machine", epilog="Example: hpcgym traces machine nodes.txt")
def show_machine(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A slurm.conf, what scontrol show node and show partition print, sinfo --json, "
            "machines of Alea, or TOML.",
        ),
    ],
) -> None:
    """Print a machine as TOML, with what of it is not simulated; --machine reads both."""
    from hpcgym.machine import files as machine_files

    for line in machine_files.to_toml(machine_files.read_machine(file)).splitlines():
        echo(line)


@app.command("statistics", epilog="Example: hpcgym traces statistics synthetic-256 synthetic-busy")
def show_statistics(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Logs in SWF, names of logs, or -.")
    ],
    processors: Annotated[
        int | None, typer.Option(help="Size of the machine; default as each log's header says.")
    ] = None,
    timezone: Timezone = None,
    how: Format = "table",
) -> None:
    """Compare logs: load by week, wide jobs, run times and requests, habits of users."""
    from hpcgym.trace import load_with_report
    from hpcgym.trace.statistics import workload_statistics

    statistics = {}
    for file in files:
        workload, report = load_with_report(
            log_at(context, file), machine_processors=processors, timezone=timezone
        )
        show_report(context, report, kill=False)
        statistics[file] = workload_statistics(workload)
    hyphen = "-\n" if how == "table" else "-"  # long names break there
    heads = {file: Path(file).name.replace("-", hyphen) for file in statistics}
    rows: list[dict[str, object]] = [
        {"statistic": key.replace("_", " ")}
        | {heads[file]: numbers[key] for file, numbers in statistics.items()}
        for key in next(iter(statistics.values()))
    ]
    show_rows(rows, how, kinds={"statistic": "name"})


def _place(name: str) -> str:
    """Return the file of a log by name, or "" where it is not here."""
    from hpcgym.trace.catalogue import find_trace

    try:
        return str(find_trace(name))
    except TraceError:
        return ""
