"""Rerun Carastan-Santos 2019 on its five logs: tables, figures, and what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_carastan_santos.py --output runs/carastan-santos

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

import argparse
import sys
import time
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.papers import carastan_santos, carastan_santos_page
from hpcgym.output import make_folder
from hpcgym.report.carastan_santos_figures import draw_carastan_santos

COMMAND = "python scripts/reproduce_carastan_santos.py"
TABLES = ("runs", "weekly", "worst", "facts")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("runs/carastan-santos"))
    parser.add_argument("--page", type=Path, help="also write the page here")
    options = parser.parse_args()
    begun = time.perf_counter()
    folder = make_folder(options.output)
    journal = folder / "unfinished.jsonl"
    rerun = carastan_santos.rerun(journal)
    written = [folder / f"{name}.csv" for name in TABLES]
    for path in written:
        getattr(rerun, path.stem).to_csv(path, index=False, lineterminator="\n")
    for setting in carastan_santos.SHOWN:
        written += draw_carastan_santos(rerun, setting, folder)
    seconds = time.perf_counter() - begun
    page = carastan_santos_page.page(rerun, COMMAND, seconds)
    for path in filter(None, (folder / "page.md", options.page)):
        path.write_text(page, encoding="utf-8")
        written.append(path)
    journal.unlink()
    for path in written:
        print(f"wrote {path}")
    print(f"{seconds:.0f} s; {rerun.seconds:.0f} s for all simulations, earlier runs included")


if __name__ == "__main__":
    try:
        main()
    except HpcgymError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: finished parts are kept; the same command goes on from there")
