"""`hpcgym suite`: records of agents on a frozen suite of logs, their replay, and the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.base.errors import EvaluationError
from hpcgym.cli.command import HouseTyper
from hpcgym.cli.comparison import UNFINISHED, results_folder, store_in
from hpcgym.cli.options import Force, On, Resume
from hpcgym.cli.show import Format, echo, echo_prose, say, show_rows

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.base.text_table import Kind

app = HouseTyper(
    help="Records of agents on frozen logs, which anybody can replay.",
    epilog="Example: hpcgym suite run SAF --part bundled",
    no_args_is_help=True,
)


@app.command("run", epilog="Example: hpcgym suite run SAF --part bundled")
def run_on_suite(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT", help="A name, the card (.toml) of your agent, or its code (--sandbox)."
        ),
    ],
    part: Annotated[
        list[str],
        typer.Option(
            "--part", "-p", metavar="PART", help="bundled, old, today or nodes; default all."
        ),
    ] = [],  # noqa: B006 - read by typer, never changed
    suite: Annotated[
        str | None, typer.Option(metavar="NAME", help="Version of the suite; default the newest.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The record; default AGENT.json, in small letters."),
    ] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Run the code of FILE.py:NAME, and only in a sandbox.")
    ] = False,
    executor: On = None,
    resume: Resume = False,
    force: Force = False,
) -> None:
    """Run an agent on all weeks of the suite and their copies, and write its record.

    Weeks that it was trained on, and their neighbours, are left out. So are logs of nodes where it
    counts processors, which is said. Finished weeks are kept beside
    the record until it is whole; the same command with --resume goes on from there.
    """
    from hpcgym.base.output import writing
    from hpcgym.evaluation.suite import run_suite

    stem = Path(agent).stem if agent.endswith(".toml") else Path(agent).name
    path = output or Path(f"{stem.casefold()}.json")
    unfinished = f"{path.name}.{UNFINISHED}"
    with results_folder(
        path.parent, (path.name,), resume=resume, force=force, unfinished=unfinished
    ) as folder:
        kept = store_in(folder or path.parent, resume=resume, unfinished=unfinished)
        record = run_suite(
            agent, suite, parts=part, sandbox=sandbox, executor=executor, resume=kept, told=echo
        )
        with writing(path, force=force or resume) as file:
            file.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    weeks = sum(len(log["weeks"]) for log in record["logs"].values())
    echo_prose(
        f"{record['agent']['name']}: {weeks} weeks of {len(record['logs'])} logs; wrote {path}"
    )


@app.command("verify", epilog="Example: hpcgym suite verify saf.json --weeks 20 --seed 7")
def verify_on_suite(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A record (.json).")],
    weeks: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="Weeks to draw; 59 find 5 % of altered ones in 95 of 100 draws."
        ),
    ] = 59,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of the draw.")] = 0,
    agent: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="The agent where it is code; a sandbox runs it."),
    ] = None,
) -> None:
    """Replay drawn weeks of a record, start by start; exit with 2 where something differs.

    The agent is made of the card and the weights in the record. Code is run in a sandbox, if its
    file is named by --agent.
    """
    from hpcgym.evaluation.suite import read_record, verify_record

    loaded = read_record(record)
    verdict = verify_record(loaded, weeks=weeks, seed=seed, code=agent)
    for difference in verdict.wrong:
        echo(difference)
    what = f"{verdict.n_replayed} of {verdict.n_weeks} weeks replayed"
    if verdict.not_here:
        what += f"; not here, so not replayed: {', '.join(verdict.not_here)}"
    if loaded.suite.note:
        what += f"; {loaded.suite.note}"
    if verdict.changed:
        what += f", so not replayed: {', '.join(verdict.changed)}"
    if not verdict.holds:
        raise EvaluationError(f"{record}: {len(verdict.wrong)} differences; {what}")
    echo_prose(f"{what}: every start and metric is as the record says")


@app.command("table", epilog="Example: hpcgym suite table saf.json fcfs.json")
def table_of_suite(
    records: Annotated[
        list[Path], typer.Argument(metavar="RECORD...", help="Records, that of SAF among them.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .md, .csv or .html, which sorts."),
    ] = None,
    by_log: Annotated[
        bool, typer.Option("--by-log", help="Show each log, in place of parts.")
    ] = False,
    how: Format = "table",
    force: Force = False,
) -> None:
    """Show records side by side: ratios to SAF by part of the suite, and what they cost.

    A ratio is the geometric mean over the logs of a part, with a 95 % interval over weeks, of each
    record alone.
    """
    from hpcgym.base.output import writing
    from hpcgym.evaluation.suite import read_record, suite_frame

    loaded = [read_record(path) for path in records]
    frame = suite_frame(loaded, by_log=by_log)
    if note := loaded[0].suite.note:
        say(note, how)
    if output is None:
        ranks = {"contest": 4, "wasted, %": 3, "killed, %": 3, "mean wait": 2}
        rows = [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
        others = dict.fromkeys(frame.columns[3:], 1)  # the first of the parts stays
        kinds: dict[str, Kind] = {"agent": "name", "contest": "word"}
        show_rows(rows, how, kinds=kinds, ranks={**others, **ranks})
        return
    with writing(output, force=force) as file:
        file.write_text(_as(frame, output, loaded[0].suite.name), "utf-8")
    echo(f"wrote {output}")


def _as(frame: pd.DataFrame, output: Path, name: str) -> str:
    """Return a table in the form that a file's name asks for."""
    from hpcgym.base.text_table import machine_text
    from hpcgym.evaluation.suite.table import html_page

    if output.suffix == ".html":
        text = "Mean bounded slowdown over SAF's; lower is better. 95 % intervals, each alone."
        return html_page(frame, name, text)
    if output.suffix == ".csv":
        return machine_text(frame, "csv") + "\n"
    if output.suffix == ".md":
        return machine_text(frame, "markdown") + "\n"
    raise EvaluationError(f"{output}: a table is written as .md, .csv or .html")
