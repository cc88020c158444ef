"""Trials of executors: the same comparison in one process, on Ray and on Slurm, with losses.

Nodes of Ray are processes at addresses of this machine. A comparison is a command of its own, so
that it can be killed. Only processes that a trial started are ended, by id.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from hpcgym.base.errors import EvaluationError
from hpcgym.evaluation.store import Store

HEAD, NODE, PORT = "127.0.0.2", "127.0.0.3", 6399
ON_RAY = f"ray:{HEAD}:{PORT}"
PATIENCE_S = 900.0
HALF_WAY = 12
"""Runs that are kept when a command is killed."""
UNFINISHED = "unfinished.sqlite"


@dataclass(frozen=True)
class Trial:
    """What became of one comparison.

    Attributes:
        what: What was done to it.
        seconds: Wall time, s.
        is_equal: Whether it printed and wrote what one process does, to the byte.
        n_kept: Runs that a second command took from the first, or None.
        n_done: Runs that it did itself, or None.
    """

    what: str
    seconds: float
    is_equal: bool
    n_kept: int | None = None
    n_done: int | None = None


class Comparison:
    """One comparison, which is run in several ways.

    Args:
        options: Options of `hpcgym evaluate`.
        folder: Where each way gets a folder.
    """

    def __init__(self, options: list[str], folder: Path) -> None:
        self.options, self.folder = options, folder
        shutil.rmtree(folder, ignore_errors=True)
        self.meant = self.result(self.begun("alone", []), "alone")

    def trial(
        self, name: str, on: str, what: str, harm: Callable[[Path], None] | None = None
    ) -> Trial:
        """Run it by an executor, do it harm once it is under way, and compare the result."""
        begun = time.monotonic()
        running = self.begun(name, ["--on", on])
        if harm is not None:
            harm(self.folder / name)
        is_equal = self.result(running, name) == self.meant
        return Trial(what, time.monotonic() - begun, is_equal)

    def killed_and_resumed(self, name: str, on: str, what: str) -> Trial:
        """Kill the command once it has kept some runs, and resume it."""
        begun = time.monotonic()
        running = self.begun(name, ["--on", on])
        store = self.folder / name / UNFINISHED
        wait_for(lambda: n_kept(store) >= HALF_WAY)
        running.kill()
        running.communicate()
        kept = n_kept(store)
        running = self.begun(name, ["--on", on, "--resume"])
        most = kept
        while running.poll() is None:
            most = max(most, n_kept(store))
            time.sleep(0.05)
        is_equal = self.result(running, name) == self.meant
        return Trial(what, time.monotonic() - begun, is_equal, kept, most - kept)

    def begun(self, name: str, further: list[str]) -> subprocess.Popen[bytes]:
        """Start the command."""
        words = [*self.options, *further, "--output", str(self.folder / name)]
        command = [sys.executable, "-m", "hpcgym", "evaluate", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self, running: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
        """Return the tables that a command has printed, and the runs that it has written."""
        printed, said = running.communicate(timeout=PATIENCE_S)
        if running.returncode:
            raise EvaluationError(f"{name}: {said.decode()[-2000:]}")
        tables = printed.replace(str(self.folder / name).encode(), b"")
        return tables, (self.folder / name / "runs.csv").read_bytes()


def n_kept(store: Path) -> int:
    """Return how many runs a store keeps, 0 where there is none yet."""
    if not store.exists() or not store.stat().st_size:
        return 0
    with suppress(EvaluationError):  # removed meanwhile
        return Store(store).n_kept()
    return 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds.

    Raises:
        EvaluationError: It does not in a quarter of an hour.
    """
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise EvaluationError(f"waited {PATIENCE_S:.0f} s in vain")
        time.sleep(0.1)


@contextmanager
def ray_nodes() -> Iterator[Path]:
    """Start two nodes of Ray with a token of their own; yield the folder in their commands."""
    place = Path(mkdtemp(prefix="hpcgym-"))
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    os.environ.update(token)
    common = ["--num-cpus=1", "--disable-usage-stats"]
    head = ["--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={place}"]
    try:
        for address, further in ((HEAD, head), (NODE, [f"--address={HEAD}:{PORT}"])):
            words = ["start", f"--node-ip-address={address}", *common, *further]
            command = [sys.executable, "-m", "ray.scripts.scripts", *words]
            subprocess.run(command, check=True, capture_output=True)
        yield place
    finally:
        kill(str(place))
        shutil.rmtree(place, ignore_errors=True)


def kill(*texts: str) -> int:
    """Kill the processes, by id, whose command has all these texts; return how many there were."""
    found = 0
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = one.read_bytes().decode(errors="replace")
            if all(text in command for text in texts) and int(one.parent.name) != os.getpid():
                os.kill(int(one.parent.name), signal.SIGKILL)
                found += 1
    return found


def kill_node(session: Path) -> Callable[[Path], None]:
    """Return what kills the second node of Ray once the first run is kept."""

    def harm(folder: Path) -> None:
        wait_for(lambda: n_kept(folder / UNFINISHED) > 0)
        if not kill(str(session), "raylet", NODE):
            raise EvaluationError(f"there is no raylet at {NODE}")

    return harm


def slurm_jobs(state: str = "R") -> list[str]:
    """Return the ids of the jobs of comparisons in some state, the newest last."""
    command = ["squeue", "-h", "-n", "hpcgym", "-t", state, "-o", "%A"]
    return sorted(subprocess.check_output(command, text=True).split(), key=int)


def kill_job(_: Path) -> None:
    """Kill the process of a running job."""
    wait_for(lambda: bool(slurm_jobs()))
    time.sleep(4.0)  # it is at work by then
    subprocess.run(["scancel", "--signal=KILL", "--full", slurm_jobs()[-1]], check=True)


def requeue_job(_: Path) -> None:
    """Requeue a running job, and let it start anew at once."""
    wait_for(lambda: bool(slurm_jobs()))
    time.sleep(4.0)
    job = slurm_jobs()[-1]
    subprocess.run(["scontrol", "requeue", job], check=True)
    wait_for(lambda: job in slurm_jobs("PD") or job not in slurm_jobs("R,CG"))
    subprocess.run(["scontrol", "update", f"jobid={job}", "starttime=now"], check=False)
