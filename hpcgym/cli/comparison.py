"""What `hpcgym evaluate` and `hpcgym cross-validate` share: options, output folder, results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import steps
from hpcgym.cli import options
from hpcgym.cli.show import Format, say, show, show_frame

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.env.scenario.episodes import Episodes
    from hpcgym.evaluation import CrossValidationResult
    from hpcgym.evaluation.results import Evaluation

UNFINISHED = "unfinished.sqlite"
"""Store in the output folder until all is done; see `hpcgym.evaluation.store`."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Options of both commands: the copies of weeks, how they are run, and what is printed."""

    jitter: Annotated[
        int, typer.Option(metavar="SECONDS", help="Largest shift of submit times in the copies.")
    ] = 0
    replicas: Annotated[int, typer.Option(help="Jittered copies of each week.")] = 0
    seed: Annotated[int, typer.Option(help="Seed of copies, synthetic requests and searches.")] = 0
    baseline: Annotated[
        str, typer.Option(metavar="NAME", help="Agent that ratios are taken to.")
    ] = "SAF"
    executor: options.On = None
    log: Annotated[
        str | None,
        typer.Option(
            help="A log of your own, a table of jobs, or - for standard input, in place of a "
            "scenario. The options of the machine, the scheduler and the cleaning go with it."
        ),
    ] = None
    whole: Annotated[
        bool, typer.Option("--all", help="Print every column, and tables of waits and waste.")
    ] = False
    how: Format = "table"
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write runs.csv, summary.csv and more to."),
    ] = None
    resume: options.Resume = False
    force: options.Force = False

    @property
    def copies(self) -> dict[str, Any]:
        """The keywords that make the copies."""
        return {"jitter": self.jitter, "replicas": self.replicas, "seed": self.seed}


OPTIONS = options.group_of(Comparison) | options.OF_A_LOG


def refuse_idle_options(context: typer.Context) -> Comparison:
    """Return the options of a command; refuse those of a log without one, and others in vain."""
    given = context.params
    if given["log"] is not None:
        if given.get("scenario") or given.get("scenarios"):
            raise HpcgymError("--log and --scenario are both given; give one of them")
        options.refuse_idle(context, options.idle_on_machine(given["machine"]))
    flags = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in options.OF_A_LOG:
        if given["log"] is None and options.stated(context, name):
            raise HpcgymError(f"{flags[name]} goes with --log only; a scenario states its own")
    options.refuse_idle(context, {"force": None if given["output"] else "without --output"})
    return Comparison(**{field.name: given[field.name] for field in fields(Comparison)})


def weeks_of(context: typer.Context, scenarios: Sequence[str]) -> list[Episodes]:
    """Return the weeks of `--log`, or of scenarios, and print what the cleaning did."""
    from hpcgym.env.scenario.episodes import Episodes
    from hpcgym.env.scenario.from_log import episodes_of_log

    if context.params["log"] is None:
        several = [Episodes(name) for name in scenarios]
        for weeks in several:
            report = weeks.report
            if report is not None:
                kill = weeks.settings.kill_at_limit
                options.show_report(context, report, kill=kill, brief=report.jobs == report.records)
        return several
    stated = [name for name in options.OF_A_LOG if options.stated(context, name)]
    chosen = {name: context.params[name] for name in stated}
    if "threshold" in chosen:
        chosen["threshold"] = options.parse_threshold(chosen["threshold"])
    chosen["machine"] = options.read_machine(context.params["machine"])
    log = options.log_at(context, context.params["log"])
    weeks, report = episodes_of_log(log, seed=context.params["seed"], **chosen)
    options.refuse_idle(context, options.idle_options(weeks.settings))
    options.show_report(context, report, kill=weeks.settings.kill_at_limit)
    return [weeks]


def show_conditions(context: typer.Context, episodes: Episodes, **numbers: object) -> None:
    """Print in one line under which settings the weeks are run."""
    trace = episodes.scenario.trace
    kind = "scenario" if context.params["log"] is None else "log"
    options.show_settings(
        context,
        episodes.settings,
        f"{kind} {episodes.scenario.name}",
        missing_request=trace.missing_request,
        max_request=trace.max_request_s,
        minimum_run_time=trace.minimum_run_time_s or None,
        processors=episodes.scenario.machine.processors,
        **numbers,
    )


