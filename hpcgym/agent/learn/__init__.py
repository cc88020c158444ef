"""Trainings of networks: PPO, and credit by copies of the simulation."""
