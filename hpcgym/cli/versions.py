"""`hpcgym --version --verbose`: what a report of a bug needs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hpcgym.cli.show import show_pairs

PACKAGES = (
    *("numpy", "numba", "pandas", "gymnasium", "typer"),
    *("torch", "stable-baselines3", "sb3-contrib", "cma", "matplotlib", "pyarrow", "ray"),
)


def show_versions() -> None:
    """Print versions, folders, threads and cores."""
    show_pairs(dict(_findings()))


def _findings() -> Iterator[tuple[str, object]]:
    """Yield what is reported, and what it is here."""
    import hpcgym
    from hpcgym.core.compiler.jit import CACHE_FOLDER, NOT_KEPT
    from hpcgym.core.threads import checked_threads, cores
    from hpcgym.trace.catalogue import cache_folder

    yield "hpcgym", f"{hpcgym.__version__} in {Path(hpcgym.__file__).parent}"
    yield "Python", f"{platform.python_version()}, {platform.python_implementation()}"
    yield "system", platform.platform()
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"
    n_kept = 0 if CACHE_FOLDER is None else len(list(CACHE_FOLDER.glob("*.kernel")))
    yield "compiled kernels", NOT_KEPT or f"{n_kept} in {CACHE_FOLDER}"
    yield "downloaded logs", cache_folder()
    yield "cores", f"{cores()} of {os.cpu_count()}"
    yield "threads", checked_threads(None)
    for name in sorted(os.environ):
        if name.startswith(("HPCGYM_", "NUMBA_", "OMP_")):
            yield name, os.environ[name]
