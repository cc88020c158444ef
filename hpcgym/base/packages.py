"""Packages that features need: all that are missing, named at once, and how to install them."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from hpcgym.base.errors import HpcgymError

TRAINING = ("torch", "stable_baselines3", "sb3_contrib")
RECORDING = ("minari", "pyarrow", "PIL")  # Minari's Parquet files do not ask for the last two
"""Modules that PPO needs, and those that recording episodes needs."""

EXTRAS: dict[str, Collection[str]] = {
    "train": (*TRAINING, "cma"),
    "report": ("matplotlib",),
    "render": ("pygame",),
    "cluster": ("ray", "submitit"),
    "tables": ("pyarrow",),
    "record": RECORDING,
}
"""Modules of each extra of hpcgym."""

_CALLED = {
    "stable_baselines3": "stable-baselines3",
    "sb3_contrib": "sb3-contrib",
    "pygame": "pygame-ce",
    "PIL": "pillow",
}
"""Packages that are called otherwise than their module."""


def missing_packages(what: str, modules: Iterable[str]) -> str:
    """Say which packages of some modules are not installed, and how to install all; "" = none.

    Example:
        >>> missing_packages("drawing", ["math"])
        ''
    """
    missing = [name for name in dict.fromkeys(modules) if not _is_here(name)]
    is_or_are = "are" if missing[1:] else "is"
    return _said(what, missing, f"which {is_or_are} not installed") if missing else ""


@contextmanager
def needing(
    what: str, *modules: str, error: type[Exception] = HpcgymError, instead: str = ""
) -> Iterator[None]:
    """Import modules inside the block, or say which packages are missing and how to install them.

    Args:
        what: What needs them.
        *modules: Modules, such as those of `EXTRAS`.
        error: What is raised.
        instead: What can be done without them.

    Raises:
        Exception: Of the class `error`: a package is not installed, or cannot be imported.
    """
    otherwise = f"; or {instead}" if instead else ""
    if said := missing_packages(what, modules):
        raise error(f"{said}{otherwise}")
    try:
        yield
    except ImportError as reason:
        why = f"which cannot be imported ({reason})"
        raise error(f"{_said(what, modules, why)}{otherwise}") from None


def _is_here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it is loaded, and was not found by name
        return True


def _said(what: str, modules: Iterable[str], why: str) -> str:
    """Compose the message for packages that are missing, or that cannot be imported."""
    left = list(modules)
    *others, last = [_CALLED.get(module, module) for module in left]
    listed = f"{', '.join(others)} and {last}" if others else last
    extras: list[str] = []
    for _ in EXTRAS:  # the one that has most of what is left, of equal ones the smallest
        met = {name: len({*known} & {*left}) for name, known in EXTRAS.items()}
        best = max(met, key=lambda name: (met[name], -len(EXTRAS[name])))
        extras += [best] if met[best] else []
        left = [module for module in left if module not in EXTRAS[best]]
    words = [f"'hpcgym[{','.join(extras)}]'"] if extras else []
    clone = f", in a checkout: python3 scripts/install.py {','.join(extras)}" if extras else ""
    return f"{what} needs {listed}, {why}: pip install {' '.join([*words, *left])}{clone}"
