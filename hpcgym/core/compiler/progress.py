"""What is shown while kernels are compiled: what for, and how many there are to compile.

All that a kernel calls is found by the names in its code before it is compiled. Meanwhile Python
collects no garbage: nearly all that numba makes is needed to the end, and looking through it again
and again took an eighth of the time.
"""

import gc
from contextlib import ExitStack
from types import CodeType, ModuleType
from typing import Any

from numba.core import event

from hpcgym.base.progress import shown, steps

_PURPOSES = {
    "begin": "the start of a simulation",
    "run": "simulations",
    "work": "machines of nodes",
    "other_modes": "backfilling modes other than EASY",
    "count_unusable": "fragmentation",
    "sweep_policies": "many simulations at once",
    "cost_of_plan": "plans",
    "predict_each": "plans",
    "step": "the environment",
    "step_batch": "vectors of environments",
    "step_batch_in_parallel": "vectors of environments, in threads",
}
"""What a kernel that Python calls is for, where its name does not say so."""

TRANSLATED = 0.78
"""Share of the time until all kernels are translated; then all are optimised as one."""


class Compilations(event.Listener):
    """Shows the progress of each compilation that Python begins.

    Args:
        package: Whose kernels count.
        kept: Where compiled kernels are kept, in words.
    """

    def __init__(self, package: str, kept: str) -> None:
        self._package, self._kept = package, kept
        self._begun: list[Any] = []  # one within another
        self._ended: set[Any] = set()
        self._display = ExitStack()
        self._collects = True

    def on_start(self, compile_event: Any) -> None:
        """Show the progress, if this kernel is not compiled for another."""
        dispatcher = compile_event.data["dispatcher"]
        if not self._begun:
            self._collects = gc.isenabled()
            gc.disable()
        self._begun.append(dispatcher)
        if len(self._begun) > 1 or not _is_of(self._package, dispatcher):
            return
        kernels = kernels_called(dispatcher, self._package)
        name, module = dispatcher.py_func.__name__, dispatcher.py_func.__module__
        if name == "work":  # of several modules, each called by address
            name = module.rpartition(".")[2]
        what = f"compiling kernels for {_PURPOSES.get(name, name.replace('_', ' '))}"
        self._display.enter_context(shown())
        self._display.enter_context(
            steps(
                len(kernels),
                what,
                "kernels",
                notice=self._kept,
                count=lambda: TRANSLATED * sum(kernel.py_func in self._ended for kernel in kernels),
            )
        )

    def on_end(self, compile_event: Any) -> None:
        """Show it no longer."""
        self._ended.add(self._begun.pop().py_func)
        if not self._begun:
            if self._collects:
                gc.enable()
            self._display.close()


def kernels_called(dispatcher: Any, package: str) -> list[Any]:
    """Return a kernel and all kernels of a package that it calls, directly or through others."""
    called: dict[int, Any] = {}
    unread = [dispatcher]
    while unread:
        kernel = unread.pop()
        if id(kernel) not in called and _is_of(package, kernel):
            called[id(kernel)] = kernel
            unread += _named_in(kernel.py_func)
    return list(called.values())


def _named_in(function: Any) -> list[Any]:
    """Return the kernels that the code of a function names."""
    codes: list[CodeType] = [function.__code__]
    names = set[str]()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    named = [function.__globals__.get(name) for name in names]
    modules = [module for module in named if isinstance(module, ModuleType)]
    named += [getattr(module, name, None) for module in modules for name in names]
    return [kernel for kernel in named if hasattr(kernel, "py_func")]


def _is_of(package: str, dispatcher: Any) -> bool:
    return str(dispatcher.py_func.__module__).partition(".")[0] == package
