"""Rerun Inria RR-9212 on its four logs: tables, best weights of each week, figures, verdicts.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_rr9212.py --output runs/rr9212

Finished parts are kept: after an interruption, the same command goes on from there. A finished run
starts anew. With `--page docs/papers/rr9212.md` it also writes the page of the project, and
`rr9212.png` beside it.
"""

import argparse

from papers.common.rerun import Output, parser_for, run_script
from papers.rr9212 import figures, page, run, search


def work(output: Output, options: argparse.Namespace) -> str:
    """Run the pure policies, then search weights, and write all."""
    tables = run.tables(output.store("unfinished-tables"), executor=options.on)
    output.write_tables(weekly=tables.weekly, facts=tables.facts)
    output.written += figures.draw_tables(tables, output.folder)
    print(f"tables: {tables.seconds:.0f} s, earlier runs included; see {output.folder}", flush=True)

    store = output.store("unfinished-weights")
    found = search.search(store, executor=options.on, threads=options.threads)
    best = search.best_of(found)
    output.write_tables(xnes=found.xnes, grid=found.grid, months=found.months, best=best)
    output.written += figures.draw_search(tables, found, output.folder)
    for path in output.pages:
        picture = path.with_suffix(".png")
        picture.write_bytes((output.folder / "readings.png").read_bytes())
        output.write_page(path, page.page(tables, found, output.command, picture.name), {})
        output.written.append(picture)
    return f"weights: {found.seconds:.0f} s, earlier runs included"


if __name__ == "__main__":
    parser = parser_for("rr9212", __doc__)
    parser.add_argument("--threads", type=int, help="threads that search; default one per core")
    run_script("rr9212", parser, work)
