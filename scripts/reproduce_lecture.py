"""Rerun the lecture on batch scheduling on its three logs: tables, and what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_lecture.py --output runs/lecture

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

import argparse
import sys
import time
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.papers import lecture, lecture_page
from hpcgym.output import make_folder
from hpcgym.report.lecture_figures import draw_lecture

COMMAND = "python scripts/reproduce_lecture.py"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("runs/lecture"))
    parser.add_argument("--page", type=Path, help="also write the page here")
    options = parser.parse_args()
    begun = time.perf_counter()
    folder = make_folder(options.output)
    journal = folder / "unfinished.jsonl"
    rerun = lecture.rerun(journal)
    written = [folder / "runs.csv", *draw_lecture(rerun, folder)]
    rerun.runs.to_csv(written[0], index=False, lineterminator="\n")
    seconds = time.perf_counter() - begun
    page = lecture_page.page(rerun, COMMAND, seconds)
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
