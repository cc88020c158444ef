"""Rerun Inria RR-9212 on its four logs: tables, best weights of each week, figures, claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_rr9212.py --output runs/rr9212

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.papers import rr9212, rr9212_page, rr9212_search
from hpcgym.output import make_folder
from hpcgym.report import rr9212_figures

COMMAND = "python scripts/reproduce_rr9212.py"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("runs/rr9212"))
    parser.add_argument("--page", type=Path, help="also write the page here")
    parser.add_argument("--threads", type=int, help="threads that search; default one per core")
    options = parser.parse_args()
    folder = make_folder(options.output)
    journals = folder / "unfinished-tables.jsonl", folder / "unfinished-weights.jsonl"

    tables = rr9212.tables(journals[0])
    written = [
        write(tables.weekly, folder / "weekly.csv"),
        write(tables.facts, folder / "facts.csv"),
    ]
    written += rr9212_figures.draw_tables(tables, folder)
    print(f"tables: {tables.seconds:.0f} s, earlier runs included; see {folder}", flush=True)

    search = rr9212_search.search(journals[1], threads=options.threads)
    written += [write(getattr(search, name), folder / f"{name}.csv") for name in ("xnes", "grid")]
    written += [write(search.months, folder / "months.csv")]
    written += [write(rr9212_search.best_of(search), folder / "best.csv")]
    written += rr9212_figures.draw_search(tables, search, folder)
    for path in filter(None, (folder / "page.md", options.page)):
        picture = path.with_suffix(".png")
        picture.write_bytes((folder / "readings.png").read_bytes())
        page = rr9212_page.page(tables, search, COMMAND, picture.name)
        path.write_text(page, encoding="utf-8")
        written += [path, picture]
    for journal in journals:
        journal.unlink()
    for path in written:
        print(f"wrote {path}")
    print(f"weights: {search.seconds:.0f} s, earlier runs included")


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV."""
    frame.to_csv(path, index=False, lineterminator="\n")
    return path


if __name__ == "__main__":
    try:
        main()
    except HpcgymError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: finished parts are kept; the same command goes on from there")
