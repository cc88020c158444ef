"""The tables of a lecture on batch scheduling."""
