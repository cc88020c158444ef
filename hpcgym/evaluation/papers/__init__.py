"""Reruns of papers on the logs they used; the scripts `scripts/reproduce_*.py` call them."""
