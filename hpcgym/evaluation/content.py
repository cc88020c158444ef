"""What an object holds and what its code says, as a digest: so an agent is known by more than name.

Numbers, texts, arrays and containers count by value, other objects by class and state. A function
or class counts by its name; one of somebody's own also by the text of its file and of the files
beside it that this imports, one of an installed package by that package's version. What cannot be
read, such as an open file, is equal to nothing else: its runs are never taken for another's.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from inspect import isroutine
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from hpcgym.own_files import text_digest

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def content_digest(found: object) -> str:
    """Digest what decides how an object acts; equal in every process for equal content.

    Example:
        >>> content_digest({"kappa": 0.25}) == content_digest({"kappa": 0.25})
        True
        >>> content_digest(lambda jobs: jobs.wait) == content_digest(lambda jobs: -jobs.wait)
        False
    """
    return _Digester().of(found).hex()


class _Digester:
    """Digests one object and all that it is made of."""

    def __init__(self) -> None:
        self._around: dict[int, int] = {}  # what holds the object at hand, by id
        self._texts: dict[str, str] = {}  # of modules, by name

    def of(self, one: Any) -> bytes:
        """Digest an object."""
        if isinstance(one, PLAIN):
            return _hash(type(one).__name__, repr(one))
        if id(one) in self._around:
            return _hash("around", str(self._around[id(one)]))
        self._around[id(one)] = len(self._around)
        try:
            return _hash(type(one).__qualname__, *self._parts(one))
        except Exception:  # whatever an object raises that cannot be pickled
            return os.urandom(32)
        finally:
            del self._around[id(one)]

    def _parts(self, one: Any) -> Iterator[bytes | str]:
        """Yield what decides an object, in parts."""
        if isinstance(one, (set, frozenset)):
            yield from sorted(map(self.of, one))
        elif isinstance(one, (list, tuple)):
            yield from map(self.of, one)
        elif isinstance(one, Mapping):
            yield from (self.of(part) for item in one.items() for part in item)
        elif isinstance(one, np.ndarray) and not one.dtype.hasobject:
            yield from (one.dtype.str, str(one.shape), one.tobytes())
        elif isinstance(one, MethodType):
            yield from (self.of(one.__self__), self.of(one.__func__))
        elif isinstance(one, CodeType):
            yield from (one.co_code, self.of(one.co_consts), self.of(one.co_names))
        elif isinstance(one, (type, FunctionType, BuiltinFunctionType, ModuleType)):
            yield from self._parts_of_code(one)
        elif hasattr(one, "py_func"):  # compiled by numba
            yield self.of(one.py_func)
        elif hasattr(one, "detach"):  # a tensor
            yield self.of(one.detach().cpu().numpy())
        elif hasattr(one, "state_dict"):  # a network of torch
            yield from (self.of(type(one)), self.of(one.state_dict()))
        elif hasattr(one, "get_parameters"):  # a model of Stable-Baselines3
            yield from (self.of(type(one)), self.of(one.get_parameters()))
        else:
            reduced = one.__reduce_ex__(4)
            parts = (reduced,) if isinstance(reduced, str) else reduced
            yield self.of(type(one))
            yield from (self.of(part) for part in parts[:3])
            yield from (self.of(list(part)) for part in parts[3:5] if part is not None)

    def _parts_of_code(self, one: Any) -> Iterator[bytes | str]:
        """Yield what decides a function, a class or a module."""
        module = one if isinstance(one, ModuleType) else sys.modules.get(str(one.__module__))
        name = "" if module is None else module.__name__.replace("__mp_main__", "__main__")
        yield from (name, getattr(one, "__qualname__", ""))
        if name not in self._texts:
            self._texts[name] = "" if module is None else text_digest(module)
        text = self._texts[name]
        yield text
        if isinstance(one, BuiltinFunctionType):
            yield self.of(one.__self__)
        elif isinstance(one, FunctionType):
            yield self.of(one.__code__)
            cells = [cell.cell_contents for cell in one.__closure__ or ()]
            yield from (self.of(one.__defaults__), self.of(one.__kwdefaults__), self.of(cells))
        elif isinstance(one, type) and not text and name == "__main__":  # as in a notebook
            yield self.of(one.__bases__)
            yield self.of({key: value for key, value in vars(one).items() if isroutine(value)})


def _hash(*parts: str | bytes) -> bytes:
    """Digest parts, each after its length."""
    found = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        found.update(len(content).to_bytes(8, "little") + content)
    return found.digest()
