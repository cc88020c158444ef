"""The picture of RLScheduler's table: what its rules do to every policy."""

from __future__ import annotations

from pathlib import Path

from papers.common.figures import BLACK, LINES, figure_of, finish, panels, save
from papers.rlscheduler.run import ANEW, EASY, LOGS, PUBLISHED, THERE, WAITS, WAITS_FILLED, Rerun

SHOWN = (
    (THERE[False], "RLScheduler"),
    (WAITS, "right waits"),
    (ANEW, "chosen anew"),
    (THERE[True], "RLScheduler,\nbackfilling"),
    (WAITS_FILLED, "right waits,\nbackfilling"),
    (EASY, "EASY"),
)


def draw(rerun: Rerun, folder: Path) -> list[Path]:
    """Draw the picture into a folder: bounded slowdowns by rules, a panel for each log.

    Raises:
        HpcgymError: matplotlib is not installed.
        OutputError: The picture cannot be written.
    """
    title = "Mean bounded slowdown of ten windows, a dot for each policy; black: RL as published"
    figure = figure_of(12.0, 3.8, title)
    for axes, log in zip(panels(figure, 1, len(LOGS)), LOGS, strict=True):
        for at, (rules, _) in enumerate(SHOWN):
            for policy, _ in rules.orders:
                colour = LINES[0 if at < 3 else 1]
                axes.plot(at, rerun.mean(log, rules, policy), "o", color=colour, alpha=0.7)
        for backfill, span in ((False, (-0.4, 2.4)), (True, (2.6, 5.4))):
            axes.hlines(PUBLISHED[backfill, log][-1], *span, color=BLACK, linewidth=1.5)
        axes.set_yscale("log")
        axes.set_xticks(range(len(SHOWN)), [name for _, name in SHOWN], rotation=60)
        finish(axes, log)
    return [save(figure, folder / "rules.png")]
