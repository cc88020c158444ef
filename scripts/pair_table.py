"""Print which parts of the scheduler do not go together.

python scripts/pair_table.py --csv docs/datasets
"""

import argparse

from research.pairs import table
from research.tables import Tables, csv_option

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    csv_option(parser)
    Tables(parser.parse_args().csv).show("pairs", table())
