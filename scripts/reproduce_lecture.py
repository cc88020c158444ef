"""Rerun the lecture on batch scheduling on its three logs: tables, figures, verdicts.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_lecture.py --output runs/lecture

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/lecture.md` it also writes the page of the project.
"""

from papers.common.rerun import reproduce
from papers.lecture import figures, page, run

if __name__ == "__main__":
    reproduce(
        "lecture",
        __doc__,
        rerun=run.rerun,
        tables=("runs",),
        draw=figures.draw,
        page=page.page,
        beside=page.beside,
    )
