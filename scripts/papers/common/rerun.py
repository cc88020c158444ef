"""The command of a rerun, `scripts/reproduce_*.py`: options in, tables, pictures and a page out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pandas as pd

from hpcgym.errors import HpcgymError
from hpcgym.output import ensure_writable, make_folder, writing


class Figures(Protocol):
    """What a rerun gave: data frames, and how long it took."""

    @property
    def seconds(self) -> float:
        """Wall time of all simulations, those of earlier runs included, s."""


F = TypeVar("F", bound=Figures)


class Output:
    """Where a rerun keeps what is unfinished and writes what it gives.

    Args:
        name: The rerun, as in the name of its script.
        folder: Where all is written; made if it is not there.
        page: A second place for the page; None = in the folder alone.

    Attributes:
        command: What pages say they are written by.
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
        self._journals: list[Path] = []
        self._begun = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time of this run until now, s."""
        return time.perf_counter() - self._begun

    def journal(self, name: str = "unfinished") -> Path:
        """Return the file for finished parts, which is removed once all is written."""
        self._journals.append(self.folder / f"{name}.jsonl")
        return self._journals[-1]

    def write_tables(self, **frames: pd.DataFrame) -> None:
        """Write data frames as CSV, each under its keyword."""
        for name, frame in frames.items():
            self.written.append(self.folder / f"{name}.csv")
            frame.to_csv(self.written[-1], index=False, lineterminator="\n")

    def write_page(self, path: Path, text: str) -> None:
        """Write the page to one of its places."""
        with writing(path, force=True) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
        self.written.append(path)

    def finish(self) -> None:
        """Remove the journals and print what was written."""
        for journal in self._journals:
            journal.unlink()
        for path in self.written:
            print(f"wrote {path}")


def parser_for(name: str, description: str | None) -> argparse.ArgumentParser:
    """Make a parser of the options that all scripts have.

    Args:
        name: The rerun, as in the name of its script.
        description: What `--help` says first.

    Returns:
        The parser; a script may add options of its own.

    Source:
        House rule: one word per thing, in options too.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = Path("runs", name.replace("_", "-"))
    parser.add_argument("--output", type=Path, default=folder)
    parser.add_argument("--page", type=Path, help="also write the page here")
    return parser


def run_script(
    name: str,
    parser: argparse.ArgumentParser,
    work: Callable[[Output, argparse.Namespace], str],
) -> None:
    """Run a script: read its options, do its work, say what was written.

    Args:
        name: The rerun, as in the name of its script.
        parser: Its options, those of `parser_for` among them.
        work: Reruns and writes all, given the output and the options; returns the last line.

    Raises:
        SystemExit: An option is wrong, a rerun fails, or it is interrupted.

    Source:
        House rule: a long run can be cut off at any time and taken up again.
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
    rerun: Callable[[Path], F],
    tables: Sequence[str],
    draw: Callable[[F, Path], list[Path]],
    page: Callable[[F, str, float], str],
) -> None:
    """Run the script of a rerun that is made, drawn and written up in one go.

    Args:
        name: The rerun, as in the name of its script.
        description: What `--help` says first.
        rerun: Makes the figures; keeps finished parts in the file given.
        tables: Data frames of the figures that are written as CSV.
        draw: Draws the figures into a folder and returns the pictures.
        page: Writes the page, given the figures, the command and its seconds.

    Raises:
        SystemExit: As in `run_script`.

    Source:
        House rule: scripts are thin: arguments in, one call, files out.
    """

    def work(output: Output, options: argparse.Namespace) -> str:
        """Rerun, and write all."""
        figures = rerun(output.journal())
        output.write_tables(**{table: getattr(figures, table) for table in tables})
        output.written += draw(figures, output.folder)
        seconds = output.seconds
        text = page(figures, output.command, seconds)
        for path in output.pages:
            output.write_page(path, text)
        made = f"{figures.seconds:.0f} s for all simulations, earlier runs included"
        return f"{seconds:.0f} s; {made}"

    run_script(name, parser_for(name, description), work)