@contextmanager
def results_folder(
    output: Path | None,
    files: Sequence[str],
    *,
    resume: bool,
    force: bool,
    unfinished: str = UNFINISHED,
    part: str = "week",
) -> Iterator[Path | None]:
    """Create the output folder, if one is named; after Ctrl-C, say what is kept in it.

    The store in the folder is removed when the block ends without an error. With `force` it is
    there from the start, so that a run that is killed early can be resumed among older results.

    Args:
        output: The folder.
        files: Names of the files that a finished run has written.
        resume: Whether to go on with an interrupted run.
        force: Whether to replace files, and to begin anew without `resume`.
        unfinished: Name of the store.
        part: What the store keeps, in the singular.
    """
    from hpcgym.base.output import ensure_writable, locked, output_folder
    from hpcgym.evaluation.store import remove_store

    if output is None:
        if resume:
            raise HpcgymError("--resume goes with --output, where an interrupted run keeps weeks")
        try:
            yield None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "what had finished is lost; with --output FOLDER it is kept for --resume"
            ) from None
        return
    with output_folder(output) as folder, locked(folder / unfinished):
        kept = folder / unfinished
        is_finished = all((folder / file).exists() for file in files)
        if resume and is_finished and not (force or kept.exists()):
            raise HpcgymError(
                f"{output}: is finished, so there is nothing to resume; --force runs it anew"
            )
        replaced = force or (resume and kept.exists())  # the interrupted run may have written some
        for name in files:
            ensure_writable(folder / name, force=replaced)
        if kept.exists() and not (resume or force):
            raise HpcgymError(
                f"{kept}: an interrupted run kept its finished {part}s here; go on from them with "
                "--resume, or start anew with --force"
            )
        if force:
            kept.touch()
        try:
            yield folder
            remove_store(kept)
        except KeyboardInterrupt:
            is_kept = kept.exists() and kept.stat().st_size > 0
            what = f"finished {part}s are kept in {kept}: add --resume to go on from there"
            raise KeyboardInterrupt(what if is_kept else f"no {part} had finished") from None
        finally:
            if kept.exists() and kept.stat().st_size == 0:
                remove_store(kept)


def store_in(folder: Path, *, resume: bool, unfinished: str = UNFINISHED) -> Path:
    """Return the store of the output folder; unless resumed, an earlier run's is emptied."""
    from hpcgym.base.output import writing

    kept = folder / unfinished
    if not resume:
        with writing(kept, force=True):
            pass
    return kept


def show_and_write(
    result: Evaluation | CrossValidationResult,
    folder: Path | None,
    frames: Mapping[str, pd.DataFrame],
    figures: Mapping[str, Evaluation],
    given: Comparison,
) -> None:
    """Print the tables, or the summary for a program; write to the folder, if there is one.

    Writes the frames and the pictures, by file name.
    """
    from hpcgym.evaluation.looks import looks_notes
    from hpcgym.evaluation.results import Evaluation, write_csv
    from hpcgym.evaluation.short_tables import overview

    how, force = given.how, given.force or given.resume
    if how == "table":
        if not given.whole:
            show(overview(result) if isinstance(result, Evaluation) else result.overview())
        else:
            if not isinstance(result, Evaluation):
                show(result.table())
            else:
                show(result.table(notes=looks_notes(result)))
                show("")
                show(result.waits_table())
    else:
        show_frame(frames["summary.csv"], how)
    for evaluation in figures.values():
        for table in evaluation.further_tables() if how == "table" and given.whole else ():
            show("")
            show(table)
    if folder is None:
        return
    for name, frame in frames.items():
        write_csv(frame, folder / name, force=force)
        say(f"wrote {folder / name}", how)
    for name, evaluation in figures.items():
        _draw(evaluation, folder / name, how=how, force=force)


def _draw(evaluation: Evaluation, path: Path, *, how: str, force: bool) -> None:
    """Draw a comparison and say where it is, or why there is none."""
    from hpcgym.base.packages import missing_packages
    from hpcgym.evaluation.pictures import draw_evaluation

    if missing := missing_packages("drawing", ["matplotlib"]):
        say(f"no picture: {missing}", how)
        return
    with steps(1, f"drawing {path.name}"):
        draw_evaluation(evaluation, path, force=force)
    say(f"wrote {path}", how)
