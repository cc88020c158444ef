"""These programs need libraries that tests do without: `scripts/check_clients.py` runs them."""

collect_ignore_glob = ["*.py"]
