"""Compare batch-scheduling policies on the bundled workload: a table, a picture, a CSV.

    python3 scripts/quickstart.py

Needs only Python 3.11 or newer with pip and venv. It installs hpcgym into `.venv`, or into the
virtual environment it is started in, and then runs there.
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
RULES = ["FCFS", "SPF", "SAF", "SMITH", "EASY-SJBF", "SMITH-REG"]
RULES += ["URGENT-BENEFIT"]
SCENARIO = "synthetic-busy-weeks"


def main():
    """Install hpcgym if needed, and evaluate in the environment that has it."""
    install = [sys.executable, os.path.join(ROOT, "scripts", "install.py"), "report,render"]
    ready = subprocess.run(install, stdout=subprocess.PIPE)
    if ready.returncode:
        return ready.returncode
    python = ready.stdout.decode().strip()
    if python != sys.executable:
        return subprocess.call([python, os.path.abspath(__file__)])
    return compare()


def compare():
    """Evaluate rules and the trained agents of the shelf that kill no job, by `hpcgym`."""
    from hpcgym.agent.shelf import load_cards
    from hpcgym.cli import app

    cards = [card for card in load_cards().values() if card.contest != "requeue"]
    trained = [card.name for card in cards if card.training is not None]
    words = ["evaluate", "--agents", ",".join(RULES + trained), "--scenario", SCENARIO]
    words += ["--output", os.path.join("runs", "quickstart"), "--force"]
    print("hpcgym " + " ".join(words), flush=True)
    return app(words, standalone_mode=False)


if __name__ == "__main__":
    sys.exit(main())
