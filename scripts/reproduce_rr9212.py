"""Rerun Inria RR-9212 on its four logs: tables, best weights of each week, figures, claims.

    HPCGYM_TRACES=FOLDER python scripts/reproduce_rr9212.py --output runs/rr9212

Parts are kept as they finish: started again after an interruption, it goes on from there. A
finished run starts anew. `--page` also writes the page that stands beside this script.
"""

import argparse

from hpcgym.evaluation.papers import rr9212, rr9212_page, rr9212_search
from hpcgym.evaluation.papers.rerun import Output, parser_for, run_script
from hpcgym.report import rr9212_figures


def work(output: Output, options: argparse.Namespace) -> str:
    tables = rr9212.tables(output.journal("unfinished-tables"))
    output.write_tables(weekly=tables.weekly, facts=tables.facts)
    output.written += rr9212_figures.draw_tables(tables, output.folder)
    print(f"tables: {tables.seconds:.0f} s, earlier runs included; see {output.folder}", flush=True)

    journal = output.journal("unfinished-weights")
    search = rr9212_search.search(journal, threads=options.threads)
    output.write_tables(
        xnes=search.xnes,
        grid=search.grid,
        months=search.months,
        best=rr9212_search.best_of(search),
    )
    output.written += rr9212_figures.draw_search(tables, search, output.folder)
    for path in output.pages:
        picture = path.with_suffix(".png")
        picture.write_bytes((output.folder / "readings.png").read_bytes())
        page = rr9212_page.page(tables, search, output.command, picture.name)
        output.write_page(path, page)
        output.written.append(picture)
    return f"weights: {search.seconds:.0f} s, earlier runs included"


if __name__ == "__main__":
    parser = parser_for("rr9212", __doc__)
    parser.add_argument("--threads", type=int, help="threads that search; default one per core")
    run_script("rr9212", parser, work)
