"""Test hpcgym at the lowest and at the newest versions that pyproject.toml allows.

    python scripts/check_versions.py [PYTHON ...]

PYTHON is a version or a path; by default every version that pyproject.toml names. Those that are
not found are named as untested. For each, two virtual environments are made, the tests of
`research.versions.SMOKE` run in them with kernels compiled from nothing, and two columns of the
table docs/datasets/versions.csv are written. It is slow: that table has the seconds. Nothing need
be installed but Python with venv and pip; the rest is fetched. For 3.14 it ran in a chroot of
Debian sid.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from research import versions


def main():
    """Run every environment, and write its column at once, since the next may be interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", default=versions.PYTHONS)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        versions.need(sys.executable, "-m", "venv", folder)
        uv = Path(folder) / "bin" / "uv"
        versions.need(uv.with_name("pip"), "install", "--quiet", "uv")
        os.environ |= {"UV_CACHE_DIR": f"{folder}/cache", "UV_PYTHON_DOWNLOADS": "never"}
        for python in parser.parse_args().pythons:
            code, found = versions.call(uv, "python", "find", python)
            if code:
                print(f"{python}: untested. {found}", flush=True)
                continue
            for which in versions.WHICH:
                title, column = versions.tested(uv, found.strip(), which)
                failed |= column["tests"].startswith("FAILED")
                versions.write(title, column)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
