"""Walk a newcomer's path in a fresh clone with a fresh home, and print how long each step takes.

    python scripts/newcomer.py

It types what README.md and two tutorials say: the first command, the ten lines, an own log, a first
trained agent and its judgement. It takes two to seven minutes, and ends at the first step
that fails. Settings of pip are kept, and nothing else of the home.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
KEPT = re.compile(r"PIP_|https?_proxy$|no_proxy$|SSL_|LANG$", re.IGNORECASE)
ACTIVE = "set -e; source .venv/bin/activate\n"


def block(path, language, begins):
    """Return the first block of a page in a language that begins so."""
    blocks = re.findall(rf"^```{language}[ \w]*\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S)
    return next(text for text in blocks if text.startswith(begins))


def steps():
    """Yield the name of each step, and what is typed."""
    agent = TUTORIALS / "train_and_judge.md"
    lines = block(ROOT / "README.md", "python", "import gymnasium")
    own = block(TUTORIALS / "your_own_log.md", "bash", "hpcgym simulate")
    yield "quickstart", "python3 scripts/quickstart.py"
    yield "ten lines", f"{ACTIVE}python - <<'END'\n{lines}END\n"
    yield "own log", ACTIVE + own
    yield "PyTorch", "python3 scripts/install.py train"
    yield "training", ACTIVE + block(agent, "bash", "hpcgym train")
    yield "judgement", ACTIVE + block(agent, "bash", "hpcgym evaluate")


def main():
    """Clone, walk, and print a table in Markdown."""
    ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    kept = {name: value for name, value in os.environ.items() if KEPT.match(name)}
    with tempfile.TemporaryDirectory() as folder:
        home, clone = Path(folder, "home"), Path(folder, "hpcgym")
        home.mkdir()
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        kept |= {"HOME": str(home), "PATH": os.defpath + ":/usr/local/bin"}
        print("| step | minutes | CPU minutes |\n|---|---:|---:|", flush=True)
        for name, typed in steps():
            begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(["bash", "-c", typed], cwd=clone, env=kept, stdout=sys.stderr)
            if done.returncode:
                return f"{name}: failed with {done.returncode}"
            took, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"| {name} | {took / 60:.1f} | {cpu / 60:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
