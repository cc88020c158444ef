"""Rerun Dutot, Poquet, Trystram on contiguity and locality: tables, figures, verdicts.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_locality.py --output runs/locality

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/locality.md` it also writes the page of the project, and
`locality.png` beside it.
"""

import argparse

from papers.common.rerun import Output, parser_for, run_script
from papers.locality import run


def work(output: Output, options: argparse.Namespace) -> str:
    """Run all experiments, and write all."""
    rerun = run.rerun(output.journal(), processes=options.processes)
    output.write_tables(runs=rerun.runs, candidates=rerun.candidates)
    return f"{output.seconds:.0f} s"


if __name__ == "__main__":
    parser = parser_for("locality", __doc__)
    parser.add_argument("--processes", type=int, default=2, help="processes that run; default 2")
    run_script("locality", parser, work)
