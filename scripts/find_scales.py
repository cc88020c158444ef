"""Find the ends of problems' scales, and write a file each: the best static one, and who knows.

    python scripts/find_scales.py synthetic-busy-weeks index order job trials [--weeks N]
    python scripts/find_scales.py price-weeks price

What is static is searched on the training weeks, both ends are judged on the test weeks; of both
the first N are played, or all. What was found is kept in `--output`, so that the same command goes
on from there. `--print` prints every file that there is, and those with a gap with `--csv FOLDER`;
`--regimes` finds and prints that of other mixes of jobs, in some ten minutes of one core; `--reach`
what a clairvoyant one reaches whose choices are those of action `index`, on the test weeks.
"""

import argparse
import shlex
import sys
from pathlib import Path

import pandas as pd
import tomli_w

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import ensure_writable, make_folder, writing
from hpcgym.base.progress import shown
from hpcgym.base.registry import shelf_entries, shelf_folders
from hpcgym.env.scale import scales_of
from research import index_reach, regimes
from research.price import scale_of_price
from research.scales import Kept, find, row_of
from research.tables import Tables, csv_option


def main() -> int:
    """Write the scale of each problem that is named, or print those that there are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("actions", nargs="*", metavar="ACTION")
    parser.add_argument("--backfill", default="", metavar="MODE", help="that the problem states")
    parser.add_argument("--weeks", type=int, default=0, metavar="N", help="training weeks at most")
    parser.add_argument("--test-weeks", type=int, default=0, metavar="N", help="at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("runs/scales"))
    parser.add_argument("--print", action="store_true", dest="prints")
    parser.add_argument("--regimes", action="store_true")
    parser.add_argument("--reach", action="store_true")
    parser.add_argument("--force", action="store_true", help="replace a scale that there is")
    csv_option(parser)
    given = parser.parse_args()
    tables = Tables(given.csv)
    if not (given.prints or given.regimes or given.actions):
        parser.error("name a scenario and kinds of action, or give --print or --regimes")
    try:
        if given.prints:
            scales = [one for name in shelf_entries("scenarios") for one in scales_of(name)]
            Tables().show("", pd.DataFrame(map(row_of, scales)))
            tables.write("scales", pd.DataFrame(row_of(each) for each in scales if each.has_gap))
            return 0
        folder = make_folder(given.output)
        with shown():
            if given.regimes:
                tables.show("regimes", pd.DataFrame(regimes.rows(folder)))
            if given.reach:
                kept = Kept(folder / "kept.jsonl")
                reached = index_reach.rows(given.scenario, given.test_weeks, kept)
                tables.show("reach", pd.DataFrame(reached))
            for action in () if given.reach else given.actions:
                write(given, action, folder)
    except HpcgymError as error:
        sys.exit(f"find_scales: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from what is kept")
    return 0


def write(given: argparse.Namespace, action: str, folder: Path) -> None:
    """Find one scale, and write its file."""
    words = ["python", "scripts/find_scales.py", given.scenario, action]
    for option in ("backfill", "weeks", "test-weeks", "seed"):
        value = getattr(given, option.replace("-", "_"))
        words += [f"--{option}", str(value)] if value else []
    mode = f"-{given.backfill}".replace(":", "-").replace("=", "-") if given.backfill else ""
    scales = make_folder(shelf_folders("scenarios")[0] / "scales")
    path = scales / f"{given.scenario}-{action}{mode}.toml"
    ensure_writable(path, force=given.force)
    sizes, command = (given.weeks, given.test_weeks), shlex.join(words)
    if action == "price":
        table = scale_of_price(folder, sizes, given.seed, command)
    else:
        how = {"weeks": sizes, "seed": given.seed, "command": command}
        table = find(given.scenario, action, given.backfill, folder, **how)
    weeks = "".join(f"    {row},\n" for row in table.pop("weeks")).replace("'", '"')
    means = tomli_w.dumps({"means": table.pop("means")})
    with writing(path, force=given.force) as file:
        file.write_text(f"{tomli_w.dumps(table)}weeks = [\n{weeks}]\n\n{means}", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    sys.exit(main())
