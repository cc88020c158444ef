"""Rerun Inria RR-9212 on its four logs: tables, best weights of each week, figures, claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_rr9212.py --output runs/rr9212

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

import argparse

from papers.common.rerun import Output, parser_for, run_script
from papers.rr9212 import figures, page, run, search


def work(output: Output, options: argparse.Namespace) -> str:
    tables = run.tables(output.journal("unfinished-tables"))
    output.write_tables(weekly=tables.weekly, facts=tables.facts)
    output.written += figures.draw_tables(tables, output.folder)
    print(f"tables: {tables.seconds:.0f} s, earlier runs included; see {output.folder}", flush=True)

    journal = output.journal("unfinished-weights")
    found = search.search(journal, threads=options.threads)
    output.write_tables(
        xnes=found.xnes,
        grid=found.grid,
        months=found.months,
        best=search.best_of(found),
    )
    output.written += figures.draw_search(tables, found, output.folder)
    for path in output.pages:
        picture = path.with_suffix(".png")
        picture.write_bytes((output.folder / "readings.png").read_bytes())
        text = page.page(tables, found, output.command, picture.name)
        output.write_page(path, text)
        output.written.append(picture)
    return f"weights: {found.seconds:.0f} s, earlier runs included"


if __name__ == "__main__":
    parser = parser_for("rr9212", __doc__)
    parser.add_argument("--threads", type=int, help="threads that search; default one per core")
    run_script("rr9212", parser, work)
