"""Print what information is worth: errors of run times, the orders they make, bounded slowdown.

    python scripts/information.py --agent SMITH-NET --scenario kth-sp2-weeks --output runs/chain

The agent is an index with a network; the weeks are those that its training leaves open. The folder
gets one table per scenario as CSV, and `information`, a column for each.
"""

import argparse
import sys
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from hpcgym.agent.shelf import load_agent
from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder, writing
from hpcgym.trace.resample import JITTER_S
from research.tables import Tables
from research.value_of_information import chain


def main() -> int:
    """Measure on every scenario, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", default="SMITH-NET", help="name, or path of a card")
    parser.add_argument("--scenario", action="append", required=True, metavar="NAME")
    parser.add_argument("--jitter", type=int, default=JITTER_S, help="s")
    parser.add_argument("--replicas", type=int, default=10)
    parser.add_argument("--on", help="as of `hpcgym evaluate`")
    parser.add_argument("--output", type=Path, default=Path("runs/information"))
    options = parser.parse_args()
    try:
        folder = make_folder(options.output)
        agent, columns = load_agent(options.agent), {}
        for scenario in options.scenario:
            table = chain(
                agent,
                scenario,
                jitter=options.jitter,
                replicas=options.replicas,
                executor=options.on,
            )
            print(f"{scenario}, {table['passes'].max():.0f} contested passes")
            print(table.drop(columns="passes").round(3).to_string(index=False, na_rep=""))
            with writing(folder / f"{scenario}.csv", force=True) as file:
                table.to_csv(file, index=False)
            columns[scenario.removesuffix("-weeks")] = list(map(cell, table.to_dict("records")))
        frame = pd.DataFrame({"order": table["agent"]} | columns)
        Tables(folder).show("information", frame)
    except HpcgymError as error:
        sys.exit(f"information: {error}")
    print(f"wrote {folder}")
    return 0


def cell(row: dict[str, Any]) -> str:
    """Return the error of run times, the share of pairs in order, and the ratio to SAF."""
    ratio = "{ratio:.3f} [{ratio_low:.3f}, {ratio_high:.3f}]".format_map(row)
    if isnan(row["agreement"]):
        return ratio
    return f"{row['log_error']:.2f}, {row['agreement']:.3f}, {ratio}"


if __name__ == "__main__":
    sys.exit(main())
