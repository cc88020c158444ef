"""Rendering of a simulation: a snapshot as text, as an image, in a window."""
