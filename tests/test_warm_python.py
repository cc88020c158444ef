"""Programs in forks do what the installed ones do."""

import os
import subprocess
import sys

import pytest

from warm_python import HPCGYM, WarmPython

PROGRAM = """
import os, sys
from pathlib import Path
from multiprocessing import get_context

def twice(number):
    return 2 * number

if __name__ == "__main__":
    with get_context("spawn").Pool(1) as pool:
        print(pool.map(twice, [21]))
    print(sys.argv, Path.cwd(), Path(sys.path[0]).resolve(), os.environ["SAID"], sys.stdin.read())
    print("at the end", file=sys.stderr)
    if sys.argv[1] == "raise":
        raise ValueError("raised")
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    warm = WarmPython(tmp_path_factory.mktemp("programs"))
    yield warm.folder
    warm.close()


def ended(command, folder):
    """Return what a program printed, the last line of its errors, and its exit code."""
    variables = {**os.environ, "SAID": "a b"}
    done = subprocess.run(
        command, cwd=folder, env=variables, input="typed", capture_output=True, text=True
    )
    return done.stdout, done.stderr.splitlines()[-1:], done.returncode


@pytest.mark.long
@pytest.mark.parametrize(
    ("outcome", "said", "code"), [("0", "at the end", 0), ("7", "at the end", 7), ("raise", "", 1)]
)
def test_a_program_ends_as_under_python_itself(outcome, said, code, programs, tmp_path):
    program = tmp_path / "programs" / "one.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    first, second = (
        ended([python, "programs/one.py", outcome], tmp_path)
        for python in (sys.executable, programs / "python")
    )
    assert first == second
    assert first[1:] == ([said or "ValueError: raised"], code)
    assert first[0].startswith("[42]\n")


@pytest.mark.long
def test_the_command_says_what_it_says_where_it_is_installed(programs, tmp_path):
    for arguments in (["simulate", "tiny"], ["simulate", "tinny"]):
        first = ended([HPCGYM, *arguments], tmp_path)
        assert ended([programs / "hpcgym", *arguments], tmp_path) == first
    assert first[2] == 2 and "tinny" in first[1][0]


def test_what_is_no_file_goes_to_python_itself(programs, tmp_path):
    assert ended([programs / "python", "-c", "print(3)"], tmp_path) == ("3\n", [], 0)
