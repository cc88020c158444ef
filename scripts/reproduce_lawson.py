"""Rerun Lawson, Smirni, Puiu 2002 on its four logs: tables, figures, what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_lawson.py --output runs/lawson

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

import argparse
import sys
import time
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.papers import lawson, lawson_page
from hpcgym.output import make_folder
from hpcgym.report.lawson_figures import draw_lawson

COMMAND = "python scripts/reproduce_lawson.py"
TABLES = ("runs", "batches", "delays", "facts")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("runs/lawson"))
    parser.add_argument("--page", type=Path, help="also write the page here")
    options = parser.parse_args()
    begun = time.perf_counter()
    folder = make_folder(options.output)
    journal = folder / "unfinished.jsonl"
    rerun = lawson.rerun(journal)
    written = [folder / f"{name}.csv" for name in TABLES]
    for path in written:
        getattr(rerun, path.stem).to_csv(path, index=False, lineterminator="\n")
    for setting in lawson.SHOWN:
        written += draw_lawson(rerun, setting, folder)
    seconds = time.perf_counter() - begun
    page = lawson_page.page(rerun, COMMAND, seconds)
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
