"""Scenarios: named settings, read strictly, and their episodes."""

from hpcgym.ranges import parse_numbers
from hpcgym.scenario.load import load_scenario, parse_scenario, scenario_names
from hpcgym.scenario.spec import (
    EpisodeSpec,
    MachineSpec,
    RandomWindowEpisodes,
    ResampledEpisodes,
    Scenario,
    SchedulerSpec,
    TraceSpec,
    WeekEpisodes,
    WholeEpisode,
    WindowEpisodes,
)

__all__ = [
    "EpisodeSpec",
    "MachineSpec",
    "RandomWindowEpisodes",
    "ResampledEpisodes",
    "Scenario",
    "SchedulerSpec",
    "TraceSpec",
    "WeekEpisodes",
    "WholeEpisode",
    "WindowEpisodes",
    "load_scenario",
    "parse_numbers",
    "parse_scenario",
    "scenario_names",
]
