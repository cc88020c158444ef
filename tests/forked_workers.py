"""Workers of evaluations that are forked from a process which has imported the package."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, set_forkserver_preload
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from hpcgym.evaluation import workers


class ForkedProcess(ForkServerProcess):
    """Has the variables of the process that starts it, as a spawned one has."""

    def __init__(self, *given: Any, **keywords: Any) -> None:
        super().__init__(*given, **keywords)
        self.variables = dict(os.environ)

    def start(self) -> None:
        """Start it; with the first, start what forks it, which finds `warm_worker` here."""
        path = self.variables.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), path]))
        try:
            set_forkserver_preload(["warm_worker"])
            forkserver.ensure_running()
        finally:
            del os.environ["PYTHONPATH"]
            os.environ.update({"PYTHONPATH": path} if path is not None else {})
        super().start()

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self.variables)
        time.tzset()
        super().run()


class ForkedContext(ForkServerContext):
    """Makes such processes."""

    Process = ForkedProcess  # type: ignore[assignment]


@contextmanager
def forked_workers() -> Iterator[None]:
    """Have workers of executors forked."""
    spawned = workers._Context, workers._Process
    workers._Context, workers._Process = ForkedContext, ForkedProcess  # type: ignore
    try:
        yield
    finally:
        workers._Context, workers._Process = spawned  # type: ignore[misc]
