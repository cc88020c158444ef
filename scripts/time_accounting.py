"""Make accounting as Slurm prints it, text or JSON, and measure how long reading it takes.

The jobs are drawn; each run is a process of its own, so that its memory is known.
"""

import argparse
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from hpcgym.trace.accounting import read_accounting
from research.slurm_accounting import drawn, write_json, write_text

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("text", "json"), help="what to make")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="how many")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder, "accounting")
        (write_text if arguments.kind == "text" else write_json)(path, drawn(arguments.jobs))
        begin = time.process_time()
        found = read_accounting(path)
        taken = time.process_time() - begin
        size_mb = path.stat().st_size / 2**20
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(found.runs)} runs, {size_mb:.0f} MB: {taken:.1f} s, {memory_mb:.0f} MB of memory")
