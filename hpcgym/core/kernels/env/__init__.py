"""One step of the environment: actions, observations, rewards, metrics; alone and in batches."""
