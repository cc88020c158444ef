"""Change one operator of the simulator at a time, and print the changes that no test notices.

    python scripts/mutate.py
    python scripts/mutate.py --only passes/easy.py:charge_extra
    python scripts/mutate.py --only parts/trials.py --mutants 60

Without `--only`, mutants are drawn evenly over `core/kernels`, `core/metrics` and `trace/clean`.
The tests run in a copy of the tree, without real logs. Verdicts are kept in the folder, and the
same command goes on from there. `scripts/research/equivalent_mutants.toml` lists the mutants that
compute the same as the original, with the reason.
"""

import argparse
import sys
from pathlib import Path

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.base.progress import shown
from research.mutants import ROOT, all_mutants, draw, named
from research.mutation import Mutation, Verdict, judged, table_of

MUTANTS = 200


def main() -> int:
    """Judge the mutants and print what survived; exit with 1 if too many did."""
    try:
        with shown():
            return run(read_arguments())
    except HpcgymError as error:
        sys.exit(f"mutate: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from what is kept")


def run(options: argparse.Namespace) -> int:
    """Judge the mutants, print each survivor when it is found, and the table."""
    mutants = [one for text in options.only or [] for one in named(text)]
    if options.mutants or not options.only:
        mutants = draw(options.mutants or MUTANTS, options.seed, mutants or list(all_mutants()))
    mutation = Mutation(make_folder(options.output), options.budget)
    mutation.learn()
    verdicts: list[Verdict] = []
    try:
        for verdict in judged(mutation, mutants, compiled=options.compiled):
            verdicts.append(verdict)
            if verdict.end == "survived" or options.all:
                print(text_of(verdict), flush=True)
    finally:
        print(table_of(verdicts), flush=True)
    bad = sum(one.end == "survived" for one in verdicts)
    return int(bad > 0.05 * len(verdicts))


def text_of(verdict: Verdict) -> str:
    """Return a verdict as a person reads it: place, change, end, and the test that killed it."""
    mutant = verdict.mutant
    before, after = mutant.lines((ROOT / mutant.path).read_bytes())
    head = f"{verdict.end}: {mutant.path}:{mutant.line} {mutant.function} ({mutant.kind})"
    by = f"\n    {verdict.by}" if verdict.by else ""
    return f"{head}, {verdict.seconds:.0f} s\n  - {before}\n  + {after}{by}"


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mutants", type=int, help=f"how many are drawn; default {MUTANTS}, of --only all"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument(
        "--only", action="append", metavar="FILE[:LINE|:FUNCTION]", help="all mutants there"
    )
    parser.add_argument(
        "--budget", type=float, default=40.0, help="s of tests for a mutant, uncompiled"
    )
    parser.add_argument(
        "--no-compiled", dest="compiled", action="store_false", help="do not compile survivors"
    )
    parser.add_argument("--all", action="store_true", help="print those that were killed, too")
    parser.add_argument("--output", type=Path, default=Path("runs/mutants"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
