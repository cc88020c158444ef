"""Rerun Carastan-Santos 2019 on its five logs: tables, figures, and what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_carastan_santos.py --output runs/carastan-santos

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

from pathlib import Path

from hpcgym.evaluation.papers import carastan_santos, carastan_santos_page
from hpcgym.evaluation.papers.rerun import reproduce
from hpcgym.report.carastan_santos_figures import draw_carastan_santos


def draw(rerun: carastan_santos.Rerun, folder: Path) -> list[Path]:
    shown = carastan_santos.SHOWN
    return [path for setting in shown for path in draw_carastan_santos(rerun, setting, folder)]


if __name__ == "__main__":
    reproduce(
        "carastan_santos",
        __doc__,
        rerun=carastan_santos.rerun,
        tables=("runs", "weekly", "worst", "facts"),
        draw=draw,
        page=carastan_santos_page.page,
    )
