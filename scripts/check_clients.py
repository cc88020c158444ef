"""Run other libraries on hpcgym, each in a virtual environment of its own; write its table.

    python scripts/check_clients.py [NAME ...] [--cleanrl FOLDER] [--folder WHERE]

Each runs its example of docs/clients.md, and a program of tests/clients/ looks at what that did.
Environments take about 1.3 GB each and are kept in WHERE, by default in the user's cache folder.
What cannot run is skipped with a reason, and keeps its row of docs/datasets/clients.csv.
"""

import argparse
import sys
from pathlib import Path

import pooch
from rich.console import Console

from hpcgym.base.errors import HpcgymError
from hpcgym.base.progress import shown, steps
from research import clients

N_LINES = 30
"""How many of its last lines a client that fails shows."""


def main() -> int:
    """Run the clients one after the other, print the table and write it."""
    default = Path(pooch.os_cache("hpcgym")) / "clients"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(clients.CLIENTS))
    parser.add_argument("--cleanrl", type=Path, metavar="FOLDER", help="folder of its scripts")
    parser.add_argument("--folder", type=Path, default=default, metavar="WHERE", help=f"{default}")
    given = parser.parse_args()
    if unknown := set(given.names) - set(clients.CLIENTS):
        parser.error(
            f"unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(clients.CLIENTS)}"
        )
    if given.cleanrl is not None and not (given.cleanrl / "ppo.py").is_file():
        parser.error(f"--cleanrl: {given.cleanrl} has no ppo.py")
    console, rows = Console(), []
    names = [name for name in clients.CLIENTS if name in (given.names or clients.CLIENTS)]
    console.print(f"virtual environments: {given.folder}", soft_wrap=True)
    try:
        with shown(), steps(len(names), "clients", "clients") as work:
            for name in names:
                row, printed = clients.run(name, given.folder, given.cleanrl)
                rows.append(row)
                clients.write(row)  # at once, since the next one may be interrupted
                work.advance()
                if printed:
                    print(*printed.splitlines()[-N_LINES:], sep="\n")
                console.print(f"{name}: {row.result}", soft_wrap=True, markup=False)
    except HpcgymError as error:
        sys.exit(f"check_clients: {error}")
    console.print(clients.table_of(rows))
    return int(any(row.result.startswith("FAILED") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
