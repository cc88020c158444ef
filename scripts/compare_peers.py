"""Compare hpcgym with AccaSim on one machine of nodes with memory: a table in Markdown.

    python -m venv runs/accasim
    runs/accasim/bin/pip install accasim
    python scripts/compare_peers.py --python runs/accasim/bin/python

The page docs/comparison.md has the table, what explains it, and what was not run.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from hpcgym.base.errors import HpcgymError
from research import peers
from research.tables import Tables, csv_option


def main() -> int:
    """Draw the jobs, run both simulators and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="interpreter with AccaSim"
    )
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    csv_option(parser)
    options = parser.parse_args()
    try:
        workload = peers.drawn(options.jobs, options.seed)
        with tempfile.TemporaryDirectory() as folder:
            made = peers.comparison(workload, options.python, Path(folder))
    except HpcgymError as error:
        sys.exit(f"compare_peers: {error}")
    print(peers.summary(workload), end="\n\n")
    shown = [head for head in made if head != "overfull nodes"]
    Tables(options.csv).show("peers", made, rows=[*made["simulator"]][:5], columns=shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
