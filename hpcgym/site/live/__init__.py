"""A live Slurm queue: what it prints, read strictly, and what other orders would do to it."""
