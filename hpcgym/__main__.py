"""`python -m hpcgym`: the `hpcgym` command where no script folder is on the path."""

from hpcgym.cli import app

if __name__ == "__main__":
    app(prog_name="hpcgym")
