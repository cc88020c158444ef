"""Compiled functions, one file per part of the scheduler."""
