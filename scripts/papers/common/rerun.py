"""The command of a rerun, `scripts/reproduce_*.py`: options in, tables, figures and a page out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pandas as pd

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import ensure_writable, make_folder, writing
from hpcgym.evaluation.store import remove_store


class Results(Protocol):
    """What a rerun gives: data frames, and how long it took."""

    @property
    def seconds(self) -> float:
        """Wall time of all simulations, those of earlier runs included, s."""


R = TypeVar("R", bound=Results)


class Output:
    """Where a rerun keeps finished parts, and writes its results.

    Args:
        name: The rerun, as in the name of its script.
        folder: Where all is written; made if it does not exist.
        page: A second place for the page, besides the folder.

    Attributes:
        command: The command that pages say they are written by.
        folder: Where all is written.
        pages: Where the page is written.
        written: The files written so far, in their order.

    Raises:
        OutputError: The folder cannot be made, or the second place for the page not be written.
    """

    def __init__(self, name: str, folder: Path, page: Path | None) -> None:
        self.command = f"python scripts/reproduce_{name}.py"
        self.folder = make_folder(folder)
        if page is not None:
            ensure_writable(page, force=True)
        self.pages = [self.folder / "page.md", *([page] if page else [])]
        self.written: list[Path] = []
        self._stores: list[Path] = []
        self._begun = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time of this run until now, s."""
        return time.perf_counter() - self._begun

    def store(self, name: str = "unfinished") -> Path:
        """Return the file for finished parts, which is removed once all is written."""
        self._stores.append(self.folder / f"{name}.sqlite")
        return self._stores[-1]

    def write_tables(self, **frames: pd.DataFrame) -> None:
        """Write data frames as CSV, each under its keyword."""
        for name, frame in frames.items():
            self.written.append(self.folder / f"{name}.csv")
            frame.to_csv(self.written[-1], index=False, lineterminator="\n")

    def write_page(self, path: Path, text: str, beside: Mapping[str, pd.DataFrame]) -> None:
        """Write the page to one of its places, and beside it the tables that it links to."""
        texts = {path: text}
        for name, frame in beside.items():
            texts[path.with_name(f"{name}.csv")] = frame.to_csv(index=False, lineterminator="\n")
        for place, content in texts.items():
            with writing(place, force=True) as unfinished:
                unfinished.write_text(content, encoding="utf-8")
            self.written.append(place)

    def finish(self) -> None:
        """Remove the stores and print what was written."""
        for store in self._stores:
            remove_store(store)
        for path in self.written:
            print(f"wrote {path}")


def parser_for(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that all reruns have; a script may add its own."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = Path("runs", name.replace("_", "-"))
    parser.add_argument("--output", type=Path, default=folder)
    parser.add_argument("--on", metavar="WHERE", help="what shares the parts: local:8, ray, slurm")
    parser.add_argument("--page", type=Path, help="also write the page here")
    return parser


def run_script(
    name: str, parser: argparse.ArgumentParser, work: Callable[[Output, argparse.Namespace], str]
) -> None:
    """Read the options, do the work, and print what was written.

    Args:
        name: The rerun, as in the name of its script.
        parser: The options, those of `parser_for` among them.
        work: Runs and writes all; returns the last line to print.

    Raises:
        SystemExit: An option is wrong, a rerun fails, or it is interrupted.
    """
    options = parser.parse_args()
    try:
        output = Output(name, options.output, options.page)
        last = work(output, options)
        output.finish()
        print(last)
    except HpcgymError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: finished parts are kept; the same command goes on from there")


def reproduce(
    name: str,
    description: str | None,
    *,
    rerun: Callable[..., R],
    tables: Sequence[str],
    draw: Callable[[R, Path], list[Path]],
    page: Callable[[R, str, float], str],
    beside: Callable[[R], Mapping[str, pd.DataFrame]],
) -> None:
    """Run the script of a rerun that has one stage.

    Args:
        name: The rerun, as in the name of its script.
        description: What `--help` says first.
        rerun: Gives the results; keeps finished parts in the file it is given, and takes
            `executor`.
        tables: Data frames of the results to write as CSV.
        draw: Draws the results into a folder; returns the pictures.
        page: Returns the page, from results, command and wall time of the command (s).
        beside: Returns the tables that the page links to, by name.

    Raises:
        SystemExit: As in `run_script`.
    """

    def work(output: Output, options: argparse.Namespace) -> str:
        """Rerun, and write all."""
        results = rerun(output.store(), executor=options.on)
        output.write_tables(**{table: getattr(results, table) for table in tables})
        output.written += draw(results, output.folder)
        seconds = output.seconds
        text = page(results, output.command, seconds)
        for path in output.pages:
            output.write_page(path, text, beside(results))
        made = f"{results.seconds:.0f} s for all simulations, earlier runs included"
        return f"{seconds:.0f} s; {made}"

    run_script(name, parser_for(name, description), work)
