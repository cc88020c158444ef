"""`hpcgym report`: a site's accounting in, a page out that says what its users would gain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.cli import options
from hpcgym.cli.comparison import UNFINISHED, results_folder, store_in
from hpcgym.cli.show import echo, echo_prose

_TOLD: dict[str, tuple[Any, str, str]] = {
    "scheduler": (
        str,
        "FILE|POLICY",
        "What orders and backfills: a slurm.conf, what scontrol show config prints, or a policy, "
        "such as fair-share.",
    ),
    "shares": (Path, "FILE", "With a --scheduler file: sshare -l -a -P."),
    "limits": (str, "FILES", "assoc.txt,qos.txt, which sacctmgr show prints."),
    "outages": (
        Path,
        "FILE",
        "What scontrol show reservation, show node or sinfo prints, or a table: "
        "from, to, processors or nodes, announced.",
    ),
}
TOLD: dict[str, tuple[Any, Any]] = {
    name: (Annotated[kind | None, typer.Option(metavar=metavar, help=text)], None)
    for name, (kind, metavar, text) in _TOLD.items()
}
"""What a site says of its scheduler: type and default of each option."""

_LONGEST = (
    "Of the search for today's setting; 2.3 times that, of it and all options together. Default "
    "20, more beyond 50,000 jobs."
)
_SEARCH = {"fit_seconds": (Annotated[float | None, typer.Option(min=0, help=_LONGEST)], None)}


@options.with_options(TOLD | _SEARCH)
def write_report(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="What sacct printed, records of PBS, LSF or Grid Engine, SWF, or a log's name.",
        ),
    ],
    machine: options.MachineFile = None,
    processors: options.Processors = None,
    timezone: options.Timezone = None,
    counted_from: options.CountedFrom = "eligible",
    missing_request: Annotated[
        str,
        typer.Option(metavar="KIND", help="What replaces limits that are missing: max, tsafrir."),
    ] = "max",
    machine2: Annotated[
        Path | None,
        typer.Option(
            "--machine2",
            rich_help_panel=options.LOG,
            metavar="FILE",
            help="Another machine or layout of partitions, as --machine takes it, to be tried.",
        ),
    ] = None,
    names: Annotated[
        bool,
        typer.Option("--names", help="Show users, accounts and job names; default hashes of them."),
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The page; .md and .json of the same name are written beside it."
        ),
    ] = Path("report.html"),
    resume: options.Resume = False,
    force: options.Force = False,
    **given: Any,
) -> None:
    """Say what a site's users would gain or lose, and how far the simulation may be trusted.

    The setting nearest to the site's scheduler is found on the first half of the log. Recorded and
    simulated waits, and what other orders, modes, limits and sizes would change, are of the second.
    An interrupted run keeps its finished simulations; the same command with --resume goes on.
    """
    import json
    import shlex
    import sys

    from hpcgym.base.output import writing
    from hpcgym.site import Reading, read_told, report_on
    from hpcgym.site.markdown import markdown_of
    from hpcgym.site.page import page_html

    if output.suffix != ".html":
        raise HpcgymError(f"--output {output}: write a name that ends in .html")
    targets = [output.with_suffix(suffix) for suffix in (".html", ".md", ".json")]
    scheduler, fit_seconds = given["scheduler"], given.pop("fit_seconds")
    if machine is None and processors is None and options.lists_nodes(scheduler):
        machine = Path(str(scheduler))
    how = Reading(
        options.read_machine(machine),
        processors,
        timezone,
        counted_from,
        missing_request,
        names,
        options.read_machine(machine2),
    )
    in_files = scheduler is not None and Path(scheduler).is_file()
    idle = {"processors": options.idle_on_machine(machine)["processors"]}
    options.refuse_idle(
        context, idle | {"shares": None if in_files else "without a file of --scheduler"}
    )
    names_of_nodes = options.names_of_nodes(machine)
    told = read_told(**given, node_names=names_of_nodes, timezone=timezone)
    stated = [word for word in sys.argv[1:] if word != "--resume"]
    bare = [",".join(Path(part).name for part in word.split(",")) for word in stated]
    words = stated if names else bare  # folders tell names
    command = shlex.join(["hpcgym", *words])
    kept = f"{output.stem}.{UNFINISHED}"
    with results_folder(
        output.parent,
        [target.name for target in targets],
        resume=resume,
        force=force,
        unfinished=kept,
        part="simulation",
    ) as folder:
        assert folder is not None  # it is named
        report = report_on(
            [options.log_at(context, file) for file in files],
            how,
            told=told,
            command=command,
            resume=store_in(folder, resume=resume, unfinished=kept),
            fit_seconds=fit_seconds,
        )
        texts = [page_html(report), markdown_of(report), json.dumps(report, allow_nan=False)]
        for target, text in zip(targets, texts, strict=True):
            with writing(target, force=force or resume) as file:
                file.write_text(text, encoding="utf-8")
    for line in report["log"]["read"]:
        echo_prose(line, err=True)
    for sentence in report["answer"]:
        echo_prose(sentence)
    echo(f"written    {', '.join(map(str, targets))}")
