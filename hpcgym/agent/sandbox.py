"""Agents that are code, each played by a process of its own: without network, logs or other files.

The process sees observations, as any scheduler would, and answers with actions. What it says is
read as JSON of bounded size and never unpickled. `hpcgym.agent.sandbox_child` says what it may do.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from multiprocessing import Pipe
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import NamedAgent, Observation
from hpcgym.base import plugins
from hpcgym.base.errors import CardError, unknown_name
from hpcgym.base.own_files import digest_of
from hpcgym.trace.catalogue import log_folders

LOAD_S, EPISODE_S = 120.0, 600.0
"""How long loading an agent may take, and all its answers of one episode, s."""

MOST_BYTES = 2**20  # longest answer

KEYWORDS = (
    *("action", "decide", "policies", "n_slots", "observation", "expectations"),
    *("backfill", "backfill_order"),
)
"""Keywords of `HPCBatch-v0` that code in a sandbox may state."""

KINDS = ("bool", "int8", "int32", "int64", "float32", "float64")  # types of numbers of an action
INSTALLED = ("site-packages", "dist-packages")  # what folders of installed packages are called

NONE_HERE = (
    "this system has no sandbox ({}): it takes Linux 5.13 or newer, with Landlock, where users may "
    "make namespaces. Without one, run only code that you trust"
)

PROGRAM = "from hpcgym.agent.sandbox_child import main; main()"


@dataclass
class SandboxedAgent:
    """An agent whose code runs in another process, which begins with its first episode.

    Each episode is played by the agent as it was loaded; it remembers nothing of others.
    """

    given: str  # the absolute path of its file, and ":Name" where that was said
    digest: str  # of the file and what it imports beside it
    _process: _Process | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the process out; another one begins its own."""
        return {"given": self.given, "digest": self.digest, "_process": None}

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose as the code does, which keeps its state to itself; one observation at a time.

        Raises:
            CardError: The code has failed, takes too long, or answers anything but an action.
        """
        if self._process is None:
            self._process = _Process(self.given)
        begins = episode_start is None or bool(episode_start[0])
        try:
            said = self._process.answer(observation, begins)
        except CardError:
            self._process = None
            raise
        try:
            if said["dtype"] not in KINDS:
                raise ValueError
            return np.array(said["action"], dtype=said["dtype"]), None
        except (KeyError, ValueError, TypeError, OverflowError):
            raise CardError(f"{self.given}: that is no action: {said!r:.80}") from None


def load_sandboxed(text: str) -> NamedAgent:
    """Return the agent of a file, whose code never runs in this process.

    Raises:
        CardError: It is no file, has no agent or one that needs other keywords; or this system has
            no sandbox.
    """
    match = plugins.FILE.fullmatch(text)
    if match is None or not Path(match["where"]).expanduser().is_file():
        raise CardError(f"{text}: a sandbox takes a file of Python, as path/to/file.py:Name")
    path = Path(match["where"]).expanduser().resolve()
    given = str(path) if match["name"] is None else f"{path}:{match['name']}"
    said = _Process(given).said
    name, keywords = said.get("name"), said.get("env_keywords")
    if not isinstance(name, str) or not isinstance(keywords, dict):
        raise CardError(f"{text}: has no name or no env_keywords; it says {said!r:.80}")
    for key, value in keywords.items():
        if key not in KEYWORDS:
            raise CardError(f"{text}: {unknown_name('keyword in a sandbox', key, KEYWORDS)}")
        for part in value if isinstance(value, list) else [value]:
            is_code = isinstance(part, str) and plugins.is_reference(part)
            if is_code or not isinstance(part, (str, int, type(None))):
                raise CardError(f"{text}: {key} must be names or numbers, got {part!r:.80}")
    return NamedAgent(name, SandboxedAgent(given, digest_of(path)), keywords)


class _Process:
    """The other process; it ends with this object, and with this process."""

    def __init__(self, given: str) -> None:
        if sys.platform != "linux":
            raise CardError(f"{given}: {NONE_HERE.format(sys.platform)}")
        self._given, self._left_s, self._has_played = given, LOAD_S, False
        self._pipe, theirs = Pipe()
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        installed = [folder for folder in sys.path if Path(folder).name in INSTALLED]
        folders = [str(files("hpcgym").joinpath("..")), *installed]
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": os.pathsep.join(folders)} | dict.fromkeys(threads, "1"),
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        hidden = [str(folder.resolve()) for folder in log_folders()]
        # What it said of the agent once that was loaded.
        self.said = self.answer((given, installed, hidden))

    def __del__(self) -> None:
        """End the process; what it has started ends with it."""
        if child := getattr(self, "_child", None):
            child.kill()
            child.wait()

    def answer(self, question: object, begins: bool = False) -> Mapping[str, Any]:
        """Return what the process says to something, within the time that it has left.

        Args:
            question: What is picked up there.
            begins: Whether an episode begins with it, and another may have to end.

        Raises:
            CardError: It fails, ends, takes too long, or says what is no answer.
        """
        questions = [None, question] if begins and self._has_played else [question]
        if begins:
            self._left_s, self._has_played = EPISODE_S, True
        begun = time.monotonic()
        watch = Timer(max(self._left_s, 0.0), self._child.kill)
        watch.start()
        try:
            for message in questions:
                self._pipe.send_bytes(pickle.dumps(message))
            said = json.loads(self._pipe.recv_bytes(MOST_BYTES), parse_constant=_refuse_constant)
            error = said.get("error")
        except (ValueError, AttributeError, RecursionError):
            error = "it says what is no answer"
        except (EOFError, OSError):
            error = (
                f"its process has ended, or was ended: it has {LOAD_S:.0f} s to load, "
                f"{EPISODE_S:.0f} s for all answers of an episode, and {MOST_BYTES:,} bytes for one"
            )
        finally:
            watch.cancel()
            self._left_s -= time.monotonic() - begun
        if error is not None:
            self._child.kill()
            raise CardError(f"{self._given}, in a sandbox: {' '.join(str(error).split()):.300}")
        return dict(said)


def _refuse_constant(text: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(text)
