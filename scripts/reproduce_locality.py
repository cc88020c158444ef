"""Rerun Dutot, Poquet, Trystram on contiguity and locality: tables, figures, verdicts.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_locality.py --output runs/locality

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/locality.md` it also writes the page of the project, and
`locality.png` beside it.
"""

import argparse

from papers.common.rerun import Output, parser_for, run_script
from papers.locality import figures, page, run


def work(output: Output, options: argparse.Namespace) -> str:
    """Run all experiments, and write all."""
    rerun = run.rerun(output.store(), executor=options.on)
    output.write_tables(runs=rerun.runs, candidates=rerun.candidates)
    drawn = figures.draw(rerun, output.folder)
    output.written += drawn
    for path in output.pages:
        picture = path.with_suffix(".png")
        picture.write_bytes(drawn[0].read_bytes())
        output.write_page(path, page.page(rerun, output.command, picture.name), page.beside(rerun))
        output.written.append(picture)
    return f"{output.seconds:.0f} s; {rerun.seconds:.0f} s of workers for the default reading"


if __name__ == "__main__":
    parser = parser_for("locality", __doc__)
    run_script("locality", parser, work)
