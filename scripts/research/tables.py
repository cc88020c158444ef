"""Tables that scripts print, and write as CSV for the pages of docs/ that show them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from hpcgym.base.output import writing
from hpcgym.base.text_table import machine_text


def csv_option(parser: ArgumentParser) -> None:
    """Let a command say where its tables go."""
    parser.add_argument("--csv", type=Path, metavar="FOLDER", help="where tables are written, too")


@dataclass(frozen=True)
class Tables:
    """Where tables go: each is printed, and written to a folder where there is one."""

    folder: Path | None = None

    def show(
        self, name: str, table: pd.DataFrame | Table, title: str = "", **chosen: Sequence[str]
    ) -> None:
        """Print a table, a frame in Markdown below its title, and write it; `chosen` as there."""
        if isinstance(table, Table):
            Console().print(table)
        else:
            head = f"{title}\n\n" if title else ""
            print(f"{head}{machine_text(table, 'markdown')}\n", flush=True)
        self.write(name, table, **chosen)

    def write(
        self,
        name: str,
        table: pd.DataFrame | Table,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """Write a table as `name`.csv, if there is a folder.

        Where rows, by their first cells, or columns are named, only these are written.
        """
        if self.folder is None:
            return
        frame = frame_of(table)
        if rows:
            frame = frame[frame.iloc[:, 0].astype(str).isin(rows)]
        with writing(self.folder / f"{name}.csv", force=True) as path:
            text = machine_text(frame[[*columns]] if columns else frame, "csv")
            path.write_text(f"{text}\n", encoding="utf-8")


def frame_of(table: pd.DataFrame | Table) -> pd.DataFrame:
    """Return a table of rich as a frame of texts; a frame as it is."""
    if not isinstance(table, Table):
        return table
    heads = [str(column.header) for column in table.columns]
    rows = list(zip(*(map(str, column.cells) for column in table.columns), strict=True))
    return pd.DataFrame(rows, columns=heads)
