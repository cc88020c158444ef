"""Machines of nodes: rooms, placements, reservations, the pass, and what of them is shown."""
