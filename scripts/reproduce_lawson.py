"""Rerun Lawson, Smirni, Puiu 2002 on its four logs: tables, figures, what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_lawson.py --output runs/lawson

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

from pathlib import Path

from papers.common.rerun import reproduce
from papers.lawson import page, run
from papers.lawson.figures import draw_lawson


def draw(rerun: run.Rerun, folder: Path) -> list[Path]:
    shown = run.SHOWN
    return [path for setting in shown for path in draw_lawson(rerun, setting, folder)]


if __name__ == "__main__":
    reproduce(
        "lawson",
        __doc__,
        rerun=run.rerun,
        tables=("runs", "batches", "delays", "facts"),
        draw=draw,
        page=page.page,
    )
