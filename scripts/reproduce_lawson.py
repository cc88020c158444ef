"""Rerun Lawson, Smirni, Puiu 2002 on its four logs: tables, figures, verdicts on its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_lawson.py --output runs/lawson

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/lawson.md` it also writes the page of the project.
"""

from papers.common.rerun import reproduce
from papers.lawson import figures, page, run

if __name__ == "__main__":
    reproduce(
        "lawson",
        __doc__,
        rerun=run.rerun,
        tables=("runs", "batches", "delays", "facts"),
        draw=figures.draw,
        page=page.page,
        beside=page.beside,
    )
