"""The `hpcgym` command: thin, each subcommand arguments in and one call."""

from hpcgym.cli.root import app

__all__ = ["app"]
