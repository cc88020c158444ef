"""What an order gains, at one glance: queues under four agents, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import hpcgym
from hpcgym.agent import load_agent
from hpcgym.agent.rule import RuleAgent
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation.pictures import style
from hpcgym.schedule.busy import mean_waiting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AGENTS = {
    "FCFS": "first come, first served",
    "SAF": "smallest area first",
    "URGENT-BENEFIT": "best known without kills",
    "URGENT-YOUNG": "best known with trial runs",
}
"""Agents, and what they are."""

DAY_S, STEP_S = 86_400, 6 * 3_600
N_DAYS = 8
"""A week, and a day for what waits at its end."""


def gain_figure(scenario: str = "synthetic-busy-weeks") -> Figure:
    """Draw how many jobs wait in the course of a week: the mean of all weeks of a scenario."""
    weeks = Episodes(scenario)
    jobs = [weeks.workload(week) for week in range(len(weeks))]
    edges = np.arange(0.0, N_DAYS * DAY_S + 1, STEP_S)
    figure = style.blank_figure(style.WIDTH_IN, 3.2)
    charts = figure.subplots(1, len(AGENTS), sharey=True)
    for axes, (name, words) in zip(charts, AGENTS.items(), strict=True):
        agent = load_agent(name)
        assert isinstance(agent, RuleAgent)
        settings = agent.settings(weeks.settings)
        made = [hpcgym.simulate(week, **vars(settings)) for week in jobs]
        waiting = np.mean([mean_waiting(one, edges) for one in made], axis=0)
        wait_h = np.mean([one.metrics()["mean_wait_time"] for one in made]) / 3_600
        bsld = np.mean([one.metrics()["mean_bsld"] for one in made])
        axes.stairs(waiting, edges / DAY_S, fill=True, color=style.COLOURS[0], alpha=0.75)
        axes.set_title(f"{words}\n{name}", loc="left", fontsize=9)
        text = f"wait {wait_h:.1f} h\nslowdown {bsld:.0f}"
        axes.text(0.97, 0.96, text, transform=axes.transAxes, ha="right", va="top", fontsize=12)
        axes.set_xlabel("day of the week")
        axes.set_xlim(0, N_DAYS)
        style.whole_marks(axes, "x")
        style.plain_axes(axes)
    charts[0].set_ylim(top=1.35 * charts[0].get_ylim()[1])  # room for the numbers
    charts[0].set_ylabel(f"waiting jobs, mean of {len(jobs)} weeks")
    return figure
