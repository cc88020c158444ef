"""The event engine: the clock, the life of a job, the moments that parts hear of."""
