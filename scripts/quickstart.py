"""Compare batch-scheduling policies on the bundled workload: a table, a picture, a CSV.

    python3 scripts/quickstart.py

Needs only Python 3.11 or newer with pip and venv. It installs hpcgym into `.venv`, or into the
virtual environment it is started in, and then runs there.
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
AGENTS = "FCFS,SPF,SAF,URGENT-BENEFIT,URGENT-YOUNG,PPO-ORDER"
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
    """Evaluate five rules and a trained agent, by `hpcgym`."""
    from hpcgym.cli import app

    words = ["evaluate", "--agents", AGENTS]
    rest = ["--scenario", SCENARIO, "--output", os.path.join("runs", "quickstart"), "--force"]
    print("hpcgym", *words, "\\\n   ", *rest, flush=True)
    return app([*words, *rest], standalone_mode=False)


if __name__ == "__main__":
    sys.exit(main())
