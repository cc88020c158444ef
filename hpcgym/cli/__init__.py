"""The `hpcgym` command: each subcommand reads its arguments and makes one call."""

from hpcgym.cli.root import app

__all__ = ["app"]
