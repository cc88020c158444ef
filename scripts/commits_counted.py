"""Count the files of the package that commits touched, each of which landed a feature.

    python scripts/commits_counted.py
    python scripts/commits_counted.py 3da9bbef 063088f2
    python scripts/commits_counted.py --grep fair

Prints a table in Markdown. It needs the history of the repository.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LANDED = {
    "13762eaa": "backfilling mode `slurm`",
    "c18867c3": "the same on nodes",
    "ebb9a549": "action `lend`",
    "4dc6e481": "fair share",
    "422b637c": "fields of shares, reward by users",
    "d556d9dd": "gap closed",
    "bf8fdfb5": "controls of agents",
    "1be4bc42": "event, action and fields of `price`",
    "063088f2": "pairs of parts as data",
    "3da9bbef": "columns that refer to jobs",
}
"""Commits that landed a feature, the oldest first."""


def git(*words):
    """Return what git prints; end with a line where there is no history, or no such commit."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"commits_counted: git cannot be run: {error}")
    if done.returncode:
        reason = done.stderr.strip().splitlines() or ["git failed"]
        sys.exit(f"commits_counted: this needs the repository with its history; {reason[0]}")
    return done.stdout


def counted(commit):
    """Return how many modules of the package a commit changed, added and removed, and other files.

    A file that was moved counts twice.
    """
    listed = git(
        "diff-tree", "-r", "--root", "--no-commit-id", "--no-renames", "--name-status", commit
    )
    lines = [line.split("\t") for line in listed.splitlines()]
    kinds = [kind for kind, file in lines if file.startswith("hpcgym/") and file.endswith(".py")]
    return *(kinds.count(kind) for kind in "MAD"), len(lines) - len(kinds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commits", nargs="*", help="default: those that landed a feature")
    parser.add_argument("--grep", metavar="WORD", help="commits whose message has this word")
    given = parser.parse_args()
    named = dict.fromkeys(given.commits)
    if given.grep:
        words = ("--no-merges", "--reverse", "--format=%h", "-i", f"--grep={given.grep}")
        named |= dict.fromkeys(git("log", *words).split())
    print("| landed | commit | modules of `hpcgym/` | of them new | other files |")
    print("|---|---|---|---|---|")
    for commit, name in (named if given.commits or given.grep else LANDED).items():
        what = name or git("show", "-s", "--format=%s", commit).strip()
        changed, added, removed, others = counted(commit)
        print(f"| {what} | `{commit}` | {changed + added + removed} | {added} | {others} |")


if __name__ == "__main__":
    main()
