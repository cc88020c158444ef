"""Carastan-Santos et al. 2019: simple policies with EASY backfilling."""
