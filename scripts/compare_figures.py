"""List figures of one name that differ between pages; where there are none, say "none".

    python scripts/compare_figures.py
    python scripts/compare_figures.py FOLDER

It reads README.md, agents/README.md, agents/results.csv, the pages of docs/ and the CSV files that
these include or link to. `scripts/research/figures.py` says what a figure and its name are. Two
figures are equal if they are after rounding to the coarser. Where one of two intervals names no
agent, or no logs, they differ if two of their three numbers are equal.

Conditions that make two different figures right must be stated beside one of them, in the words of
`CONDITIONS`, `CLAUSES` or `SETS` there, or in other words that are added there.

It cannot see

- a figure that one page alone has, or a number without interval in a row that names no agent;
- ranges, counts, times and ratios in words of sentences ("a third", "27 times", "31 % less");
- figures in code blocks, pictures and their captions, and in the specification's formulas;
- that a whole page is old: both copies of a figure may be wrong alike.
"""

import argparse
from pathlib import Path

from research.figures import contradictions, figures

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Print the pairs; exit with 1 if there is one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="the checkout")
    pairs = list(contradictions(figures(parser.parse_args().folder)))
    for first, other in pairs:
        print(f"{first}\n    {other}")
    print(f"{len(pairs)} pairs differ" if pairs else "none")
    return int(bool(pairs))


if __name__ == "__main__":
    raise SystemExit(main())
