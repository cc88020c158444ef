"""Draw hostile input for hours: logs, jobs under every mode, actions, damaged files.

    python scripts/fuzz.py --minutes 60
    python scripts/fuzz.py reader scheduler --minutes 5
    python scripts/fuzz.py files --seed 7

The tests are those that the everyday check runs on a few fixed cases, see `SUBJECTS`. Here each
round of each subject has another seed and many cases. A failing case is made as small as can be,
printed, and written to the folder. To keep it as a test, paste its arguments as `@example(...)`
above the `@given` of the test that is named: it then runs in every check, before any drawn case.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import make_folder
from hpcgym.base.progress import shown, steps

ROOT = Path(__file__).parents[1]
SUBJECTS = {
    "reader": ["fuzz/test_fuzz_reader.py"],
    "scheduler": [
        "core/test_every_mode.py::test_every_drawn_job_starts_as_the_reference_says",
        "core/test_nodes_parity.py::test_the_same_jobs_are_refused",
        "schedule/test_gang.py::test_gangs_start_and_end_as_second_by_second",
    ],
    "environment": ["fuzz/test_fuzz_environment.py"],
    "files": ["fuzz/test_fuzz_files.py"],
}


def main() -> int:
    """Run rounds until the time is over; exit with 1 if a case failed."""
    options = read_arguments()
    try:
        folder = make_folder(options.output)
        with shown():
            failed = [name for name in options.subjects if not holds(name, options, folder)]
    except HpcgymError as error:
        sys.exit(f"fuzz: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    print(f"fuzz: {'FAILED: ' + ', '.join(failed) if failed else 'all held'}")
    return len(failed)


def holds(subject: str, options: argparse.Namespace, folder: Path) -> bool:
    """Draw cases of one subject with seed after seed, until one fails or the time is over."""
    begun, seed = time.monotonic(), options.seed
    total = 60 * options.minutes
    with steps(total, subject, "s", count=lambda: time.monotonic() - begun):
        while seed == options.seed or time.monotonic() - begun < total:
            print(f"fuzz: {subject}: seed {seed}", flush=True)
            done = round_of(subject, seed)
            if done.returncode:
                path = folder / f"{subject}-{seed}.txt"
                path.write_text(done.stdout, encoding="utf-8")
                print(f"{done.stdout}\nfuzz: {subject}: seed {seed} FAILED, see {path}", flush=True)
                return False
            seed += 1
    print(f"fuzz: {subject}: seeds {options.seed} to {seed - 1} held", flush=True)
    return True


def round_of(subject: str, seed: int) -> "subprocess.CompletedProcess[str]":
    """Run the tests of a subject with a seed."""
    tests = [f"tests/{name}" for name in SUBJECTS[subject]]
    options = ["-q", "-x", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env=os.environ | {"HYPOTHESIS_PROFILE": "fuzz"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--minutes", type=float, default=60.0, help="of each subject")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--output", type=Path, default=Path("runs/fuzz"), help="for failures")
    options = parser.parse_args()
    unknown = [name for name in options.subjects if name not in SUBJECTS]
    if unknown:
        parser.error(f"unknown subject {unknown[0]!r}; allowed: {', '.join(SUBJECTS)}")
    options.subjects = options.subjects or list(SUBJECTS)
    return options


if __name__ == "__main__":
    sys.exit(main())
