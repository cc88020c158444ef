"""Policies that plan or learn as a simulation goes on: dynP, the planner, bandits."""
