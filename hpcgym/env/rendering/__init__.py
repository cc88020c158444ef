"""Pictures of a simulation: what is shown at an instant, as text, as pixels, in a window."""
