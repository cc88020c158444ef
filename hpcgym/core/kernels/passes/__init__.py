"""Scheduling passes, one file per backfilling mode, and the profile that reservations stand in."""
