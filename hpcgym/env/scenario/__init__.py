"""Scenarios: named settings, read strictly, and their episodes."""

from hpcgym.env.scenario.load import load_scenario, scenario_names
from hpcgym.env.scenario.spec import Scenario

__all__ = ["Scenario", "load_scenario", "scenario_names"]
