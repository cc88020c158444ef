"""Copies of the simulation that run ahead: rollouts, forecasts, sweeps over policies."""
