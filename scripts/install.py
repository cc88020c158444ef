"""Install hpcgym, and print the path of the Python that has it.

    python3 scripts/install.py report,render --warm

Inside a virtual environment hpcgym is installed there. Elsewhere it is installed into `.venv` of
this checkout, which is made if it is missing. A stamp in the environment records what was
installed, so that nothing is done twice. `--warm` compiles the kernels, too. It needs Python's
standard library only, and its text must parse on Python 3.6, so that an old one is told clearly.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
OLDEST = (3, 11)
HAS_HPCGYM = "import importlib.metadata as m; m.version('hpcgym')"


def main():
    """Find or make the environment, install what is missing, print its Python."""
    extras = sorted({*",".join(sys.argv[1:]).split(",")} - {"", "--warm"})
    table = read(os.path.join(ROOT, "pyproject.toml")).split("[project.optional-dependencies]")[1]
    known = re.findall(r"^(\w+) = \[", table.split("\n[")[0], re.MULTILINE)
    if not set(extras) <= set(known):
        sys.exit(f"usage: scripts/install.py [EXTRA,...] [--warm], with extras {', '.join(known)}")
    refuse_unfit_python()
    python, prefix = environment()
    key = installation_key()
    stamp = os.path.join(prefix, "hpcgym-installed.txt")  # the key, then the extras
    done = read(stamp).split()
    if done[:1] != [key] or not runs(python, HAS_HPCGYM):
        done = []
    if not done or not set(extras) <= set(done[1:]):
        extras = sorted(set(extras) | set(done[1:]))
        install(python, extras)
        with open(stamp, "w") as file:
            print(key, *extras, sep="\n", file=file)
    if "--warm" in sys.argv[1:]:
        what = "compiling kernels, once for all virtual environments of this user"
        call(what, [python, "-m", "hpcgym", "warm"], "The kernels could not be compiled")
    print(python)


def refuse_unfit_python():
    """Exit with one sentence where this Python cannot run hpcgym."""
    if sys.version_info < OLDEST:
        sys.exit(
            f"hpcgym needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is "
            f"{sys.version.split()[0]}. Run the command with a newer one, such as python3.12."
        )
    if sys.prefix == sys.base_prefix and any(
        importlib.util.find_spec(module) is None for module in ("venv", "ensurepip")
    ):
        sys.exit(
            f"{sys.executable} cannot make a virtual environment: its venv module is absent. On "
            "Debian or Ubuntu: apt install python3-venv; elsewhere, use a full Python, or activate "
            "a virtual environment first."
        )


def environment():
    """Return the Python and the folder of the environment; make it if it does not run."""
    if sys.prefix != sys.base_prefix:  # a virtual environment
        return sys.executable, sys.prefix
    prefix = os.path.join(ROOT, ".venv")
    folder, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    python = os.path.join(prefix, folder, "python" + suffix)
    if not runs(python, "import pip"):
        make = [sys.executable, "-m", "venv", "--clear", prefix]
        call(f"making {prefix}", make, f"No virtual environment could be made in {prefix}")
    return python, prefix


def runs(python, statement):
    """Tell whether a Python exists and runs a statement."""
    command = [python, "-c", statement]
    try:
        return subprocess.call(command, stderr=subprocess.DEVNULL, cwd=os.path.dirname(ROOT)) == 0
    except OSError:
        return False


def installation_key():
    """Return a digest of what decides an installation: path, pyproject.toml, constraints.txt."""
    sources = [read(os.path.join(ROOT, name)) for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(repr([ROOT, sources]).encode()).hexdigest()


def read(path):
    """Return a file's text, or "" where there is no file."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def install(python, extras):
    """Install the package with its extras by pip, in the versions of constraints.txt."""
    target = f"{ROOT}[{','.join(extras)}]" if extras else ROOT
    pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        pip.append("--no-compile")  # half of pip's time; what is imported is compiled then, once
    pip += ["-c", os.path.join(ROOT, "constraints.txt"), "-e", target]
    call("installing hpcgym, once; this can take minutes", pip, "pip could not install hpcgym")


def call(what, command, failure):
    """Say what a command does, and run it; exit with a sentence if it fails."""
    print("hpcgym: " + what, file=sys.stderr, flush=True)
    if subprocess.call(command, stdout=sys.stderr):
        sys.exit(failure + "; the reason is above.")


if __name__ == "__main__":
    main()
