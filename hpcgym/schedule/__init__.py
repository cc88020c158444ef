"""Schedules of whole workloads: one, many at once, branched, exported; policies that plan."""
