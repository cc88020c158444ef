"""Rerun Carastan-Santos 2019 on its five logs: tables, figures, and what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_carastan_santos.py --output runs/carastan-santos

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

from pathlib import Path

from papers.carastan_santos import page, run
from papers.carastan_santos.figures import draw_carastan_santos
from papers.common.rerun import reproduce


def draw(rerun: run.Rerun, folder: Path) -> list[Path]:
    shown = run.SHOWN
    return [path for setting in shown for path in draw_carastan_santos(rerun, setting, folder)]


if __name__ == "__main__":
    reproduce(
        "carastan_santos",
        __doc__,
        rerun=run.rerun,
        tables=("runs", "weekly", "worst", "facts"),
        draw=draw,
        page=page.page,
    )
