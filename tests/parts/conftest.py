"""Toys register themselves when they are imported, so only processes of their own import them."""

collect_ignore_glob = ["toy_*.py"]
