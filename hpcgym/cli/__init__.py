"""The `hpcgym` command: each subcommand reads its arguments and makes one call."""

from hpcgym.cli.interruption import ended_by_ctrl_c

with ended_by_ctrl_c():
    from hpcgym.cli.root import app

__all__ = ["app"]
