"""What a site's users would gain: its accounting, what the simulation misses, and what might be."""
