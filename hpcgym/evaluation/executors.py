"""Executors by text: processes of this machine, Ray, Slurm.

Whatever else is a `concurrent.futures.Executor` is taken as it is, such as those of Dask,
executorlib and Parsl.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from tempfile import mkdtemp
from threading import Event, Lock, Thread
from typing import Any, TypeAlias, TypeVar

from hpcgym.base.errors import EvaluationError, refuse_unless_whole, unknown_name
from hpcgym.base.packages import needing
from hpcgym.core.threads import cores
from hpcgym.evaluation.workers import LocalExecutor

ResultT = TypeVar("ResultT")

AnyExecutor: TypeAlias = Executor | str | None
"""An executor, or what names one; None = work is done in this process."""

MOST_WORKERS = 4096

POLL_S, ASK_S = 1.0, 30.0
"""How often results of Slurm jobs are looked for, and how often Slurm is asked for their states, s.
"""

FORMS = {
    "local": "local[:PROCESSES]",
    "ray": "ray[:ADDRESS]",
    "slurm": "slurm[:partition=NAME,time=MINUTES,jobs=NUMBER]",
}


@contextmanager
def executor_of(named: AnyExecutor) -> Iterator[Executor | None]:
    """Yield an executor that a text names, and end it with the block; any other stays as it is.

    Raises:
        EvaluationError: The text is not understood, or names what is not installed or not there.

    Example:
        >>> with executor_of("locale:2"):
        ...     pass
        Traceback (most recent call last):
        hpcgym.base.errors.EvaluationError: unknown executor 'locale'; did you mean 'local'? \
Allowed: local[:PROCESSES], ray[:ADDRESS], slurm[:partition=NAME,time=MINUTES,jobs=NUMBER]
    """
    if named is None or isinstance(named, Executor):
        yield named
        return
    if not isinstance(named, str):
        raise EvaluationError(
            f"an executor is a concurrent.futures.Executor, None, or one of "
            f"{', '.join(FORMS.values())}; got {named!r}"
        )
    kind, _, rest = named.partition(":")
    if kind not in FORMS:
        message, _, _ = unknown_name("executor", kind, FORMS).partition(" Allowed: ")
        raise EvaluationError(f"{message} Allowed: {', '.join(FORMS.values())}")
    make: Callable[[str], Executor] = {"local": _local, "ray": _RayExecutor, "slurm": _slurm}[kind]
    with make(rest) as executor:
        yield executor


def _local(number: str) -> LocalExecutor:
    """Return processes of this machine, one per core unless a number is given."""
    return LocalExecutor(_whole("local", number) if number else cores())


def _slurm(text: str) -> _SlurmExecutor:
    """Return jobs of Slurm with the given parameters."""
    given = dict(pair.partition("=")[::2] for pair in text.split(",")) if text else {}
    for key, value in given.items():
        if key not in ("partition", "time", "jobs") or not value:
            wrong = unknown_name("parameter of slurm", key, ("partition", "time", "jobs"))
            raise EvaluationError(wrong if value else f"slurm: {key}=VALUE needs a value")
    numbers = {key: _whole(f"slurm: {key}", given[key]) for key in given if key != "partition"}
    return _SlurmExecutor(given.get("partition"), **numbers)


def _whole(what: str, text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 10 else text
    refuse_unless_whole(what, number, 1, MOST_WORKERS, EvaluationError)
    return int(number)


class _RayExecutor(Executor):
    """Tasks of Ray, in the cluster at an address or, without one, as Ray finds or starts it."""

    def __init__(self, address: str) -> None:
        with needing("--on ray", "ray", error=EvaluationError):
            import ray
        self._ray, self._is_own = ray, not ray.is_initialized()
        self._apart = ExitStack()
        if self._is_own:
            # ray prints pages on standard output when a node dies, in the middle of a table
            self._apart.enter_context(redirect_stdout(sys.stderr))
            try:
                ray.init(address or None, log_to_driver=False, logging_level="error")
            except (ConnectionError, RuntimeError, ValueError) as error:
                self._apart.close()
                raise EvaluationError(
                    f"ray:{address}: no cluster can be reached: {error}"
                ) from None
        self.n_chunks = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(
        self, function: Callable[..., ResultT], /, *given: Any, **keywords: Any
    ) -> Future[ResultT]:
        """Have a worker of Ray call a function, once."""
        task = self._ray.remote(max_retries=0)(function)
        future: Future[ResultT] = task.remote(*given, **keywords).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends what is still running."""
        if self._is_own:
            self._ray.shutdown()
        self._apart.close()


class _SlurmExecutor(Executor):
    """Jobs of Slurm by submitit, with files in a hidden folder here that goes at the end.

    Args:
        time: Limit of a job, min.
        jobs: How many are in Slurm's queue or running at once.
    """

    chunk_s = 900.0

    def __init__(self, partition: str | None, time: int = 60, jobs: int = 16) -> None:
        with needing("--on slurm", "submitit", error=EvaluationError):
            import submitit
        self.n_chunks = jobs
        self._folder = mkdtemp(prefix=".hpcgym-slurm-", dir=os.getcwd())
        stated = {"time": time, "cpus_per_task": 1, "stderr_to_stdout": True}
        try:
            self._slurm = submitit.SlurmExecutor(self._folder)
        except RuntimeError as error:
            shutil.rmtree(self._folder)
            raise EvaluationError(f"slurm: {error}") from None
        self._slurm.update_parameters(
            job_name="hpcgym", **stated, **({"partition": partition} if partition else {})
        )
        self._jobs: dict[Any, Future[Any]] = {}
        self._lock, self._over = Lock(), Event()
        Thread(target=self._watch, daemon=True).start()

    def submit(
        self, function: Callable[..., ResultT], /, *given: Any, **keywords: Any
    ) -> Future[ResultT]:
        """Have a job call a function."""
        future: Future[ResultT] = Future()
        job = self._slurm.submit(function, *given, **keywords)
        with self._lock:
            self._jobs[job] = future
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the jobs that are left, and remove the folder."""
        self._over.set()
        with self._lock:
            for job in self._jobs:
                job.cancel(check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _watch(self) -> None:
        """Give futures the results of their jobs as these end."""
        n_polls = 0
        while not self._over.wait(POLL_S):
            n_polls += 1
            with self._lock:
                jobs = list(self._jobs)
            if jobs and n_polls % (ASK_S / POLL_S) == 0:
                jobs[0].watcher.update()
            for job in jobs:
                if job.done():
                    with self._lock:
                        future = self._jobs.pop(job)
                    with suppress(InvalidStateError):  # cancelled meanwhile
                        try:
                            future.set_result(job.result())
                        except InvalidStateError:
                            raise
                        except Exception as error:
                            future.set_exception(error)
