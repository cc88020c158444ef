"""Training: PPO, searches of weights, credit by copies of the simulation."""
