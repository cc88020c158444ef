"""Rerun the lecture on batch scheduling on its three logs: tables, and what becomes of its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_lecture.py --output runs/lecture

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

from papers.common.rerun import reproduce
from papers.lecture import page, run
from papers.lecture.figures import draw_lecture

if __name__ == "__main__":
    reproduce(
        "lecture",
        __doc__,
        rerun=run.rerun,
        tables=("runs",),
        draw=draw_lecture,
        page=page.page,
    )
