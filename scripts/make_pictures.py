"""Draw the pictures of the documentation, into docs/pictures/, from bundled logs only.

    python scripts/make_pictures.py [NAME ...]

Names are those of the files, without endings. It needs the extras `report` and `render`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

import hpcgym
from hpcgym.agent.price import PriceNet
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.pictures import evaluation_figure, plot_schedules
from research.examples import example, starts, tried
from research.films import film_environment, film_two_clusters
from research.gain import gain_figure
from research.tables import Tables

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
DPI = 104

MODES = ["none", "easy", "depth:k=2", "conservative", "conservative:compress=shift", "look-ahead"]
MODES += ["relaxed:omega=0.5", "slack:c=0.5", "multi-queue:bounds=240", "slurm:interval=120"]
MODES += ["gang:quantum=60"]
"""Backfilling modes of docs/backfilling.md, in its order."""


def draw_kind(kind: str, path: Path, **options: object) -> None:
    """Draw a kind of picture of the bundled log under some policies."""
    jobs = hpcgym.load_workload("synthetic-256")
    made = {policy: hpcgym.simulate(jobs, policy) for policy in ("FCFS", "SAF")}
    plot_schedules(made, kind, path, dpi=DPI, force=True, **options)


def draw_nodes(path: Path) -> None:
    jobs = Episodes("hetero-64-weeks").workload(2)
    hpcgym.simulate(jobs).plot("gantt", path, dpi=DPI, force=True)


def draw_comparison(path: Path) -> None:
    agents = ["FCFS", "SPF", "SMITH", "EASY-SJBF", "SMITH-NET", "URGENT-BENEFIT"]
    evaluation = hpcgym.evaluate(agents, "synthetic-busy-weeks", progress=False)
    evaluation_figure(evaluation).savefig(path, dpi=DPI)


def draw_mode(mode: str, path: Path) -> None:
    """Draw the example under a backfilling mode; all on the same axis of time."""
    figure = hpcgym.simulate(example(), backfill=mode).plot("gantt")
    figure.axes[0].set(xlim=(0, 17), xticks=range(18))
    figure.savefig(path, dpi=DPI)


def draw_trials(path: Path) -> None:
    """Draw the eight jobs with trials and without."""
    made = {mode: hpcgym.simulate(tried(), backfill=mode) for mode in ("easy", "easy+trial")}
    plot_schedules(made, "gantt", path, dpi=DPI, force=True)


def draw_price(path: Path) -> None:
    """Draw a test week of the price under SAF and under PRICE-NET."""
    env: Any = gymnasium.make("hpcgym/Price-test-v0").unwrapped
    net, (shown, _), over = PriceNet.read(), env.reset(options={"episode": 20_001}), False
    while not over:
        shown, _, over, *_ = env.step(net.predict(shown)[0])
    saf = hpcgym.simulate(env.workload, "SAF", events="price:seed=1")
    both = {"SAF, backfill easy": saf, "network": env.schedule()}
    plot_schedules(both, "usage", path, dpi=DPI, force=True, days=(0, 7))


PICTURES: dict[str, Callable[[Path], None]] = {
    "gain.png": lambda path: gain_figure().savefig(path, dpi=DPI),
    "two-clusters.gif": film_two_clusters,
    "environment.gif": film_environment,
    "comparison.png": draw_comparison,
    "gantt.png": partial(draw_kind, "gantt", days=(37, 40)),
    "usage.png": partial(draw_kind, "usage", days=(14, 42)),
    "distribution.png": partial(draw_kind, "distribution"),
    "hours.png": partial(draw_kind, "hours"),
    "sizes.png": partial(draw_kind, "sizes"),
    "nodes.png": draw_nodes,
    "trials.png": draw_trials,
    "price.png": draw_price,
    "backfill-starts.csv": lambda path: Tables(path.parent).write(path.stem, starts(MODES)),
}
for mode in MODES:
    name = re.sub("[^a-z0-9]+", "-", f"backfill:{mode}")
    PICTURES[f"{name}.png"] = partial(draw_mode, mode)


def main() -> None:
    known = {Path(file).stem: file for file in PICTURES}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*known], help="pictures; default: all")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to; docs/pictures")
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(known)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        path = given.folder / known[name]
        PICTURES[known[name]](path)
        print(f"wrote {path} ({path.stat().st_size / 1000:.0f} kB)", flush=True)


if __name__ == "__main__":
    main()
