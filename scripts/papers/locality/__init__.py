"""Dutot, Poquet, Trystram: contiguity and locality in backfilling."""
