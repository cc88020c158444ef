"""Scheduling passes, one file per backfilling mode, and the profile of free processors."""
