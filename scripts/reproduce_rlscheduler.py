"""Rerun RLScheduler's table on its three logs at hand: every figure, and other rules.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_rlscheduler.py --output runs/rlscheduler

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/rlscheduler.md` it also writes the page of the project.
"""

from papers.common.rerun import reproduce
from papers.rlscheduler import figures, page, run

if __name__ == "__main__":
    reproduce(
        "rlscheduler",
        __doc__,
        rerun=run.rerun,
        tables=("runs", "facts"),
        draw=figures.draw,
        page=page.page,
        beside=page.beside,
    )
