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

from hpcgym.base.own_files import text_digest

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def content_digest(value: object) -> str:
    """Digest what decides how an object acts; equal in every process for equal content.

    Example:
        >>> content_digest({"kappa": 0.25}) == content_digest({"kappa": 0.25})
        True
        >>> content_digest(lambda jobs: jobs.wait) == content_digest(lambda jobs: -jobs.wait)
        False
    """
    return _Digester().of(value).hex()


class _Digester:
    """Digests one object and all that it is made of."""

    def __init__(self) -> None:
        self._around: dict[int, int] = {}  # what holds the object at hand, by id
        self._texts: dict[str, str] = {}  # of modules, by name

    def of(self, value: Any) -> bytes:
        """Digest an object."""
        if isinstance(value, PLAIN):
            return _hash(type(value).__name__, repr(value))
        if id(value) in self._around:
            return _hash("around", str(self._around[id(value)]))
        self._around[id(value)] = len(self._around)
        try:
            return _hash(type(value).__qualname__, *self._parts(value))
        except Exception:  # whatever an object raises that cannot be pickled
            return os.urandom(32)
        finally:
            del self._around[id(value)]

    def _parts(self, value: Any) -> Iterator[bytes | str]:
        """Yield what decides an object, in parts."""
        if isinstance(value, (set, frozenset)):
            yield from sorted(map(self.of, value))
        elif isinstance(value, (list, tuple)):
            yield from map(self.of, value)
        elif isinstance(value, Mapping):
            yield from (self.of(part) for item in value.items() for part in item)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            yield from (value.dtype.str, str(value.shape), value.tobytes())
        elif isinstance(value, MethodType):
            yield from (self.of(value.__self__), self.of(value.__func__))
        elif isinstance(value, CodeType):
            yield from (value.co_code, self.of(value.co_consts), self.of(value.co_names))
        elif isinstance(value, (type, FunctionType, BuiltinFunctionType, ModuleType)):
            yield from self._parts_of_code(value)
        elif hasattr(value, "py_func"):  # compiled by numba
            yield self.of(value.py_func)
        elif hasattr(value, "detach"):  # a tensor
            yield self.of(value.detach().cpu().numpy())
        elif hasattr(value, "state_dict"):  # a network of torch
            yield from (self.of(type(value)), self.of(value.state_dict()))
        elif hasattr(value, "get_parameters"):  # a model of Stable-Baselines3
            yield from (self.of(type(value)), self.of(value.get_parameters()))
        else:
            reduced = value.__reduce_ex__(4)
            parts = (reduced,) if isinstance(reduced, str) else reduced
            yield self.of(type(value))
            yield from (self.of(part) for part in parts[:3])
            yield from (self.of(list(part)) for part in parts[3:5] if part is not None)

    def _parts_of_code(self, code: Any) -> Iterator[bytes | str]:
        """Yield what decides a function, a class or a module."""
        module = code if isinstance(code, ModuleType) else sys.modules.get(str(code.__module__))
        name = "" if module is None else module.__name__.replace("__mp_main__", "__main__")
        yield from (name, getattr(code, "__qualname__", ""))
        if name not in self._texts:
            self._texts[name] = "" if module is None else text_digest(module)
        text = self._texts[name]
        yield text
        if isinstance(code, BuiltinFunctionType):
            yield self.of(code.__self__)
        elif isinstance(code, FunctionType):
            yield self.of(code.__code__)
            cells = [cell.cell_contents for cell in code.__closure__ or ()]
            yield from (self.of(code.__defaults__), self.of(code.__kwdefaults__), self.of(cells))
        elif isinstance(code, type) and not text and name == "__main__":  # as in a notebook
            yield self.of(code.__bases__)
            yield self.of({key: value for key, value in vars(code).items() if isroutine(value)})


def _hash(*parts: str | bytes) -> bytes:
    """Digest parts, each after its length."""
    hasher = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.digest()
