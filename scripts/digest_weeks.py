"""Make the logs of a scenario of generated weeks, and write their digests into its file.

    python scripts/digest_weeks.py [SCENARIO.toml]

A change of the generator, or of what numpy draws, needs this, and a line under Results.
"""

import argparse
import re
from pathlib import Path

from hpcgym.base.registry import find_entry
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scenario.slicing import generated_weeks
from hpcgym.trace.populations import digest_of_jobs

IN_A_LINE = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = find_entry("scenarios", "many-weeks")
    parser.add_argument("scenario", nargs="?", type=Path, default=default)
    file: Path = parser.parse_args().scenario
    made = generated_weeks(load_scenario(file)).populations
    digests = [digest_of_jobs(made.make(number)) for number in made.on_record]
    rows = [digests[first : first + IN_A_LINE] for first in range(0, len(digests), IN_A_LINE)]
    stated = 'digests = """\n' + "\n".join(map(" ".join, rows)) + '"""\n'
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r'(?s)digests = """.*?"""\n', stated, text), encoding="utf-8")


if __name__ == "__main__":
    main()
