"""Write tables of pages, of what `hpcgym` writes of evaluations.

    python scripts/page_table.py trials --csv docs/datasets/real-logs
    python scripts/page_table.py orders runs/cv*/summary.csv --csv docs/datasets/real-logs

Tables of `SHELF` are of agents/results.csv. Those of `OF_FILES` are of files: `summary.csv` of
`hpcgym cross-validate --output`, what `hpcgym evaluate --format csv` prints, or the .json of
`hpcgym report`.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from research.page_tables import OF_FILES, SHELF, shelf_results
from research.tables import Tables, csv_option


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=[*SHELF, *OF_FILES])
    parser.add_argument("files", nargs="*", type=Path)
    csv_option(parser)
    given = parser.parse_args()
    if (given.name in SHELF) == bool(given.files):
        parser.error(f"{given.name} is of {'no' if given.files else 'some'} files")
    if given.name in SHELF:
        table = SHELF[given.name](shelf_results())
    else:
        found = [table_in(path).assign(file=path.stem) for path in given.files]
        table = OF_FILES[given.name](pd.concat(found))
    Tables(given.csv).show(given.name, table)


def table_in(path: Path) -> pd.DataFrame:
    """Read a table, or a dictionary as a row."""
    if path.suffix == ".json":
        return pd.json_normalize(json.loads(path.read_text(encoding="utf-8")))
    return pd.read_csv(path)


if __name__ == "__main__":
    main()
