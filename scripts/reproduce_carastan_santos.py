"""Rerun Carastan-Santos 2019 on its five logs: tables, figures, verdicts on its claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_carastan_santos.py --output runs/carastan-santos

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/carastan_santos.md` it also writes the page of the project.
"""

from papers.carastan_santos import figures, page, run
from papers.common.rerun import reproduce

if __name__ == "__main__":
    reproduce(
        "carastan_santos",
        __doc__,
        rerun=run.rerun,
        tables=("runs", "weekly", "worst", "facts"),
        draw=figures.draw,
        page=page.page,
        beside=page.beside,
    )
