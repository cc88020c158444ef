"""Print docs/datasets/pairs.csv: which parts of the scheduler do not go together.

python scripts/pair_table.py
"""

from hpcgym.base.text_table import machine_text
from research.pairs import table

if __name__ == "__main__":
    print(machine_text(table(), "csv"))
